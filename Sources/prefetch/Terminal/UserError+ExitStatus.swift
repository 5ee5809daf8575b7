import ArgumentParser
internal import CExit
import Glibc
import Manifests
import PrefetchModel

// The only conversion of errors into messages and exit statuses (docs/exit-status.md).

extension UserError {
    /// The message for the user; nil for an error of the parser.
    init?(_ error: any Error, _ lists: ConfiguredLists) {
        switch error {
        case let error as ManifestError:
            self.init(error.description, hint: ManifestSequence.hint(for: error, lists))
        case let error as any ReportableError: self = error.userError
        default: return nil
        }
    }

    func exitStatus(of command: (any ParsableCommand)?) -> Int32 {
        switch kind {
        case .closedPipe: 0
        case .incomplete: 1
        case .failed: 2
        case .missing: command is any SearchingCommand ? 1 : 2
        case .cancelled: 3
        case .usage: EX_USAGE
        case .busy: EX_TEMPFAIL
        }
    }

    /// Prints the message and the hint; nothing without a message.
    func report() {
        guard !message.isEmpty else { return }
        StandardError.message(description, hint: hint)
    }
}

/// Calls `body`, and changes the report of its error.
func reporting<Value>(
    as change: (inout UserError) -> Void, _ body: () throws -> Value
) throws(UserError) -> Value {
    do {
        return try body()
    } catch {
        var report = UserError(reporting: error)
        change(&report)
        throw report
    }
}

/// The only ways to exit. Other threads may still run; the one that waits for signals never ends.
enum ProcessEnd {
    static func leave(_ status: Int32) -> Never {
        cexit_end(status)
    }

    /// Ends the process by the signal, for its parent to see the cause.
    static func die(of signal: Int32) -> Never {
        cexit_save_coverage()
        Glibc.signal(signal, SIG_DFL)
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, signal)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        // To this thread, since another one may wait for the signal.
        raise(signal)
        // The first process of a container doesn't die by a signal; shells use this status.
        cexit_end(128 + signal)
    }
}
