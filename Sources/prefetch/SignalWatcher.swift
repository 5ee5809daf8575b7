import Glibc
import Synchronization

/// Hears SIGINT, SIGTERM and SIGHUP on a thread of its own; the second one ends the process.
///
/// The signals are blocked in every other thread, which are all started later and inherit the
/// mask, so nothing runs inside a signal handler.
final class SignalWatcher: Sendable {
    private static let watched = [SIGINT, SIGTERM, SIGHUP]

    private final class Context: Sendable {
        let received: @Sendable (Int32) -> Void
        init(_ received: @escaping @Sendable (Int32) -> Void) { self.received = received }
    }

    /// - Parameter received: called on the watcher's thread with the first signal.
    init(_ received: @escaping @Sendable (Int32) -> Void) {
        var set = SignalWatcher.signalSet()
        pthread_sigmask(SIG_BLOCK, &set, nil)
        let context = Unmanaged.passRetained(Context(received)).toOpaque()
        let start: @convention(c) @Sendable (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? =
            { context in
                if let context {
                    let context = Unmanaged<Context>.fromOpaque(context).takeRetainedValue()
                    SignalWatcher.watch(context.received)
                }
                return nil
            }
        var thread = pthread_t()
        guard pthread_create(&thread, nil, start, context) == 0 else {
            preconditionFailure("no thread for signals")
        }
        pthread_detach(thread)
    }

    private static func watch(_ received: (Int32) -> Void) {
        var set = signalSet()
        var signal: Int32 = 0
        var isFirst = true
        while sigwait(&set, &signal) == 0 {
            guard isFirst else { die(of: signal) }
            isFirst = false
            received(signal)
        }
    }

    /// Ends the process by the signal, so that whoever started it sees why.
    func die(of signal: Int32) -> Never {
        SignalWatcher.die(of: signal)
    }

    private static func die(of signal: Int32) -> Never {
        Glibc.signal(signal, SIG_DFL)
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, signal)
        kill(getpid(), signal)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        // The signal is on its way to this thread or another one; it ends them all.
        while true { pause() }
    }

    private static func signalSet() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in watched { sigaddset(&set, signal) }
        return set
    }
}
