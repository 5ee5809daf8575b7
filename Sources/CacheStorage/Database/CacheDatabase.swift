import Glibc
import PrefetchModel
internal import SQLite
import Threading

/// `prefetch.sqlite`: opened, checked and migrated; one connection, which one
/// thread has at a time.
///
/// Every call blocks, so none is made from the cooperative pool.
package final class CacheDatabase: Sendable {
    private let connection: SerializedConnection
    private let directory: CacheDirectory
    /// Whether the cache has moved to a network file system since it was written the last time.
    let hasLeftLog: Bool
    /// Of the database file that is open.
    private let identity: FileIdentity?
    let path: String
    private let leavesWordOfDamage: Bool

    package enum Access: Sendable {
        /// Brings the schema up to date. Only for the holder of the lock.
        case readWrite
        case readOnly
        /// Makes nothing, where other readers may make an index of the log, and leaves no word of damage.
        case examination
    }

    /// - Throws: when the file cannot be opened, is damaged, belongs to another program, or was
    ///   written by a newer version; nothing has been changed then.
    package init(directory: CacheDirectory, access: Access) throws(StorageError) {
        self.directory = directory
        path = directory.path(of: CacheDirectory.databaseName)
        leavesWordOfDamage = access != .examination
        guard try CacheDatabase.checkFiles(directory) else {
            throw directory.hasNoDatabase
        }
        do {
            switch access {
            case .readWrite:
                let (opened, hasLeftLog) = try CacheDatabase.openForWriting(path, in: directory)
                self.hasLeftLog = hasLeftLog
                try CacheDatabase.checkVersion(opened)
                try Schema.migrator.migrate(opened)
                connection = SerializedConnection(opened)
            case .readOnly:
                connection = SerializedConnection(
                    try CacheDatabase.openForReading(directory, path))
                hasLeftLog = false
            case .examination:
                connection = SerializedConnection(
                    try CacheDatabase.openForExamination(directory, path))
                hasLeftLog = false
            }
        } catch Mismatch.foreign where directory.hasOwnDatabase {
            throw CacheDatabase.damaged("opening", path, "its log is another database's")
        } catch {
            throw CacheDatabase.translate(error, operation: "opening", path: path)
        }
        identity = FileIdentity(CacheDirectory.databaseName, in: directory.handle)
    }

    /// Closes the connection for good. The last one removes the log with its index, if the log is
    /// empty: SQLite would move what is in it without regard to the files that its rows name.
    func close() {
        guard logSize.bytes == 0 else { return }
        // What was written is committed, and what is left of the log stays for the next one.
        try? connection.access { try $0.close() }
    }

    /// Whether the log and its index stay beside the database once it is closed, see ``Connection/keepLog(_:)``.
    func keepLog(_ isKept: Bool) throws(StorageError) {
        do {
            try connection.access { try $0.keepLog(isKept) }
        } catch {
            throw CacheDatabase.translate(error, operation: "opening", path: path)
        }
    }

    static func open(
        _ path: String, in directory: CacheDirectory, access: Connection.Access
    ) throws(SQLiteError) -> Connection {
        // Readers of other programs hold it for moments; a holder for longer is said by name.
        let connection = try Connection(
            path: path, access: access, busyTimeout: busyTimeout(in: directory))
        try connection.execute("PRAGMA trusted_schema = OFF")
        // Damage is noticed where it is, not where it leads to.
        try connection.execute("PRAGMA cell_size_check = ON")
        return connection
    }

    /// With a write-ahead log, or on a network file system with a rollback journal.
    ///
    /// - Returns: also whether there was a log, which is in the database now.
    static func openForWriting(
        _ path: String, in directory: CacheDirectory, makes: Bool = false
    ) throws -> (connection: Connection, hasLeftLog: Bool) {
        let connection = try open(path, in: directory, access: .readWrite)
        try connection.setKeepsLogAtClose(true)
        try checkApplication(connection, makes: makes)
        try connection.setKeepsLogAtClose(false)
        if directory.fileSystem.isNetwork {
            return (connection, try useRollbackJournal(connection, in: directory))
        }
        try connection.execute("PRAGMA journal_mode = WAL")
        // What makes rows outlive a power cut is `MetadataWriter`'s business, as are checkpoints.
        try connection.execute("PRAGMA synchronous = NORMAL")
        try connection.execute("PRAGMA wal_autocheckpoint = 0")
        return (connection, false)
    }

    /// What SQLite keeps beside a database, by the ends of the names.
    static let companions = ["-wal", "-shm", "-journal"]

    /// Opens the database without writing to it, also where nothing can be written.
    ///
    /// In WAL mode SQLite makes a log and an index even for readers. On a read-only directory, or a
    /// full disk, it cannot; when there is no log or journal, or an empty one, the database file alone holds everything,
    /// and is read as it is. That takes no locks, which is right as long as nobody can write: a
    /// writer on another mount of the same directory would have a log.
    private static func openForReading(
        _ directory: CacheDirectory, _ path: String
    ) throws -> Connection {
        do {
            return try openForReading(path, in: directory, access: .readOnly)
        } catch let error as SQLiteError
            where !hasLog(directory)
            // Of a full disk SQLite says that the index cannot grow.
            && ([.readOnly, .cannotOpen, .full].contains(error.code.primary)
                || error.code == .sharedMemorySize)
        {
            return try openForReading(path, in: directory, access: .immutable)
        }
    }

    static func openForReading(
        _ path: String, in directory: CacheDirectory, access: Connection.Access
    ) throws -> Connection {
        let connection = try open(path, in: directory, access: access)
        try connection.transaction(.deferred) {
            try awaitIndex(connection, in: directory)
            try checkReadable(connection)
        }
        return connection
    }

    /// Whether a log or a journal has something in it that belongs into the database, or has to be undone.
    static func hasLog(_ directory: CacheDirectory) -> Bool {
        ["-wal", "-journal"].contains { suffix in
            var status = stat()
            let name = CacheDirectory.databaseName + suffix
            return fstatat(directory.handle.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0
                && status.st_size > 0
        }
    }

    /// Refuses anything but regular files under the database's names.
    ///
    /// - Returns: whether there is a database. An empty file, which SQLite would take for an empty
    ///   database, is none: what it held is gone, and content files may be there.
    static func checkFiles(_ directory: CacheDirectory) throws(StorageError) -> Bool {
        var isThere = false
        for suffix in [""] + companions {
            let name = CacheDirectory.databaseName + suffix
            var status = stat()
            guard fstatat(directory.handle.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
                guard errno == ENOENT else { throw .system("stat", directory.path(of: name)) }
                continue
            }
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw .refused(
                    directory.path(of: name), "is not a regular file",
                    hint: "move it away; symbolic links inside a cache are refused")
            }
            if suffix.isEmpty { isThere = status.st_size > 0 }
        }
        return isThere
    }

    /// Whether the database's name still leads to the file that is open: if not, what is written
    /// is lost, and another run may have begun a database of its own.
    var isInPlace: Bool {
        FileIdentity(CacheDirectory.databaseName, in: directory.handle) == identity
    }

    /// Takes the database for one of ours; with `makes` it becomes one.
    private static func checkApplication(_ connection: Connection, makes: Bool) throws {
        let found = try connection.pragma("application_id")
        if found == Schema.applicationID { return }
        if try hasTablesOfOurs(connection) { throw Mismatch.unmarked }
        let tables = try Statement(connection, sql: "SELECT count(*) FROM sqlite_schema")
            .first { try $0.integer(0) }
        guard found == 0, tables == 0 else { throw Mismatch.foreign }
        // A new one is never found without its schema: SQLite takes a file of one byte for empty.
        guard makes else { throw Mismatch.empty }
        try connection.execute("PRAGMA application_id = \(Schema.applicationID)")
    }

    /// Whether the mark alone is missing, which takes a bit that has changed.
    private static func hasTablesOfOurs(_ connection: Connection) throws -> Bool {
        try Statement(
            connection,
            sql: """
                SELECT count(*) = 3 FROM sqlite_schema WHERE type = 'table'
                    AND name IN ('\(Schema.versionTable)', 'resource', 'variant')
                """
        ).first { try $0.integer(0) != 0 } ?? false
    }

    private static func checkReadable(_ connection: Connection) throws {
        guard try connection.pragma("application_id") == Schema.applicationID else {
            throw try hasTablesOfOurs(connection) ? Mismatch.unmarked : Mismatch.foreign
        }
        try checkVersion(connection)
        guard try Schema.migrator.isComplete(in: connection) else { throw Mismatch.older }
    }

    private static func checkVersion(_ connection: Connection) throws {
        guard try Schema.migrator.hasBeenSuperseded(in: connection) else { return }
        // A newer version has all versions before it.
        throw try Schema.migrator.isComplete(in: connection) ? Mismatch.newer : Mismatch.unversioned
    }

    private enum Mismatch: Error {
        case foreign, newer, older, empty
        /// Those of a damaged database of ours.
        case unmarked, unversioned
    }

    // MARK: Access for this module

    func read<Result>(
        _ operation: String, _ work: (Connection) throws -> Result
    ) throws(StorageError) -> Result {
        try transaction(.deferred, operation, work)
    }

    func write<Result>(
        _ operation: String, _ work: (Connection) throws -> Result
    ) throws(StorageError) -> Result {
        try transaction(.immediate, operation, work)
    }

    /// For what is no transaction.
    func access<Result>(_ work: (Connection) throws -> Result) throws -> Result {
        try connection.access(work)
    }

    private func transaction<Result>(
        _ kind: Connection.TransactionKind, _ operation: String,
        _ work: (Connection) throws -> Result
    ) throws(StorageError) -> Result {
        do {
            return try connection.access { connection in
                try connection.transaction(kind) {
                    try CacheDatabase.awaitIndex(connection, in: directory)
                    return try work(connection)
                }
            }
        } catch {
            throw noted(CacheDatabase.translate(error, operation: operation, path: path))
        }
    }

    /// Leaves word of damage for the next run, which may not meet it by itself.
    private func noted(_ error: StorageError) -> StorageError {
        if error.raisesSuspicion, leavesWordOfDamage { directory.suspectDatabase() }
        return error
    }

    /// Has commits wait for the disk from now on. With a rollback journal they do so anyway.
    func synchronizeCommits() throws(StorageError) {
        guard !directory.fileSystem.isNetwork else { return }
        do {
            try connection.access { try $0.execute("PRAGMA synchronous = FULL") }
        } catch {
            throw CacheDatabase.translate(error, operation: "opening", path: path)
        }
    }

    /// Keeps more pages in memory from now on, for what changes rows all over the database: SQLite's own 2 MiB
    /// have the same pages read and written again and again. Up to 64 MiB of a large one, 4 MiB of others.
    func holdMorePages() throws(StorageError) {
        let kibibytes = size >= ByteCount.mebibytes(128) ? 65_536 : 4096
        do {
            try connection.access { try $0.execute("PRAGMA cache_size = -\(kibibytes)") }
        } catch {
            throw CacheDatabase.translate(error, operation: "opening", path: path)
        }
    }

    /// Has what is committed reach the disk.
    package func synchronizeLog() throws(StorageError) {
        guard directory.contains(CacheDatabase.logName) else { return }
        try directory.synchronize(CacheDatabase.logName)
    }

    /// Moves the write-ahead log into the database, and with `truncates` cuts it to nothing when
    /// nobody reads. Never waits for readers of other programs: they may keep part of it back,
    /// which is no error, since the next one gets it.
    ///
    /// - Returns: whether all of the log is in the database; with a rollback journal there is none, and what is committed is
    ///   on the disk.
    @discardableResult
    func checkpoint(truncates: Bool) throws(StorageError) -> Bool {
        do {
            return try connection.access { connection in
                let log: (frames: Int, moved: Int)
                do throws(SQLiteError) {
                    log = try connection.checkpoint(.passive)
                } catch  where error.code.primary == .busy {
                    // Another program moves the log at this moment.
                    return false
                }
                let isComplete = log.frames == log.moved
                if truncates, isComplete {
                    // The connection's own time-out would wait ten seconds for a reader to end.
                    connection.setBusyTimeout(.zero)
                    defer { connection.setBusyTimeout(CacheDatabase.busyTimeout(in: directory)) }
                    do throws(SQLiteError) {
                        _ = try connection.checkpoint(.truncate)
                    } catch  where error.code.primary == .busy {
                        // The log stays as it is, to be written over.
                    }
                }
                return isComplete
            }
        } catch {
            throw CacheDatabase.translate(error, operation: "checkpoint", path: path)
        }
    }

    /// The size of the database file and of the log.
    var size: ByteCount { ByteCount(CacheDatabase.size(of: path).bytes + logSize.bytes) }

    /// The size of the write-ahead log, 0 without one.
    var logSize: ByteCount { CacheDatabase.size(of: path + "-wal") }

    /// 0 where there is no such file.
    private static func size(of path: String) -> ByteCount {
        var status = stat()
        return ByteCount(stat(path, &status) == 0 ? max(0, Int(status.st_size)) : 0)
    }

    private static let damageHint =
        "the database is damaged; `prefetch run` sets it aside and salvages what can be read of it"

    private static func permissionHint(_ path: String) -> String {
        var status = stat()
        return stat(path, &status) == 0 && status.st_uid != geteuid()
            ? "it belongs to another user, who can let others read it: `prefetch chmod 0644`"
            : "check the permissions of the cache directory"
    }

    private static func damaged(
        _ operation: String, _ path: String, _ message: String
    ) -> StorageError {
        StorageError(
            operation: operation, subject: path,
            code: .database(SQLiteError.Code.notADatabase.rawValue), message: message,
            hint: damageHint)
    }

    static func translate(
        _ error: any Error, operation: String, path: String
    ) -> StorageError {
        switch error {
        case let error as StorageError:
            return error
        case let error as SQLiteError:
            var hint: String?
            // A full disk is an I/O error where the index of the log has to grow.
            switch error.code == .sharedMemorySize ? .full : error.code.primary {
            case .corrupt, .notADatabase:
                hint = damageHint
            case .busy, .locked:
                hint = "another program holds the database"
            case .full:
                hint = "make room and run again; what is stored stays"
            case .readOnly, .cannotOpen, .permission:
                hint = permissionHint(path)
            default:
                break
            }
            return StorageError(
                operation: operation, subject: path, code: .database(error.code.rawValue),
                message: error.message, hint: hint)
        case Mismatch.foreign:
            return .refused(
                path, "is the database of another program",
                hint: "name another directory with --cache-dir")
        case Mismatch.empty: return damaged(operation, path, "holds nothing")
        case Mismatch.unmarked: return damaged(operation, path, "its mark is not ours")
        case Mismatch.unversioned: return damaged(operation, path, "its version is none")
        case Mismatch.newer:
            return .refused(
                path, "was written by a newer version of prefetch",
                hint: "use that version, or name another directory with --cache-dir")
        case Mismatch.older:
            return .refused(
                path, "was written by an older version of prefetch",
                hint: "`prefetch run` brings it up to date")
        default:
            // Nothing else is thrown inside; were it, it would be no damage.
            return StorageError(
                operation: operation, subject: path,
                code: .database(SQLiteError.Code.error.rawValue), message: "\(error)")
        }
    }
}
