import Glibc
import PrefetchModel
import Threading

/// Receives SIGINT, SIGTERM and SIGHUP on its own thread, and SIGUSR1, which requests a progress
/// line.
///
/// Without a handler, and from the second signal on, a signal ends the process immediately. All
/// other threads start later and inherit a mask that blocks the signals, so nothing runs inside a
/// signal handler. A signal that is ignored at the start, like SIGHUP under nohup, stays ignored.
final class SignalWatcher: Sendable {
    typealias Handler = @Sendable (Int32) -> Void

    private let next = Monitor<(handler: Handler?, caught: Int32?)>((nil, nil))
    private let statusHandler = Monitor<(@Sendable () -> Void)?>(nil)
    private let signals: [Int32]

    /// - Throws: ``UserError`` if the thread can't be started.
    init() throws(UserError) {
        signals = [SIGINT, SIGTERM, SIGHUP, SIGUSR1].filter { !SignalWatcher.isIgnored($0) }
        var set = SignalWatcher.set(of: signals)
        pthread_sigmask(SIG_BLOCK, &set, nil)
        try OwnedThread(name: "signals") { self.watch() }.detach()
    }

    /// Passes the next signal, and only that one, to `handler` on the watcher's thread; at once if
    /// an earlier handler has received it.
    func hand(to handler: @escaping Handler) {
        let caught = next.withLock { next in
            if next.caught == nil { next.handler = handler }
            return next.caught
        }
        if let caught { handler(caught) }
    }

    /// The signal that the last handler has received, known before it is called; nil without one.
    var caught: Int32? { next.withLock { $0.caught } }

    /// Calls `handler` on the watcher's thread for each SIGUSR1, which is otherwise ignored.
    func onStatusRequest(_ handler: @escaping @Sendable () -> Void) {
        statusHandler.withLock { $0 = handler }
    }

    /// Two equal signals within this time are one.
    private static let sameSignal = Duration.milliseconds(100)

    private func watch() {
        var set = SignalWatcher.set(of: signals)
        var signal: Int32 = 0
        var first: (signal: Int32, at: ContinuousClock.Instant)?
        while sigwait(&set, &signal) == 0 {
            if signal == SIGUSR1 {
                statusHandler.withLock { $0 }?()
                continue
            }
            let handler = next.withLock { next in
                defer { if next.handler != nil { next = (nil, signal) } }
                return next.handler
            }
            guard let handler else {
                // timeout(1) sends one signal to the process and to its group.
                if let first, first.signal == signal, .now - first.at < SignalWatcher.sameSignal {
                    continue
                }
                ProcessEnd.die(of: signal)
            }
            first = (signal, .now)
            handler(signal)
        }
    }

    private static func isIgnored(_ signal: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(signal, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    private static func set(of signals: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }
}
