internal import CLinux
import Glibc
import PrefetchModel
internal import SQLite

// The rollback journal, where there can be no write-ahead log: its index is memory that all who have the database open
// share, which processes of two machines cannot.

extension CacheDatabase {
    /// Has commits go by way of a rollback journal. What is in a log is moved into the database; from then on the file says
    /// that there is none, and readers follow it.
    ///
    /// Commits wait for the disk, and for the removal of the journal to get there: a journal that comes back after a power
    /// cut would undo them (`synchronous = EXTRA`). So a commit is as durable as with a log that a checkpoint has moved.
    ///
    /// - Returns: whether there was a log until now.
    /// - Throws: also when somebody else has the database open with its log, for longer than such holds are borne.
    static func useRollbackJournal(
        _ connection: Connection, in directory: CacheDirectory
    ) throws -> Bool {
        let hadLog = try mode(connection, "PRAGMA journal_mode") == "wal"
        if hadLog {
            // The files that a killed run's rows name: SQLite writes the rows to the disk, and knows of no files.
            guard syncfs(directory.handle.number) == 0 else {
                throw StorageError.system("syncfs", directory.path)
            }
            let deadline = ContinuousClock.now + busyTimeout(in: directory)
            while try !leaveLog(connection, isLast: deadline < .now) {
                // SQLite asks no busy handler here.
                usleep(50_000)
            }
        }
        guard try mode(connection, "PRAGMA journal_mode = DELETE") == "delete" else {
            throw SQLiteError(code: .error, message: "the journal mode cannot be changed")
        }
        try connection.execute("PRAGMA synchronous = EXTRA")
        return hadLog
    }

    /// - Returns: false while somebody else has the database open.
    /// - Throws: that, too, if it `isLast`.
    private static func leaveLog(_ connection: Connection, isLast: Bool) throws -> Bool {
        do {
            return try mode(connection, "PRAGMA journal_mode = DELETE") != "wal"
        } catch let error as SQLiteError where !isLast && error.code.primary == .busy {
            return false
        }
    }

    /// How long another program's hold of the database is borne: with a rollback journal commits wait for all readers.
    static func busyTimeout(in directory: CacheDirectory) -> Duration {
        directory.fileSystem.isNetwork ? .seconds(60) : .seconds(10)
    }

    private static func mode(_ connection: Connection, _ pragma: String) throws -> String? {
        try Statement(connection, sql: pragma).first { try $0.text(0) }
    }
}

extension CacheDatabase {
    /// Opens the database for reading and makes nothing.
    ///
    /// A log without rows is passed over where its index is missing. Only a database that has rows in a log without an index
    /// cannot be read so: SQLite would make one.
    static func openForExamination(
        _ directory: CacheDirectory, _ path: String
    ) throws -> Connection {
        let hasIndex = ["-wal", "-shm"].allSatisfy {
            directory.contains(CacheDirectory.databaseName + $0)
        }
        guard usesLog(directory), !hasIndex else {
            return try openForReading(path, in: directory, access: .readOnlyIndex)
        }
        guard !hasLog(directory) else {
            throw StorageError.refused(
                path, "has a log without an index, which is made by whatever reads it",
                hint: "`prefetch run` takes over what is in the log")
        }
        return try openForReading(path, in: directory, access: .immutable)
    }

    /// Whether the file says that it has a log; also where it says nothing.
    private static func usesLog(_ directory: CacheDirectory) -> Bool {
        let number = openat(
            directory.handle.number, CacheDirectory.databaseName,
            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard number >= 0 else { return true }
        let file = FileDescriptor(number)
        var version: UInt8 = 0
        // SQLite's file format, section 1.3: the version for reading; 1 is a rollback journal.
        return pread(file.number, &version, 1, 19) != 1 || version != 1
    }
}

extension CacheDatabase {
    /// How long an index that nobody has made yet is waited for: whoever opens a log to write makes it at once, so what lasts
    /// longer is none of that.
    private static let longestRecovery = Duration.seconds(1)

    /// Begins to read inside a transaction, for somebody else's cache.
    ///
    /// A reader who may not write the index of the log is turned away (`SQLITE_READONLY_RECOVERY`) in the moment in which a
    /// run has taken over the log of one that was killed, and has not made its index yet.
    static func awaitIndex(
        _ connection: Connection, in directory: CacheDirectory
    ) throws {
        guard !directory.isOwn else { return }
        let deadline = ContinuousClock.now + longestRecovery
        while try !beginsReading(connection, in: directory, isLast: deadline < .now) {
            usleep(10_000)
        }
    }

    /// - Returns: false while the log has no index that can be read.
    /// - Throws: that, too, if it `isLast`.
    private static func beginsReading(
        _ connection: Connection, in directory: CacheDirectory, isLast: Bool
    ) throws(SQLiteError) -> Bool {
        do throws(SQLiteError) {
            try connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1")
            return true
        } catch {
            guard !isLast, error.code.primary == .readOnly,
                directory.contains(CacheDirectory.databaseName + "-shm")
            else { throw error }
            return false
        }
    }
}
