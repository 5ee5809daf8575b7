import CacheStorage
import Glibc
import PrefetchModel
import Reporting

/// The error message and exit status of a failed command.
struct CommandFailure: Error {
    let exitStatus: Int32
    /// `subject: what happened`, without a final stop; empty for no message.
    let message: String
    var hint: String?
    /// Whether the message begins with a place in a configuration file.
    var isLocated = false

    /// The command could not be completed.
    static func unusable(_ message: String, hint: String? = nil) -> CommandFailure {
        CommandFailure(exitStatus: 2, message: message, hint: hint)
    }

    /// The reader closed the pipe (`| head`): no message, no error.
    static let closedPipe = CommandFailure(exitStatus: 0, message: "")

    func report() {
        guard !message.isEmpty else { return }
        StandardError.message(message, hint: hint)
    }
}

extension CommandFailure {
    /// Takes message and hint from the error; `missingStatus` is the exit status if there is no
    /// cache.
    init(_ error: StorageError, missingStatus: Int32 = 2) {
        let status =
            switch error.code {
            case .missing: missingStatus
            case .system(EWOULDBLOCK): EX_TEMPFAIL
            default: Int32(2)
            }
        self.init(exitStatus: status, message: error.description, hint: error.hint)
    }
}

extension CommandFailure {
    /// A file that could not be written; quiet about a pipe that its reader has closed.
    init(_ error: ReportingError) {
        if case .closedPipe = error {
            self = .closedPipe
        } else {
            self = .unusable(error.description, hint: error.hint)
        }
    }
}

extension CommandFailure {
    init(_ error: any ReportableError) {
        let error = error.userError
        guard error.kind != .closedPipe else {
            self = .closedPipe
            return
        }
        let status =
            switch error.kind {
            case .usage: EX_USAGE
            case .busy: EX_TEMPFAIL
            case .incomplete: Int32(1)
            case .cancelled: Int32(3)
            case .failed, .missing, .closedPipe: Int32(2)
            }
        self.init(exitStatus: status, message: error.description, hint: error.hint)
    }
}
