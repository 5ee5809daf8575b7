import Foundation
import TestSupport
import Testing

/// Which failures are blacklisted, for how long, and how that ends.
@Suite(.timeLimit(.minutes(15)))
struct BlacklistTests {
    private static let picture = Fixtures.png(seed: 1)
    private static let hour = 3600 * 1000

    private func runsInARow(_ workspace: Workspace) async throws -> [[String?]] {
        try await workspace.query(
            "SELECT class, runs_in_a_row, blacklisted_until IS NOT NULL FROM failure ORDER BY key")
    }

    @Test func removedURLIsNotRequestedUntilRetryFailed() async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve("/a.png", .notFound, .notFound, .image(BlacklistTests.picture))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch([url])
                #expect(first.report.verdicts == ["failed/http-status"], "\(first.result)")
                let second = try await workspace.prefetch([url, url])
                #expect(
                    second.report.verdicts == ["blacklisted", "duplicate"], "\(second.result)")
                #expect(second.result.status == 1 && origin.requests.count == 1)
                #expect(
                    second.report.entries.first?.message?.contains("404") == true,
                    "\(second.result)")
                let tolerant = try await workspace.prefetch([url], "--max-failures", "1")
                #expect(tolerant.result.status == 0, "\(tolerant.result)")
                for verdict in ["failed/http-status", "downloaded"] {
                    let run = try await workspace.prefetch([url], "--retry-failed")
                    #expect(run.report.verdicts == [verdict], "\(run.result)")
                }
                #expect(try await workspace.query("SELECT * FROM failure") == [])
                let last = try await workspace.prefetch([url])
                #expect(last.report.verdicts == ["fresh"], "\(last.result)")
                // A corrected line is requested though its key failed.
                origin.serve("/typo.png", .notFound)
                origin.serve("/logo.png", .image(BlacklistTests.picture))
                for (path, verdict) in [
                    ("/typo.png", "failed/http-status"), ("/typo.png", "blacklisted"),
                    ("/logo.png", "downloaded"),
                ] {
                    let run = try await workspace.prefetch([origin.url(path) + " key=logo"])
                    #expect(run.report.verdicts == [verdict], "\(run.result)")
                }
            }
        }
    }

    /// Failures in a row by host, in runs that request all of them.
    @Test func runsInARowAreCounted() async throws {
        try await withOrigin { origin in
            let failure = Response.unavailable()
            origin.serve("/always", failure)
            origin.serve(
                "/once-good",
                [failure, failure, failure, failure, .picture(BlacklistTests.picture), failure])
            origin.serve("/once-gone", [failure, failure, .notFound, failure])
            let urls = ["/always", "/once-gone", "/once-good"].map {
                origin.url($0, host: "\($0.dropFirst()).localhost")
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func count(_ number: Int, _ kind: String = "transient") -> [String?] {
                    [kind, "\(number)", kind == "permanent" || number >= 5 ? "1" : "0"]
                }
                // A permanent failure stays while its host is down.
                let gone = count(1, "permanent")
                let others = [
                    [count(1), count(1)], [count(2), count(2)], [gone, count(3)],
                    [gone, count(4)], [gone], [gone, count(1)],
                ]
                for (index, rows) in others.enumerated() {
                    let run = try await workspace.prefetch(urls, "--retry-failed")
                    #expect(run.report[line: 1]?.verdict == "failed/http-status", "\(run.result)")
                    #expect(try await runsInARow(workspace) == [count(index + 1)] + rows)
                }
                let run = try await workspace.prefetch([urls[0]])
                #expect(run.report.verdicts == ["blacklisted"], "\(run.result)")
                let rows = try await workspace.query(
                    """
                    SELECT blacklisted_until > last_failed_at, attempts >= 6 FROM failure
                    WHERE url = '\(urls[0])'
                    """)
                #expect(rows == [["1", "1"]])
            }
        }
    }

    /// The fifth failing run blacklists for an hour.
    @Test func transientFailureIsBlacklistedAtTheFifthRun() async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve("/a.png", .unavailable())
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for count in 1...5 {
                    let run = try await workspace.prefetch([url])
                    #expect(run.report.verdicts == ["failed/http-status"], "\(run.result)")
                    #expect(
                        try await runsInARow(workspace)
                            == [["transient", "\(count)", count == 5 ? "1" : "0"]])
                }
                let run = try await workspace.prefetch([url])
                #expect(run.report.verdicts == ["blacklisted"], "\(run.result)")
                let rows = try await workspace.query(
                    "SELECT blacklisted_until - last_failed_at, attempts >= 5 FROM failure")
                #expect(rows == [["\(BlacklistTests.hour)", "1"]])
            }
        }
    }

    @Test func credentialFailuresAreNeverBlacklisted() async throws {
        try await withOrigin { origin in
            let statuses = [401, 403, 407]
            let urls = statuses.map { status in
                origin.serve("/\(status)", Response(status))
                return origin.url("/\(status)")
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for count in 1...6 {
                    let run = try await workspace.prefetch(urls, "--fail-on", "new")
                    #expect(
                        run.report.verdicts == statuses.map { _ in "failed/http-status" },
                        "\(run.result)")
                    #expect(run.result.status == (count == 1 ? 1 : 0), "\(run.result)")
                    #expect(origin.requests.count == 3 * count)
                }
                #expect(
                    try await runsInARow(workspace)
                        == statuses.map { _ in ["transient", "0", "0"] }
                )
                #expect(
                    try await workspace.query(
                        "SELECT attempts, last_failed_at > first_failed_at FROM failure")
                        == statuses.map { _ in ["6", "1"] })
                #expect(try await workspace.judge() == 0)
            }
        }
    }

    @Test func refusalKeepsPermanentFailure() async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve(
                "/a.png", .unavailable(), Response(403), .notFound, Response(401), Response(403),
                .notFound,
                .picture(BlacklistTests.picture))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for (status, row) in [
                    (1, ["transient", "1", "0"]), (1, ["transient", "0", "0"]),
                    (1, ["permanent", "1", "1"]),
                    (0, ["permanent", "1", "1"]), (0, ["permanent", "1", "1"]),
                    (0, ["permanent", "2", "1"]),
                ] {
                    let run = try await workspace.prefetch(
                        [url], "--retry-failed", "--fail-on", "new")
                    #expect(run.result.status == Int32(status), "\(run.result)")
                    #expect(try await runsInARow(workspace) == [row])
                }
                let last = try await workspace.prefetch([url], "--retry-failed")
                #expect(last.report.verdicts == ["downloaded"], "\(last.result)")
                #expect(try await workspace.query("SELECT * FROM failure") == [])
            }
        }
    }

    @Test func cacheHasPrecedenceOverBlacklist() async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve("/a.png", .image(BlacklistTests.picture), .notFound)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([url])
                let all = try await workspace.prefetch([url], "--refresh", "all")
                #expect(all.report.verdicts == ["failed/http-status"], "\(all.result)")
                let fresh = try await workspace.prefetch([url])
                #expect(fresh.report.verdicts == ["fresh"], "\(fresh.result)")
                #expect(fresh.result.status == 0)
                let blacklisted = try await workspace.prefetch([url], "--refresh", "all")
                #expect(blacklisted.report.verdicts == ["blacklisted"], "\(blacklisted.result)")
                // It needs no request either.
                let offline = try await workspace.prefetch([url], "--offline")
                #expect(offline.report.verdicts == ["fresh"], "\(offline.result)")
                #expect(origin.requests.count == 2)

                // The copy of a removed URL stays without requests.
                let removed = origin.url("/b.png")
                origin.serve("/b.png", .picture(BlacklistTests.picture), .notFound)
                let first = try await workspace.prefetch([removed])
                let path = try #require(first.report.entries.first?.path)
                for verdict in ["failed/http-status", "blacklisted"] {
                    let run = try await workspace.prefetch([removed])
                    #expect(run.report.verdicts == [verdict], "\(run.result)")
                }
                #expect(origin.snapshot.count(of: "/b.png") == 2)
                let get = try await workspace.run("get", "--stale", removed)
                #expect(get.output == "\(workspace.cache)/\(path)\n", "\(get)")
                #expect(try await workspace.judge(sources: [removed: BlacklistTests.picture]) == 2)
            }
        }
    }

    @Test func killedRunBlacklistsNothing() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let lines = (0..<12).map { origin.url("/\($0)") }
            for index in 8..<12 {
                origin.serve("/\(index)", .image(Fixtures.png(seed: index), gate: gate))
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand(lines).start()
                try await origin.wait(for: "four held") { $0.answered == 8 && $0.inFlight == 4 }
                try await eventually("the failures are committed") {
                    try await workspace.query("SELECT count(*) FROM failure") == [["8"]]
                }
                running.signal(SIGKILL)
                #expect(await running.wait().signal == SIGKILL)
                let rows = try await workspace.query(
                    "SELECT count(*) FROM failure WHERE blacklisted_until IS NOT NULL "
                        + "OR runs_in_a_row > 0")
                #expect(rows == [["0"]])
                gate.open()
                let next = try await workspace.prefetch(lines)
                #expect(
                    next.summary.outcomes == ["failed": 8, "downloaded": 4], "\(next.result)")
                let last = try await workspace.prefetch(lines)
                #expect(
                    last.summary.outcomes == ["blacklisted": 8, "fresh": 4], "\(last.result)")
            }
        }
    }

    /// An interrupted run has ended, and its results count.
    @Test func interruptedRunBlacklistsItsFailures() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let lines = [origin.url("/gone"), origin.url("/held")]
            origin.serve("/held", .image(BlacklistTests.picture, gate: gate))
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand(lines).start()
                try await origin.wait(for: "one held") { $0.answered == 1 && $0.inFlight == 1 }
                running.signal(SIGTERM)
                try await running.waitUntilTaken(SIGTERM)
                gate.open()
                #expect(await running.wait().signal == SIGTERM)
                let next = try await workspace.prefetch(lines)
                #expect(next.report[line: 1]?.verdict == "blacklisted", "\(next.result)")
            }
        }
    }
}
