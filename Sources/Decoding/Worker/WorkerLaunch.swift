internal import CLinux
internal import CSandbox
import Codecs
import Glibc
import PrefetchModel

/// The start of a worker.
struct WorkerLaunch: Sendable {
    /// This program is its own worker.
    var program = "/proc/self/exe"
    var variables = WorkerLaunch.libraryVariables
    /// Whether it decodes and encodes a tiny picture of each format first.
    var tests = false
    /// The libraries that it loads.
    var libraries: CodecLibrarySet = []
    /// The index of a system call that it may not make, of those that workers may; -1 for none. For
    /// tests.
    var leftOut: Int32 = -1

    /// The hidden first argument of a worker.
    static let flag = "--decoding-worker"

    /// The part of the environment that finds libraries.
    private static var libraryVariables: [String] {
        ["LD_LIBRARY_PATH", "LD_PRELOAD"].compactMap { (name: String) in
            getenv(name).map { "\(name)=\(String(cString: $0))" }
        } + ["SWIFT_BACKTRACE=enable=no"]
    }

    /// Starts it with these descriptors, and returns its number.
    func start(input: Int32, output: Int32, socket: Int32) throws(UserError) -> pid_t {
        var attributes = posix_spawnattr_t()
        var actions = posix_spawn_file_actions_t()
        posix_spawnattr_init(&attributes)
        posix_spawn_file_actions_init(&actions)
        // Beyond the worker's descriptors: no copy overwrites the next source.
        let copies = [input, output, socket].map { fcntl($0, F_DUPFD_CLOEXEC, 16) }
        defer {
            posix_spawnattr_destroy(&attributes)
            posix_spawn_file_actions_destroy(&actions)
            for copy in copies where copy >= 0 { close(copy) }
        }
        guard copies.allSatisfy({ $0 >= 0 }) else { throw WorkerProcess.failure(errno) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        for standard in STDIN_FILENO...STDERR_FILENO {
            posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0)
        }
        for (copy, target) in zip(copies, [CSANDBOX_INPUT, CSANDBOX_OUTPUT, CSANDBOX_SOCKET]) {
            posix_spawn_file_actions_adddup2(&actions, copy, Int32(target))
        }
        posix_spawn_file_actions_addclosefrom_np(&actions, Int32(CSANDBOX_SOCKET) + 1)
        let settings = [getpid().description, "\(tests)", "\(libraries.rawValue)", "\(leftOut)"]
        let arguments = (["prefetch", WorkerLaunch.flag] + settings).map { strdup($0) }
        let environment = variables.map { strdup($0) }
        defer { (arguments + environment).forEach { free($0) } }
        var process = pid_t()
        let code = posix_spawn(
            &process, program, &actions, &attributes, arguments + [nil], environment + [nil])
        guard code == 0 else { throw WorkerProcess.failure(code) }
        return process
    }
}
