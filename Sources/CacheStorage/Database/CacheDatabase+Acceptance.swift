import Hashing
import PrefetchModel
internal import SQLite

// The check of a database before its first use, since anybody may have written it. SQLite computes
// expressions of a schema while it checks or changes rows, at any cost.

extension CacheDatabase {
    /// Accepts a database with the tables of ``Schema``, and with additions that compute nothing.
    /// `path` is for messages, `directory` its cache; nil for a database on a server.
    ///
    /// - Throws: ``StorageError`` if it is another program's, of another version or damaged.
    static func accept(
        _ connection: Connection, path: String, of directory: CacheDirectory?
    ) throws {
        let isMarked = try connection.pragma("application_id") == Schema.applicationID
        let version = try connection.pragma("user_version")
        // Before the schema is read, which another version may have made in any way.
        if isMarked, ![0, Schema.schemaVersion].contains(version) {
            throw otherVersion(version, path)
        }
        do {
            try connection.readSchema()
        } catch {
            throw error.code == .tooBig && !isMarked ? foreign(path, directory) : error
        }
        let present = try SchemaPart.all(in: connection)
        guard isMarked else {
            let own = ["table resource", "table variant", "table freshness"]
            if own.allSatisfy({ present[$0] != nil }) {
                throw StorageError.damaged("opening", path, "its application ID is wrong")
            }
            // A database always has its schema: SQLite takes a file of one byte for empty.
            guard try present.isEmpty && connection.pragma("application_id") == 0 else {
                throw foreign(path, directory)
            }
            throw StorageError.damaged("opening", path, "holds nothing")
        }
        let isExact = SchemaPart.areOurs(present)
        guard version == Schema.schemaVersion else {
            // The number of this version's tables is lost in the header.
            throw isExact
                ? StorageError.damaged("opening", path, "its schema version is missing")
                : otherVersion(version, path)
        }
        // Making tables to compare with takes milliseconds.
        if isExact { return }
        let wanted = try SchemaPart.made.get()
        for (name, own) in wanted.sorted(by: { $0.key < $1.key }) {
            guard let part = present[name], part.isMade(like: own) else {
                let message = "the \(name) is not as this prefetch makes it"
                var error = StorageError.damaged("opening", path, message)
                error.hint =
                    "another build or program made it so; `prefetch run` replaces the database and "
                    + "salvages its readable rows"
                throw error
            }
        }
        for (name, part) in present where wanted[name] == nil {
            guard try part.isHarmless(beside: wanted, in: connection) else {
                let message = "it has another program's \(part.kind)"
                throw StorageError.damaged("opening", path, message)
            }
        }
    }

    private static func foreign(_ path: String, _ directory: CacheDirectory?) -> StorageError {
        // The file's header is this program's, but not the first page of its log.
        if directory?.hasOwnDatabase == true {
            return StorageError.damaged("opening", path, "its log belongs to another database")
        }
        return .refused(
            path, "is the database of another program",
            hint: "name another directory with --cache-dir")
    }

    /// The error for a cache of another schema; names its folder.
    static func otherVersion(_ version: Int64, _ path: String) -> StorageError {
        let suffix = "/" + CacheDirectory.databaseName
        return .refused(
            path.hasSuffix(suffix) ? String(path.dropLast(suffix.count)) : path,
            "has schema version \(version), and this prefetch reads version "
                + "\(Schema.schemaVersion)",
            hint: "use the prefetch that made it, or fetch its images into another directory")
    }
}

struct SchemaPart: Sendable {
    let kind: String
    let name: String
    /// The table of an index or a trigger, in lower case.
    let table: String
    /// Whether it is stored; virtual tables are not.
    let hasPages: Bool
    /// Its SQL without white space, in which SQLite's versions differ after `ALTER TABLE`.
    let text: [UInt8]

    /// The parts of a schema by kind and name: `table resource`.
    static func all(in database: Connection) throws -> [String: SchemaPart] {
        let parts = try database.all(
            """
            SELECT type, name, lower(tbl_name), rootpage > 0, sql FROM sqlite_schema
            WHERE sql IS NOT NULL
            """
        ) { row in
            SchemaPart(
                kind: try row.text(0), name: try row.text(1), table: try row.text(2),
                hasPages: try row.integer(3) != 0,
                text: try row.textBytes(4).filter { $0 != 32 && !(9...13).contains($0) })
        }
        return Dictionary(
            parts.map { ("\($0.kind) \($0.name)", $0) }, uniquingKeysWith: { $1 })
    }

    /// The digest of all parts without additions; a test computes it.
    static let digestOfAll = "47e60fa9996b9d97ff63c2f88df29d67299020e04e2eb2cd2161e70948aab462"

    /// Whether these are the parts that this program makes, without additions.
    static func areOurs(_ parts: [String: SchemaPart]) -> Bool {
        digest(of: parts).description == digestOfAll
    }

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

    static let made = Result {
        let database = try Connection(path: ":memory:", access: .readWrite)
        try Schema.makeTables(database)
        return try all(in: database)
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
    func isHarmless(beside own: [String: SchemaPart], in database: Connection) throws -> Bool {
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
            let expression = try database.first(
                "SELECT 1 FROM pragma_index_xinfo(?) WHERE cid = -2", .text(name)
            ) { _ in true }
            return !has("where") && expression == nil
        default: return false
        }
    }
}
