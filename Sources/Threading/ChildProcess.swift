internal import CLinux
import Glibc
package import PrefetchModel

/// A command of the user that runs with this process, as the leader of a process group.
///
/// Not thread-safe.
package struct ChildProcess: Sendable {
    private let process: pid_t

    /// Starts a command by the shell, with these descriptors as its standard input and output; nil
    /// for this process's own.
    package init(
        shell command: String, input: Int32? = nil, output: Int32? = nil
    ) throws(UserError) {
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
        if let input { posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO) }
        if let output { posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) }
        // libcurl's descriptors are inherited otherwise.
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1)
        var process = pid_t()
        let texts = ["/bin/sh", "-c", command]
        let arguments: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) }
        defer { arguments.forEach { free($0) } }
        let code = posix_spawn(
            &process, "/bin/sh", &actions, &attributes, arguments + [nil], environ)
        guard code == 0 else { throw UserError(String(cString: strerror(code))) }
        self.process = process
    }

    /// Starts a command by the shell with pipes, which do not block this process. Returns the ends
    /// of its standard input and output, too.
    package static func piped(
        shell command: String
    ) throws(UserError) -> (child: ChildProcess, input: Int32, output: Int32) {
        var (input, output): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        func closeAll(_ descriptors: [Int32]) {
            for descriptor in descriptors where descriptor >= 0 { close(descriptor) }
        }
        guard pipe2(&input, O_CLOEXEC) == 0, pipe2(&output, O_CLOEXEC) == 0 else {
            let code = errno
            closeAll(input + output)
            throw UserError(String(cString: strerror(code)))
        }
        // Only this process's ends: the other ones are the command's own.
        for end in [input[1], output[0]] { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        do {
            let child = try ChildProcess(shell: command, input: input[0], output: output[1])
            closeAll([input[0], output[1]])
            return (child, input[1], output[0])
        } catch {
            closeAll(input + output)
            throw error
        }
    }

    /// Sends a signal to the command and its children.
    package func send(_ signal: Int32) { kill(-process, signal) }

    /// Waits for the command's end until `deadline`, and returns whether it has ended. ``wait()``
    /// may follow.
    package func hasEnded(by deadline: ContinuousClock.Instant) -> Bool {
        let descriptor = clinux_process_descriptor(process)
        defer { if descriptor >= 0 { close(descriptor) } }
        while true {
            // Kernels before 5.3, and some containers, have no descriptors of processes.
            if descriptor < 0 {
                var information = siginfo_t()
                let options = WEXITED | WNOHANG | WNOWAIT
                if waitid(P_PID, id_t(process), &information, options) == 0,
                    information.si_signo != 0
                {
                    return true
                }
                guard ContinuousClock.now < deadline else { return false }
                _ = poll(nil, 0, 20)
                continue
            }
            let left = max(.zero, deadline - .now)
            let milliseconds =
                left.components.seconds * 1000
                + left.components.attoseconds / 1_000_000_000_000_000
            var waits = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
            let count = poll(&waits, 1, Int32(clamping: milliseconds))
            if count > 0 { return true }
            if count == 0 || errno != EINTR { return false }
        }
    }

    /// Waits for the command's end, once. Returns the failure, nil after an exit with 0.
    package func wait() -> String? {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { return String(cString: strerror(errno)) }
        }
        // As the macros `WIFEXITED` and `WTERMSIG`.
        if status == 0 { return nil }
        return status & 0x7F == 0
            ? "exit status \(status >> 8 & 0xFF)" : "ended by signal \(status & 0x7F)"
    }
}
