internal import Glibc
package import PrefetchModel
internal import SQLite

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
    package let subject: String
    package let code: Code
    package let message: String
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

    /// Whether SQLite or the reader of a row found data that this program never writes.
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

    static func system(
        _ operation: String, _ subject: String, hint: String? = nil
    ) -> StorageError {
        let code = errno
        return StorageError(
            operation: operation, subject: subject, code: .system(code),
            message: String(cString: strerror(code)),
            hint: hint ?? StorageError.hint(for: code, subject)
                ?? (operation == "mkdir" ? "--cache-dir names another place" : nil))
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

extension StorageError {
    /// Calls `body`. An error of SQLite becomes an error of the database at `path`.
    static func converting<Result>(
        _ operation: String, _ path: String, _ body: () throws -> Result
    ) throws(StorageError) -> Result {
        do {
            return try body()
        } catch {
            throw StorageError(error, operation, path)
        }
    }

    /// Converts an error of SQLite; a ``StorageError`` stays as it is.
    init(_ error: any Error, _ operation: String, _ path: String) {
        switch error {
        case let error as StorageError: self = error
        case let error as SQLiteError:
            self.init(
                operation: operation, subject: path, code: .database(error.code.rawValue),
                message: error.code.refusesSharedMemory
                    ? "the file system shares no memory, which the database's log needs"
                    : error.message,
                hint: StorageError.hint(for: error.code, path))
        default:
            // No other error is thrown inside; if one were, it would not mean damage.
            self.init(
                operation: operation, subject: path,
                code: .database(SQLiteError.ResultCode.error.rawValue), message: "\(error)")
        }
    }

    static func damaged(_ operation: String, _ path: String, _ message: String) -> StorageError {
        StorageError(SQLiteError(code: .corrupt, message: message), operation, path)
    }

    private static func hint(for code: SQLiteError.ResultCode, _ path: String) -> String? {
        // A full disk is reported as an I/O error if the index of the log must grow.
        if code.refusesSharedMemory {
            return "`prefetch run` removes the log; see docs/cache.md"
        }
        return switch code == .sharedMemorySize ? .full : code.primary {
        case .corrupt, .notADatabase, .tooBig:
            "the database is damaged; `prefetch run` replaces it and salvages its readable rows"
        case .busy, .locked: "another program holds the database"
        case .full: "free some space and run again; stored images are kept"
        case .readOnly, .cannotOpen, .permission: permissionHint(path)
        case .inputOutput:
            "the disk or its file system failed: see the system's log, or name another place "
                + "with --cache-dir"
        default: nil
        }
    }

    /// A remedy after a refused access: names the folder or file that refuses it, and its mode.
    static func permissionHint(_ path: String) -> String {
        guard let (culprit, status) = firstRefusal(on: path) else {
            return "check the owner and the permissions, or name another place with --cache-dir"
        }
        let state = "\(culprit) has mode \(FileMode.text(status.st_mode & 0o7777))"
        guard status.st_uid == geteuid() else {
            let remedy =
                allows(R_OK, culprit)
                ? "run as that user, or name another place with --cache-dir"
                : "that user can let others read a cache: `prefetch chmod 0644`"
            return "\(state) and belongs to another user (uid \(status.st_uid)); \(remedy)"
        }
        let change = status.isFolder ? "-R u+rwX" : "u+rw"
        return "\(state): `chmod \(change) \(culprit)`"
    }

    /// Returns the outermost folder that may not be searched, else the path itself or its folder
    /// if the user may not read and write them; nil if all of this is allowed.
    private static func firstRefusal(on path: String) -> (path: String, status: stat)? {
        let folders = path.indices.filter { path[$0] == "/" && $0 > path.startIndex }
            .map { String(path[..<$0]) }
        let needed =
            folders.map { ($0, X_OK) }
            + [path, folders.last].compactMap { $0.map { ($0, R_OK | W_OK) } }
        for (path, access) in needed where !allows(access, path) {
            var status = stat()
            return stat(path, &status) == 0 ? (path, status) : nil
        }
        var status = stat()
        guard stat(path, &status) == 0, status.isFolder, !allows(X_OK, path) else { return nil }
        return (path, status)
    }

    /// Whether the access is not refused; a missing file refuses nothing.
    private static func allows(_ access: Int32, _ path: String) -> Bool {
        faccessat(AT_FDCWD, path, access, AT_EACCESS) == 0 || errno != EACCES
    }
}
