import Foundation
import TestSupport
import Testing

/// The man pages against the argument parser.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: FileManager.default.fileExists(atPath: "/usr/bin/mandoc")))
struct ManualTests {
    private static let mandoc = "/usr/bin/mandoc"

    /// The parts of the parser's JSON that the pages must have.
    private struct Description: Decodable {
        let command: Command

        struct Command: Decodable {
            let commandName: String
            let abstract: String?
            let arguments: [Argument]?
            let subcommands: [Command]?

            var flags: [String] {
                (arguments ?? []).filter(\.shouldDisplay).flatMap { $0.names ?? [] }.map {
                    ($0.kind == "short" ? "-" : "--") + $0.name
                } + (subcommands ?? []).flatMap(\.flags)
            }
        }

        struct Argument: Decodable {
            let shouldDisplay: Bool
            let names: [Name]?
        }

        struct Name: Decodable {
            let kind: String
            let name: String
        }
    }

    @Test func everySubcommandAndFlagHasItsPage() async throws {
        try await withWorkspace { workspace in
            let script = SourceTree.root.appending(path: "Packaging/make-manual").path
            let made = try await run(
                workspace, "/usr/bin/python3", [script, "--binary", Workspace.binary, "pages"])
            try #require(made.status == 0, "\(made)")
            let dump = try await workspace.run("--experimental-dump-help")
            let root = try JSONDecoder().decode(
                Description.self, from: Data(dump.outputBytes)
            ).command
            let subcommands = (root.subcommands ?? []).filter { $0.commandName != "help" }
            #expect(subcommands.count > 15)
            let names = ["prefetch"] + subcommands.map { "prefetch-\($0.commandName)" }
            let pages = try FileManager.default.contentsOfDirectory(
                atPath: "\(workspace.folder)/pages")
            #expect(Set(pages) == Set(names.map { "\($0).1" }))
            let first = try await text(of: "prefetch", workspace)
            for command in subcommands {
                let name = "prefetch-\(command.commandName)"
                #expect(first.contains("\(name)(1)"))
                let page = try await text(of: name, workspace)
                #expect(page.contains(try #require(command.abstract).dropLast()), "\(name)")
                let words = Set(page.split { " \n,".contains($0) })
                for flag in command.flags { #expect(words.contains(flag[...]), "\(name) \(flag)") }
            }
        }
    }

    /// A page as a reader sees it, which `mandoc` finds no fault with.
    private func text(of page: String, _ workspace: Workspace) async throws -> String {
        let file = "pages/\(page).1"
        let faults = try await run(
            workspace, ManualTests.mandoc, ["-T", "lint", "-W", "warning", file])
        #expect(faults.status == 0, "\(faults)")
        let shown = try await run(
            workspace, ManualTests.mandoc, ["-T", "ascii", "-O", "width=200", file])
        return shown.output.replacing(/.\u{8}/, with: "")
    }

    private func run(
        _ workspace: Workspace, _ program: String, _ arguments: [String]
    ) async throws -> CommandResult {
        var command = workspace.command(arguments)
        command.executable = program
        return try await command.run()
    }
}
