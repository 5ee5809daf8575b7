import ArgumentParser
internal import CCrash
import Glibc
import Reporting

/// The command: arguments in, exit status out.
@main
struct Prefetch: ParsableCommand {
    static let version = "0.1.0"

    static let configuration = makeConfiguration(default: RunCommand.self)

    fileprivate static func makeConfiguration(
        default defaultSubcommand: (any ParsableCommand.Type)?
    ) -> CommandConfiguration {
        CommandConfiguration(
            commandName: "prefetch",
            abstract: "Keep an on-disk cache of images warm.",
            discussion: """
                Reads lists of image URLs, downloads what is missing or stale, decodes and re-encodes it, \
                and stores it in a cache whose metadata lives in SQLite.

                `prefetch MANIFEST...` is short for `prefetch run MANIFEST...`.
                """,
            version: version,
            subcommands: [
                RunCommand.self, GetCommand.self, ListCommand.self, StatsCommand.self,
                AttrCommand.self, FailedCommand.self, HostsCommand.self, HistoryCommand.self,
                PutCommand.self, RemoveCommand.self, PruneCommand.self, VerifyCommand.self,
                ChmodCommand.self, DoctorCommand.self, PlaceholdersCommand.self,
            ],
            defaultSubcommand: defaultSubcommand)
    }

    /// Their names.
    static let subcommands = Set(
        configuration.subcommands.compactMap { $0.configuration.commandName })

    static func main() {
        // A closed pipe and a file-size limit are answers of the calls that meet them.
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        ccrash_install()
        OpenFiles.raiseLimit()
        let arguments = CommandArguments.normalized(
            Array(CommandLine.arguments.dropFirst()), subcommands: subcommands)
        do {
            // The program's own name is missing, too, where Swift's library cannot find them.
            guard !CommandLine.arguments.isEmpty else {
                throw CommandFailure.unusable(
                    "the arguments cannot be read from /proc/self/maps",
                    hint: "/proc has to be mounted")
            }
            if CommandArguments.wantShortHelp(arguments, subcommands: subcommands) {
                throw CleanExit.message(ShortHelp.text)
            }
            // As the parser answers it, after a look at all the flags of `run`.
            if arguments == ["--help"] { throw CleanExit.message(helpMessage()) }
            var command = try command(from: arguments)
            try command.run()
        } catch let failure as CommandFailure {
            failure.report()
            if failure.exitStatus == 2 { adviseFile(arguments) }
            ProcessEnd.leave(failure.exitStatus)
        } catch {
            say(error)
            if !exitCode(for: error).isSuccess { adviseFile(arguments) }
            ProcessEnd.leave(exitCode(for: error).rawValue)
        }
        ProcessEnd.leave(0)
    }

    private static func adviseFile(_ arguments: [String]) {
        guard let advice = UsageAdvice.file(namedLikeSubcommand: arguments) else { return }
        StandardError.write("hint: \(advice)")
    }

    private static func command(from arguments: [String]) throws -> any ParsableCommand {
        guard let name = arguments.first, subcommands.contains(name) else {
            return try parseAsRoot(arguments)
        }
        // Scripts start it once an image. What it does not take, the whole command answers, in its words.
        if name == GetCommand.configuration.commandName,
            let get = try? GetCommand.parse(Array(arguments.dropFirst()))
        {
            return get
        }
        return try NamedCommand.parseAsRoot(arguments)
    }

    /// Help, the version, or what is wrong with the arguments.
    private static func say(_ error: any Error) {
        var message = UsageAdvice.adding(to: fullMessage(for: error))
        // The parser takes its text at every start; the libraries are asked only when it is wanted.
        if message == version, exitCode(for: error).isSuccess { message = VersionText.make() }
        // The parser repeats arguments as they are.
        let lines = message.split(separator: "\n", omittingEmptySubsequences: false).map {
            printable(String($0))
        }
        let text = Array((lines.joined(separator: "\n") + "\n").utf8)
        let output =
            exitCode(for: error).isSuccess
            ? OutputFile(borrowing: STDOUT_FILENO, name: "standard output")
            : OutputFile(borrowing: STDERR_FILENO, name: "standard error")
        guard text.count > 1 else { return }
        do {
            try output.write(text)
        } catch .closedPipe {
            // Who has gone has seen enough.
        } catch {
            CommandFailure.unusable(error.description).report()
            ProcessEnd.leave(2)
        }
    }
}

/// The command for arguments that begin with the name of a subcommand: the same, with nothing to
/// fall back to.
///
/// The parser looks at the default subcommand whatever the arguments are, and `run` has so many
/// flags that this was most of what `get` had its parser do.
private struct NamedCommand: ParsableCommand {
    static let configuration = Prefetch.makeConfiguration(default: nil)
}

/// A command that cannot do its work, as the user sees it.
struct CommandFailure: Error {
    let exitStatus: Int32
    /// `subject: what happened`, without a final stop; empty to say nothing.
    let message: String
    var hint: String?

    /// The run, or another command, could not be completed.
    static func unusable(_ message: String, hint: String? = nil) -> CommandFailure {
        CommandFailure(exitStatus: 2, message: message, hint: hint)
    }

    /// A reader that has seen enough (`| head`): nothing to say, no error.
    static let closedPipe = CommandFailure(exitStatus: 0, message: "")

    func report() {
        guard !message.isEmpty else { return }
        StandardError.write("prefetch: \(message)")
        if let hint { StandardError.write("hint: \(hint)") }
    }
}
