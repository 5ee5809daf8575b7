internal import Foundation
internal import GRDB
internal import GRDBSQLite
import Glibc
import PrefetchModel
import Threading

/// `prefetch.sqlite`: opened, checked and migrated; one connection, through GRDB's queue.
///
/// Every call blocks, so none is made from the cooperative pool.
package final class CacheDatabase: Sendable {
    private let queue: DatabaseQueue
    private let directory: CacheDirectory
    /// Of the database file that is open.
    private let identity: FileIdentity?
    let path: String

    package enum Access: Sendable {
        /// Brings the schema up to date. Only for the holder of the lock.
        case readWrite
        case readOnly
    }

    /// - Throws: when the file cannot be opened, is damaged, belongs to another program, or was
    ///   written by a newer version; nothing has been changed then.
    package init(directory: CacheDirectory, access: Access) throws(StorageError) {
        self.directory = directory
        path = directory.path(of: CacheDirectory.databaseName)
        guard try CacheDatabase.checkFiles(directory) else {
            throw .missing(directory.path, "holds no images yet")
        }
        do {
            switch access {
            case .readWrite:
                let opened = try CacheDatabase.openQueue(
                    path, CacheDatabase.writingConfiguration())
                do {
                    try CacheDatabase.migrate(opened)
                } catch {
                    CacheDatabase.closeQueue(opened)
                    throw error
                }
                queue = opened
            case .readOnly:
                var configuration = CacheDatabase.configuration
                configuration.readonly = true
                queue = try CacheDatabase.openForReading(directory, path, configuration)
            }
        } catch {
            throw CacheDatabase.translate(error, operation: "opening", path: path)
        }
        identity = FileIdentity(CacheDirectory.databaseName, in: directory.handle)
    }

    deinit {
        CacheDatabase.closeQueue(queue)
    }

    /// Closes the connection for good. The last one removes the log with its index, if the log is
    /// empty: SQLite would move what is in it without regard to the files that its rows name.
    func close() {
        if logSize.bytes == 0 { CacheDatabase.closeQueue(queue) }
    }

    /// Opens a connection whose queue is never released.
    ///
    /// The end of a dispatch queue is work for libdispatch's own threads, which it starts then, with
    /// descriptors of their own, and it traps where the system has no room for either. As long as
    /// no queue ends and all work is synchronous there are none.
    private static func openQueue(
        _ path: String, _ configuration: Configuration
    ) throws -> DatabaseQueue {
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        queues.withLock { $0.append(queue) }
        return queue
    }

    private static let queues = Monitor([DatabaseQueue]())

    private static func closeQueue(_ queue: DatabaseQueue) {
        // What was written is committed, and what is left of the log stays for the next one.
        try? queue.close()
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "cache"
        // Readers of other programs hold it for moments; a holder for longer is said by name.
        configuration.busyMode = .timeout(busyTimeout)
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA trusted_schema = OFF")
            // Damage is noticed where it is, not where it leads to.
            try database.execute(sql: "PRAGMA cell_size_check = ON")
        }
        return configuration
    }

    private static func writingConfiguration(
        makes: Bool = false
    ) -> Configuration {
        var configuration = configuration
        configuration.prepareDatabase { database in
            try checkApplication(database, makes: makes)
            try database.execute(sql: "PRAGMA journal_mode = WAL")
            // What makes rows outlive a power cut is `MetadataWriter`'s business, as are
            // checkpoints.
            try database.execute(sql: "PRAGMA synchronous = NORMAL")
            try database.execute(sql: "PRAGMA wal_autocheckpoint = 0")
        }
        return configuration
    }

    /// Makes an empty database with the whole schema beside its place and puts it there: whoever
    /// looks for it finds nothing or all of it. Only for the holder of the lock, where there is none;
    /// the folder of temporary files has to be there.
    ///
    /// With `keepsOrphans` content files that are there already are kept though no row names them
    /// (see the table `property`): they are the images of a database that is gone.
    static func make(in directory: CacheDirectory, keepsOrphans: Bool) throws(StorageError) {
        let name = "tmp/new.sqlite"
        do {
            for suffix in companions {
                // SQLite would take what is left of another database's log for this one's.
                try directory.remove(CacheDirectory.databaseName + suffix)
                try directory.remove(name + suffix)
            }
            try directory.remove(name)
            // SQLite's companions copy the mode of the file.
            try directory.makeFile(name)
            let queue = try openQueue(
                directory.path(of: name), writingConfiguration(makes: true))
            // Twice does no harm.
            defer { closeQueue(queue) }
            try Schema.migrator.migrate(queue)
            if keepsOrphans {
                // By the clock that gives the files their times.
                let now = try directory.changeTime(of: name)
                try queue.write { try Schema.Property.orphansKeptBefore.set(to: now, in: $0) }
            }
            // The last connection takes the log along.
            try queue.close()
            try directory.synchronize(name)
            try directory.rename(name, to: CacheDirectory.databaseName)
        } catch {
            throw translate(error, operation: "making", path: directory.path(of: name))
        }
    }

    /// What SQLite keeps beside a database, by the ends of the names.
    static let companions = ["-wal", "-shm", "-journal"]

    /// Opens the database without writing to it, also where nothing can be written.
    ///
    /// In WAL mode SQLite makes a log and an index even for readers. On a read-only directory, or a
    /// full disk, it cannot; when there is no log, or an empty one, the database file alone holds everything,
    /// and is read as it is. That takes no locks, which is right as long as nobody can write: a
    /// writer on another mount of the same directory would have a log.
    private static func openForReading(
        _ directory: CacheDirectory, _ path: String, _ configuration: Configuration
    ) throws -> DatabaseQueue {
        func open(_ path: String) throws -> DatabaseQueue {
            let queue = try openQueue(path, configuration)
            do {
                try queue.read(checkReadable)
                return queue
            } catch {
                closeQueue(queue)
                throw error
            }
        }
        do {
            return try open(path)
        } catch let error as DatabaseError
            where !hasLog(directory)
            // Of a full disk SQLite says that the index cannot grow.
            && ([.SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_FULL].contains(error.resultCode)
                || error.extendedResultCode == .SQLITE_IOERR_SHMSIZE)
        {
            return try open(immutableURI(of: path))
        }
    }

    private static func hasLog(_ directory: CacheDirectory) -> Bool {
        var status = stat()
        let name = CacheDirectory.databaseName + "-wal"
        return fstatat(directory.handle.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0
            && status.st_size > 0
    }

    /// A file name as SQLite's documentation of "Uniform Resource Identifiers" has it.
    private static func immutableURI(of path: String) -> String {
        var uri = path.hasPrefix("/") ? "file://" : "file:"
        for scalar in path.unicodeScalars {
            switch scalar {
            case "%": uri += "%25"
            case "?": uri += "%3F"
            case "#": uri += "%23"
            default: uri.unicodeScalars.append(scalar)
            }
        }
        return uri + "?immutable=1"
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
    private static func checkApplication(_ database: Database, makes: Bool) throws {
        let found = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        if found == Schema.applicationID { return }
        let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0
        guard found == 0, isEmpty else { throw Mismatch.foreign }
        // A new one is never found without its schema: SQLite takes a file of one byte for empty.
        guard makes else { throw Mismatch.empty }
        try database.execute(sql: "PRAGMA application_id = \(Schema.applicationID)")
    }

    private static func checkReadable(_ database: Database) throws {
        guard try Int32.fetchOne(database, sql: "PRAGMA application_id") == Schema.applicationID
        else { throw Mismatch.foreign }
        if try Schema.migrator.hasBeenSuperseded(database) { throw Mismatch.newer }
        guard try Schema.migrator.hasCompletedMigrations(database) else { throw Mismatch.older }
    }

    private static func migrate(_ queue: DatabaseQueue) throws {
        if try queue.read(Schema.migrator.hasBeenSuperseded) { throw Mismatch.newer }
        try Schema.migrator.migrate(queue)
    }

    private enum Mismatch: Error {
        case foreign, newer, older, empty
    }

    // MARK: Access for this module

    func read<Value>(
        _ operation: String, _ work: (Database) throws -> Value
    ) throws(StorageError) -> Value {
        do {
            return try queue.read(work)
        } catch {
            throw noted(CacheDatabase.translate(error, operation: operation, path: path))
        }
    }

    func write<Value>(
        _ operation: String, _ work: (Database) throws -> Value
    ) throws(StorageError) -> Value {
        do {
            return try queue.write(work)
        } catch {
            throw noted(CacheDatabase.translate(error, operation: operation, path: path))
        }
    }

    /// Leaves word of damage for the next run, which may not meet it by itself.
    private func noted(_ error: StorageError) -> StorageError {
        if error.raisesSuspicion { directory.suspectDatabase() }
        return error
    }

    /// Has commits wait for the disk from now on.
    func synchronizeCommits() throws(StorageError) {
        do {
            try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
        } catch {
            throw CacheDatabase.translate(error, operation: "opening", path: path)
        }
    }

    /// Has what is committed reach the disk.
    package func synchronizeLog() throws(StorageError) {
        let name = CacheDirectory.databaseName + "-wal"
        guard directory.contains(name) else { return }
        try directory.synchronize(name)
    }

    /// Moves the write-ahead log into the database, and with `truncates` cuts it to nothing when
    /// nobody reads. Never waits for readers of other programs: they may keep part of it back,
    /// which is no error, since the next one gets it.
    ///
    /// - Returns: whether all of the log is in the database.
    @discardableResult
    func checkpoint(truncates: Bool) throws(StorageError) -> Bool {
        do {
            return try queue.writeWithoutTransaction { database in
                let frames: (walFrameCount: Int, checkpointedFrameCount: Int)
                do {
                    frames = try database.checkpoint(.passive)
                } catch DatabaseError.SQLITE_BUSY {
                    // Another program moves the log at this moment.
                    return false
                }
                let isComplete = frames.walFrameCount == frames.checkpointedFrameCount
                if truncates, isComplete {
                    // The connection's own time-out would wait ten seconds for a reader to end.
                    database.setBusyTimeout(0)
                    defer { database.setBusyTimeout(CacheDatabase.busyTimeout) }
                    do {
                        _ = try database.checkpoint(.truncate)
                    } catch DatabaseError.SQLITE_BUSY {
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

    private static func size(of path: String) -> ByteCount {
        var status = stat()
        return ByteCount(stat(path, &status) == 0 ? max(0, Int(status.st_size)) : 0)
    }

    /// How long another program's hold of the database is borne.
    fileprivate static let busyTimeout: TimeInterval = 10

    private static let damageHint =
        "the database is damaged; `prefetch run` sets it aside and begins a new one"

    private static func translate(
        _ error: any Error, operation: String, path: String
    ) -> StorageError {
        switch error {
        case let error as StorageError:
            return error
        case let error as DatabaseError:
            var hint: String?
            switch error.resultCode {
            case .SQLITE_CORRUPT, .SQLITE_NOTADB:
                hint = damageHint
            case .SQLITE_BUSY, .SQLITE_LOCKED:
                hint = "another program holds the database"
            case .SQLITE_FULL:
                hint = "make room and run again; what is stored stays"
            case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM:
                hint = "check the permissions of the cache directory"
            default:
                break
            }
            return StorageError(
                operation: operation, subject: path,
                code: .database(error.extendedResultCode.rawValue),
                message: error.message ?? "\(error.extendedResultCode)", hint: hint)
        case Mismatch.foreign:
            return .refused(
                path, "is the database of another program",
                hint: "name another directory with --cache-dir")
        case Mismatch.empty:
            return StorageError(
                operation: operation, subject: path, code: .database(SQLITE_NOTADB),
                message: "holds nothing", hint: damageHint)
        case Mismatch.newer:
            return .refused(path, "was written by a newer version of prefetch")
        case Mismatch.older:
            return .refused(
                path, "was written by an older version of prefetch",
                hint: "`prefetch run` brings it up to date")
        default:
            // GRDB's own table of migrations holds what is no name of one.
            return StorageError(
                operation: operation, subject: path, code: .database(11), message: "\(error)")
        }
    }
}

extension Database {
    /// In seconds.
    fileprivate func setBusyTimeout(_ timeout: TimeInterval) {
        // Cannot fail: SQLite keeps a number.
        sqlite3_busy_timeout(sqliteConnection, Int32(timeout * 1000))
    }
}
