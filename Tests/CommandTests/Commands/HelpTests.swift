import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct HelpTests {
    private func help(_ arguments: [String]) async throws -> String {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let result = try await workspace.command(arguments).run()
            #expect(result.status == 0 && result.error.isEmpty, "\(result)")
            return result.output
        }
    }

    /// The names of long options in a text.
    private func flags(_ text: String) -> Set<String> {
        Set(text.matches(of: /--[a-z][a-z0-9.-]+/).map { String($0.output) })
    }

    @Test func theShortHelpIsAPageAndTrue() async throws {
        let short = try await help(["-h"])
        #expect(try await help(["run", "-h"]) == short)
        #expect(try await help(["images.txt", "-j", "4", "-h"]) == short)
        let lines = short.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        #expect(lines.count <= 60)
        #expect(lines.allSatisfy { $0.count <= 80 }, "\(short)")
        #expect(lines.last == "prefetch run --help shows all")
        let all = try await help(["run", "--help"])
        #expect(flags(short).subtracting(flags(all)).isEmpty)
        let root = try await help(["--help"])
        for command in [
            "run", "get", "list", "stats", "attr", "failed", "hosts", "remove", "verify",
        ] {
            #expect(short.contains("\n  \(command) "))
            #expect(root.contains("\n  \(command) "))
        }
    }

    @Test func otherCommandsHaveTheirOwnHelp() async throws {
        let short = try await help(["get", "-h"])
        #expect(short.contains("USAGE: prefetch get"))
        #expect(try await help(["get", "--help"]) == short)
    }

    /// Some arguments bypass the full parser, with the same output.
    @Test func everyWayToTheHelpGivesTheSame() async throws {
        let root = try await help(["--help"])
        #expect(try await help(["help"]) == root)
        #expect(root.contains("(default)"))
        for command in ["run", "get", "list", "stats", "attr", "failed", "history"] {
            #expect(
                try await help([command, "--help"]) == help(["help", command]), "\(command)")
        }
    }

    @Test func theWholeHelpHasItsGroupsInOrder() async throws {
        let text = try await help(["run", "--help"])
        let groups = text.split(separator: "\n").filter {
            $0.hasSuffix(":") && !$0.hasPrefix(" ") && $0 == $0.uppercased()
        }
        #expect(
            groups == [
                "ARGUMENTS:", "INPUT:", "ORDER:", "CONCURRENCY AND HOSTS:", "LIMITS:", "FILTERS:",
                "REQUESTS:",
                "FRESHNESS:", "ENCODING:", "OUTPUT:", "RESULT:", "OPTIONS:",
            ])
        #expect(text.ranges(of: "\n  prefetch images.txt ").count == 3)
        #expect(text.contains("| prefetch - --base-url"))
    }

    /// The tables of docs/flags.md list exactly the existing flags.
    @Test func theManualHasEveryFlag() async throws {
        let manual = try DocumentTests.document("docs/flags.md")
        let section = try #require(manual.components(separatedBy: "\n## prefetch run\n").last)
        let table = section.components(separatedBy: "\n## ")[0].split(separator: "\n")
            .filter { $0.hasPrefix("| `-") }.map { $0.split(separator: "|")[0...1].joined() }
            .joined(separator: "\n")
        let help = try await help(["run", "--help"])
        let given = Set(
            help.matches(of: /\n  (?:-[a-zA-Z0-9], )?(--[a-z][a-z0-9.-]+)/)
                .map { String($0.output.1) })
        let others: Set = ["--help", "--version", "--quiet", "--verbose"]
        #expect(given.subtracting(others) == flags(table).subtracting(others))
    }
}
