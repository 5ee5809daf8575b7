import Foundation
import TestSupport
import Testing

/// `run --seed-cache` takes fresh images from another cache.
@Suite(.timeLimit(.minutes(15)))
struct SeedCacheTests {
    private func withSeed(
        images: Int = 6,
        _ body: (Origin, Workspace, [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let lines = (0..<images).map { index in
                origin.serve(
                    "/\(index).png",
                    Response(
                        headers: [("ETag", "\"\(index)\"")], body: Fixtures.png(seed: index),
                        type: "image/png"))
                return origin.url("/\(index).png")
            }
            try await withWorkspace { workspace in
                let seed = try await workspace.prefetch(
                    lines, "--ttl", "1h", "--variant", "s=4x4", "--cache-dir", "seed")
                #expect(seed.summary.outcomes == ["downloaded": images])
                try await body(origin, workspace, lines)
            }
        }
    }

    /// The number of images that a run took from its seed cache.
    private func seeded(_ run: Workspace.Run) throws -> Int? {
        let summary = try run.result.jsonLines().last
        return (summary?["seed_cache"] as? [String: Any])?["entries"] as? Int
    }

    private func paths(_ origin: Origin, from first: Int) -> [String] {
        origin.requests.dropFirst(first).map(\.path)
    }

    @Test func freshImagesAreTakenWithoutARequest() async throws {
        try await withSeed { origin, workspace, lines in
            let before = try workspace.bytes(of: "\(workspace.folder)/seed/prefetch.sqlite")
            let arguments = [
                "--ttl", "1h", "--variant", "s=4x4", "--seed-cache", "seed", "--summary", "json",
            ]
            let plan = try await workspace.prefetchCommand(
                lines, arguments + ["--dry-run"]
            ).run()
            let states = try #require(try plan.jsonLines().last?["states"] as? [String: Any])
            #expect(states["seeded"] as? Int == 6, "\(plan)")
            // Attributes and later lines of a key are stored with it.
            let more = lines + [lines[0] + " attr.n=1", lines[1] + " resize=2x2"]
            let run = try await workspace.prefetch(more, arguments)
            #expect(run.summary.outcomes == ["fresh": 5, "duplicate": 1, "downloaded": 2])
            #expect(try seeded(run) == 5)
            #expect(paths(origin, from: 6) == ["/1.png"], "a line of its key asks for more")
            #expect(run.report.entries[2].message == "taken from the seed cache")
            #expect(try workspace.bytes(of: "\(workspace.folder)/seed/prefetch.sqlite") == before)
            let rows = """
                SELECT key, url, etag, source_sha256, validated_at, expires_at, variant.recipe,
                    sha256, thumbhash FROM resource JOIN variant ON id = resource_id
                WHERE key NOT LIKE '%/1.png' ORDER BY key, variant.recipe
                """
            #expect(
                try await workspace.query(rows) == workspace.query(rows, of: "seed"))
            let again = try await workspace.prefetch(lines, arguments)
            #expect(again.summary.outcomes == ["fresh": 6])
            #expect(try seeded(again) == 0)
        }
    }

    @Test func whatIsNotFreshThereIsRequested() async throws {
        try await withSeed { origin, workspace, lines in
            try await workspace.runSQL(
                """
                UPDATE resource SET expires_at = 1000, validated_at = 999 WHERE key LIKE '%/0.png';
                UPDATE freshness SET expires_at = 1000, validated_at = 999 WHERE resource_id =
                    (SELECT id FROM resource WHERE key LIKE '%/0.png');
                """, of: "seed")
            let files = try await workspace.query(
                """
                SELECT lower(hex(sha256)) FROM variant JOIN resource ON id = resource_id
                WHERE key LIKE '%/1.png' AND variant.recipe NOT LIKE '%4x4%'
                """, of: "seed")
            let digest = try #require(files.first?.first ?? nil)
            try FileManager.default.removeItem(
                atPath: "\(workspace.folder)/seed/content/\(digest.prefix(2))/\(digest).png")
            // Another source than the line's, another variant, and a line that is not there.
            origin.serve("/new.png", .image(Fixtures.png(seed: 9)))
            let run = try await workspace.prefetch(
                Array(lines[..<4])
                    + [
                        lines[4] + " sha256=" + String(repeating: "0", count: 64),
                        lines[5] + " resize=3x3", origin.url("/new.png"),
                    ],
                "--ttl", "1h", "--seed-cache", "seed", "--retry", "0",
                "--summary", "json")
            #expect(run.summary.outcomes == ["downloaded": 4, "fresh": 2, "failed": 1])
            #expect(try seeded(run) == 2)
            #expect(
                Set(paths(origin, from: 6))
                    == ["/0.png", "/1.png", "/4.png", "/5.png", "/new.png"])
            #expect(try await workspace.run("verify").status == 0)
        }
    }

    @Test func offlineRunsAndBlacklistedURLsUseIt() async throws {
        try await withSeed { origin, workspace, lines in
            origin.serve("/0.png", Response(410))
            let failed = try await workspace.prefetch([lines[0]])
            #expect(failed.summary.outcomes == ["failed": 1])
            let requests = origin.requests.count
            let run = try await workspace.prefetch(
                lines + [origin.url("/none.png")], "--ttl", "1h", "--seed-cache", "seed",
                "--offline", "--summary", "json")
            #expect(run.summary.outcomes == ["fresh": 6, "excluded": 1], "\(run.result)")
            #expect(origin.requests.count == requests)
            #expect(
                try await workspace.query("SELECT count(*) FROM failure") == [["0"]],
                "the image is here")
        }
    }

    /// A seed only saves requests.
    @Test func unusableSeedsAreNotUsed() async throws {
        try await withSeed { origin, workspace, lines in
            let missing = try await workspace.prefetch(lines, "--seed-cache", "nowhere")
            #expect(missing.summary.outcomes == ["downloaded": 6])
            #expect(
                missing.result.error.contains(
                    "--seed-cache: nowhere: there is no cache yet; not used"))
            let itself = try await workspace.prefetchCommand(
                lines, ["--cache-dir", "seed", "--seed-cache", "./seed"]
            ).run()
            #expect(itself.status == 2)
            #expect(itself.error.contains("is the run's own cache"))
            // Damaged pages that only a run's own questions find.
            let path = URL(filePath: workspace.folder).appending(path: "seed/prefetch.sqlite")
            var bytes = try Data(contentsOf: path)
            bytes.replaceSubrange(8192..<bytes.count, with: Data(count: bytes.count - 8192))
            try bytes.write(to: path)
            let damaged = try await workspace.prefetch(
                lines, "--seed-cache", "seed", "--cache-dir", "other")
            #expect(damaged.summary.outcomes == ["downloaded": 6], "\(damaged.result)")
            #expect(damaged.result.error.contains("not used"), "\(damaged.result)")
        }
    }

    /// A row that no run has written is ignored, and a view in place of a table is refused.
    @Test func hostileSeedsCostARequest() async throws {
        try await withSeed { _, workspace, lines in
            try await workspace.runSQL(
                "UPDATE resource SET source_bytes = -1 WHERE key LIKE '%/0.png'", of: "seed")
            let run = try await workspace.prefetch(lines, "--ttl", "1h", "--seed-cache", "seed")
            #expect(run.summary.outcomes == ["downloaded": 1, "fresh": 5], "\(run.result)")
            #expect(try await workspace.run("verify").status == 0)
            try await workspace.runSQL(
                """
                ALTER TABLE resource RENAME TO other;
                CREATE VIEW resource AS SELECT * FROM other;
                """, of: "seed")
            let view = try await workspace.prefetch(
                lines, "--cache-dir", "third", "--ttl", "1h", "--seed-cache", "seed")
            #expect(view.summary.outcomes == ["downloaded": 6], "\(view.result)")
            #expect(view.result.error.contains("not used"))
        }
    }

    /// Stale copies are replaced, unless they were validated later, as in merges.
    @Test func theLaterCopyStays() async throws {
        try await withSeed { origin, workspace, lines in
            let stale = """
                UPDATE resource SET expires_at = 1000, validated_at = 999;
                UPDATE freshness SET expires_at = 1000, validated_at = 999;
                """
            let old = try await workspace.prefetch(Array(lines[..<2]))
            #expect(old.summary.outcomes == ["downloaded": 2])
            try await workspace.runSQL(stale)
            let requests = origin.requests.count
            let run = try await workspace.prefetch(
                lines, "--ttl", "1h", "--seed-cache", "seed", "--summary", "json")
            #expect(run.summary.outcomes == ["fresh": 6], "\(run.result)")
            #expect(try seeded(run) == 6)
            #expect(origin.requests.count == requests)

            origin.serve("/0.png", .image(Fixtures.png(seed: 50)))
            let own = try await workspace.prefetch([lines[0]], "--cache-dir", "later")
            #expect(own.summary.outcomes == ["downloaded": 1])
            try await workspace.runSQL(
                "UPDATE resource SET expires_at = 1000; UPDATE freshness SET expires_at = 1000",
                of: "later")
            let later = try await workspace.prefetch(
                [lines[0]], "--max-ttl", "1ms", "--seed-cache", "seed", "--summary", "json",
                "--cache-dir", "later")
            #expect(try seeded(later) == 0, "\(later.result)")
        }
    }

    /// The run's lifetimes and its limit of the size.
    @Test func theRulesOfTheRunApply() async throws {
        try await withSeed { _, workspace, lines in
            let short = try await workspace.prefetch(
                [lines[0]], "--ttl", "10m", "--seed-cache", "seed")
            #expect(short.summary.outcomes == ["fresh": 1])
            #expect(
                try await workspace.query("SELECT expires_at - validated_at FROM resource")
                    == [["600000"]])
            // Seeds need room as downloads do.
            let run = try await workspace.prefetch(
                lines, "--ttl", "1h", "--seed-cache", "seed", "--max-size", "12k",
                "--summary", "json", "--cache-dir", "small")
            #expect(run.summary["fresh"] > 0, "\(run.result)")
            #expect(run.summary["failed"] > 0)
            #expect(run.summary["fresh"] + run.summary["failed"] == 6)
            #expect(try await workspace.run("verify", "--cache-dir", "small").status == 0)
        }
    }
}
