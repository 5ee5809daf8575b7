import Glibc
import PrefetchModel
import Threading

/// The command of `--on-change`.
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
