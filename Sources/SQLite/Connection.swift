internal import CSQLite
internal import Glibc

/// A connection to a database file, with extended result codes and foreign keys enabled. Names in
/// double quotes are never string literals. Views, and functions with effects in a schema, are
/// refused, and sizes limited. Only one thread at a time may use it and its statements: its
/// creator, or the borrower from ``SerializedConnection``. Every row checks this, so it is opened
/// with `SQLITE_OPEN_NOMUTEX`, which saves a mutex per call: a million rows are ten million calls.
package final class Connection {
    package enum FileAccess: Sendable {
        /// Creates the file if it is missing.
        case readWrite
        /// A missing file is an error.
        case readWriteExisting
        case readOnly
        /// Read-only, also for the log's index (`readonly_shm=1`, found in `os_unix.c` alone).
        case readOnlyIndex
        /// Reads the file without locks and without creating a log, valid only while the file has
        /// no writer. (`immutable=1` of SQLite's "URI Filenames".)
        case immutable
    }

    package enum TransactionKind: String {
        /// Starts to read with the first statement that reads.
        case deferred = "BEGIN DEFERRED"
        /// Waits for the write lock immediately. A transaction that reads first fails to write if
        /// another connection has written since, however long it waits.
        case immediate = "BEGIN IMMEDIATE"
    }

    package enum CheckpointMode {
        /// Moves the frames that no reader needs, without waiting.
        case passive
        /// Waits for readers up to the busy time-out, moves everything and empties the log.
        case truncate
    }

    /// The text of a statement. Its hash is its length: hashing took a tenth of the time of
    /// inserting a row. Most texts are literals, which compare equal by address.
    private struct StatementText: Hashable {
        let sql: String

        func hash(into hasher: inout Hasher) { hasher.combine(sql.utf8.count) }
    }

    /// Nil after ``close()``.
    private(set) var handle: OpaquePointer?
    /// Kept for SQLite; nil for a file.
    private let remote: RemoteDatabase?
    /// Unused statements by text, a few dozen; a look-up costs less than preparing one.
    private var idle: [StatementText: OpaquePointer] = [:]
    private var owner = pthread_self()
    /// At a fixed address, for SQLite's callback.
    let watch = UnsafeMutablePointer<StatementWatch>.allocate(capacity: 1)

    /// Set once per process. Has no effect if SQLite was initialised before.
    private static let countsNoMemory = csqlite_count_no_memory() == SQLITE_OK

    /// Opens a database, which SQLite may not read before the first statement; never by a URI.
    package convenience init(
        path: String, access: FileAccess, busyTimeout: Duration = .zero
    ) throws(SQLiteError) {
        // The library may be built to parse such names as URIs despite the flags.
        var name = path.hasPrefix("file:") ? "./" + path : path
        var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        switch access {
        case .readWrite: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        case .readWriteExisting: flags |= SQLITE_OPEN_READWRITE
        case .readOnly: flags |= SQLITE_OPEN_READONLY
        case .immutable:
            flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
            name = Connection.uri(of: path, "immutable=1")
        case .readOnlyIndex:
            flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
            name = Connection.uri(of: path, "readonly_shm=1")
        }
        try self.init(name: name, flags: flags, remote: nil)
        setBusyTimeout(busyTimeout)
    }

    /// Opens a database that is read by a function. Temporary tables stay in memory.
    package convenience init(remote: RemoteDatabase) throws(SQLiteError) {
        try self.init(
            name: "file:/database?immutable=1",
            flags: SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READONLY
                | SQLITE_OPEN_URI,
            remote: remote)
        try execute("PRAGMA temp_store = MEMORY")
    }

    private init(name: String, flags: Int32, remote: RemoteDatabase?) throws(SQLiteError) {
        self.remote = remote
        watch.initialize(to: StatementWatch())
        _ = Connection.countsNoMemory
        guard sqlite3_threadsafe() != 0 else {
            throw SQLiteError(code: .misuse, message: "libsqlite3 is built without threads")
        }
        let code = sqlite3_open_v2(name, &handle, flags, remote?.name)
        guard code == SQLITE_OK else {
            // A failed open also needs a close.
            sqlite3_close_v2(handle)
            handle = nil
            throw SQLiteError(
                code: .init(rawValue: code), message: String(cString: sqlite3_errstr(code)))
        }
        try limit()
    }

    deinit {
        // Statements retain their connection, so none is in use.
        for statement in idle.values { sqlite3_finalize(statement) }
        sqlite3_close_v2(handle)
        watch.deallocate()
    }

    /// Closes the connection before its last reference is released. Later calls throw
    /// `SQLITE_MISUSE`; closing twice is harmless. The last connection to a database in WAL mode
    /// checkpoints and removes the log.
    ///
    /// - Throws: `SQLITE_BUSY` while a statement is in use; the connection stays open.
    package func close() throws(SQLiteError) {
        checkOwner()
        for statement in idle.values { sqlite3_finalize(statement) }
        idle = [:]
        try check(sqlite3_close(handle))
        handle = nil
    }

    private static func uri(of path: String, _ parameter: String) -> String {
        var uri = path.hasPrefix("/") ? "file://" : "file:"
        for scalar in path.unicodeScalars {
            switch scalar {
            case "%": uri += "%25"
            case "?": uri += "%3F"
            case "#": uri += "%23"
            default: uri.unicodeScalars.append(scalar)
            }
        }
        return uri + "?\(parameter)"
    }

    // MARK: Statements

    /// Executes statements separated by semicolons; each has the whole time limit.
    package func execute(_ sql: String) throws(SQLiteError) {
        let handle = try open(for: sql)
        let code = sql.withCString { text in
            var (rest, code): (UnsafePointer<CChar>?, Int32) = (text, SQLITE_OK)
            while code == SQLITE_OK, let next = rest, next.pointee != 0 {
                var statement: OpaquePointer?
                code = sqlite3_prepare_v2(handle, next, -1, &statement, &rest)
                // Without a statement, only white space or a comment was left.
                guard code == SQLITE_OK, statement != nil else { continue }
                repeat {
                    watch.pointee.steps &+= 1
                } while sqlite3_step(statement) == SQLITE_ROW
                // Returns the error of the last step.
                code = sqlite3_finalize(statement)
            }
            return code
        }
        try check(code, sql: sql)
    }

    package func pragma(_ name: String) throws(SQLiteError) -> Int64 {
        let statement = try Statement(self, sql: "PRAGMA \(name)")
        guard try statement.step() else {
            throw SQLiteError(code: .error, message: "no pragma \(name)")
        }
        return try statement.integer(0)
    }

    package var lastInsertedRowID: Int64 { sqlite3_last_insert_rowid(handle) }

    /// The rows that the last statement changed itself, not by triggers or foreign keys.
    package var changes: Int { Int(sqlite3_changes64(handle)) }

    func takeStatement(_ sql: String) throws(SQLiteError) -> OpaquePointer {
        let handle = try open(for: sql)
        if let statement = idle.removeValue(forKey: StatementText(sql: sql)) { return statement }
        var statement: OpaquePointer?
        var text = sql
        let (code, isWhole) = text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { bytes in
                var rest: UnsafePointer<CChar>?
                let code = sqlite3_prepare_v3(
                    handle, bytes.baseAddress, Int32(bytes.count),
                    UInt32(SQLITE_PREPARE_PERSISTENT), &statement, &rest)
                return (code, rest == bytes.baseAddress.map { $0 + bytes.count })
            }
        }
        try check(code, sql: sql)
        guard let statement, isWhole else {
            sqlite3_finalize(statement)
            throw SQLiteError(code: .misuse, message: "not one statement", sql: sql)
        }
        return statement
    }

    func giveBack(_ statement: OpaquePointer, _ sql: String) {
        checkOwner()
        // Returns the error of the last step, which was already thrown.
        sqlite3_reset(statement)
        sqlite3_clear_bindings(statement)
        sqlite3_finalize(idle.updateValue(statement, forKey: StatementText(sql: sql)))
    }

    // MARK: Transactions

    /// Runs `body` in a transaction and rolls it back if `body` throws.
    package func transaction<Result>(
        _ kind: TransactionKind, _ body: () throws -> Result
    ) throws -> Result {
        try Statement(self, sql: kind.rawValue).execute()
        do {
            let result = try body()
            guard isInTransaction else {
                // Some errors make SQLite roll back automatically, and `body` swallowed one.
                throw SQLiteError(code: .abort, message: "the transaction was rolled back")
            }
            try Statement(self, sql: "COMMIT").execute()
            return result
        } catch {
            // The first error is the cause. If the rollback fails, the next `BEGIN` fails too.
            if isInTransaction { try? Statement(self, sql: "ROLLBACK").execute() }
            throw error
        }
    }

    /// Runs `body` without triggers and foreign keys, for bulk changes with effects that are
    /// cheaper to compute together. No statement may be in use. All statements are prepared again
    /// before and after, which takes some tenths of a millisecond.
    package func withoutTriggers<Result>(_ body: () throws -> Result) throws -> Result {
        checkOwner()
        try check(csqlite_enable_triggers(handle, 0))
        // Cannot fail on an open connection: SQLite only sets two flags.
        defer { _ = csqlite_enable_triggers(handle, 1) }
        return try body()
    }

    private var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Returns the number of frames in the log, and of frames that are in the database now.
    ///
    /// - Throws: `SQLITE_BUSY` while another connection runs a checkpoint, or, with
    ///   ``CheckpointMode/truncate``, while it reads the log.
    package func checkpoint(
        _ mode: CheckpointMode
    ) throws(SQLiteError) -> (frames: Int, moved: Int) {
        checkOwner()
        var (frames, moved) = (Int32(0), Int32(0))
        let number = mode == .passive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE
        try check(sqlite3_wal_checkpoint_v2(handle, "main", number, &frames, &moved))
        return (Int(frames), Int(moved))
    }

    /// Sets whether the emptied log and its index remain when the last connection closes: readers
    /// without write permission cannot create them (`SQLITE_FCNTL_PERSIST_WAL`).
    package func keepLog(_ isKept: Bool) throws(SQLiteError) {
        checkOwner()
        var value: Int32 = isKept ? 1 : 0
        try check(sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &value))
    }

    /// Sets whether closing the last connection leaves the log as it is instead of running a
    /// checkpoint. Use it if log and database may not belong together.
    package func setKeepsLogAtClose(_ keeps: Bool) throws(SQLiteError) {
        try check(csqlite_keep_log_at_close(handle, keeps ? 1 : 0))
    }

    /// Sets the time to wait for another connection's lock, in whole milliseconds.
    package func setBusyTimeout(_ timeout: Duration) {
        // Cannot fail: SQLite only stores a number.
        sqlite3_busy_timeout(handle, Int32(clamping: Int64(timeout / .milliseconds(1))))
    }

    // MARK: Copies

    /// Copies a snapshot of the database, including its log, over another one of the same thread.
    /// Before each step of `pagesAtOnce` pages, 1 or more, `isStopped` may end the copy. Returns
    /// false then, and the copy is unusable. Takes no lock between steps. A change by another
    /// connection restarts the copy; changes by this one are included.
    package func backUp(
        to copy: Connection, pagesAtOnce: Int, isStopped: () -> Bool
    ) throws(SQLiteError) -> Bool {
        checkOwner()
        guard let backup = sqlite3_backup_init(copy.handle, "main", handle, "main") else {
            try copy.check(sqlite3_extended_errcode(copy.handle))
            throw SQLiteError(code: .misuse, message: "no copy can be begun")
        }
        var code = SQLITE_OK
        var isEnded = false
        while code == SQLITE_OK {
            isEnded = isStopped()
            if isEnded { break }
            code = sqlite3_backup_step(backup, Int32(clamping: pagesAtOnce))
        }
        // Repeats the step's error, or else reports the error of the last write.
        let end = sqlite3_backup_finish(backup)
        guard !isEnded else { return false }
        guard code == SQLITE_DONE else {
            throw SQLiteError(
                code: .init(rawValue: code), message: String(cString: sqlite3_errstr(code)))
        }
        try copy.check(end)
        return true
    }

    package func serialized() throws(SQLiteError) -> [UInt8] {
        checkOwner()
        var count: Int64 = 0
        guard let bytes = sqlite3_serialize(handle, "main", &count, 0) else {
            throw SQLiteError(code: .init(rawValue: SQLITE_NOMEM), message: "out of memory")
        }
        defer { sqlite3_free(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }

    // MARK: Checks

    func takeOwnership() { owner = pthread_self() }

    func checkOwner() {
        precondition(pthread_equal(owner, pthread_self()) != 0, "a connection of another thread")
    }

    private func open(for sql: String) throws(SQLiteError) -> OpaquePointer {
        checkOwner()
        if let handle { return handle }
        throw SQLiteError(code: .misuse, message: "the connection is closed", sql: sql)
    }

    func check(_ code: Int32, sql: String? = nil) throws(SQLiteError) {
        guard code != SQLITE_OK else { return }
        throw SQLiteError(
            code: .init(rawValue: code), message: String(cString: sqlite3_errmsg(handle)), sql: sql)
    }

    package static var libraryVersion: String { String(cString: sqlite3_libversion()) }
}

@available(*, unavailable)
extension Connection: Sendable {}
