import CacheStorage
import Glibc
package import PrefetchModel

/// An error that ends an export. The folder is as it was before, or an updated one has whole files
/// only.
package struct ExportError: Error, CustomStringConvertible {
    /// A path.
    package let subject: String
    package let message: String
    package var hint: String?
    /// Whether another export holds the folder.
    package var isHeld = false
    /// Whether the caller has ended the export.
    package var isCancelled = false

    static var cancelled: ExportError {
        var error = ExportError("", "interrupted")
        error.isCancelled = true
        return error
    }

    static func held(_ folder: String) -> ExportError {
        ExportError(
            folder, "another export writes here", hint: "wait for its end", isHeld: true)
    }

    static func foreign(_ folder: String, _ file: String) -> ExportError {
        ExportError(
            folder, "has files that no export wrote, like \(file)",
            hint: "--update keeps files that are not in the way; or name another folder")
    }

    static func foreign(leftover folder: String) -> ExportError {
        ExportError(
            folder, "is in the way, and no export of this user made it",
            hint: "move or remove it; exports need this name")
    }

    init(_ subject: String, _ message: String, hint: String? = nil, isHeld: Bool = false) {
        self.subject = subject
        self.message = message
        self.hint = hint
        self.isHeld = isHeld
    }

    init(_ error: StorageError) {
        self.init(
            error.subject, "\(error.operation): \(error.message)",
            hint: error.isDiskFull ? ExportError.spaceHint : error.hint)
    }

    /// Calls `body`, and throws its error as one of an export.
    static func rethrowing<Result>(
        _ body: () throws(StorageError) -> Result
    ) throws(ExportError) -> Result {
        do throws(StorageError) {
            return try body()
        } catch {
            throw ExportError(error)
        }
    }

    /// Makes an error from the current `errno`.
    static func system(_ operation: String, _ subject: String) -> ExportError {
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
        return ExportError(
            subject, "\(operation): \(String(cString: strerror(code)))", hint: hint)
    }

    private static let spaceHint =
        "free some space and export again; the folder is unchanged. --link needs hardly any"

    package var description: String { "\(subject): \(message)" }
}

extension ExportError: ReportableError {
    package var userError: UserError {
        UserError(isHeld ? .busy : .failed, description, hint: hint)
    }
}
