import Foundation
import SeededRandom
import TestSupport
import Testing

/// The flags `--limit`, `--deadline`, `--until`, `--fail-fast` and `--jitter`.
@Suite(.timeLimit(.minutes(15)))
struct RunLimitTests {
    @Test func limitedRunsContinueUntilNothingIsLeft() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(5)
            try await withWorkspace { workspace in
                for (status, requests) in [(Int32(3), 2), (3, 4), (0, 5), (0, 5)] {
                    let run = try await workspace.prefetch(urls, "--limit", "2")
                    #expect(run.result.status == status, "\(run.result)")
                    #expect(origin.requests.count == requests)
                    let text = "ended at the number of requests (--limit); the rest is left"
                    #expect(run.result.error.contains(text) == (status == 3), "\(run.result)")
                }
                // Redirects and retries belong to the entries that count.
                origin.serve("/moved", .redirect(302, to: urls[0]))
                origin.serve("/dead", Response(500))
                let lines = [origin.url("/moved"), origin.url("/dead")] + urls.prefix(4)
                let run = try await workspace.prefetch(
                    lines, "--limit", "2", "--retry", "1", "--retry-delay", "10ms", "--cache-dir",
                    "other")
                #expect(run.summary.outcomes == ["downloaded": 1, "failed": 1, "cancelled": 4])
                #expect(run.result.status == 1, "\(run.result)")
            }
        }
    }

    /// A signal at any moment of a run with a deadline: the outcomes add up, what is reported is
    /// stored, and the next run completes. The workspace's judge checks the cache.
    @Test(arguments: 0..<20)
    func aSignalBeforeTheDeadlineLosesNothing(seed: Int) async throws {
        let count = 60
        var random = SplitMix(seed: UInt64(seed))
        let moment = Int.random(in: 1...count, using: &random)
        try await withOrigin { origin in
            let urls = origin.serveImages(count)
            try await withWorkspace(without: [.retries]) { workspace in
                let running = try workspace.prefetchCommand(
                    urls, ["--deadline", "1h", "-j", "4", "--host-concurrency", "4"]
                ).start()
                try await origin.wait(for: "\(moment) requests") { $0.requests.count >= moment }
                running.signal(SIGTERM)
                let first = try workspace.finish(await running.wait(), entries: count)
                // The run may have ended before the signal.
                #expect(
                    first.result.signal == SIGTERM || first.result.status == 0,
                    "seed \(seed): \(first.result)")
                let stored = first.summary["downloaded"]
                #expect(stored + first.summary["cancelled"] == count, "seed \(seed)")
                #expect(try await workspace.judge() == stored, "seed \(seed)")
                let second = try await workspace.prefetch(urls)
                #expect(
                    second.summary.outcomes.filter { $0.key != "fresh" }
                        == (stored == count ? [:] : ["downloaded": count - stored]),
                    "seed \(seed): \(second.result)")
            }
        }
    }

    /// An incomplete run has not read all lists, so it must not remove unread entries.
    @Test func limitedRunsPruneNothing() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(6)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(Array(urls.prefix(3)))
                let run = try await workspace.prefetch(
                    Array(urls.suffix(3)), "--limit", "1", "--max-failures", "9", "--prune",
                    "unlisted-for=1s")
                #expect(run.result.status == 3, "\(run.result)")
                #expect(try await workspace.judge() == 4)
            }
        }
    }

    @Test func aDeadlineCancelsRunningTransfers() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let quick = origin.serveImages(2)
            origin.serve("/held", .image(Fixtures.png(width: 3, height: 3, seed: 9), gate: gate))
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let lines = quick + [origin.url("/held")]
                // Before the first entry there is work left, too.
                let early = try await workspace.run(
                    try workspace.manifest(quick), "--deadline", "1ms", "--cache-dir", "other")
                #expect(early.status == 3, "\(early)")
                #expect(!early.error.contains("nothing to do"), "\(early)")
                let run = try await workspace.prefetch(lines, "--deadline", "3s")
                #expect(run.result.status == 3, "\(run.result)")
                #expect(run.summary.outcomes == ["downloaded": 2, "cancelled": 1])
                #expect(run.result.time > .seconds(2))
                #expect(run.result.error.contains("ended at its deadline"), "\(run.result)")
                gate.open()
                let rest = try await workspace.prefetch(lines, "--deadline", "1h")
                #expect(rest.result.status == 0, "\(rest.result)")
            }
        }
    }

    @Test func failFastLeavesTheRest() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(40)
            origin.serve("/none", .notFound)
            try await withWorkspace { workspace in
                let lines = [origin.url("/none")] + urls
                let run = try await workspace.prefetch(
                    lines, "--fail-fast", "-j", "1", "--jitter", "1ms")
                #expect(run.result.status == 1, "\(run.result)")
                #expect(run.result.error.contains("ended at a failure (--fail-fast)"))
                #expect(run.summary["cancelled"] > 30, "\(run.result)")
                // A known failure ends no run with `--fail-on new`.
                let next = try await workspace.prefetch(
                    lines, "--fail-fast", "--fail-on", "new", "--until", "00:00")
                #expect(next.result.status == 0 || next.result.status == 3, "\(next.result)")
            }
        }
    }
}
