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

    private let handler = Monitor<Handler?>(nil)
    private let statusHandler = Monitor<(@Sendable () -> Void)?>(nil)
    private let signals: [Int32]

    /// - Throws: ``UserError`` if the thread can't be started.
    init() throws(UserError) {
        signals = [SIGINT, SIGTERM, SIGHUP, SIGUSR1].filter { !SignalWatcher.isIgnored($0) }
        var set = SignalWatcher.set(of: signals)
        pthread_sigmask(SIG_BLOCK, &set, nil)
        try OwnedThread(name: "signals") { self.watch() }.detach()
    }

    /// Passes the next signal, and only that one, to `handler` on the watcher's thread.
    func hand(to handler: @escaping Handler) {
        self.handler.withLock { $0 = handler }
    }

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
            let handler = self.handler.withLock { handler in
                defer { handler = nil }
                return handler
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

enum ChangeCommand {
    /// Runs a command by the shell, and waits for its end. Its standard output is the standard
    /// error of this process: its standard output may be data. The variable `PREFETCH_CHANGED` has
    /// `count`. The next signal is passed on to the command and its children.
    ///
    /// - Returns: why it failed, nil if it has exited with 0, and the signal.
    static func run(
        _ command: String, count: Int, signals: SignalWatcher
    ) -> (problem: String?, signal: Int32?) {
        setenv("PREFETCH_CHANGED", "\(count)", 1)
        let child: ChildProcess
        do {
            child = try ChildProcess(shell: command, output: STDERR_FILENO)
        } catch {
            return (error.description, nil)
        }
        let received = Monitor<Int32?>(nil)
        signals.hand { signal in
            received.withLock { $0 = signal }
            child.send(signal)
        }
        return (child.wait(), received.withLock { $0 })
    }
}
