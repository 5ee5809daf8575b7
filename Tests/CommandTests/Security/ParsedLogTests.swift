import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import prefetch

/// CI services obey commands in printed lines: no list, server or file writes them.
@Suite(.timeLimit(.minutes(15)))
struct ParsedLogTests {
    private static let hostile = [
        "##[add-mask]e", "::stop-commands::x", "##vso[task.x]e", "##teamcity[x]", "x##[error]y",
    ]

    /// The lines that a runner would obey, apart from our annotations.
    private static func obeyed(_ result: CommandResult) -> [Substring] {
        let lines = (result.output + "\n" + result.error).split(whereSeparator: \.isNewline)
        return lines.filter { line in
            let start = line.drop { $0.isWhitespace }
            let isOwn = start.hasPrefix("::error ") || start.hasPrefix("::warning ")
            return start.hasPrefix("::") && !isOwn || line.contains(#/##(\[|[A-Za-z]+\[)/#)
        }
    }

    private func withHostileCache(
        _ body: (Workspace, ([String]) async throws -> CommandResult) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(Self.hostile.count)
            origin.serve("/gone", .notFound)
            origin.serve { request in
                request.path.contains("bucket")
                    ? Response(
                        403,
                        body: Array(
                            "<Error><Code>##[x]</Code><Message>##[stop-commands]x</Message></Error>"
                                .utf8), type: "##[add-mask]e")
                    : .image(Fixtures.png())
            }
            try await withWorkspace(without: .retries) { workspace in
                @Sendable func run(_ arguments: [String]) async throws -> CommandResult {
                    var command = workspace.command(arguments)
                    command.environment["GITHUB_ACTIONS"] = "true"
                    command.environment["TF_BUILD"] = "True"
                    command.environment["AWS_ENDPOINT_URL_S3"] = origin.url("")
                    return try await command.run()
                }
                let lines = zip(urls, Self.hostile).map { url, text in
                    "\(url) key=\"\(text)\" attr.x=\"\(text)\""
                }
                try workspace.manifest(
                    lines + Self.hostile + [origin.url("/gone") + " key=\"##[gone]x\""],
                    name: "##[list].txt")
                for options in [["-v"], ["-v", "--refresh", "all"], ["--html", "##[a].html"]] {
                    let result = try await run(["run", "##[list].txt"] + options)
                    #expect(Self.obeyed(result) == [], "\(result)")
                }
                try await body(workspace, run)
            }
        }
    }

    /// Each command, with texts of lists, files and arguments; those without a cache in them last.
    private static let calls: [String: [[String]]] = [
        "run": [["-n", "-v"], ["--sink", "s3://bucket/p", "--sink-credentials", "none"], ["-v"]]
            .map { ["run", "##[list].txt"] + $0 } + hostile.map { ["run", $0] },
        "plan": [["plan", "##[list].txt", "-v"]],
        "status": [["status"], ["status", "--json"]],
        "get": hostile.flatMap { [["get", $0], ["get", $0 + "x"], ["get", "--json", $0]] },
        "list": [["list"], ["list", "--json"], ["list", "--long"]],
        "stats": [["stats"], ["stats", "--json"], ["stats", "##[x]"]],
        "attr": hostile.flatMap {
            [["attr", "get", $0, "x"], ["attr", "list", $0], ["attr", "get", $0, $0]]
        },
        "failed": [
            ["failed", "list"], ["failed", "list", "--json"], ["failed", "clear", "##[x]"],
        ],
        "hosts": [["hosts"], ["hosts", "list", "--json"], ["hosts", "clear", "##[x]"]],
        "history": hostile.map { ["history", $0] },
        "put": [["put", "##[x]", "##[y]"], ["put", "::x::y", "##[list].txt"]],
        "export": [
            ["export", "##[out]", "##[list].txt", "--layout", "mirror"],
            ["export", "##[out2]", "--layout", "pattern", "--name", "{key}"],
        ],
        "import": [
            ["import", "##[out]", "##[list].txt", "--layout", "curl"], ["import", "##[x]"],
        ],
        "merge": [["merge", "##[a]", "##[b]"]],
        "pull": [["pull", "s3://bucket/##[x]", "--sink-credentials", "none"]],
        "prune": [["prune", "--unlisted", "##[none].txt"], ["prune", "--host", "##[x]"]],
        "verify": [["verify"], ["verify", "--cache-dir", "##[x]"]],
        "chmod": [["chmod", "##[x]"]],
        "doctor": [["doctor", "##[list].txt"], ["doctor"]],
        "placeholders": [["placeholders"]],
        "report": [["report", "##[x]"], ["report"]],
        "gallery": [["gallery", "##[gallery]"]],
        "config": [
            ["config", "check", "##[x].toml"], ["config", "show", "--config", "##[x].toml"],
        ],
        "remove": hostile.map { ["remove", $0 + "x"] } + hostile.map { ["remove", $0] },
    ]

    @Test func noCommandPrintsACommand() async throws {
        let names = Prefetch.subcommands
        #expect(Set(Self.calls.keys) == names)
        try await withHostileCache { workspace, run in
            // Data stays data: JSON has the same values, and a file has all bytes.
            let json = try await run(["list", "--json"])
            let keys = try json.jsonLines().compactMap { $0["key"] as? String }
            #expect(Set(Self.hostile).isSubset(of: keys), "\(json)")
            #expect(Self.obeyed(json) == [])
            var command = workspace.command(["list"]).inShell("\"$0\" \"$@\" > rows.tsv")
            command.environment["GITHUB_ACTIONS"] = "true"
            #expect(try await command.run().status == 0)
            let rows = try String(contentsOfFile: workspace.folder + "/rows.tsv", encoding: .utf8)
            for text in Self.hostile { #expect(rows.contains(text), "\(rows)") }
            let outside = try await workspace.run("list")
            #expect(outside.output == rows, "\(outside)")

            let text = Self.hostile.map { "\"\($0)\" = 1\n[variant.\"\($0)\"]\n" }.joined()
            try workspace.write(Array(text.utf8), to: "##[x].toml")
            // Removing comes last.
            for name in names.sorted(by: {
                ($0 == "remove" ? 1 : 0, $0) < ($1 == "remove" ? 1 : 0, $1)
            }) {
                for arguments in Self.calls[name] ?? [] {
                    let result = try await run(arguments)
                    #expect(Self.obeyed(result) == [], "\(arguments): \(result)")
                }
            }
        }
    }

    @Test func unknownKeysOfAProjectAreHarmless() async throws {
        try await withWorkspace { workspace in
            let list = try workspace.manifest(["http://127.0.0.1:9/a.png"])
            for text in Self.hostile {
                try workspace.write(Array("\"\(text)\" = 1\n".utf8), to: "prefetch.toml")
                for arguments in [[list], ["config", "check"], ["config", "show"]] {
                    var command = workspace.command(arguments)
                    command.environment["GITHUB_ACTIONS"] = "true"
                    let result = try await command.run()
                    #expect(result.status == 64 && result.error.contains("unknown key '"))
                    #expect(Self.obeyed(result) == [], "\(result)")
                }
            }
        }
    }
}
