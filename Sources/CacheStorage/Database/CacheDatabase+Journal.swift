internal import CLinux
import Glibc
internal import SQLite

// The rollback journal, for network file systems: machines cannot share a log's index in memory.

extension CacheDatabase {
    /// Switches to a rollback journal, after moving the log into the database. Readers follow the
    /// file's header. Commits wait for the disk, and for the durable removal of the journal, which
    /// a power cut must not restore (`synchronous = EXTRA`). Returns whether there was a log.
    ///
    /// - Throws: also when another process holds the database open with its log beyond the
    ///   time-out.
    static func useRollbackJournal(
        _ connection: Connection, in directory: CacheDirectory
    ) throws -> Bool {
        let hadLog = try mode(connection, "PRAGMA journal_mode") == "wal"
        if hadLog {
            // The files that a killed run's rows name: SQLite synchronises its rows only.
            guard syncfs(directory.handle.number) == 0 else {
                throw StorageError.system("syncfs", directory.path)
            }
            let deadline = ContinuousClock.now + busyTimeout(in: directory)
            while try !leaveLog(connection, isLast: deadline < .now) {
                // SQLite calls no busy handler here.
                usleep(50_000)
            }
        }
        guard try mode(connection, "PRAGMA journal_mode = DELETE") == "delete" else {
            throw SQLiteError(code: .error, message: "the journal mode cannot be changed")
        }
        try connection.execute("PRAGMA synchronous = EXTRA")
        return hadLog
    }

    /// - Returns: false while another process has the database open.
    /// - Throws: the same as an error if this attempt `isLast`.
    private static func leaveLog(_ connection: Connection, isLast: Bool) throws -> Bool {
        do {
            return try mode(connection, "PRAGMA journal_mode = DELETE") != "wal"
        } catch let error as SQLiteError where !isLast && error.code.primary == .busy {
            return false
        }
    }

    /// The time to wait for another program's lock; without a log, commits wait for all readers.
    static func busyTimeout(in directory: CacheDirectory) -> Duration {
        directory.fileSystem.isNetwork ? .seconds(60) : .seconds(10)
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
