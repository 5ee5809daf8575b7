import CTestSupport
import Glibc

/// A program to run, with its complete environment.
package struct Command: Sendable {
    package var executable: String
    /// The arguments without the program's name.
    package var arguments: [String]
    package var environment: [String: String]
    package var folder: String
    package var input: Input = .nothing
    /// Whether standard error is a terminal, 120 columns wide.
    package var hasTerminal = false
    /// Whether the result has its peak memory.
    package var measuresMemory = false
    /// The program is killed after this time.
    package var timeLimit: Duration = .seconds(300)

    package enum Input: Sendable {
        /// `/dev/null`.
        case nothing
        /// A pipe with these bytes.
        case bytes([UInt8])
        /// A pipe that the test writes to (``RunningCommand/send(_:)``) and closes.
        case open
    }

    package init(
        executable: String, arguments: [String], environment: [String: String], folder: String
    ) {
        self.executable = executable
        self.arguments = arguments
        self.environment = environment
        self.folder = folder
    }

    /// The command by a bash script, in which `"$0" "$@"` runs it.
    package func inShell(_ script: String) -> Command {
        var command = self
        command.arguments = ["-c", script, executable] + arguments
        command.executable = "/bin/bash"
        return command
    }

    /// Runs the program to its end.
    ///
    /// - Throws: ``SpawnFailed`` when it cannot be started.
    package func run() async throws -> CommandResult {
        try await start().wait()
    }

    package struct SpawnFailed: Error, CustomStringConvertible {
        package let description: String

        init(_ subject: String, _ code: Int32) {
            description = "\(subject): \(String(cString: strerror(code)))"
        }
    }

    /// Starts the program and drains both output streams.
    ///
    /// - Throws: ``SpawnFailed`` when it cannot be started.
    package func start() throws -> RunningCommand {
        let output = try Pipe()
        let error = try hasTerminal ? Pipe(terminalColumns: 120) : Pipe()
        var inputPipe: Pipe?
        let inputDescriptor: Int32
        if case .nothing = input {
            inputDescriptor = Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
        } else {
            let pipe = try Pipe()
            inputPipe = pipe
            inputDescriptor = pipe.reading
        }
        defer {
            close(inputDescriptor)
            close(output.writing)
            close(error.writing)
        }
        let startedAt = ContinuousClock.now
        let process = try spawn(
            input: inputDescriptor, output: output.writing, error: error.writing)
        return RunningCommand(
            command: self, process: process, startedAt: startedAt, output: output.reading,
            error: error.reading, input: inputPipe?.writing)
    }

    /// Starts the program with copies of these three streams.
    func spawn(input: Int32, output: Int32, error: Int32) throws -> pid_t {
        // A program that exits without reading its input must not end the tests.
        _ = Command.ignoresBrokenPipes
        var arguments = ([executable] + arguments).map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var process: pid_t = 0
        let status = ctest_spawn(
            executable, folder, &arguments, &variables, input, output, error, &process)
        guard status == 0 else { throw SpawnFailed(executable, status) }
        return process
    }

    private static let ignoresBrokenPipes: Void = {
        signal(SIGPIPE, SIG_IGN)
    }()
}

/// A pipe; concurrently started programs inherit neither end.
struct Pipe {
    let reading: Int32
    let writing: Int32

    init() throws {
        var ends: [Int32] = [0, 0]
        let status = ctest_pipe(&ends)
        guard status == 0 else { throw Command.SpawnFailed("pipe", status) }
        (reading, writing) = (ends[0], ends[1])
    }

    /// A pseudo-terminal: output to one end is read from the other as a terminal would receive it.
    init(terminalColumns columns: Int32) throws {
        var ends: [Int32] = [0, 0]
        let status = ctest_terminal(columns, &ends)
        guard status == 0 else { throw Command.SpawnFailed("terminal", status) }
        (reading, writing) = (ends[0], ends[1])
    }
}
