import Foundation
import TestSupport
import Testing

/// `--junit`, and the results for GitHub Actions.
@Suite(.timeLimit(.minutes(15)))
struct CITests {
    /// Runs with the variables and files of a step.
    private func step(
        _ workspace: Workspace, _ lines: [String], _ options: [String] = [],
        _ environment: [String: String] = [:]
    ) async throws -> Workspace.Run {
        var command = try workspace.prefetchCommand(lines, options)
        command.environment["GITHUB_ACTIONS"] = "true"
        for (variable, name) in [
            ("GITHUB_OUTPUT", "output"), ("GITHUB_STEP_SUMMARY", "summary.md"),
        ] {
            try workspace.write([], to: name)
            command.environment[variable] = "\(workspace.folder)/\(name)"
        }
        command.environment.merge(environment) { $1 }
        return try workspace.finish(try await command.run(), entries: lines.count)
    }

    private func text(_ workspace: Workspace, _ name: String) throws -> String {
        try String(contentsOfFile: "\(workspace.folder)/\(name)", encoding: .utf8)
    }

    private let hostile = ["::stop-commands::x", "x##[error]|`<b>]]>", "<a b=\"c\">&\u{1}\u{FFFE}"]

    @Test func junitHasEveryEntry() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            origin.serve("/gone", .notFound)
            try await withWorkspace(without: .retries) { workspace in
                let lines = urls + [origin.url("/gone?sig=HUSH")] + hostile + [urls[0]]
                for round in 1...2 {
                    let run = try await workspace.prefetch(lines, "--junit", "results.xml")
                    #expect(run.result.status == 1, "\(run.result)")
                    #expect(try await workspace.junitComplaints("results.xml") == "")
                    let document = try XMLDocument(workspace.folder + "/results.xml")
                    let suite = try #require(document.all("testsuite").first)
                    #expect(suite["name"] == "manifest-\(round).txt")
                    #expect(suite["tests"] == "7" && suite["failures"] == "4", "\(suite)")
                    #expect(suite["errors"] == "0" && suite["skipped"] == "0")
                    let cases = document.all("testcase")
                    #expect(cases.count == 7)
                    #expect(Set(urls).isSubset(of: cases.compactMap { $0["name"] }))
                    let types = document.all("failure").compactMap { $0["type"] }
                    #expect(types.count { $0 == "invalid-entry" } == 3)
                    #expect(types.count { $0 == "http-status" } == 1)
                    #expect(try !text(workspace, "results.xml").contains("HUSH"))
                }

                // Known failures are skipped tests with `--fail-on new`.
                origin.serve("/new", .image(Fixtures.png(seed: 40)))
                origin.serve("/lost", .notFound)
                origin.serve("/down", .unavailable(500))
                let new = ["/new", "/lost", "/down"].map { origin.url($0) }
                for (status, failures, skipped): (Int32, String, String) in [
                    (1, "2", "0"), (0, "0", "2"),
                ] {
                    let run = try await workspace.prefetch(
                        new, "--junit", "results.xml", "--fail-on", "new")
                    #expect(run.result.status == status, "\(run.result)")
                    #expect(try await workspace.junitComplaints("results.xml") == "")
                    let document = try XMLDocument(workspace.folder + "/results.xml")
                    let suite = try #require(document.all("testsuite").first)
                    #expect(suite["tests"] == "3" && suite["failures"] == failures, "\(suite)")
                    #expect(suite["skipped"] == skipped, "\(suite)")
                }
            }
        }
    }

    @Test func failuresAreAnnotatedOnGitHub() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            for number in 1...20 { origin.serve("/gone\(number)", .notFound) }
            try await withWorkspace(without: .retries) { workspace in
                let lines = urls + hostile + (1...20).map { origin.url("/gone\($0)") }
                let run = try await step(workspace, lines, ["--summary", "json"])
                let commands = run.result.errorLines.filter { $0.hasPrefix("::") }
                #expect(commands.count == 10, "\(run.result)")
                #expect(commands.dropLast().allSatisfy { $0.hasPrefix("::error file=manifest-1") })
                #expect(commands.last == "::error title=prefetch::and 14 more")
                // Standard output has data only.
                #expect(run.result.outputLines.count == 1)
                #expect(run.result.output.hasPrefix("{\"type\":\"summary\""))
                #expect(try text(workspace, "output") == "changed=2\nfailed=23\n")
                let markdown = try text(workspace, "summary.md")
                #expect(markdown.contains("\n| failed | 23 |\n"), "\(markdown)")
                #expect(markdown.contains("| 20 | http-status 404 | "), "\(markdown)")
                #expect(!markdown.contains("<b>") && !markdown.contains("`"), "\(markdown)")

                // Blacklisted entries fail, too.
                let again = try await step(workspace, lines)
                #expect(again.summary.outcomes["blacklisted"] == 20, "\(again.result)")
                #expect(try text(workspace, "output") == "changed=0\nfailed=23\n")

                for (path, options, environment) in [
                    ("/none", ["--ci", "none"], [:]),
                    ("/elsewhere", [], ["GITHUB_ACTIONS": "false"]),
                ] as [(String, [String], [String: String])] {
                    let run = try await step(workspace, [origin.url(path)], options, environment)
                    #expect(run.result.status == 1)
                    #expect(!run.result.error.contains("::error"), "\(run.result)")
                    #expect(try text(workspace, "output").isEmpty)
                    #expect(try text(workspace, "summary.md").isEmpty)
                }

                // Missing files are warnings.
                let missing = ["GITHUB_OUTPUT": "missing/a", "GITHUB_STEP_SUMMARY": ""]
                let warned = try await step(workspace, urls, [], missing)
                #expect(warned.result.status == 0, "\(warned.result)")
                #expect(
                    warned.result.errorLines.suffix(2) == [
                        "prefetch: $GITHUB_OUTPUT: missing/a: cannot open: No such file or directory",
                        "hint: --ci none writes no files for GitHub Actions",
                    ], "\(warned.result)")
                let quiet = try await step(workspace, urls, ["-q"], missing)
                #expect(quiet.result.error.isEmpty, "\(quiet.result)")
            }
        }
    }

    /// The summary counts refusals of a host and missing responses.
    @Test func summariesHaveTheFailuresOfHosts() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(4)
            origin.serve { _ in Response(403, body: [], type: "text/plain") }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let dead = (1...4).map { "http://127.0.0.1:9/\($0).jpg" }
                let lines = urls + (1...5).map { origin.url("/denied\($0)") } + dead
                let run = try await workspace.prefetch(lines, "--summary", "json")
                let object = try #require(
                    JSONSerialization.jsonObject(with: Data(run.result.outputBytes))
                        as? [String: Any])
                let hosts = try #require(object["hosts"] as? [[String: Any]])
                #expect(hosts.count == 2, "\(hosts)")
                let alive = try #require(hosts.first { $0["host"] as? String == origin.url("") })
                let other = try #require(hosts.first { $0["host"] as? String != origin.url("") })
                #expect(alive["requests"] as? Int == 9 && alive["responses"] as? Int == 9)
                #expect(alive["failures"] as? Int == 5)
                let median = try #require(alive["p50_ms"] as? Double)
                let high = try #require(alive["p95_ms"] as? Double)
                #expect(median > 0 && median <= high)
                let hints = [alive, other].map { $0["hint"] as? String ?? "" }
                #expect(hints[0].hasPrefix("5 of 5 failures: HTTP 403: "), "\(hints)")
                #expect(hints[1].hasPrefix("4 of 4 failures: connect: "), "\(hints)")
                #expect(other["failures"] as? Int == 4 && other["responses"] as? Int == 0)
                #expect(other["p50_ms"] is NSNull)
            }
        }
    }
}
