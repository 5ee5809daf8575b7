import Glibc

/// The cache could not be read or written.
package struct StorageError: Error, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// An `errno`.
        case system(Int32)
        /// An extended result code of SQLite.
        case database(Int32)
        /// The cache is not as it has to be; the message says what.
        case refused
        /// There is no cache, or it holds no images yet.
        case missing
    }

    /// What was tried, like `rename`.
    package let operation: String
    /// A path.
    package let subject: String
    package let code: Code
    package let message: String
    /// What the user can do about it.
    package var hint: String?

    package init(
        operation: String, subject: String, code: Code, message: String, hint: String? = nil
    ) {
        self.operation = operation
        self.subject = subject
        self.code = code
        self.message = message
        self.hint = hint
    }

    /// Whether there was no room: nothing is damaged, and removing files helps.
    package var isDiskFull: Bool {
        switch code {
        case .system(let code): code == ENOSPC || code == EDQUOT
        // SQLITE_FULL, and SQLITE_IOERR_SHMSIZE: the log's index has to grow, too.
        case .database(let code): code & 0xFF == 13 || code == 4874
        case .refused, .missing: false
        }
    }

    /// Whether the database cannot be believed any more: SQLite or the reader of a row met what
    /// nobody has written.
    package var isDamage: Bool {
        guard case .database(let code) = code else { return false }
        // SQLITE_CORRUPT and SQLITE_NOTADB, whatever their extended codes.
        return [11, 26].contains(code & 0xFF)
    }

    /// Whether there may be damage, which a check of the whole database tells: a table or a column is
    /// not there (SQLITE_ERROR), or a change of ours breaks a constraint (SQLITE_CONSTRAINT).
    var raisesSuspicion: Bool {
        guard case .database(let code) = code else { return false }
        return isDamage || [1, 19].contains(code & 0xFF)
    }

    /// Takes the present `errno`.
    static func system(
        _ operation: String, _ subject: String, hint: String? = nil
    ) -> StorageError {
        let code = errno
        return StorageError(
            operation: operation, subject: subject, code: .system(code),
            message: String(cString: strerror(code)), hint: hint ?? StorageError.hint(for: code))
    }

    private static func hint(for code: Int32) -> String? {
        switch code {
        case ENOSPC, EDQUOT:
            "make room and run again; what is stored stays, and --cache-dir names another place"
        case EROFS: "the file system is read-only; --cache-dir names another place"
        case EACCES, EPERM:
            "check the owner and the permissions, or name another place with --cache-dir"
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

    /// Whether something else has the place of one file or folder: other images are not concerned.
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
