import PrefetchModel
import TestSupport
import Testing
import Threading

/// A host that was down until its URLs were blacklisted, and is back.
@Suite(.timeLimit(.minutes(15)))
struct HostRecoveryTests {
    private func lines(_ origin: Origin, _ numbers: Range<Int>) -> [String] {
        numbers.map { origin.url("/\($0).png") }
    }

    /// Calls `body` after runs in which every URL failed, with a healthy origin.
    private func withBlacklistedURLs(
        _ body: (Origin, Workspace) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let isDown = Monitor(true)
            origin.serve { request in
                if isDown.withLock({ $0 }) { return Response(500) }
                if request.path.hasPrefix("/gone") { return .notFound }
                let number = Int(request.path.dropFirst().dropLast(4)) ?? 0
                return .image(Fixtures.png(seed: number))
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(lines(origin, 0..<6))
                // As after four runs; the next one is the fifth.
                try await workspace.runSQL("UPDATE failure SET runs_in_a_row = 4")
                _ = try await workspace.prefetch(lines(origin, 0..<6))
                let last = try await workspace.prefetch(lines(origin, 0..<6))
                #expect(last.summary.outcomes == ["blacklisted": 6], "\(last.result)")
                isDown.update { $0 = false }
                try await body(origin, workspace)
            }
        }
    }

    @Test(arguments: [["--order", "fifo"], ["--order", "lifo"]])
    func successOfAnotherURLEndsTheBlacklistingInTheSameRun(order: [String]) async throws {
        try await withBlacklistedURLs { origin, workspace in
            // Duplicates share the outcome.
            let lines =
                lines(origin, 0..<6) + [origin.url("/0.png") + " priority=high"]
                + lines(origin, 6..<7)
            let run = try await workspace.finish(
                workspace.prefetchCommand(lines, order).run(), entries: 8)
            #expect(run.summary.outcomes == ["downloaded": 7, "duplicate": 1], "\(run.result)")
            #expect(try await workspace.query("SELECT * FROM failure") == [])
        }
    }

    /// One URL of a healthy host that always fails.
    @Test func urlThatFailsBesideSuccessesStaysBlacklisted() async throws {
        try await withOrigin { origin in
            origin.serve { request in
                request.path == "/bad.png" ? Response(500) : .image(Fixtures.png(seed: 3))
            }
            let lines = [origin.url("/bad.png"), origin.url("/good.png")]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for number in 1...6 {
                    let run = try await workspace.prefetch(lines, "--refresh", "all")
                    let wanted = number < 6 ? "failed/http-status" : "blacklisted"
                    #expect(run.report.entries.map(\.verdict).contains(wanted), "\(run.result)")
                }
            }
        }
    }

    /// More entries than are queued in memory, and an image that is excluded.
    @Test(arguments: [[], ["--min-bytes", "1MiB"]])
    func entriesBeyondTheQueueBringTheHostBack(options: [String]) async throws {
        try await withBlacklistedURLs { origin, workspace in
            let other = (0..<6).map { origin.url("/gone?\($0)") }
            let lines = lines(origin, 0..<1) + other + lines(origin, 6..<7)
            let run = try await workspace.finish(
                workspace.prefetchCommand(
                    lines, ["-j", "1", "--queue-capacity", "1"] + options
                ).run(), entries: 8)
            #expect(run.summary.outcomes["blacklisted"] == nil, "\(run.result)")
        }
    }

    @Test func urlsOfOtherListsAreNoLongerBlacklisted() async throws {
        try await withBlacklistedURLs { origin, workspace in
            let run = try await workspace.prefetch(lines(origin, 6..<8))
            #expect(run.summary.outcomes == ["downloaded": 2], "\(run.result)")
            let rows = try await workspace.query(
                "SELECT count(*), count(blacklisted_until), sum(runs_in_a_row) FROM failure")
            #expect(rows == [["6", "0", "0"]])
            let next = try await workspace.prefetch(lines(origin, 0..<6))
            #expect(next.summary.outcomes == ["downloaded": 6], "\(next.result)")
        }
    }

    /// It had released the URLs of a recovered host before it requested them.
    @Test func killedRunLeavesNoURLBlacklisted() async throws {
        try await withBlacklistedURLs { origin, workspace in
            try await workspace.runSQL(
                "UPDATE failure SET run_id = 1 WHERE url LIKE '%/0.png' OR url LIKE '%/1.png'")
            let run = try await workspace.prefetch(lines(origin, 0..<2))
            #expect(run.summary.outcomes == ["downloaded": 2], "\(run.result)")
        }
    }

    /// Neither does a response without an image bring the host back, nor another host's success.
    @Test func withoutASuccessOfTheHostURLsStayBlacklisted() async throws {
        try await withBlacklistedURLs { origin, workspace in
            try await withOrigin { other in
                other.serve("/a.png", .image(Fixtures.png(seed: 50)))
                let run = try await workspace.prefetch(
                    lines(origin, 0..<6) + [
                        origin.url("/0.png"), origin.url("/gone"), other.url("/a.png"),
                    ])
                #expect(
                    run.summary.outcomes
                        == ["blacklisted": 6, "duplicate": 1, "failed": 1, "downloaded": 1],
                    "\(run.result)")
                let held = try #require(run.report.entries.first { $0.outcome == "blacklisted" })
                #expect(held.blacklistedUntil != nil && held.reason == "http-status")
            }
        }
    }
}
