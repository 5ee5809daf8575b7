internal import CSQLite
internal import Glibc

/// A connection to a database file, with extended result codes and foreign keys on; names in double
/// quotes are never strings.
///
/// One thread at a time may use it and its statements: the one that opened it, or the one that
/// ``SerializedConnection`` lends it to, which is checked at every row. So it is opened with
/// `SQLITE_OPEN_NOMUTEX`: a mutex of SQLite's around each call would protect nothing more, and a
/// million rows are ten million calls.
package final class Connection {
    package enum Access: Sendable {
        /// Makes the file where it is missing.
        case readWrite
        /// A file that is missing is an error.
        case readWriteExisting
        case readOnly
        /// The same, and the index of a log is not made or written either. (`readonly_shm=1`; SQLite's pages do not name it,
        /// `os_unix.c` does.)
        case readOnlyIndex
        /// The file is read as it is, without locks, and without the log that even readers would
        /// make: right as long as nobody writes it. (`immutable=1` of SQLite's "URI Filenames".)
        case immutable
    }

    package enum TransactionKind: String {
        /// Begins to read with the first statement that does.
        case deferred = "BEGIN DEFERRED"
        /// Waits at once for its turn to write. One that reads first may find when it writes that
        /// another has written meanwhile, which no waiting helps.
        case immediate = "BEGIN IMMEDIATE"
    }

    package enum CheckpointMode {
        /// Moves what no reader needs and waits for nobody.
        case passive
        /// Waits for readers as long as the busy time-out says, moves all and empties the log.
        case truncate
    }

    /// Of a statement. Hashed by its length alone, since hashing hundreds of bytes twice for each use was a tenth of
    /// what a new row costs; texts are mostly literals, which are equal at one look.
    private struct Text: Hashable {
        let sql: String

        func hash(into hasher: inout Hasher) { hasher.combine(sql.utf8.count) }
    }

    /// Nil after ``close()``.
    private(set) var handle: OpaquePointer?
    /// Statements that nobody uses, by their text. Texts are never made of values, so they are a
    /// few dozen; to prepare one costs more than a look-up.
    private var idle: [Text: OpaquePointer] = [:]
    private var owner = pthread_self()

    /// Once in a process. Where somebody else has set SQLite up before, it goes on counting.
    private static let countsNoMemory = csqlite_count_no_memory() == SQLITE_OK

    /// Opens a database, which may not be looked at before the first statement.
    ///
    /// - Parameters:
    ///   - path: of the file; never taken for a URI.
    ///   - access: what is to be done with it.
    ///   - busyTimeout: see ``setBusyTimeout(_:)``.
    /// - Throws: when the file cannot be opened.
    package init(
        path: String, access: Access, busyTimeout: Duration = .zero
    ) throws(SQLiteError) {
        _ = Connection.countsNoMemory
        guard sqlite3_threadsafe() != 0 else {
            throw SQLiteError(code: .misuse, message: "libsqlite3 is built without threads")
        }
        // The library may be built to take such names for URIs whatever the flags.
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
        let code = sqlite3_open_v2(name, &handle, flags, nil)
        guard code == SQLITE_OK else {
            // One that could not be opened has to be closed, too.
            sqlite3_close_v2(handle)
            handle = nil
            throw SQLiteError(
                code: .init(rawValue: code), message: String(cString: sqlite3_errstr(code)))
        }
        setBusyTimeout(busyTimeout)
        try check(csqlite_refuse_double_quoted_strings(handle))
        try execute("PRAGMA foreign_keys = ON")
    }

    deinit {
        // Statements keep their connection, so none is in use.
        for statement in idle.values { sqlite3_finalize(statement) }
        sqlite3_close_v2(handle)
    }

    /// Closes the connection, which otherwise the end of its last reference does. Whatever is asked
    /// of it afterwards throws `SQLITE_MISUSE`; closing twice does no harm.
    ///
    /// The last connection to a database in WAL mode moves the log into it and removes the log.
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

    /// Carries out statements without parameters, separated by semicolons.
    package func execute(_ sql: String) throws(SQLiteError) {
        try check(sqlite3_exec(try open(for: sql), sql, nil, nil, nil), sql: sql)
    }

    /// The number that a pragma gives.
    package func pragma(_ name: String) throws(SQLiteError) -> Int64 {
        let statement = try Statement(self, sql: "PRAGMA \(name)")
        guard try statement.step() else {
            throw SQLiteError(code: .error, message: "no pragma \(name)")
        }
        return try statement.integer(0)
    }

    /// The identifier of the row that was inserted last.
    package var lastInsertedRowID: Int64 { sqlite3_last_insert_rowid(handle) }

    /// Rows that the last statement changed, less those that a trigger or a foreign key did.
    package var changes: Int { Int(sqlite3_changes64(handle)) }

    /// Takes a statement that is ready for its first value.
    func takeStatement(_ sql: String) throws(SQLiteError) -> OpaquePointer {
        let handle = try open(for: sql)
        if let statement = idle.removeValue(forKey: Text(sql: sql)) { return statement }
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

    /// Keeps a statement for the next one who wants its text.
    func giveBack(_ statement: OpaquePointer, _ sql: String) {
        checkOwner()
        // The error of the last step, which was thrown then.
        sqlite3_reset(statement)
        sqlite3_clear_bindings(statement)
        sqlite3_finalize(idle.updateValue(statement, forKey: Text(sql: sql)))
    }

    // MARK: Transactions

    /// Carries `body` out in a transaction, which is rolled back when it throws.
    ///
    /// - Throws: what `body` throws; and where the transaction cannot begin or end.
    package func transaction<Result>(
        _ kind: TransactionKind, _ body: () throws -> Result
    ) throws -> Result {
        try Statement(self, sql: kind.rawValue).execute()
        do {
            let result = try body()
            guard isInTransaction else {
                // After some errors SQLite rolls back by itself; `body` has kept one from us.
                throw SQLiteError(code: .abort, message: "the transaction was rolled back")
            }
            try Statement(self, sql: "COMMIT").execute()
            return result
        } catch {
            // The first error says what is wrong. Where this one fails, so does the next `BEGIN`.
            if isInTransaction { try? Statement(self, sql: "ROLLBACK").execute() }
            throw error
        }
    }

    /// Carries `body` out without triggers and foreign keys: for many changes of one kind, whose consequences are cheaper
    /// found together. No statement may be in use. Every statement is prepared anew before and after, which takes some
    /// tenths of a millisecond.
    package func withoutTriggers<Result>(_ body: () throws -> Result) throws -> Result {
        checkOwner()
        try check(csqlite_enable_triggers(handle, 0))
        // Cannot fail on an open connection: SQLite sets two flags.
        defer { _ = csqlite_enable_triggers(handle, 1) }
        return try body()
    }

    private var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Moves the write-ahead log into the database.
    ///
    /// - Returns: the frames in the log, and those of them that are in the database now.
    /// - Throws: `SQLITE_BUSY` while another connection moves the log, or with
    ///   ``CheckpointMode/truncate`` reads it.
    package func checkpoint(
        _ mode: CheckpointMode
    ) throws(SQLiteError) -> (frames: Int, moved: Int) {
        checkOwner()
        var (frames, moved) = (Int32(0), Int32(0))
        let number = mode == .passive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE
        try check(sqlite3_wal_checkpoint_v2(handle, "main", number, &frames, &moved))
        return (Int(frames), Int(moved))
    }

    /// Whether the log and its index stay when the last connection closes, empty as they are then. Readers who may not write
    /// need them: SQLite gives them neither (`SQLITE_FCNTL_PERSIST_WAL`).
    package func keepLog(_ isKept: Bool) throws(SQLiteError) {
        checkOwner()
        var value: Int32 = isKept ? 1 : 0
        try check(sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &value))
    }

    /// Whether the last connection leaves the log as it is when it is closed, which otherwise it moves into
    /// the database: not to be done where the two may not belong together.
    package func setKeepsLogAtClose(_ keeps: Bool) throws(SQLiteError) {
        try check(csqlite_keep_log_at_close(handle, keeps ? 1 : 0))
    }

    /// How long another connection's hold of the database is waited for; in whole milliseconds.
    package func setBusyTimeout(_ timeout: Duration) {
        // Cannot fail: SQLite keeps a number.
        sqlite3_busy_timeout(handle, Int32(clamping: Int64(timeout / .milliseconds(1))))
    }

    func interrupt() { sqlite3_interrupt(handle) }

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

    /// The version of the library as it is loaded, like `3.40.1`.
    package static var libraryVersion: String { String(cString: sqlite3_libversion()) }
}

@available(*, unavailable)
extension Connection: Sendable {}
