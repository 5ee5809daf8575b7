import ArgumentParser
import Foundation
import Testing

@testable import prefetch

struct HelpTests {
    private func help(_ arguments: String...) throws -> String {
        let answer = try #require(ParsedAnswer(arguments))
        #expect(answer.status == 0, "\(answer)")
        return answer.text
    }

    /// The names of long options in a text.
    private func flags(_ text: String) -> Set<String> {
        Set(text.matches(of: /--[a-z][a-z0-9.-]+/).map { String($0.output) })
    }

    private static let documented = [
        "run", "get", "list", "stats", "attr", "failed", "hosts", "remove", "verify",
    ]

    @Test func shortHelpFitsOnePageWithValidFlags() throws {
        let short = ShortHelp.text
        let lines = short.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 60)
        #expect(lines.allSatisfy { $0.count <= 80 }, "\(short)")
        #expect(lines.last == "prefetch run --help shows all flags")
        let all = try help("run", "--help")
        #expect(flags(short).subtracting(flags(all)).isEmpty)
        for command in HelpTests.documented {
            #expect(short.contains("\n  \(command) "))
        }
        // The long forms have at least the same.
        for line in lines.dropLast() where !line.isEmpty {
            #expect(ShortHelp.long.contains(line), "\(line)")
        }
        #expect(ShortHelp.long.contains("downloads missing and stale images"))
        #expect(ShortHelp.long.split(separator: "\n").allSatisfy { $0.count <= 80 })
        #expect(flags(ShortHelp.ofRun).subtracting(flags(all)).isEmpty)
        #expect(!ShortHelp.ofRun.contains("Commands:"))
        #expect(ShortHelp.ofRun.contains("\nUsage: prefetch [run] "))
    }

    @Test(arguments: [
        (["-h"], true), (["run", "-h"], true), (["images.txt", "-j", "4", "-h"], true),
        (["get", "-h"], false), (["images.txt", "--", "-h"], false),
    ])
    func onlyRunHasTheShortHelp(arguments: [String], isShort: Bool) {
        #expect(
            CommandArguments.wantShortHelp(arguments, subcommands: Prefetch.subcommands) == isShort)
    }

    @Test func allHelpFormsPrintSameText() throws {
        #expect(try help("get", "-h") == help("get", "--help"))
        #expect(try help("get", "-h").contains("USAGE: prefetch get"))
        for command in ["run", "get", "list", "stats", "attr", "failed", "history"] {
            #expect(try help(command, "--help") == help("help", command), "\(command)")
        }
    }

    @Test func fullHelpHasGroupsInOrder() throws {
        let text = try help("run", "--help")
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

    @Test(arguments: [
        ["get"], ["list"], ["stats"], ["history"], ["attr"], ["attr", "get"], ["attr", "set"],
        ["attr", "list"], ["attr", "rm"], ["failed"], ["failed", "list"], ["failed", "rm"],
        ["failed", "clear"], ["hosts"], ["hosts", "list"], ["hosts", "clear"],
    ])
    func helpHasAnExample(command: [String]) throws {
        let answer = try #require(ParsedAnswer(command + ["--help"]))
        #expect(answer.status == 0)
        let title = try #require(answer.lines.firstIndex { $0.hasPrefix("Example") })
        #expect(answer.lines[title + 1].contains("prefetch \(command[0])"), "\(answer)")
    }

    /// The parser's own description of the flags of `run`.
    private func parsedFlags() throws -> [[String: Any]] {
        let text = try help("--experimental-dump-help")
        let dump = try #require(
            JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        let root = try #require(dump["command"] as? [String: Any])
        let commands = try #require(root["subcommands"] as? [[String: Any]])
        let run = try #require(commands.first { $0["commandName"] as? String == "run" })
        return try #require(run["arguments"] as? [[String: Any]]).filter {
            !["manifest", "version", "help"].contains($0["valueName"] as? String)
        }
    }

    @Test func theTableOfFlagsAgreesWithTheParser() throws {
        let rows = RunFlags.sections.flatMap { section in
            RunFlags.rows(section.heading).map { (section.heading, $0) }
        }
        let parsed = try parsedFlags()
        func text(_ object: [String: Any], _ name: String) -> String {
            object[name] as? String ?? ""
        }
        func names(_ argument: [String: Any], _ kind: String) -> [String] {
            (argument["names"] as? [[String: Any]] ?? [])
                .filter { text($0, "kind") == kind }.map { text($0, "name") }
        }
        #expect(rows.count > 70)
        #expect(rows.map { [$0.1.name] } == parsed.map { names($0, "long") })
        for ((heading, row), argument) in zip(rows, parsed) {
            #expect(row.short.map { [String($0)] } ?? [] == names(argument, "short"), "\(row)")
            #expect(heading.rawValue == text(argument, "sectionTitle"), "\(row)")
            #expect(row.help == text(argument, "abstract"), "\(row)")
            #expect(row.defaultText ?? "" == text(argument, "defaultValue"), "\(row)")
            #expect((row.value == nil) == (text(argument, "kind") == "flag"), "\(row)")
            if let value = row.value { #expect(value == text(argument, "valueName"), "\(row)") }
        }
    }

    @Test func theShortHelpShowsTheDefaultsOfTheTable() {
        let lines = ShortHelp.text.split(separator: "\n")
        var shown: Set<String> = []
        for row in RunFlags.all {
            guard let line = lines.first(where: { $0.contains("--\(row.name) ") }),
                let text = line.wholeMatch(of: /.* \(([^ ()]+)\)/)?.output.1
            else { continue }
            #expect(String(text) == row.defaultText, "\(line)")
            shown.insert(row.name)
        }
        #expect(shown.isSuperset(of: ["jobs", "retry", "timeout", "quality"]))
    }

    /// The tables of docs/flags.md list exactly the existing flags.
    @Test func manualDocumentsEveryFlag() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let manual = try String(
            contentsOf: root.appending(path: "docs/flags.md"), encoding: .utf8)
        let section = try #require(manual.components(separatedBy: "\n## prefetch run\n").last)
        let table = section.components(separatedBy: "\n## ")[0].split(separator: "\n")
            .filter { $0.hasPrefix("| `-") }.map { $0.split(separator: "|")[0...1].joined() }
            .joined(separator: "\n")
        let given = Set(
            try help("run", "--help").matches(of: /\n  (?:-[a-zA-Z0-9], )?(--[a-z][a-z0-9.-]+)/)
                .map { String($0.output.1) })
        let others: Set = ["--help", "--version", "--quiet", "--verbose"]
        #expect(given.subtracting(others) == flags(table).subtracting(others))
    }
}
