internal import Glibc
package import PrefetchModel

/// A file or stream that could not be written.
package enum OutputError: ReportableError, Hashable {
    /// A failed system call: `operation` is its name, `code` its errno.
    case system(operation: String, subject: String, code: Int32)
    /// The reader of the pipe or socket has closed it (`EPIPE`). A command ends quietly then.
    case closedPipe(subject: String)
    /// No process has opened the named pipe for reading (`ENXIO`).
    case unreadPipe(subject: String)
    /// The path has a symbolic link that another user may have planted, see ``FilePlace``.
    case foreignLink(subject: String, owner: UInt32)

    package static func system(_ operation: String, _ subject: String, _ code: Int32) -> OutputError
    {
        code == EPIPE
            ? .closedPipe(subject: subject)
            : .system(operation: operation, subject: subject, code: code)
    }

    package var hint: String? {
        guard case .foreignLink = self else { return nil }
        return "remove the link, or name the file that it leads to"
    }

    package var userError: UserError {
        if case .closedPipe = self { return UserError(.closedPipe, "") }
        return UserError(description, hint: hint)
    }
}

extension OutputError: CustomStringConvertible {
    /// `report.jsonl: cannot write: No space left on device`, on one line and printable.
    package var description: String {
        switch self {
        case .closedPipe(let subject): return printable("\(subject): closed by its reader")
        case .unreadPipe(let subject):
            return printable("\(subject): a named pipe that no process reads")
        case .foreignLink(let subject, let owner):
            return printable(
                "\(subject): a symbolic link of another user (uid \(owner)) in a shared folder")
        case .system(let operation, let subject, let code):
            var buffer = [CChar](repeating: 0, count: 256)
            let isKnown = strerror_r(code, &buffer, buffer.count) == 0
            let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            let reason = isKnown ? String(decoding: bytes, as: UTF8.self) : "error \(code)"
            return printable("\(subject): cannot \(operation): \(reason)")
        }
    }
}
