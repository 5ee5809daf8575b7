internal import CLinux
import Glibc
import PrefetchModel
internal import SQLite

/// `prefetch.sqlite`: one connection, opened and checked, which one thread uses at a time. Every
/// call blocks, so none is made from the cooperative pool.
package final class CacheDatabase: Sendable {
    let connection: SerializedConnection
    private let directory: CacheDirectory
    /// Whether the cache has moved to a file system without logs since its last write.
    let hasLeftLog: Bool
    private let identity: FileIdentity?
    let path: String
    private let notesDamage: Bool

    package enum DatabaseUse: Sendable {
        /// Only for the holder of the lock.
        case readWrite
        case readOnly
        /// Creates no files, not even an index of the log, and leaves no note of damage.
        case examination
    }

    /// Throws when the file cannot be opened, is damaged, belongs to another program, or has
    /// another schema; nothing is changed then.
    package init(directory: CacheDirectory, access: DatabaseUse) throws(StorageError) {
        self.directory = directory
        path = directory.path(of: CacheDirectory.databaseName)
        notesDamage = access != .examination
        guard try CacheDatabase.checkFiles(directory) else {
            throw directory.hasNoDatabase
        }
        let path = path
        (connection, hasLeftLog) = try StorageError.converting("opening", path) {
            if access == .readWrite {
                let (opened, hasLeftLog) = try CacheDatabase.openForWriting(path, in: directory)
                return (SerializedConnection(opened), hasLeftLog)
            }
            let opened = try CacheDatabase.unreplaced(in: directory) {
                access == .readOnly
                    ? try CacheDatabase.openForReading(directory, path)
                    : try CacheDatabase.openForExamination(directory, path)
            }
            return (SerializedConnection(opened), false)
        }
        identity = FileIdentity(CacheDirectory.databaseName, in: directory.handle)
    }

    func reopened() throws(StorageError) -> CacheDatabase {
        try CacheDatabase(directory: directory, access: notesDamage ? .readOnly : .examination)
    }

    /// Opens a server's database. `path` is for messages, `directory` is a cache of this user.
    init(remote: RemoteDatabase, path: String, for directory: CacheDirectory) throws(StorageError) {
        self.directory = directory
        self.path = path
        notesDamage = false
        hasLeftLog = false
        identity = nil
        connection = try StorageError.converting("opening", path) {
            let opened = try Connection(remote: remote)
            try CacheDatabase.accept(opened, path: path, of: nil)
            return SerializedConnection(opened)
        }
    }

    /// Closes the connection permanently. The last one removes an empty log with its index. SQLite
    /// would move any other into the database without synchronising the files that its rows name.
    func close() {
        guard logSize.bytes == 0 else { return }
        // Everything is committed, and the next connection reads the remaining log.
        try? connection.access { try $0.close() }
    }

    /// See ``Connection/keepLog(_:)``.
    func keepLog(_ isKept: Bool) throws(StorageError) {
        try access("opening") { try $0.keepLog(isKept) }
    }

    static func open(
        _ path: String, in directory: CacheDirectory, access: Connection.FileAccess
    ) throws(SQLiteError) -> Connection {
        // Readers hold it for moments; longer holds are reported with their holder.
        try Connection(path: path, access: access, busyTimeout: busyTimeout(in: directory))
    }

    /// Opens with a write-ahead log, or with a rollback journal where SQLite cannot use a log or
    /// machines would not share its index. Returns the connection, and whether there was a log,
    /// which is in the database now.
    static func openForWriting(
        _ path: String, in directory: CacheDirectory, makes: Bool = false
    ) throws -> (connection: Connection, hasLeftLog: Bool) {
        guard !directory.hasJournal else {
            return try openWithJournal(path, in: directory, makes: makes)
        }
        do {
            return (try openWithLog(path, in: directory, makes: makes), false)
        } catch let error as SQLiteError where error.code.mayRefuseSharedMemory {
            guard error.code.refusesSharedMemory || refusesLog(in: directory) else { throw error }
            let opened = Result { try openWithJournal(path, in: directory, makes: makes) }
            // There is another cause.
            if !error.code.refusesSharedMemory, case .failure = opened { throw error }
            let result = try opened.get()
            directory.noteJournal()
            return result
        }
    }

    private static func openWithLog(
        _ path: String, in directory: CacheDirectory, makes: Bool
    ) throws -> Connection {
        let connection = try open(path, in: directory, access: .readWrite)
        try begin(connection, path, in: directory, makes: makes)
        if try mode(connection, "PRAGMA journal_mode") != "wal" { try tryLog(in: directory) }
        try connection.execute("PRAGMA journal_mode = WAL")
        // `MetadataWriter` makes rows durable and runs checkpoints.
        try connection.execute("PRAGMA synchronous = NORMAL")
        try connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection
    }

    private static func begin(
        _ connection: Connection, _ path: String, in directory: CacheDirectory, makes: Bool
    ) throws {
        try connection.setKeepsLogAtClose(true)
        if makes {
            try connection.execute("PRAGMA application_id = \(Schema.applicationID)")
        } else {
            try accept(connection, path: path, of: directory)
        }
        try connection.setKeepsLogAtClose(false)
    }

    /// Whether another database cannot have a log either, and no lack of descriptors is the cause.
    private static func refusesLog(in directory: CacheDirectory) -> Bool {
        let others = (0..<8).map { _ in
            openat(directory.handle.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        for number in others where number >= 0 { Glibc.close(number) }
        guard !others.contains(-1) else { return false }
        do {
            try tryLog(in: directory)
            return false
        } catch {
            return true
        }
    }

    /// Opens another, empty database with a log: the cache's would have to be changed twice to
    /// find out that it cannot have one.
    ///
    /// - Throws: if the file system refuses shared memory; other errors are left to the database.
    private static func tryLog(in directory: CacheDirectory) throws {
        let name = "tmp/log.sqlite"
        defer { try? directory.removeDatabase(name) }
        do {
            try directory.removeDatabase(name)
            try directory.makeFile(name)
            let connection = try open(directory.path(of: name), in: directory, access: .readWrite)
            try connection.execute(
                "PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; SELECT 1 FROM sqlite_schema")
        } catch let error as SQLiteError where error.code.mayRefuseSharedMemory {
            throw error
        } catch {
            // A full disk, for example.
        }
    }

    /// The suffixes of SQLite's files beside a database.
    static let companions = ["-wal", "-shm", "-journal"]

    /// Opens the database again if another one has replaced it: SQLite opens the log by name,
    /// and the log of the new database does not belong to the old one.
    private static func unreplaced(
        in directory: CacheDirectory, _ open: () throws -> Connection
    ) throws -> Connection {
        for _ in 0..<100 {
            let before = FileIdentity(CacheDirectory.databaseName, in: directory.handle)
            let opened = Result { try open() }
            let after = FileIdentity(CacheDirectory.databaseName, in: directory.handle)
            if before == after { return try opened.get() }
        }
        return try open()
    }

    /// Opens the database without writing to it. In WAL mode SQLite creates a log and an index even
    /// for readers, which fails in a read-only directory, on a full disk or without shared memory.
    /// Without a log or journal, or with an empty one, the database file is complete and is read
    /// alone, without locks. That is safe if no process can write: a writer on another mount would
    /// have a log.
    private static func openForReading(
        _ directory: CacheDirectory, _ path: String
    ) throws -> Connection {
        do {
            return try openForReading(path, in: directory, access: .readOnly)
        } catch let error as SQLiteError
            where !hasLog(directory)
            // On a full disk, SQLite reports that the index cannot grow.
            && ([.readOnly, .cannotOpen, .full].contains(error.code.primary)
                || error.code == .sharedMemorySize || error.code.refusesSharedMemory)
        {
            return try openForReading(path, in: directory, access: .immutable)
        } catch let error as SQLiteError where error.code.refusesSharedMemory {
            // A killed run's log: SQLite reads it with an index in its own memory.
            let opened = Result {
                try openForReading(path, in: directory, access: .readOnlyIndex)
            }
            guard case .success(let connection) = opened else { throw error }
            return connection
        }
    }

    private static func openForReading(
        _ path: String, in directory: CacheDirectory, access: Connection.FileAccess
    ) throws -> Connection {
        if access != .immutable { try directory.requireLocks() }
        let connection = try open(path, in: directory, access: access)
        let journal = try connection.transaction(.deferred) {
            try awaitIndex(connection, in: directory)
            try accept(connection, path: path, of: directory)
            return try mode(connection, "PRAGMA journal_mode")
        }
        if access != .immutable, journal == "delete" {
            directory.noteJournal()
            connection.setBusyTimeout(busyTimeout(in: directory))
        }
        return connection
    }

    /// Whether a log of more than `headBytes`, or a journal, holds data to move or to roll back.
    static func hasLog(_ directory: CacheDirectory, headBytes: Int = 0) -> Bool {
        [("-wal", headBytes), ("-journal", 0)].contains { suffix, head in
            let name = CacheDirectory.databaseName + suffix
            return directory.handle.status(of: name).map { $0.size > head } ?? false
        }
    }

    /// Refuses anything but regular files under the database's names. Returns whether there is a
    /// database: not an empty file, which SQLite would take for one though its rows are lost.
    static func checkFiles(_ directory: CacheDirectory) throws(StorageError) -> Bool {
        var isThere = false
        for suffix in [""] + companions {
            let name = CacheDirectory.databaseName + suffix
            guard let status = try directory.handle.existingStatus(of: name) else { continue }
            guard status.isFile else {
                throw .refused(
                    directory.path(of: name), "is not a regular file",
                    hint: "move it away; symbolic links inside a cache are refused")
            }
            if suffix.isEmpty { isThere = status.size > 0 }
        }
        return isThere
    }

    /// Whether the database's name leads to the open file. If not, writes are lost.
    var isInPlace: Bool {
        FileIdentity(CacheDirectory.databaseName, in: directory.handle) == identity
    }

    // MARK: Access for this module

    func read<Result>(
        _ operation: String, _ work: (Connection) throws -> Result
    ) throws(StorageError) -> Result {
        try StorageError.converting(operation, path) { try stream(operation, work) }
    }

    func write<Result>(
        _ operation: String, _ work: (Connection) throws -> Result
    ) throws(StorageError) -> Result {
        try StorageError.converting(operation, path) { try stream(operation, in: .immediate, work) }
    }

    /// Runs a transaction; errors other than SQLite's are passed on unchanged.
    func stream<Result>(
        _ operation: String, in kind: Connection.TransactionKind = .deferred,
        _ work: (Connection) throws -> Result
    ) throws -> Result {
        do {
            return try connection.access { connection in
                try connection.transaction(kind) {
                    try CacheDatabase.awaitIndex(connection, in: directory)
                    return try work(connection)
                }
            }
        } catch let error as SQLiteError {
            let error = StorageError(error, operation, path)
            // The next run might not find the damage without a note.
            if error.raisesSuspicion, notesDamage { directory.suspectDatabase() }
            throw error
        }
    }

    func access<Result>(
        _ operation: String, _ work: (Connection) throws -> Result
    ) throws(StorageError) -> Result {
        try StorageError.converting(operation, path) { try connection.access(work) }
    }

    /// Executes one statement. Returns the number of rows that it changed.
    @discardableResult
    func execute(
        _ operation: String, _ sql: String, _ values: Statement.Value...
    ) throws(StorageError) -> Int {
        try write(operation) { database in
            try database.prepare(sql).execute(values)
            return database.changes
        }
    }

    /// Makes commits wait for the disk. With a rollback journal they always do.
    func synchronizeCommits() throws(StorageError) {
        guard !directory.hasJournal else { return }
        try access("opening") { try $0.execute("PRAGMA synchronous = FULL") }
    }

    /// Enlarges the page cache, for changes all over the database: with SQLite's own 2 MiB the same
    /// pages are read and written repeatedly. 64 MiB for a large database, 4 MiB for others.
    func holdMorePages() throws(StorageError) {
        let kibibytes = size >= ByteCount.mebibytes(128) ? 65_536 : 4096
        try access("opening") { try $0.execute("PRAGMA cache_size = -\(kibibytes)") }
    }

    package func synchronizeLog() throws(StorageError) {
        guard directory.contains(CacheDatabase.logName) else { return }
        try directory.synchronize(CacheDatabase.logName)
    }

    /// Moves the log into the database, and with `truncates` empties it if there are no readers.
    /// Never waits for other programs' readers, which may hold back a part until the next
    /// checkpoint. Returns whether the whole log was moved, as always with a rollback journal.
    @discardableResult
    func checkpoint(truncates: Bool) throws(StorageError) -> Bool {
        try access("checkpoint") { connection in
            let log: (frames: Int, moved: Int)
            do {
                log = try connection.checkpoint(.passive)
            } catch let error as SQLiteError where error.code.primary == .busy {
                // Another program runs a checkpoint at this moment.
                return false
            }
            let isComplete = log.frames == log.moved
            if truncates, isComplete {
                // The connection's own time-out would wait ten seconds for a reader to end.
                connection.setBusyTimeout(.zero)
                defer { connection.setBusyTimeout(CacheDatabase.busyTimeout(in: directory)) }
                do {
                    _ = try connection.checkpoint(.truncate)
                } catch let error as SQLiteError where error.code.primary == .busy {
                    // The log stays, and is overwritten.
                }
            }
            return isComplete
        }
    }

    var size: ByteCount { ByteCount(CacheDatabase.size(of: path).bytes + logSize.bytes) }

    /// The size of the write-ahead log; 0 without one.
    var logSize: ByteCount { CacheDatabase.size(of: path + "-wal") }

    private static func size(of path: String) -> ByteCount {
        var status = stat()
        return ByteCount(stat(path, &status) == 0 ? max(0, Int(status.st_size)) : 0)
    }

    // The rollback journal, where the log's index cannot be shared.

    /// Opens with a rollback journal, after moving the log into the database: under exclusive locks
    /// SQLite keeps the log's index in its own memory ("Write-Ahead Logging", section 8). Readers
    /// follow the file's header. Commits wait for the disk, and for the durable removal of the
    /// journal, which a power cut must not restore (`synchronous = EXTRA`). Returns whether there
    /// was a log.
    ///
    /// - Throws: also when another process holds the database open with its log beyond the
    ///   time-out.
    private static func openWithJournal(
        _ path: String, in directory: CacheDirectory, makes: Bool
    ) throws -> (connection: Connection, hasLeftLog: Bool) {
        let connection = try open(path, in: directory, access: .readWrite)
        connection.setBusyTimeout(journalTimeout)
        try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        try begin(connection, path, in: directory, makes: makes)
        let hadLog = try mode(connection, "PRAGMA journal_mode") == "wal"
        if hadLog {
            // The files that a killed run's rows name: SQLite synchronises its rows only.
            guard clinux_synchronize(directory.handle.number) == 0 else {
                throw StorageError.system("syncfs", directory.path)
            }
        }
        guard try mode(connection, "PRAGMA journal_mode = DELETE") == "delete" else {
            throw SQLiteError(code: .error, message: "the journal mode cannot be changed")
        }
        // The index of a killed run's log, which this connection did not use.
        unlink(path + "-shm")
        // The next read releases the locks.
        try connection.execute(
            """
            PRAGMA locking_mode = NORMAL; SELECT 1 FROM sqlite_schema LIMIT 1;
            PRAGMA synchronous = EXTRA
            """)
        return (connection, hadLog)
    }

    private static let journalTimeout = Duration.seconds(60)

    /// The time to wait for another program's lock; without a log, commits wait for all readers.
    static func busyTimeout(in directory: CacheDirectory) -> Duration {
        directory.hasJournal ? journalTimeout : .seconds(10)
    }

    private static func mode(_ connection: Connection, _ pragma: String) throws -> String? {
        try connection.first(pragma) { try $0.text(0) }
    }

    /// Opens the database for reading without creating any file. A log without rows is ignored if
    /// its index is missing; with rows, the database cannot be read: SQLite would create the index.
    static func openForExamination(
        _ directory: CacheDirectory, _ path: String
    ) throws -> Connection {
        // A killed run's log may be only a header, with the index of an earlier log, for which
        // SQLite waits (SQLITE_PROTOCOL).
        let hasIndex =
            directory.contains(CacheDirectory.databaseName + "-shm") && hasFrames(directory)
        guard usesLog(directory), !hasIndex else {
            return try openForReading(path, in: directory, access: .readOnlyIndex)
        }
        guard !hasFrames(directory) else {
            throw StorageError.refused(
                path, "has a log without an index, which any reader creates",
                hint: "`prefetch run` moves the log into the database")
        }
        return try openForReading(path, in: directory, access: .immutable)
    }

    static func lacksIndex(_ directory: CacheDirectory) -> Bool {
        hasFrames(directory) && !directory.contains(CacheDirectory.databaseName + "-shm")
    }

    /// Whether a log or a journal has more than a log's header (SQLite's file format, section 4.1).
    private static func hasFrames(_ directory: CacheDirectory) -> Bool {
        hasLog(directory, headBytes: 32)
    }

    /// Whether the file's header says that there is a log, or cannot be read.
    private static func usesLog(_ directory: CacheDirectory) -> Bool {
        guard
            let file = FileDescriptor.reading(CacheDirectory.databaseName, in: directory.handle)
        else { return true }
        var version: UInt8 = 0
        // SQLite's file format, section 1.3: the read version; 1 is a rollback journal.
        return pread(file.number, &version, 1, 19) != 1 || version != 1
    }

    /// A writer creates the log's index right after the log: after this time, no process writes.
    private static let longestRecovery = Duration.seconds(1)

    /// Begins to read inside a transaction, in another user's cache. Such a reader is refused while
    /// a run has opened a killed run's log and not built its index (`SQLITE_READONLY_RECOVERY`).
    static func awaitIndex(_ connection: Connection, in directory: CacheDirectory) throws {
        guard !directory.isOwn else { return }
        let deadline = ContinuousClock.now + longestRecovery
        while try !beginsReading(connection, in: directory, isLast: deadline < .now) {
            usleep(10_000)
        }
    }

    /// - Returns: false while the log has no readable index.
    /// - Throws: the same as an error if this attempt `isLast`.
    private static func beginsReading(
        _ connection: Connection, in directory: CacheDirectory, isLast: Bool
    ) throws(SQLiteError) -> Bool {
        do {
            try connection.readSchema()
            return true
        } catch {
            guard !isLast, error.code.primary == .readOnly,
                directory.contains(CacheDirectory.databaseName + "-shm")
            else { throw error }
            return false
        }
    }
}
