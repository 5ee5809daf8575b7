internal import Glibc
package import PrefetchModel

/// An error of the cache.
package struct StorageError: Error, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// An `errno`.
        case system(Int32)
        /// An extended result code of SQLite.
        case database(Int32)
        /// The cache is in a state that the program refuses; the message names it.
        case refused
        /// There is no cache, or it holds no images yet.
        case missing
    }

    /// The failed operation, like `rename`.
    package let operation: String
    /// The path concerned.
    package let subject: String
    package let code: Code
    package let message: String
    /// A remedy for the user.
    package var hint: String?

    /// Whether the disk is full: nothing is damaged, and removing files helps.
    package var isDiskFull: Bool {
        switch code {
        case .system(let code): code == ENOSPC || code == EDQUOT
        // SQLITE_FULL, and SQLITE_IOERR_SHMSIZE: the log's index could not grow.
        case .database(let code): code & 0xFF == 13 || code == 4874
        case .refused, .missing: false
        }
    }

    /// Whether the database is damaged: SQLite or the reader of a row found data that this program
    /// never writes.
    package var isDamage: Bool {
        guard case .database(let code) = code else { return false }
        // SQLITE_CORRUPT, SQLITE_NOTADB and SQLITE_TOOBIG, including their extended codes.
        return [11, 26, 18].contains(code & 0xFF)
    }

    /// Whether the database may be damaged, which a full check decides: a table or a column is
    /// missing (SQLITE_ERROR), or a change violates a constraint (SQLITE_CONSTRAINT).
    var raisesSuspicion: Bool {
        guard case .database(let code) = code else { return false }
        return isDamage || [1, 19].contains(code & 0xFF)
    }

    /// Whether one failing read, or no memory, may be the cause: a second attempt may succeed.
    var mayBeFailingRead: Bool {
        switch code {
        case .system(let code): return code == EIO
        case .database(let code):
            // SQLITE_IOERR, SQLITE_NOMEM and SQLITE_CANTOPEN.
            return raisesSuspicion || !isDiskFull && [10, 7, 14].contains(code & 0xFF)
        // A header that cannot be read is not this program's.
        case .refused: return true
        case .missing: return false
        }
    }

    /// Makes an error from the current `errno`.
    static func system(
        _ operation: String, _ subject: String, hint: String? = nil
    ) -> StorageError {
        let code = errno
        return StorageError(
            operation: operation, subject: subject, code: .system(code),
            message: String(cString: strerror(code)),
            hint: hint ?? StorageError.hint(for: code, subject))
    }

    private static func hint(for code: Int32, _ path: String) -> String? {
        switch code {
        case ENOSPC, EDQUOT:
            "free some space and run again; stored images are kept, and --cache-dir names another place"
        case EROFS: "the file system is read-only; --cache-dir names another place"
        case EACCES, EPERM: permissionHint(path)
        case EMFILE, ENFILE: "raise the limit of open files (ulimit -n), or lower --jobs"
        case ENOTDIR, EEXIST:
            "a file stands where a directory is wanted; --cache-dir names another place"
        default: nil
        }
    }

    static func refused(_ subject: String, _ message: String, hint: String? = nil) -> StorageError {
        StorageError(
            operation: "opening", subject: subject, code: .refused, message: message, hint: hint)
    }

    static func missing(_ subject: String, _ message: String, hint: String? = nil) -> StorageError {
        StorageError(
            operation: "opening", subject: subject, code: .missing, message: message, hint: hint)
    }

    /// Whether one file or folder is not of the expected type, which does not concern other images.
    package var isAboutOnePath: Bool {
        switch code {
        case .refused, .system(EISDIR), .system(ENOTDIR), .system(ELOOP), .system(ENOTEMPTY): true
        default: false
        }
    }

    package var description: String {
        switch code {
        case .refused, .missing: "\(subject): \(message)"
        case .system, .database: "\(subject): \(operation): \(message)"
        }
    }
}

extension StorageError: ReportableError {
    package var userError: UserError {
        let kind: UserError.Kind =
            switch code {
            case .missing: .missing
            case .system(EWOULDBLOCK): .busy
            case .system, .database, .refused: .failed
            }
        return UserError(kind, description, hint: hint)
    }
}
