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

    @Test func shortHelpFitsOnePageWithValidFlags() async throws {
        let short = try await help(["-h"])
        #expect(try await help(["run", "-h"]) == short)
        #expect(try await help(["images.txt", "-j", "4", "-h"]) == short)
        let lines = short.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        #expect(lines.count <= 60)
        #expect(lines.allSatisfy { $0.count <= 80 }, "\(short)")
        #expect(lines.last == "prefetch run --help shows all flags")
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

    @Test func printsHelpOfSubcommand() async throws {
        let short = try await help(["get", "-h"])
        #expect(short.contains("USAGE: prefetch get"))
        #expect(try await help(["get", "--help"]) == short)
    }

    /// Some arguments bypass the full parser, with the same output.
    @Test func allHelpFormsPrintSameText() async throws {
        let root = try await help(["--help"])
        #expect(try await help(["help"]) == root)
        #expect(root.contains("(default)"))
        for command in ["run", "get", "list", "stats", "attr", "failed", "history"] {
            #expect(
                try await help([command, "--help"]) == help(["help", command]), "\(command)")
        }
    }

    @Test func fullHelpHasGroupsInOrder() async throws {
        let text = try await help(["run", "--help"])
        let groups = text.split(separator: "\n").filter {
            $0.hasSuffix(":") && !$0.hasPrefix(" ") && $0 == $0.uppercased()
        }
        #expect(
            groups == [
                "ARGUMENTS:", "INPUT:", "ORDER:", "CONCURRENCY AND HOSTS:", "LIMITS:", "FILTERS:",
                "REQUESTS:", "RESPONSES:", "FRESHNESS:", "ENCODING:", "OUTPUT:", "RESULT:",
                "OPTIONS:",
            ])
        #expect(text.ranges(of: "\n  prefetch images.txt ").count == 3)
        #expect(text.contains("| prefetch - --base-url"))
    }

    private func json(_ text: some StringProtocol) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    /// The rows of the program's table of flags.
    private func rows() async throws -> [[String: Any]] {
        try await help(["--experimental-dump-flags"]).split(separator: "\n").map(json)
    }

    /// The parser's own description of `run`.
    private func parsedFlags() async throws -> [[String: Any]] {
        let dump = try json(await help(["--experimental-dump-help"]))
        let root = try #require(dump["command"] as? [String: Any])
        let commands = try #require(root["subcommands"] as? [[String: Any]])
        let run = try #require(commands.first { $0["commandName"] as? String == "run" })
        return try #require(run["arguments"] as? [[String: Any]]).filter {
            !["manifest", "version", "help"].contains($0["valueName"] as? String)
        }
    }

    @Test func theTableOfFlagsAgreesWithTheParser() async throws {
        let (rows, parsed) = (try await rows(), try await parsedFlags())
        func text(_ object: [String: Any], _ name: String) -> String {
            object[name] as? String ?? ""
        }
        func names(_ argument: [String: Any], _ kind: String) -> [String] {
            (argument["names"] as? [[String: Any]] ?? [])
                .filter { text($0, "kind") == kind }.map { text($0, "name") }
        }
        #expect(rows.count > 70)
        #expect(rows.map { [text($0, "name")] } == parsed.map { names($0, "long") })
        for (row, argument) in zip(rows, parsed) {
            let short = text(row, "short")
            #expect((short.isEmpty ? [] : [short]) == names(argument, "short"), "\(row)")
            #expect(text(row, "group") == text(argument, "sectionTitle"), "\(row)")
            #expect(text(row, "help") == text(argument, "abstract"), "\(row)")
            #expect(text(row, "default") == text(argument, "defaultValue"), "\(row)")
            let isSwitch = row["value"] is NSNull
            #expect(isSwitch == (text(argument, "kind") == "flag"), "\(row)")
            if !isSwitch { #expect(text(row, "value") == text(argument, "valueName"), "\(row)") }
        }
    }

    @Test func theShortHelpShowsTheDefaultsOfTheTable() async throws {
        let lines = try await help(["-h"]).split(separator: "\n")
        var shown: Set<String> = []
        for row in try await rows() {
            let name = try #require(row["name"] as? String)
            guard let line = lines.first(where: { $0.contains("--\(name) ") }),
                let text = line.wholeMatch(of: /.* \(([^ ()]+)\)/)?.output.1
            else { continue }
            #expect(String(text) == row["default"] as? String, "\(line)")
            shown.insert(name)
        }
        #expect(shown.isSuperset(of: ["jobs", "retry", "timeout", "quality"]))
    }

    @Test(arguments: [
        (
            ["help", "runs"],
            "prefetch: runs: no such command\nhint: did you mean `prefetch run`?\n"
        ),
        (
            ["help", "failed", "nonsense"],
            "prefetch: nonsense: no such command\n"
                + "hint: `prefetch failed --help` lists the commands\n"
        ),
    ])
    func helpRefusesAnUnknownCommand(arguments: [String], error: String) async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let result = try await workspace.command(arguments).run()
            #expect(result.status == 64 && result.output.isEmpty, "\(result)")
            #expect(result.error == error)
        }
    }

    @Test(arguments: [
        (["images.txt", "--jobs", "x"], "prefetch: The value 'x' is invalid for '--jobs <n>'\n"),
        (["images.txt", "--nonsense"], "prefetch: Unknown option '--nonsense'\n"),
        (["images.txt", "--jobs", "0"], "prefetch: --jobs must be between 1 and 10000\n"),
        (["get"], "prefetch: name a URL, or read a list with --batch\n"),
    ])
    func usageErrorsLookLikeOtherErrors(arguments: [String], start: String) async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let result = try await workspace.command(arguments).run()
            #expect(result.status == 64 && result.output.isEmpty, "\(result)")
            #expect(result.error.hasPrefix(start), "\(result)")
            let command = arguments == ["get"] ? "get" : "run"
            #expect(
                result.error.hasSuffix("\nhint: `prefetch \(command) --help` shows all flags\n"),
                "\(result)")
        }
    }

    @Test func aMissingListHasAHint() async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let result = try await workspace.run("missing.txt")
            #expect(result.status == 2, "\(result)")
            #expect(
                result.error == """
                    prefetch: missing.txt: No such file or directory
                    hint: name a list of URLs: a file, - for standard input, @NAME for one of a configuration file, or --list URL

                    """)
        }
    }

    /// The tables of docs/flags.md list exactly the existing flags.
    @Test func manualDocumentsEveryFlag() async throws {
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
