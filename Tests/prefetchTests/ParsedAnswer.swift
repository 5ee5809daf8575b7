import ArgumentParser
import PrefetchModel

@testable import prefetch

/// The text and exit status of arguments that start no command: help or a usage error.
struct ParsedAnswer {
    let status: Int32
    let text: String

    var lines: [Substring] { text.split(separator: "\n") }

    /// Parses arguments as the program does, without configuration files; nil for a command that
    /// would start.
    init?(_ arguments: [String]) {
        let arguments = CommandArguments.normalized(arguments, subcommands: Prefetch.subcommands)
        do {
            try UsageAdvice.check(arguments)
            try UsageAdvice.checkHelp(arguments)
            var command = try Prefetch.parseAsRoot(arguments)
            if ParsedAnswer.isOwn(type(of: command), Prefetch.configuration) { return nil }
            // One of the parser's commands, which print help.
            try command.run()
            return nil
        } catch let error as UserError {
            status = error.exitStatus(of: nil)
            text = "prefetch: \(error)\n" + (error.hint.map { "hint: \($0)\n" } ?? "")
        } catch {
            status = Prefetch.exitCode(for: error).rawValue
            let message = Prefetch.fullMessage(for: error)
            text = (status == 0 ? message : UsageAdvice.adding(to: message)) + "\n"
        }
    }

    private static func isOwn(
        _ command: any ParsableCommand.Type, _ parent: CommandConfiguration
    ) -> Bool {
        parent.subcommands.contains { $0 == command || isOwn(command, $0.configuration) }
    }
}
