import Glibc
import Threading

/// The command of `--on-change`.
enum ChangeCommand {
    /// Runs a command by the shell, and waits for its end. Its standard output is the standard
    /// error of this process, whose own output may be data. The variable `PREFETCH_CHANGED` has
    /// `count`. The next signal is passed on to the command and its children.
    ///
    /// - Returns: why it failed, nil if it has exited with 0, and the signal.
    static func run(
        _ command: String, count: Int, signals: SignalWatcher
    ) -> (problem: String?, signal: Int32?) {
        setenv("PREFETCH_CHANGED", "\(count)", 1)
        var attributes = posix_spawnattr_t()
        var actions = posix_spawn_file_actions_t()
        posix_spawnattr_init(&attributes)
        posix_spawn_file_actions_init(&actions)
        defer {
            posix_spawnattr_destroy(&attributes)
            posix_spawn_file_actions_destroy(&actions)
        }
        // This process ignores two signals, and handles others on one thread.
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(
            &attributes,
            Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)
        var process = pid_t()
        let code = withArguments(["/bin/sh", "-c", command]) {
            posix_spawn(&process, "/bin/sh", &actions, &attributes, $0, environ)
        }
        guard code == 0 else { return (String(cString: strerror(code)), nil) }
        let received = Monitor<Int32?>(nil)
        // It leads a process group of its own.
        let group = -process
        signals.hand { signal in
            received.withLock { $0 = signal }
            kill(group, signal)
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { return (String(cString: strerror(errno)), nil) }
        }
        return (problem(of: status), received.withLock { $0 })
    }

    /// Returns the failure that a status of `waitpid` means, by what the macros `WIFEXITED` and
    /// `WTERMSIG` do.
    private static func problem(of status: Int32) -> String? {
        if status == 0 { return nil }
        return status & 0x7F == 0
            ? "exit status \(status >> 8 & 0xFF)" : "ended by signal \(status & 0x7F)"
    }

    private static func withArguments<Result>(
        _ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let arguments = texts.map { strdup($0) }
        defer { arguments.forEach { free($0) } }
        return body(arguments + [nil])
    }
}
