import ArgumentParser
import Decoding
import FileOutput
import Glibc
import PrefetchModel
import Reporting

/// The `prefetch` command: arguments in, exit status out.
@main
struct Prefetch: ParsableCommand {
    static let version = "0.1.0"

    /// The parser's messages begin like all others.
    static let _errorLabel = "prefetch"

    static let configuration = makeConfiguration(default: RunCommand.self)

    fileprivate static func makeConfiguration(
        default defaultSubcommand: (any ParsableCommand.Type)?
    ) -> CommandConfiguration {
        CommandConfiguration(
            commandName: "prefetch",
            abstract: "Keep an on-disk cache of images warm.",
            discussion: """
                Reads lists of image URLs, downloads missing and stale images, decodes and re-encodes \
                them, and stores them in a cache with metadata in SQLite.

                `prefetch MANIFEST...` is short for `prefetch run MANIFEST...`.
                """,
            version: version,
            subcommands: [
                RunCommand.self, PlanCommand.self, StatusCommand.self, GetCommand.self,
                ListCommand.self,
                StatsCommand.self,
                AttrCommand.self, FailedCommand.self, HostsCommand.self, HistoryCommand.self,
                PutCommand.self, ExportCommand.self, ImportCommand.self, MergeCommand.self,
                PullCommand.self,
                RemoveCommand.self, PruneCommand.self, VerifyCommand.self, ChmodCommand.self,
                DoctorCommand.self,
                PlaceholdersCommand.self, ReportCommand.self, GalleryCommand.self,
                ConfigCommand.self,
            ],
            defaultSubcommand: defaultSubcommand)
    }

    static func subcommand(_ name: String?) -> (any ParsableCommand.Type)? {
        configuration.subcommands.first { $0.configuration.commandName == name }
    }

    static let subcommands = Set(
        configuration.subcommands.compactMap { $0.configuration.commandName })

    static func main() {
        // Writes report a closed pipe and a file-size limit as errors.
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        FreedMemory.returnLargeBlocks()
        DecodingWorker.serveIfAsked()
        OpenFiles.raiseLimit()
        let arguments = CommandArguments.normalized(
            ProcessArguments.all, subcommands: subcommands)
        var configured = ConfiguredCommand(arguments)
        var command: (any ParsableCommand)?
        do {
            try answerWithoutCommand(arguments)
            try UsageAdvice.check(arguments)
            try UsageAdvice.checkHelp(arguments)
            try configured.configure()
            command = try self.command(from: configured.arguments)
            try command?.start(configured.invocation)
            ProcessEnd.leave(0)
        } catch {
            let error = configured.failure(for: error) { _ = try self.command(from: $0) } ?? error
            let status: Int32
            if let failure = UserError(error, configured.invocation.lists) {
                failure.report()
                status = failure.exitStatus(of: command)
            } else {
                let code = exitCode(for: error)
                say(error, isSuccess: code.isSuccess)
                status = code.rawValue
            }
            if status == 2 || status == EX_USAGE { adviseFile(arguments) }
            ProcessEnd.leave(status)
        }
    }

    /// Handles arguments that need no command, without the parser's check of all flags of `run`.
    private static func answerWithoutCommand(_ arguments: [String]) throws {
        if CommandArguments.wantShortHelp(arguments, subcommands: subcommands) {
            let isOfRun = arguments.first == "run"
            throw CleanExit.message(isOfRun ? ShortHelp.ofRun : ShortHelp.text)
        }
        if arguments == ["--help"] || arguments == ["help"] {
            throw CleanExit.message(ShortHelp.long)
        }
        if arguments.count == 2, arguments[0] == CompletionScript.flag,
            let script = CompletionScript.make(for: arguments[1])
        {
            throw CleanExit.message(script)
        }
        if arguments == [FlagList.flag] {
            try FlagList.write()
            ProcessEnd.leave(0)
        }
    }

    private static func adviseFile(_ arguments: [String]) {
        guard let advice = UsageAdvice.file(namedLikeSubcommand: arguments) else { return }
        StandardError.write("hint: \(advice)")
    }

    private static func command(from arguments: [String]) throws -> any ParsableCommand {
        let isNamed = arguments.first.map(subcommands.contains) == true
        // From the root, the parser examines all flags of a subcommand twice, half of the time of a
        // short call. What isn't a call of this command, like `--help`, is parsed again below.
        let type = isNamed ? subcommand(arguments.first) : RunCommand.self
        let words = isNamed ? arguments.dropFirst() : arguments[...]
        // The parser reads the file of an `overlay=`, which may be a pipe: it must parse only once.
        if let type, type.configuration.subcommands.isEmpty,
            !words.contains(where: { $0.contains("overlay=") }),
            isNamed || !words.contains(where: { subcommands.contains($0) || $0 == "help" }),
            let command = try? type.parseAsRoot(Array(words)), Swift.type(of: command) == type
        {
            return command
        }
        return try isNamed ? NamedCommand.parseAsRoot(arguments) : parseAsRoot(arguments)
    }

    /// Prints help, the version, or a usage error.
    private static func say(_ error: any Error, isSuccess: Bool) {
        var message = fullMessage(for: error)
        if !isSuccess { message = UsageAdvice.adding(to: message) }
        // The parser takes this text at every start; the libraries load only for `--version`.
        if message == version, isSuccess { message = VersionText.make() }
        // The parser repeats arguments as they are.
        let lines = message.split(separator: "\n", omittingEmptySubsequences: false).map {
            printable(String($0))
        }
        let text = Array((lines.joined(separator: "\n") + "\n").utf8)
        let output =
            isSuccess
            ? OutputFile.standardOutput()
            : OutputFile(borrowing: STDERR_FILENO, name: "standard error")
        guard text.count > 1 else { return }
        do {
            try output.write(text)
        } catch .closedPipe {
            // The reader has seen enough.
        } catch {
            error.userError.report()
            ProcessEnd.leave(2)
        }
    }
}

/// The command without a default subcommand, for arguments that begin with a subcommand's name.
///
/// It parses commands that have subcommands, like `attr get`, and wrong arguments. The parser
/// always examines the default subcommand, and `run` has over 120 flags.
private struct NamedCommand: ParsableCommand {
    static let configuration = Prefetch.makeConfiguration(default: nil)
}

/// A command that looks for images: without a cache it ends with status 1, as for a missing image.
/// The other commands end with 2.
protocol SearchingCommand: ParsableCommand {}
