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
                atPath: "\(workspace.folder)/pages/man1")
            #expect(Set(pages) == Set(names.map { "\($0).1" }))
            try await expectSections(workspace)
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

    /// The sections that users of manuals look for, with every member.
    private func expectSections(_ workspace: Workspace) async throws {
        let first = try await text(of: "prefetch", workspace)
        func section(_ title: String) -> String {
            let rest = first.components(separatedBy: "\n\(title)\n").last ?? ""
            let end = rest.firstMatch(of: /\n\n[A-Z]/)?.range.lowerBound ?? rest.endIndex
            return String(rest[..<end])
        }
        for status in ["0", "1", "2", "3", "64", "75"] {
            #expect(section("EXIT STATUS").contains("\n       \(status) "), "\(status)")
        }
        for file in [
            "prefetch.toml in the current", "/etc/prefetch/config.toml", ".cache/prefetch",
        ] {
            #expect(section("FILES").contains(file), "\(file)")
        }
        // All variables that the program reads, but for storage services.
        var variables: Set<Substring> = []
        let sources = SourceTree.root.appending(path: "Sources/prefetch")
        for file in try FileManager.default.subpathsOfDirectory(atPath: sources.path)
        where file.hasSuffix(".swift") {
            let source = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
            variables.formUnion(source.matches(of: /environment\("(\w+)"\)/).map(\.output.1))
            for list in source.matches(of: /environment: \[([^\]]+)\]/) {
                variables.formUnion(list.output.1.matches(of: /"(\w+)"/).map(\.output.1))
            }
        }
        #expect(variables.count > 15)
        for name in variables {
            let isNamed = [name, Substring(name.lowercased())].contains {
                section("ENVIRONMENT").contains($0)
            }
            #expect(isNamed || name == "PREFETCH_CACHE_DIR", "\(name)")
        }
        let configuration = try await text(of: "prefetch.toml", workspace)
        let keys = try await workspace.run("config", "init", "-")
        let listed = keys.output.matches(of: #/\n# ?([a-z][a-z0-9-]+) = /#).map(\.output.1)
        #expect(listed.count > 70)
        // A rule of [prune].
        for key in listed where key != "unlisted-for" {
            #expect(configuration.contains("\n       \(key)"), "\(key)")
        }
        let merge = try await text(of: "prefetch-merge", workspace)
        #expect(merge.contains("prefetch merge [options] dest src ...\n"), "\(merge)")
        #expect(merge.contains("prefetch merge [options] --check plan|n summary ...\n"))
    }

    /// A page as a reader sees it, which `mandoc` finds no fault with.
    private func text(of page: String, _ workspace: Workspace) async throws -> String {
        let file = "pages/" + (page.contains(".") ? "man5/\(page).5" : "man1/\(page).1")
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
