import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct FailedTests {
    /// Columns of `failed list`, by the last part of the URL's path.
    private func listed(
        _ workspace: Workspace, _ options: String...
    ) async throws -> [(name: String, columns: [String])] {
        let result = try await workspace.command(["failed", "list"] + options).run()
        #expect(result.status == 0 && result.error.isEmpty, "\(result)")
        return try result.outputLines.map { line in
            let columns = line.split(separator: "\t", omittingEmptySubsequences: false)
                .map(String.init)
            try #require(columns.count == 8, "\(result)")
            return (columns[6].split(separator: "/").last.map(String.init) ?? "", columns)
        }
    }

    /// 404 at `/gone`, 503 at `/busy`, a page at `/page`, and an image.
    private func serve(_ origin: Origin) -> [String] {
        origin.serve("/gone", .notFound)
        origin.serve("/busy", .unavailable())
        origin.serve("/page", .text("<html></html>"))
        origin.serve("/good", .image(Fixtures.png()))
        return ["/gone", "/busy", "/page", "/good"].map(origin.url)
    }

    @Test func listsBlacklistedAndRetriedFailures() async throws {
        try await withOrigin { origin in
            let urls = serve(origin)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls)
                #expect(run.summary["failed"] == 3, "\(run.result)")
                let all = try await listed(workspace)
                try #require(all.map(\.name) == ["busy", "gone", "page"])
                #expect(all.map(\.columns[0]) == ["retried", "blacklisted", "blacklisted"])
                #expect(
                    all.map(\.columns[2]) == ["http-status 503", "http-status 404", "not-an-image"])
                #expect(all[0].columns[1] == "now")
                for failure in all {
                    #expect(failure.columns[3] == "1", "\(failure)")
                    #expect((Int(failure.columns[4]) ?? 0) >= 1, "\(failure)")
                    let last = try #require(try? Date(failure.columns[5], strategy: .iso8601))
                    guard failure.columns[0] == "blacklisted" else { continue }
                    let next = try #require(try? Date(failure.columns[1], strategy: .iso8601))
                    #expect(abs(next.timeIntervalSince(last) - 3600) <= 1, "\(failure)")
                }
                #expect(
                    try await listed(workspace, "--blacklisted").map(\.name) == ["gone", "page"])

                let json = try await workspace.run("failed", "list", "--json")
                let objects = try json.jsonLines()
                #expect(objects.compactMap { $0["url"] as? String } == urls[..<3].sorted())
                try #require(objects.count == 3, "\(json)")
                let gone = objects[1]
                #expect(gone["key"] as? String == urls[0], "\(json)")
                #expect(gone["state"] as? String == "blacklisted", "\(json)")
                #expect(gone["class"] as? String == "permanent", "\(json)")
                #expect(gone["http_status"] as? Int == 404, "\(json)")
                #expect(gone["runs_in_a_row"] as? Int == 1, "\(json)")
                #expect(gone["blacklisted_until"] as? String == all[1].columns[1], "\(json)")
                #expect(gone["next_try_at"] as? String == all[1].columns[1], "\(json)")
                #expect(gone["host"] as? String == "http://127.0.0.1:\(origin.port)", "\(json)")
                #expect(objects[0]["blacklisted_until"] is NSNull, "\(json)")
                #expect(
                    Set(gone.keys).isSuperset(of: [
                        "reason", "curl_code", "message", "attempts", "first_failed_at",
                        "last_failed_at",
                    ]), "\(json)")

                let stats = try await workspace.run("stats", "--json")
                let sums = try #require(try stats.jsonLines().first?["failures"] as? [String: Int])
                #expect(sums == ["total": 3, "blacklisted": 2], "\(stats)")
                let text = try await workspace.run("stats")
                #expect(text.output.contains("3 (2 blacklisted)"), "\(text)")
            }
        }
    }

    /// By the same rule as a run.
    @Test func expiredAndImplausibleEntriesAreRetried() async throws {
        try await withOrigin { origin in
            let urls = serve(origin)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(urls)
                for change in [
                    "blacklisted_until = last_failed_at - 1",
                    "blacklisted_until = last_failed_at + 90 * 86400000",
                    "blacklisted_until = NULL",
                ] {
                    try await workspace.runSQL("UPDATE failure SET \(change)")
                    #expect(try await listed(workspace, "--blacklisted").isEmpty, "\(change)")
                    #expect(try await listed(workspace).map(\.columns[1]) == ["now", "now", "now"])
                    let stats = try await workspace.run("stats")
                    #expect(stats.output.contains("3 (0 blacklisted)"), "\(stats)")
                }
            }
        }
    }

    @Test func removedFailuresAreRequestedAgain() async throws {
        try await withOrigin { origin in
            let urls = serve(origin)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                // An empty or missing cache has no failures.
                for arguments in [["failed", "rm", "http://a/"], ["failed", "clear"]] {
                    let result = try await workspace.command(arguments).run()
                    #expect(result.status == 1, "\(result)")
                    #expect(result.error.contains("no cache yet"), "\(result)")
                }
                let missing = try await workspace.run("failed", "list")
                #expect(missing.status == 2 && missing.output.isEmpty, "\(missing)")
                #expect(!FileManager.default.fileExists(atPath: workspace.cache))
                try workspace.manifest([])
                _ = try await workspace.run("manifest.txt")
                #expect(try await listed(workspace).isEmpty)
                let cleared = try await workspace.run("failed", "clear")
                #expect(cleared.error == "prefetch: 0 failures removed\n", "\(cleared)")

                _ = try await workspace.prefetch(urls)
                let spelling = urls[0].replacingOccurrences(of: "http://", with: "HTTP://u:pw@")
                let removed = try await workspace.run(
                    "failed", "rm", urls[3], spelling + "#x", urls[1])
                #expect(removed.status == 1, "\(removed)")
                #expect(removed.error.contains(urls[3]), "\(removed)")
                #expect(!removed.error.contains(urls[1]), "\(removed)")
                #expect(try await listed(workspace).map(\.name) == ["page"])
                let asked = origin.snapshot.count(of: "/gone")
                let run = try await workspace.prefetch(urls)
                #expect(
                    run.report.verdicts == [
                        "failed/http-status", "failed/http-status", "blacklisted", "fresh",
                    ], "\(run.result)")
                #expect(origin.snapshot.count(of: "/gone") > asked)
                let done = try await workspace.run("failed", "rm", urls[2])
                #expect(done.status == 0 && done.error.isEmpty && done.output.isEmpty, "\(done)")

                // `failed list --urls` shows the URL, which is not the key of an entry with `key=`.
                _ = try await workspace.run("failed", "clear")
                _ = try await workspace.prefetch(["\(urls[0]) key=named", "\(urls[1]) key=other"])
                let named = try await workspace.run("failed", "rm", urls[0])
                #expect(named.status == 0, "\(named)")
                #expect(try await workspace.query("SELECT key FROM failure") == [["other"]])
                #expect(try await workspace.run("failed", "rm", urls[0]).status == 1)
                #expect(try await workspace.run("failed", "rm", "other").status == 0)
            }
        }
    }

    @Test func clearsAllOrMatchingFailures() async throws {
        try await withOrigin { origin in
            let urls = serve(origin)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for (options, rest) in [
                    (["--reason", "not-an-image"], ["busy", "gone"]),
                    (["--host", "127.0.0.1"], []),
                    (["--host", "127.0.0.1:\(origin.port)"], []),
                    (["--host", "HTTP://127.0.0.1:\(origin.port)"], []),
                    (["--host", "http://127.0.0.1:\(origin.port)/"], []),
                    (["--host", "127.0.0"], ["busy", "gone", "page"]),
                    (["--host", "'OR'1'='1'--"], ["busy", "gone", "page"]),
                    (["--host", "http"], ["busy", "gone", "page"]),
                    (["--reason", "dns", "--host", "127.0.0.1"], ["busy", "gone", "page"]),
                    (["--reason", "http-status", "--host", "127.0.0.1"], ["page"]),
                    ([], []),
                ] as [([String], [String])] {
                    _ = try await workspace.prefetch(urls, "--retry-failed")
                    let result = try await workspace.command(["failed", "clear"] + options).run()
                    #expect(result.status == 0 && result.output.isEmpty, "\(result)")
                    let count = 3 - rest.count
                    #expect(
                        result.error
                            == "prefetch: \(count) failure\(count == 1 ? "" : "s") removed\n")
                    #expect(try await listed(workspace).map(\.name) == rest, "\(options)")
                }
                let unknown = try await workspace.run("failed", "clear", "--reason", "bad-luck")
                #expect(unknown.status == 64, "\(unknown)")
            }
        }
    }

    @Test func secretsAndControlCharactersAreMasked() async throws {
        try await withOrigin { origin in
            let signed = origin.url("/gone?X-Amz-Signature=HUSH&a=1")
            let url = signed.replacingOccurrences(of: "http://", with: "http://user:HUSH@")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch([url])
                #expect(run.summary["failed"] == 1, "\(run.result)")
                try await workspace.runSQL(
                    """
                    UPDATE failure SET message = char(27) || '[2J' || char(10) || char(8238)
                        || 'at http://user:HUSH@host/?sig=HUSH', url = url || char(27, 9, 8238)
                    """)
                let list = try await workspace.run("failed", "list")
                let json = try await workspace.run("failed", "list", "--json")
                for result in [list, json] {
                    #expect(result.output.contains("X-Amz-Signature=***"), "\(result)")
                    #expect(!result.output.contains("HUSH"), "\(result)")
                    #expect(!result.output.unicodeScalars.contains("\u{1B}"), "\(result)")
                    #expect(!result.output.unicodeScalars.contains("\u{202E}"), "\(result)")
                    #expect(result.outputLines.count == 1, "\(result)")
                }
                #expect(try json.jsonLines().count == 1)
                #expect(try await listed(workspace).count == 1)
                let wrong = try await workspace.run("failed", "rm", url + "2")
                #expect(wrong.status == 1 && !wrong.error.contains("HUSH"), "\(wrong)")
                // The whole URL matches the masked one.
                #expect(try await workspace.run("failed", "rm", signed).status == 0)
            }
        }
    }
}
