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
    var identifiers = MergedIdentifiers()
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

    init() {}

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
