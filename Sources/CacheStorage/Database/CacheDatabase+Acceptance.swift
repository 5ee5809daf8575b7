import Hashing
import PrefetchModel
internal import SQLite

// The check of a database before its first use. Anybody may have written it: the source of a merge,
// a seed, what a bucket sends, and this cache's own after damage or a swap. SQLite computes
// expressions of a schema while it checks or changes rows, at any cost.

extension CacheDatabase {
    enum Mismatch: Error {
        case foreign, newer, older, empty
        /// A damaged database of this program.
        case unmarked, unversioned, altered(String)
    }

    /// Accepts a database of this program whose schema is the one that its version made. Additions
    /// of other programs that compute nothing are allowed.
    ///
    /// - Throws: ``Mismatch``.
    static func accept(_ connection: Connection, allowsOlder: Bool = false) throws {
        let isMarked = try connection.pragma("application_id") == Schema.applicationID
        do {
            try connection.readSchema()
        } catch {
            throw error.code == .tooBig && !isMarked ? Mismatch.foreign : error
        }
        let present = try SchemaPart.all(in: connection)
        guard isMarked else {
            let own = ["table \(Schema.versionTable)", "table resource", "table variant"]
            if own.allSatisfy({ present[$0] != nil }) { throw Mismatch.unmarked }
            // A database always has its schema: SQLite takes a file of one byte for empty.
            let isEmpty = try present.isEmpty && connection.pragma("application_id") == 0
            throw isEmpty ? Mismatch.empty : Mismatch.foreign
        }
        // Making schemas to compare with takes milliseconds.
        let isNewest = SchemaPart.digest(of: present).description == SchemaPart.newest
        let made = isNewest ? [] : try SchemaPart.versions.get()
        if !isNewest { try compare(["table \(Schema.versionTable)"], of: made[0], with: present) }
        let known = Schema.migrator.migrations.map(\.identifier)
        let applied = try Schema.migrator.applied(in: connection)
        guard applied.isSubset(of: known) else {
            // A newer version has all earlier versions.
            throw applied.isSuperset(of: known) ? Mismatch.newer : Mismatch.unversioned
        }
        guard !applied.isEmpty, applied == Set(known.prefix(applied.count)) else {
            throw Mismatch.unversioned
        }
        guard allowsOlder || applied.count == known.count else { throw Mismatch.older }
        if isNewest {
            guard applied.count == known.count else { throw Mismatch.unversioned }
            return
        }
        let wanted = made[applied.count - 1]
        try compare(wanted.keys.sorted(), of: wanted, with: present)
        for (name, part) in present where wanted[name] == nil {
            if try !part.isHarmless(beside: wanted, in: connection) {
                throw Mismatch.altered("it has another program's \(part.kind)")
            }
        }
    }

    private static func compare(
        _ names: [String], of wanted: [String: SchemaPart], with present: [String: SchemaPart]
    ) throws {
        for name in names {
            guard let part = present[name], let own = wanted[name], part.isMade(like: own) else {
                throw Mismatch.altered("the \(name) is not as prefetch made it")
            }
        }
    }
}

/// A table, index, trigger or view of a schema.
struct SchemaPart: Sendable {
    let kind: String
    let name: String
    /// The table of an index or a trigger, in lower case.
    let table: String
    /// Whether it is stored; virtual tables are not.
    let hasPages: Bool
    /// Its SQL without white space: versions of SQLite format the result of `ALTER TABLE`
    /// differently.
    let text: [UInt8]

    /// The parts of a schema by kind and name: `table resource`.
    static func all(in database: Connection) throws -> [String: SchemaPart] {
        let parts = try Statement(
            database,
            sql: """
                SELECT type, name, lower(tbl_name), rootpage > 0, sql FROM sqlite_schema
                WHERE sql IS NOT NULL
                """
        ).all { row in
            SchemaPart(
                kind: try row.text(0), name: try row.text(1), table: try row.text(2),
                hasPages: try row.integer(3) != 0,
                text: try row.textBytes(4).filter { $0 != 32 && !(9...13).contains($0) })
        }
        return Dictionary(
            parts.map { ("\($0.kind) \($0.name)", $0) }, uniquingKeysWith: { $1 })
    }

    /// The digest of the newest schema without additions; a test computes it.
    static let newest = "1b1538bd8aec8aaeddccbb635efc7c4a1c59f6195de682202822bbbafc9ce9b7"

    static func digest(of parts: [String: SchemaPart]) -> ContentDigest {
        var bytes: [UInt8] = []
        for (name, part) in parts.sorted(by: { $0.key < $1.key }) {
            for field in [Array(name.utf8), Array(part.table.utf8), part.text] {
                withUnsafeBytes(of: field.count.littleEndian) { bytes += $0 }
                bytes += field
            }
            bytes.append(part.hasPages ? 1 : 0)
        }
        return bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
    }

    /// The schemas of this program after each migration.
    static let versions = Result {
        let database = try Connection(path: ":memory:", access: .readWrite)
        return try Schema.migrator.migrations.indices.map { index in
            let migrations = Array(Schema.migrator.migrations[...index])
            try Migrator(table: Schema.versionTable, migrations).migrate(database)
            return try all(in: database)
        }
    }

    private static let plainBytes = Set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_,'".utf8)

    /// Whether this is the same as `own`, or a table with further columns. Those need no
    /// parentheses, without which SQL has no CHECK, no generated column and no computed default.
    func isMade(like own: SchemaPart) -> Bool {
        guard hasPages == own.hasPages, table == own.table else { return false }
        if text == own.text { return true }
        guard kind == "table", text.count > own.text.count else { return false }
        let start = zip(text, own.text).prefix { $0 == $1 }.count
        let added = text[start..<(start + text.count - own.text.count)]
        let depth = own.text[..<start].reduce(0) {
            $0 + ($1 == UInt8(ascii: "(") ? 1 : $1 == UInt8(ascii: ")") ? -1 : 0)
        }
        return depth == 1 && text[added.endIndex...].elementsEqual(own.text[start...])
            && (added.first == UInt8(ascii: ",") || added.last == UInt8(ascii: ","))
            && added.count { $0 == UInt8(ascii: "'") }.isMultiple(of: 2)
            && added.allSatisfy(SchemaPart.plainBytes.contains)
    }

    /// Whether another program's part makes SQLite compute nothing, since only tables of this
    /// program are read and changed, but all are checked.
    func isHarmless(
        beside own: [String: SchemaPart], in database: Connection
    ) throws -> Bool {
        func has(_ word: String) -> Bool {
            String(decoding: text, as: UTF8.self).lowercased().contains(word)
        }
        switch kind {
        case "view": return true
        case "trigger": return own["table \(table)"] == nil
        case "table":
            return try hasPages && !has("check") && !has("references")
                && database.isOrdinaryTable(name)
        case "index":
            let expression = try Statement(
                database, sql: "SELECT 1 FROM pragma_index_xinfo(?) WHERE cid = -2"
            ).first(.text(name)) { _ in true }
            return !has("where") && expression == nil
        default: return false
        }
    }
}
