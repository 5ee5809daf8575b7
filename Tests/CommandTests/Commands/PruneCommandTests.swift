import Foundation
import Glibc
import TestSupport
import Testing

/// `prefetch prune` with users' rules, and its effect on the next run. `PruneTests` compares the
/// selection with a model.
@Suite(.timeLimit(.minutes(15)))
struct PruneCommandTests {
    /// Warms a cache with ten images, then runs over the first five only.
    private func withImages(
        _ body: (Origin, Workspace, _ urls: [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let urls = (0..<10).map { origin.url("/\($0)") }
            for index in 0..<10 { origin.serve("/\(index)", .image(Fixtures.png(seed: index))) }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch(urls)
                #expect(first.summary.outcomes == ["downloaded": 10], "\(first.result)")
                try await body(origin, workspace, urls)
            }
        }
    }

    private func keys(_ workspace: Workspace) async throws -> [Int] {
        try await workspace.query("SELECT key FROM resource").compactMap {
            $0[0].flatMap { Int($0.split(separator: "/").last ?? "") }
        }.sorted()
    }

    @Test func prunesImagesUnlistedForGivenTime() async throws {
        try await withImages { _, workspace, urls in
            try await workspace.age(days: 40)
            let second = try await workspace.prefetch(Array(urls[..<5]), "--refresh", "none")
            #expect(second.summary.outcomes == ["fresh": 5], "\(second.result)")
            let early = try await workspace.run("prune", "--unlisted-for", "50d")
            #expect(early.error.hasPrefix("prefetch: removed 0 images (0 variants)"), "\(early)")
            let dry = try await workspace.run("prune", "--unlisted-for", "30d", "-n")
            #expect(
                dry.error.hasPrefix("prefetch: would remove 5 images (5 variants), 5 files ("),
                "\(dry)")
            #expect(
                dry.error.contains("; 5 files (20.0 KiB on disk) would be left"), "\(dry)")
            #expect(try await keys(workspace) == Array(0..<10))
            let result = try await workspace.run("prune", "--unlisted-for", "30d")
            #expect(result.status == 0 && result.output.isEmpty, "\(result)")
            #expect(
                result.error
                    == dry.error.replacing("would remove", with: "removed")
                    .replacing("would be left", with: "are left"), "\(result)")
            #expect(try await keys(workspace) == Array(0..<5))
            let stats = try #require(try await workspace.run("stats", "--json").jsonLines().first)
            #expect(stats["content_files"] as? Int == 5 && stats["disk_bytes"] as? Int == 20_480)
            // Without recorded listings the age of the last one is unknown.
            try await workspace.age(days: 40)
            _ = try await workspace.query("DELETE FROM listing")
            _ = try await workspace.query("DELETE FROM property WHERE name = 'listings_begin'")
            let unknown = try await workspace.run("prune", "--unlisted-for", "30d")
            #expect(unknown.status == 0, "\(unknown)")
            #expect(try await keys(workspace) == Array(0..<5))
        }
    }

    /// Images that no run lists any more, but that `get` hands out.
    @Test func prunesImagesUnusedForGivenTime() async throws {
        try await withImages { _, workspace, urls in
            try await workspace.age(days: 40)
            _ = try await workspace.prefetch(Array(urls[..<5]), "--refresh", "none")
            #expect(try await workspace.run("get", urls[7], "--stale").status == 0)
            let run = try await workspace.prefetch(
                Array(urls[..<5]), "--refresh", "none", "--prune", "unused-for=30d")
            #expect(run.result.error.contains("pruned 4 images"), "\(run.result)")
            #expect(try await keys(workspace) == Array(0..<5) + [7])
            let result = try await workspace.run("prune", "--unlisted-for", "30d")
            #expect(result.status == 0, "\(result)")
            #expect(try await keys(workspace) == Array(0..<5))
        }
    }

    @Test func prunesImagesMissingFromLists() async throws {
        try await withImages { _, workspace, urls in
            try workspace.manifest(Array(urls[2..<4]), name: "a.txt")
            try workspace.manifest([urls[7], "# comment"], name: "b.txt")
            try workspace.manifest([urls[7], "not a url at all"], name: "bad.txt")
            let missing = try await workspace.run("prune", "--unlisted", "a.txt", "c.txt")
            #expect(missing.status == 2 && missing.error.contains("c.txt"), "\(missing)")
            try workspace.manifest(["# nothing"], name: "empty.txt")
            let empty = try await workspace.run("prune", "--unlisted", "empty.txt")
            #expect(
                empty.status == 2 && empty.error.contains("every image would be removed"),
                "\(empty)")
            #expect(try await keys(workspace).count == 10)
            let bad = try await workspace.run("prune", "--unlisted", "a.txt", "bad.txt")
            #expect(bad.status == 2 && bad.error.contains("bad.txt:2: "), "\(bad)")
            #expect(bad.error.contains("; nothing was removed\n"), "\(bad)")
            // Treated as a list, a URL would keep only itself.
            for url in [urls[0], "https://example.com/list.txt"] {
                let result = try await workspace.run("prune", "--unlisted", url)
                #expect(
                    result.status == 64 && result.error.contains("not a list"), "\(result)")
            }
            #expect(try await keys(workspace).count == 10)
            #expect(try await workspace.run("verify").status == 0)
            let result = try await workspace.run("prune", "--unlisted", "a.txt", "b.txt")
            #expect(result.status == 0, "\(result)")
            #expect(try await keys(workspace) == [2, 3, 7])
        }
    }

    @Test func limitEvictsLeastRecentlyListedFirst() async throws {
        try await withImages { _, workspace, urls in
            try await workspace.age(days: 10)
            _ = try await workspace.prefetch(Array(urls[3..<10]), "--refresh", "none")
            let within = try await workspace.run("prune", "--max-size", "40KiB")
            #expect(within.error.hasPrefix("prefetch: removed 0 images"), "\(within)")
            let result = try await workspace.run(
                "prune", "--max-size", "36KiB", "--low-water", "80%", "--json")
            let object = try #require(try result.jsonLines().first)
            #expect(object["images"] as? Int == 3 && object["files_left"] as? Int == 7, "\(result)")
            #expect(
                object["disk_bytes_left"] as? Int == 28_672 && object["complete"] as? Bool == true)
            #expect(try await keys(workspace) == Array(3..<10))
            let files = try await workspace.run("prune", "--max-files", "0")
            #expect(files.status == 0, "\(files)")
            #expect(try await keys(workspace) == [])
        }
    }

    /// Uses the rules of the last run or `prune`, unless they were limited to a host, variant or
    /// list.
    @Test func statsEstimatesNextPrune() async throws {
        try await withImages { _, workspace, urls in
            func next() async throws -> [String: Any]? {
                let stats = try await workspace.run("stats", "--json").jsonLines().first
                return try #require(stats)["next_prune"] as? [String: Any]
            }
            func text() async throws -> String? {
                try await workspace.run("stats").outputLines
                    .first { $0.hasPrefix("next prune") }
            }
            #expect(try await next() == nil)
            #expect(try await text() == nil)
            try await workspace.age(days: 40)
            let run = try await workspace.prefetch(
                Array(urls[..<6]), "--refresh", "none", "--prune", "max-files=10,gone,history=90d")
            #expect(run.result.status == 0, "\(run.result)")
            let nothing = try #require(try await next())
            #expect(nothing["images"] as? Int == 0)
            #expect(nothing["rules"] as? String == "gone,history=90d,max-files=10,low-water=90%")
            // The last pruning was less than a day ago, so nothing is pruned, but the rules are
            // stored.
            let rules = "unlisted-for=30d,max-files=4,low-water=75%"
            let again = try await workspace.prefetch(
                Array(urls[..<6]), "--refresh", "none", "--prune", rules)
            #expect(again.result.status == 0, "\(again.result)")
            let both = try #require(try await next())
            #expect(both["rules"] as? String == rules)
            #expect(both["images"] as? Int == 4 && both["files"] as? Int == 4)
            #expect(both["excess_files"] as? Int == 3)
            #expect(
                try await text()?.hasPrefix("next prune  4 images (4 variants), 4 files (") == true)
            #expect(
                try await text()?.hasSuffix("), then 3 files of the oldest, by \(rules)") == true)
            // Rules limited to a host are not stored.
            let host = try await workspace.run("prune", "--host", "example.com")
            #expect(host.status == 0, "\(host)")
            #expect(try await next()?["rules"] as? String == rules)
            let dry = try await workspace.run("prune", "--max-files", "9", "--dry-run")
            #expect(dry.status == 0, "\(dry)")
            #expect(try await next()?["rules"] as? String == rules)
            let pruned = try await workspace.run("prune", "--max-size", "24KiB")
            #expect(pruned.error.hasPrefix("prefetch: removed 5 images"), "\(pruned)")
            let last = try #require(try await next())
            #expect(last["rules"] as? String == "max-size=24KiB,low-water=90%")
            #expect(last["images"] as? Int == 0)
            #expect(
                try await text() == "next prune  nothing, by max-size=24KiB,low-water=90%")
            // Damaged rows do not break the sums.
            _ = try await workspace.query(
                "INSERT OR REPLACE INTO property VALUES ('prune_unlisted_for', 0)")
            _ = try await workspace.query("DELETE FROM listing")
            _ = try await workspace.query("CREATE TABLE kept AS SELECT sha256, bytes FROM variant")
            _ = try await workspace.query("UPDATE variant SET bytes = 9223372036854775807")
            let damaged = try await workspace.run("stats")
            _ = try await workspace.query(
                "UPDATE variant SET bytes = (SELECT bytes FROM kept WHERE kept.sha256 = variant.sha256)"
            )
            _ = try await workspace.query("DROP TABLE kept")
            #expect(damaged.output.contains("next prune  5 images (5 variants)"), "\(damaged)")
        }
    }

    /// Once a day, without waiting for a lock, and not at all in a read-only cache.
    @Test func keepsRecentlyAccessedImages() async throws {
        try await withImages { _, workspace, urls in
            let before = try await workspace.query("SELECT max(last_access_at) FROM variant")
            #expect(try await workspace.run("get", urls[0]).status == 0)
            #expect(
                try await workspace.query("SELECT max(last_access_at) FROM variant") == before)
            try await workspace.age(days: 10)
            #expect(try await workspace.run("get", urls[0], "--stale").status == 0)
            let noted = try await workspace.query("SELECT max(last_access_at) FROM variant")
            #expect(noted != before)
            #expect(try await workspace.run("get", urls[0], "--stale").status == 0)
            #expect(
                try await workspace.query("SELECT max(last_access_at) FROM variant") == noted)
            let result = try await workspace.run("prune", "--max-files", "9", "--low-water", "40%")
            #expect(result.status == 0, "\(result)")
            let left = try await keys(workspace)
            #expect(left.count == 3 && left.contains(0), "\(left)")
        }
    }

    @Test func prunesGoneURLsAndOldHistory() async throws {
        try await withImages { origin, workspace, urls in
            origin.serve("/3", Response(410, body: [], type: "text/plain"))
            for _ in 0..<3 {
                _ = try await workspace.prefetch(urls, "--refresh", "all", "--retry-failed")
            }
            let gone = try await workspace.run("prune", "--gone")
            #expect(gone.error.hasPrefix("prefetch: removed 1 image (1 variant)"), "\(gone)")
            #expect(try await keys(workspace) == [0, 1, 2, 4, 5, 6, 7, 8, 9])
            let runs = try await workspace.query("SELECT count(*) FROM run")
            #expect(runs == [["4"]])
            try await workspace.age(days: 100)
            let history = try await workspace.run("prune", "--history", "90d")
            #expect(history.error.contains("3 runs; "), "\(history)")
            // The last run is needed by the next one.
            #expect(try await workspace.query("SELECT count(*) FROM run") == [["1"]])
            #expect(try await keys(workspace).count == 9)
        }
    }

    @Test func prunesUnusedVariantsAndDamagedSizes() async throws {
        try await withImages { _, workspace, urls in
            let second = try await workspace.prefetch(
                urls, "--variant", "web=jpeg,q=50", "--refresh", "force")
            #expect(second.result.status == 0, "\(second.result)")
            try await workspace.age(days: 40)
            _ = try await workspace.prefetch(urls, "--refresh", "none")
            let result = try await workspace.run("prune", "--variants-unused-for", "30d")
            #expect(
                result.error.hasPrefix("prefetch: removed 0 images (10 variants), 10 files"),
                "\(result)")
            #expect(
                try await workspace.query("SELECT DISTINCT name FROM variant") == [["0"]])
            #expect(try await keys(workspace).count == 10)

            // Sizes in damaged rows may overflow every sum.
            for bytes in ["-5", "6000000000000000000", "9223372036854775807"] {
                _ = try await workspace.prefetch(urls)
                _ = try await workspace.query("UPDATE variant SET bytes = \(bytes)")
                let result = try await workspace.run("remove", "--all")
                #expect(result.status == 0 && result.error.contains("removed "), "\(result)")
                // The judge would reject sums of such rows.
                try FileManager.default.removeItem(atPath: workspace.cache)
            }
        }
    }

    /// The database log needs space; the snapshot's removal provides it.
    @Test(.enabled(if: Namespace.allowsMounts, "a small file system cannot be mounted here"))
    func removesSnapshotOnFullDisk() async throws {
        try await withImages { _, workspace, urls in
            var command = workspace.command(["prune", "--max-files", "1", "--low-water", "100%"])
            command.arguments =
                [
                    "-rm", "/bin/sh", "-c",
                    """
                    mv cache full && mkdir -m 700 cache && mount -t tmpfs -o mode=700,size=4m tmpfs cache &&
                    cp -a full/. cache/ && test -f cache/snapshot.sqlite &&
                    { dd if=/dev/zero of=cache/tmp/rest bs=4k 2>/dev/null; \
                    "$0" "$@"; status=$?; rm -r full cache/tmp/rest; cp -a cache kept; exit $status; }
                    """, command.executable,
                ] + command.arguments
            command.executable = Namespace.program
            let result = try await command.run()
            #expect(result.status == 0, "\(result)")
            #expect(
                result.error.contains("disk is full; removed the database snapshot to make room"),
                "\(result)")
            try FileManager.default.removeItem(atPath: workspace.cache)
            try FileManager.default.moveItem(
                atPath: workspace.folder + "/kept", toPath: workspace.cache)
            #expect(try await workspace.judge() == 1)
        }
    }

    /// A kill leaves a valid cache, and the next call continues.
    @Test func continuesAfterKill() async throws {
        try await withOrigin { origin in
            let urls = (0..<300).map { origin.url("/\($0)") }
            origin.serve { request in
                Int(request.path.dropFirst()).map { .image(Fixtures.png(seed: $0)) } ?? .notFound
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let content = workspace.cache + "/content"
                func files() throws -> Int {
                    try FileManager.default.subpathsOfDirectory(atPath: content)
                        .count { $0.contains(".") }
                }
                for left in [299, 250, 150, 11] {
                    let run = try await workspace.prefetch(urls)
                    #expect(run.result.status == 0, "\(run.result)")
                    let running = try workspace.command(["prune", "--max-files", "10"]).start()
                    try await eventually("files go") { try files() <= left }
                    running.signal(SIGKILL)
                    _ = await running.wait()
                    let rest = try await workspace.run("prune", "--max-files", "10", "--json")
                    #expect(rest.status == 0, "\(rest)")
                    let object = try #require(try rest.jsonLines().first)
                    #expect((object["files_left"] as? Int ?? .max) <= 10, "\(rest)")
                }
                _ = try await workspace.prefetch(urls)
                let clean = try await workspace.run("verify")
                #expect(clean.status == 0, "\(clean)")
            }
        }
    }
}
