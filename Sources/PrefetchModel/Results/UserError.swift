/// An error that only travels to the user: a command ends with it, and no caller tells its causes
/// apart.
///
/// `prefetch` prints `prefetch: SUBJECT: MESSAGE`, then `hint: HINT`, and ends with the status of
/// the kind (docs/exit-status.md).
package struct UserError: ReportableError, Hashable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        /// The command could not be completed (status 2).
        case failed
        /// The work is done, but something was missing, damaged or refused (status 1). Without a
        /// message, the command has printed its findings.
        case incomplete
        /// Wrong arguments or settings (status 64).
        case usage
        /// Another process holds the cache or the folder (status 75).
        case busy
        /// There is no such cache or object. A command may have its own status for it.
        case missing
        /// A deadline stopped the work (status 3), or a signal.
        case cancelled
        /// The reader has closed the pipe (`| head`): no message, and status 0.
        case closedPipe
    }

    package var kind: Kind
    /// A file, a URL or a flag; empty without one.
    package var subject: String
    /// The event, without a final stop.
    package var message: String
    /// A remedy: a command, a flag or a setting.
    package var hint: String?

    package init(_ kind: Kind, _ subject: String, _ message: String, hint: String? = nil) {
        self.kind = kind
        self.subject = subject
        self.message = message
        self.hint = hint
    }

    package init(_ kind: Kind, _ message: String, hint: String? = nil) {
        self.init(kind, "", message, hint: hint)
    }

    /// A failed command.
    package init(_ subject: String, _ message: String, hint: String? = nil) {
        self.init(.failed, subject, message, hint: hint)
    }

    /// A failed command.
    package init(_ message: String, hint: String? = nil) {
        self.init(.failed, "", message, hint: hint)
    }

    /// The message about any error.
    package init(reporting error: any Error) {
        self = (error as? any ReportableError)?.userError ?? UserError("\(error)")
    }

    package var userError: UserError { self }

    /// `SUBJECT: MESSAGE`.
    package var description: String { subject.isEmpty ? message : "\(subject): \(message)" }
}

/// An error that a command can end with. `prefetch` converts it in one place, where it is reported.
package protocol ReportableError: Error, Sendable {
    var userError: UserError { get }
}
