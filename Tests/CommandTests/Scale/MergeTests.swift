import Foundation
import Glibc
import SeededRandom
import TestSupport
import Testing

/// `prefetch merge` joins caches in any order.
@Suite(.timeLimit(.minutes(15)))
struct MergeTests {
    /// Shards of a list end with the rows of a run over the whole list.
    @Test func mergedShardsEqualTheWholeRun() async throws {
        try await withOrigin { origin in
            let lines = (0..<40).map { index in
                origin.serve("/\(index).png", .image(Fixtures.png(seed: index % 30)))
                return origin.url("/\(index).png", host: "h\(index % 9).localhost")
                    + " attr.n=\(index)"
            }
            origin.serve("/gone.png", Response(404))
            let all = lines + [origin.url("/gone.png", host: "h3.localhost")]
            try await withWorkspace { workspace in
                let whole = try await workspace.prefetch(
                    all, "--variant", "s=4x4", "--ttl", "1h", "--cache-dir", "whole")
                #expect(whole.summary.outcomes == ["downloaded": 40, "failed": 1])
                for index in 0..<3 {
                    let run = try await workspace.finish(
                        workspace.prefetchCommand(
                            all,
                            [
                                "--variant", "s=4x4", "--ttl", "1h", "--shard", "\(index)/3",
                                "--cache-dir", "shard-\(index)",
                            ]
                        ).run())
                    #expect(run.result.status ?? 2 < 2, "\(run.result)")
                }
                let merge = try await workspace.run(
                    "merge", "cache", "shard-2", "shard-0", "shard-1", "--json")
                #expect(merge.status == 0, "\(merge)")
                let result = try #require(try merge.jsonLines().first)
                #expect(result["images"] as? Int == 40)
                #expect(result["added"] as? Int == 40)
                #expect(result["failures"] as? Int == 1)
                #expect(result["linked"] as? Int == 60, "two variants of 30 pictures")
                // Equal but for the times of two runs.
                for query in [
                    """
                    SELECT key, url, host, etag, source_sha256, source_bytes, variant.recipe,
                        sha256, format, bytes, variant_name.name, superseded, thumbhash
                    FROM resource JOIN variant ON resource.id = resource_id
                        JOIN variant_name ON variant_name.id = variant.name
                    ORDER BY key, variant.recipe
                    """,
                    """
                    SELECT key, name, value FROM attribute JOIN resource ON id = resource_id
                    ORDER BY key, name
                    """,
                    "SELECT key, reason, http_status, class, runs_in_a_row FROM failure",
                    "SELECT * FROM total ORDER BY host, format, name, superseded",
                    "SELECT * FROM usage",
                    "SELECT name, recipe FROM variant_name ORDER BY name",
                ] {
                    let merged = try await workspace.query(query)
                    #expect(merged.count > 0, "\(query)")
                    let wanted = try await workspace.query(query, of: "whole")
                    #expect(merged == wanted, "\(query)")
                }
                let listings = try await workspace.query(
                    "SELECT count(*), count(DISTINCT first_at) > 0 FROM listing")
                // One for each hour, and the last run's.
                #expect(listings == [["2", "1"]])
                let offline = try await workspace.prefetch(all, "--offline", "--variant", "s=4x4")
                #expect(offline.summary.outcomes["fresh"] == 40, "\(offline.result)")
                let verify = try await workspace.run("verify")
                #expect(verify.status == 0, "\(verify)")
            }
        }
    }

    /// Random caches, merged by this program and by a model of the rules in another language.
    @Test(arguments: ["1", "2", "3", "4r", "5r", "6r"])
    func mergeOfRandomCachesFollowsTheRules(_ seed: String) async throws {
        try await withRandomCaches(4, seed: seed) { workspace in
            var random = SplitMix(seed: UInt64(seed.prefix(1)) ?? 0)
            let names = ["0", "1", "2", "3"]
            let wanted = try await model(["expect", "."] + names, in: workspace)
            #expect(wanted.contains("h1.example"))
            for attempt in 0..<3 {
                let order = names.shuffled(using: &random)
                let merge = try await workspace.command(["merge", "m\(attempt)"] + order).run()
                #expect(merge.status == 0, "\(merge)")
                let found = try await model(["dump", "m\(attempt)"], in: workspace)
                #expect(found == wanted, "seed \(seed), order \(order)")
            }
            // Again, and into one of them.
            let again = try await workspace.run("merge", "m0", "2", "0", "m1")
            #expect(again.status == 0, "\(again)")
            #expect(again.error.contains("(unchanged)"), "\(again)")
            #expect(try await model(["dump", "m0"], in: workspace) == wanted)
            let into = try await workspace.run("merge", "3", "0", "1", "2")
            #expect(into.status == 0, "\(into)")
            #expect(try await model(["dump", "3"], in: workspace) == wanted)
            try await judgeCopy(of: "3", in: workspace)
            try await judgeCopy(of: "m2", in: workspace)
        }
    }

    /// In several steps as in one, where no image has returned to an earlier picture.
    @Test(arguments: ["11", "12", "13"])
    func mergingInStepsGivesTheSameImages(_ seed: String) async throws {
        try await withRandomCaches(3, seed: seed) { workspace in
            for (name, sources) in [
                ("at-once", ["0", "1", "2"]), ("first", ["0", "1"]), ("left", ["first", "2"]),
                ("second", ["1", "2"]), ("right", ["0", "second"]),
            ] {
                let merge = try await workspace.command(["merge", name] + sources).run()
                #expect(merge.status == 0, "\(merge)")
            }
            func images(_ cache: String) async throws -> [[[String?]]] {
                var parts: [[[String?]]] = []
                for query in [
                    "SELECT key, validated_at, fetched_at, source_sha256, etag FROM resource",
                    "SELECT key, recipe, sha256, created_at FROM variant JOIN resource ON id = resource_id",
                    "SELECT * FROM host",
                    "SELECT name, recipe, used_at FROM variant_name",
                    "SELECT started_at, ended_at FROM run",
                ] {
                    parts.append(try await workspace.query(query + " ORDER BY 1, 2", of: cache))
                }
                return parts
            }
            let wanted = try await images("at-once")
            #expect(!wanted[0].isEmpty)
            #expect(try await images("left") == wanted, "seed \(seed)")
            #expect(try await images("right") == wanted, "seed \(seed)")
        }
    }

    /// The clock of one machine is hours ahead, or was hours behind. A time in the future counts
    /// less than any other.
    @Test func clocksThatDifferLoseNothing() async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.png(seed: 1)))
            origin.serve("/b.png", .image(Fixtures.png(seed: 2)))
            let lines = [origin.url("/a.png"), origin.url("/b.png")]
            try await withWorkspace { workspace in
                for (name, wanted) in [("cache", lines), ("ahead", [lines[0]])] {
                    let run = try await workspace.prefetch(wanted, "--cache-dir", name)
                    #expect(run.result.status == 0, "\(run.result)")
                }
                try await workspace.runSQL(
                    "UPDATE resource SET validated_at = validated_at + 18000000", of: "ahead")
                let merge = try await workspace.run("merge", "cache", "ahead")
                #expect(merge.status == 0, "\(merge)")
                #expect(merge.error.contains("2 images (unchanged)"), "\(merge)")
                try await workspace.runSQL(
                    "UPDATE resource SET validated_at = validated_at + 36000000")
                let other = try await workspace.run("merge", "cache", "ahead", "ahead")
                #expect(other.status == 0, "\(other)")
                let run = try await workspace.prefetch(lines)
                #expect(run.result.status == 0, "\(run.result)")
            }
        }
    }

    /// A shard that an engine has run twice, the second time with a newer picture.
    @Test func laterRunOfAShardWins() async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve("/a.png", .image(Fixtures.png(seed: 1)), .image(Fixtures.png(seed: 2)))
            try await withWorkspace { workspace in
                for name in ["first", "second"] {
                    let run = try await workspace.prefetch([url], "--cache-dir", name)
                    #expect(run.result.status == 0, "\(run.result)")
                }
                for order in [["first", "second"], ["second"], ["first"]] {
                    let merge = try await workspace.command(["merge", "cache"] + order).run()
                    #expect(merge.status == 0, "\(merge)")
                    try await workspace.judge(sources: [url: Fixtures.png(seed: 2)])
                }
                // The older picture's file is not left behind.
                let first = try await workspace.run("merge", "other", "first")
                #expect(first.status == 0, "\(first)")
                let both = try await workspace.run("merge", "other", "second", "--json")
                #expect(try both.jsonLines().first?["removed"] as? Int == 1, "\(both)")
                let verify = try await workspace.run("verify", "--cache-dir", "other")
                #expect(verify.status == 0, "\(verify)")

                // Images that crashed a run are refused by the merged cache, too.
                let now = Int(Date().timeIntervalSince1970)
                let notes = ["a", "b"].map { String(repeating: $0, count: 64) + " \(now) 11" }
                try workspace.write(Array((notes[0] + "\n").utf8), to: "first/crashes")
                try workspace.write(
                    Array("\(notes[0])\nno note\n\(notes[1])\n".utf8), to: "second/crashes")
                let merge = try await workspace.run("merge", "first", "second")
                #expect(merge.status == 0, "\(merge)")
                let crashes = try workspace.bytes(of: workspace.folder + "/first/crashes")
                let text = String(decoding: crashes, as: UTF8.self)
                #expect(text.split(separator: "\n").map(String.init).sorted() == notes)
            }
        }
    }

    @Test func wrongUsageIsRefused() async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.png(seed: 1)))
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch([origin.url("/a.png")])
                try FileManager.default.createDirectory(
                    atPath: workspace.folder + "/empty", withIntermediateDirectories: true)
                try workspace.write([1], to: "empty/file")
                for (arguments, status, text) in [
                    (["cache"], 64, "name the caches to merge"),
                    (["cache", "cache"], 2, "cache: is the destination itself"),
                    (["cache", "./cache/../cache"], 2, "is the destination itself"),
                    (["cache", "missing"], 2, "missing: "),
                    (["cache", "empty"], 2, "empty: is not a prefetch cache"),
                    (["empty", "cache"], 2, "empty: is not empty and is not a prefetch cache"),
                    (["cache", "", "x"], 64, "a cache has an empty name"),
                    (["cache", "x", "--lock", "skip"], 64, "--lock takes"),
                ] {
                    let merge = try await workspace.command(["merge"] + arguments).run()
                    #expect(merge.status == Int32(status), "\(merge)")
                    #expect(merge.error.contains(text), "\(merge)")
                }
            }
        }
    }

    // MARK: Helpers

    private func withRandomCaches(
        _ count: Int, seed: String, _ body: (Workspace) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.png(seed: 1)))
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(
                    [origin.url("/a.png")], "--cache-dir", "empty")
                #expect(run.result.status == 0, "\(run.result)")
                let removal = try await workspace.run(
                    "remove", origin.url("/a.png"), "--cache-dir", "empty")
                #expect(removal.status == 0, "\(removal)")
                try await workspace.runSQL("DELETE FROM listing", of: "empty")
                _ = try await model(["make", ".", "\(count)", seed], in: workspace)
                try await body(workspace)
            }
        }
    }

    private func model(_ arguments: [String], in workspace: Workspace) async throws -> String {
        var command = workspace.command([scaleScript("merge-model.py")] + arguments)
        command.executable = "/usr/bin/python3"
        let result = try await command.run()
        #expect(result.status == 0, "\(result)")
        return result.output
    }

    /// Makes a cache the workspace's own, which the judge checks, and verifies it.
    private func judgeCopy(of name: String, in workspace: Workspace) async throws {
        let verify = try await workspace.run("verify", "--cache-dir", name)
        #expect(verify.status == 0, "\(verify)")
    }
}

/// The path of a script in this file's folder.
func scaleScript(_ name: String) -> String {
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: name).path
}
