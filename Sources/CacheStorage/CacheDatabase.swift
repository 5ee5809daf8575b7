internal import GRDB
import Glibc
import PrefetchModel

/// `prefetch.sqlite`: opened, checked and migrated; one connection, through GRDB's queue.
///
/// Every call blocks, so none is made from the cooperative pool.
package final class CacheDatabase: Sendable {
    private let queue: DatabaseQueue
    let path: String

    package enum Access: Sendable {
        /// Makes the database where it is missing and brings its schema up to date. Only for the
        /// holder of the lock.
        case readWrite
        case readOnly
    }

    /// - Throws: when the file cannot be opened, is damaged, belongs to another program, or was
    ///   written by a newer version; nothing has been changed then.
    package init(directory: CacheDirectory, access: Access) throws(StorageError) {
        path = directory.path(of: CacheDirectory.databaseName)
        try CacheDatabase.checkFiles(directory, access: access)
        var configuration = Configuration()
        configuration.readonly = access == .readOnly
        configuration.label = "cache"
        // Readers of other programs hold it for moments; a holder for longer is said by name.
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA trusted_schema = OFF")
        }
        if access == .readWrite {
            configuration.prepareDatabase { database in
                try database.execute(sql: "PRAGMA trusted_schema = OFF")
                try CacheDatabase.checkApplication(database)
                try database.execute(sql: "PRAGMA journal_mode = WAL")
                try database.execute(sql: "PRAGMA synchronous = NORMAL")
                // Checkpoints are ours, each after a `syncfs`: see `MetadataWriter`.
                try database.execute(sql: "PRAGMA wal_autocheckpoint = 0")
            }
        }
        do {
            queue = try DatabaseQueue(path: path, configuration: configuration)
            switch access {
            case .readWrite: try CacheDatabase.migrate(queue)
            case .readOnly: try queue.read(CacheDatabase.checkReadable)
            }
        } catch {
            throw CacheDatabase.translate(error, operation: "opening", path: path)
        }
    }

    /// Refuses anything but regular files under the database's names, and makes the database file
    /// itself, so that it and SQLite's companions, which copy its mode, are private.
    private static func checkFiles(
        _ directory: CacheDirectory, access: Access
    ) throws(StorageError) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let name = CacheDirectory.databaseName + suffix
            var status = stat()
            if fstatat(directory.handle.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 {
                guard status.st_mode & S_IFMT == S_IFREG else {
                    throw .refused(
                        directory.path(of: name), "is not a regular file",
                        hint: "move it away; symbolic links inside a cache are refused")
                }
            } else if suffix.isEmpty {
                guard access == .readWrite else {
                    throw .refused(directory.path, "holds no images yet")
                }
                let number = openat(
                    directory.handle.number, name,
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
                guard number >= 0, close(number) == 0 else {
                    throw .system("open", directory.path(of: name))
                }
            }
        }
    }

    private static func checkApplication(_ database: Database) throws {
        let found = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        if found == Schema.applicationID { return }
        let isNew = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0
        guard found == 0, isNew else { throw Mismatch.foreign }
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
        case foreign, newer, older
    }

    // MARK: Access for this module

    func read<Value>(
        _ operation: String, _ work: (Database) throws -> Value
    ) throws(StorageError) -> Value {
        do {
            return try queue.read(work)
        } catch {
            throw CacheDatabase.translate(error, operation: operation, path: path)
        }
    }

    func write<Value>(
        _ operation: String, _ work: (Database) throws -> Value
    ) throws(StorageError) -> Value {
        do {
            return try queue.write(work)
        } catch {
            throw CacheDatabase.translate(error, operation: operation, path: path)
        }
    }

    /// Moves the write-ahead log into the database.
    ///
    /// Readers of other programs may keep part of it back; that is no error, the next one gets it.
    /// With `truncates` the log is also cut to nothing, when nobody reads.
    func checkpoint(truncates: Bool) throws(StorageError) {
        do {
            try queue.writeWithoutTransaction { database in
                do {
                    _ = try database.checkpoint(truncates ? .truncate : .passive)
                } catch DatabaseError.SQLITE_BUSY {
                    return
                }
            }
        } catch {
            throw CacheDatabase.translate(error, operation: "checkpoint", path: path)
        }
    }

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
                hint = "the database is damaged; move the cache directory away and run again"
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
        case Mismatch.newer:
            return .refused(path, "was written by a newer version of prefetch")
        case Mismatch.older:
            return .refused(
                path, "was written by an older version of prefetch",
                hint: "`prefetch run` brings it up to date")
        default:
            return StorageError(
                operation: operation, subject: path, code: .refused, message: "\(error)")
        }
    }
}
