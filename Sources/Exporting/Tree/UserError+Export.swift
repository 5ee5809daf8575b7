import CacheStorage
import Glibc
import PrefetchModel

// Errors that end an export. The folder is as it was before, or an updated one has whole files
// only.

extension UserError {
    static var cancelled: UserError { UserError(.cancelled, "", "interrupted") }

    static func held(_ folder: String) -> UserError {
        UserError(.busy, folder, "another export writes here", hint: "wait for its end")
    }

    static func foreign(_ folder: String, _ file: String) -> UserError {
        UserError(
            .failed, folder, "has files that no export wrote, like \(file)",
            hint: "--update keeps files that are not in the way; or name another folder")
    }

    static func foreign(leftover folder: String) -> UserError {
        UserError(
            .failed, folder, "is in the way, and no export of this user made it",
            hint: "move or remove it; exports need this name")
    }

    init(ofExport error: StorageError) {
        self.init(
            .failed, error.subject, "\(error.operation): \(error.message)",
            hint: error.isDiskFull ? UserError.spaceHint : error.hint)
    }

    /// Calls `body`, and throws its error as one of an export.
    static func ofExport<Result>(
        _ body: () throws(StorageError) -> Result
    ) throws(UserError) -> Result {
        do {
            return try body()
        } catch {
            throw UserError(ofExport: error)
        }
    }

    /// Makes an error from the current `errno`.
    static func system(_ operation: String, _ subject: String) -> UserError {
        let code = errno
        let hint: String? =
            switch code {
            case ENOSPC, EDQUOT: spaceHint
            case EACCES, EPERM, EROFS:
                "the folder is built in its parent, which this user must be able to write; "
                    + "--update needs the folder only"
            case EMFILE, ENFILE: "raise the limit of open files (ulimit -n)"
            default: nil
            }
        return UserError(
            .failed, subject, "\(operation): \(String(cString: strerror(code)))", hint: hint)
    }

    private static let spaceHint =
        "free some space and export again; the folder is unchanged. --link needs hardly any"
}
