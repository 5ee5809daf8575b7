import Glibc
import Hashing
import PrefetchModel
internal import SQLite

/// A source of a merge, read in one transaction and not changed. The database may be anyone's, see
/// ``CacheDatabase/accept(_:path:of:)``; paths are derived from digests.
final class MergeSource {
    /// The position among the sources; 0 is the destination.
    let number: Int
    let directory: CacheDirectory
    /// The path of the database, or of its salvaged copy.
    private let path: String
    let connection: Connection
    /// Keeps runs from changing the cache.
    private let lock: CacheLock?
    /// Whether a power cut may have torn its files: a run of another boot did not synchronise them.
    let mayHaveTornFiles: Bool
    /// The merged identifiers of its rows in `variant_name`.
    var names: [Int64: Int64] = [:]
    var identifiers: MergedIdentifiers
    private var checkedTables: Set<String> = []
    /// Rows that this program cannot have written.
    var invalidRows = 0

    private init(
        number: Int, directory: CacheDirectory, path: String, connection: Connection,
        lock: CacheLock?
    ) throws {
        self.number = number
        self.directory = directory
        self.path = path
        self.connection = connection
        self.lock = lock
        try connection.execute("PRAGMA cache_size = -4096; BEGIN")
        identifiers = try MergedIdentifiers(of: connection)
        mayHaveTornFiles =
            try number > 0
            && RunLog.firstUnsynchronized(bootID: BootID.current(), in: connection) != nil
    }

    /// Opens the destination's own database; `isOpen` tells whether this process has it open.
    convenience init(destination directory: CacheDirectory, isOpen: Bool) throws {
        let path = directory.path(of: CacheDirectory.databaseName)
        let connection = try CacheDatabase.open(
            path, in: directory, access: isOpen ? .readOnly : .immutable)
        try self.init(
            number: 0, directory: directory, path: path, connection: connection, lock: nil)
    }

    /// Opens another cache. A small database is checked each time, a large one after an unclean end
    /// or on suspicion, as a run does with its own.
    ///
    /// - Throws: ``StorageError``: for damage, or if the folder is not a cache of this program, has
    ///   another schema, or a run holds it.
    convenience init(
        number: Int, directory: CacheDirectory, waiting: OpenCache.LockWaiting = .none
    ) throws {
        guard try CacheDatabase.checkFiles(directory) else { throw directory.hasNoDatabase }
        let lock = try CacheLock.share(directory, waiting: waiting)
        let path = directory.path(of: CacheDirectory.databaseName)
        do {
            let connection = try CacheDatabase.openForExamination(directory, path)
            if try MergeSource.needsCheck(connection, directory) {
                try MergeSource.check(connection)
            }
            try self.init(
                number: number, directory: directory, path: path, connection: connection,
                lock: lock)
        } catch {
            let error = StorageError(error, "reading", path)
            // A log without an index is readable as a copy.
            let isCopied = error.code == .refused && CacheDatabase.lacksIndex(directory)
            guard error.isDamage || error.raisesSuspicion || isCopied else { throw error }
            throw StorageError.damaged("reading", path, error.message)
        }
    }

    convenience init(salvaged path: String, number: Int, directory: CacheDirectory) throws {
        let lock = try CacheLock.share(directory)
        try self.init(
            number: number, directory: directory, path: path,
            connection: try CacheDatabase.open(path, in: directory, access: .immutable),
            lock: lock)
    }

    /// Calls `body`, which reads from this source.
    ///
    /// - Throws: ``StorageError`` for damage of this source, with its database as the subject.
    func reading<Result: ~Copyable>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as SQLiteError where error.isUnreadable {
            throw StorageError.damaged("reading", path, error.message)
        }
    }

    /// The rows of a table that a condition selects, with the columns of its layout.
    func rows(of layout: TableLayout, where condition: String) throws -> Statement {
        try reading {
            if checkedTables.insert(layout.table).inserted { try layout.check(in: connection) }
            return try connection.prepare(
                "SELECT \(layout.list) FROM \(layout.table) WHERE \(condition)")
        }
    }

    /// Calls `body` with the valid rows of a table that a condition selects.
    func forEachRow(
        of table: RowInsertion, where condition: String = "TRUE", _ parameters: Statement.Value...,
        body: (borrowing Statement) throws -> Void
    ) throws {
        let rows = try rows(of: table.layout, where: condition)
        try rows.bind(parameters)
        while try reading({ try rows.step() }) {
            if try table.isValid(rows) {
                try body(rows)
            } else {
                invalidRows += 1
            }
        }
    }

    func hasRows(in table: String) throws -> Bool {
        try reading {
            try connection.hasRow("SELECT 1 FROM \(table) LIMIT 1")
        }
    }

    private static func needsCheck(
        _ connection: Connection, _ directory: CacheDirectory
    ) throws -> Bool {
        if directory.isDatabaseSuspected { return true }
        let size = try connection.pragma("page_count") * connection.pragma("page_size")
        return try size <= CacheDatabase.sizeAlwaysChecked.bytes
            || RunLog.hasUncleanEnd(in: connection)
    }

    private static func check(_ connection: Connection) throws {
        let finding = try connection.first("PRAGMA integrity_check(1)") { try $0.text(0) }
        guard finding == "ok" else {
            throw SQLiteError(code: .corrupt, message: finding ?? "cannot be checked")
        }
    }
}

struct MergedIdentifiers {
    /// By the source's identifier; 0 for none.
    private var dense: [UInt32] = []
    /// Used if the source's identifiers are far apart, or there are too many of them.
    private var sparse: [Int64: Int64] = [:]

    /// SQLite numbers rows consecutively, so few identifiers of the range are missing.
    init(of connection: Connection) throws {
        let range = try connection.first("SELECT coalesce(max(id), 0), count(*) FROM resource") {
            (largest: try $0.integer(0), count: try $0.integer(1))
        }
        guard let range, range.largest < 1 << 31, range.largest < 8 * range.count + 1 << 16 else {
            return
        }
        dense = [UInt32](repeating: 0, count: Int(max(0, range.largest)) + 1)
    }

    subscript(resource: Int64) -> Int64? {
        get {
            guard !dense.isEmpty else { return sparse[resource] }
            guard resource >= 0, resource < dense.count else { return nil }
            let merged = dense[Int(resource)]
            return merged == 0 ? nil : Int64(merged)
        }
        set {
            if !dense.isEmpty, resource >= 0, resource < dense.count {
                dense[Int(resource)] = UInt32(truncatingIfNeeded: newValue ?? 0)
            } else {
                sparse[resource] = newValue
            }
        }
    }
}

/// The valid resources of a source in the order of their keys.
final class ResourceCursor {
    let source: MergeSource
    private let appender: RowInsertion
    private let statement: Statement
    let freshnessColumns: (validated: Int32, expires: Int32, vary: Int32)
    private(set) var hasRow = false
    private let columns: (id: Int32, key: Int32)
    private(set) var id: Int64 = 0
    /// The key of the last row, which is compared with that of the next one.
    private var key: [UInt8] = []
    private var isFirst = true

    init(_ source: MergeSource, for appender: RowInsertion) throws {
        self.source = source
        self.appender = appender
        let layout = appender.layout
        columns = (layout["id"], layout["key"])
        freshnessColumns = (layout["validated_at"], layout["expires_at"], layout["vary"])
        statement = try source.rows(of: appender.layout, where: "TRUE ORDER BY key")
        try advance()
    }

    /// Moves to the next valid row. Afterwards ``hasRow`` tells whether there is one.
    ///
    /// - Throws: as ``MergeSource/reading(_:)``, also when the keys are not in order.
    func advance() throws {
        try source.reading {
            while try statement.step() {
                guard try appender.isValid(statement) else {
                    source.invalidRows += 1
                    continue
                }
                let next = try statement.textBytes(columns.key)
                if !isFirst, ResourceCursor.order(next, key) <= 0 {
                    throw SQLiteError(code: .corrupt, message: "keys are not in order")
                }
                isFirst = false
                key.removeAll(keepingCapacity: true)
                key.append(contentsOf: next)
                id = try statement.integer(columns.id)
                hasRow = true
                return
            }
            hasRow = false
        }
    }

    func withRow<Result>(_ body: (borrowing Statement) throws -> Result) rethrows -> Result {
        try body(statement)
    }

    func keyFingerprint(by hasher: borrowing SHA256Hasher) -> KeyFingerprint {
        key.withUnsafeBytes { KeyFingerprint($0, hasher: hasher) }
    }

    /// Compares the current keys as SQLite does: negative if this one is smaller.
    func orderOfKey(_ other: ResourceCursor) -> Int {
        key.withUnsafeBytes { ResourceCursor.order($0, other.key) }
    }

    private static func order(_ left: UnsafeRawBufferPointer, _ right: [UInt8]) -> Int {
        right.withUnsafeBytes { right in
            let count = min(left.count, right.count)
            if count > 0, let left = left.baseAddress, let right = right.baseAddress {
                let order = memcmp(left, right, count)
                if order != 0 { return Int(order) }
            }
            return left.count - right.count
        }
    }
}
