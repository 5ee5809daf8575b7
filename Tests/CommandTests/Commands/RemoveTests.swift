import Foundation
import TestSupport
import Testing

/// `prefetch remove`: removed and remaining images, and the effect on the next run.
@Suite(.timeLimit(.minutes(15)))
struct RemoveTests {
    /// Serves three images, two of them with the same bytes, and one missing URL. Warms the cache
    /// with all of them, as `main` and as `web`.
    private func withImages(
        _ body: (Origin, Workspace, _ urls: [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let urls = ["/a", "/b", "/twin", "/gone"].map(origin.url)
            origin.serve("/a", .image(Fixtures.png(seed: 1)))
            origin.serve("/b", .image(Fixtures.png(seed: 2)))
            origin.serve("/twin", .image(Fixtures.png(seed: 2)))
            origin.serve("/gone", .notFound)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls, "--variant", "web=jpeg,q=50")
                #expect(
                    run.summary.outcomes == ["downloaded": 3, "failed": 1], "\(run.result)")
                try await body(origin, workspace, urls)
            }
        }
    }

    /// The last parts of the keys' paths, with variant names.
    private func listed(_ workspace: Workspace) async throws -> [String] {
        let list = try await workspace.run("list", "--json")
        #expect(list.status == 0, "\(list)")
        return try list.jsonLines().map { object in
            let key = try #require(object["key"] as? String)
            let name = try #require(object["variant"] as? String)
            return "\(key.split(separator: "/").last ?? "") \(name)"
        }.sorted()
    }

    private func files(_ workspace: Workspace) throws -> Int {
        let content = workspace.cache + "/content"
        let paths = try FileManager.default.subpathsOfDirectory(atPath: content)
        return paths.count { $0.contains(".") }
    }

    private static let everything = ["a", "b", "twin"].flatMap { ["\($0) main", "\($0) web"] }

    // MARK: By URL

    @Test func removesImageWithItsMetadata() async throws {
        try await withImages { origin, workspace, urls in
            let set = try await workspace.run("attr", "set", urls[0], "colour", "red")
            #expect(set.status == 0)
            let result = try await workspace.run("remove", urls[0])
            #expect(result.status == 0 && result.output.isEmpty, "\(result)")
            #expect(
                result.error.hasPrefix("prefetch: removed 1 image (2 variants), 2 files ("),
                "\(result)")
            #expect(try await workspace.run("get", urls[0]).status == 1)
            #expect(try files(workspace) == 2)
            #expect(try await workspace.query("SELECT * FROM attribute").isEmpty)
            let properties = try await workspace.query("SELECT name FROM property")
            #expect(!properties.joined().contains("removal_unfinished"))
            let again = try await workspace.prefetch(urls, "--variant", "web=jpeg,q=50")
            #expect(
                again.summary.outcomes == ["downloaded": 1, "fresh": 2, "blacklisted": 1],
                "\(again.result)")
        }
    }

    @Test func keepsFileSharedByOtherImages() async throws {
        try await withImages { _, workspace, urls in
            let first = try await workspace.run("remove", urls[1])
            #expect(first.error.contains("1 image (2 variants), 0 files (0 B)"), "\(first)")
            #expect(try files(workspace) == 4)
            #expect(try await workspace.run("get", urls[2]).status == 0)
            let second = try await workspace.run("remove", urls[2])
            #expect(second.error.contains("1 image (2 variants), 2 files ("), "\(second)")
            #expect(try files(workspace) == 2)
        }
    }

    @Test func reportsUnknownURLsAndRemovesOthers() async throws {
        try await withImages { origin, workspace, urls in
            let other = origin.url("/other?token=secret")
            let result = try await workspace.run("remove", urls[0], other, urls[1], urls[0])
            #expect(result.status == 1, "\(result)")
            #expect(result.error.contains("other?token=***: not in the cache\n"), "\(result)")
            #expect(!result.error.contains("secret"))
            #expect(result.error.contains("2 images (4 variants)"), "\(result)")
            #expect(try await listed(workspace) == ["twin main", "twin web"])
        }
    }

    @Test func removedFailureIsRetried() async throws {
        try await withImages { origin, workspace, urls in
            let result = try await workspace.run("remove", urls[3])
            #expect(result.status == 0, "\(result)")
            #expect(
                result.error.contains("removed 0 images (0 variants), 0 files (0 B), 1 failure"),
                "\(result)")
            origin.serve("/gone", .image(Fixtures.png(seed: 3)))
            let again = try await workspace.prefetch([urls[3]])
            #expect(again.report.verdicts == ["downloaded"], "\(again.result)")
        }
    }

    @Test func removesListFromStandardInput() async throws {
        try await withImages { origin, workspace, urls in
            let keyed = try await workspace.prefetch([origin.url("/a") + "?1 key=named"])
            #expect(keyed.summary.outcomes == ["downloaded": 1], "\(keyed.result)")
            var command = workspace.command(["remove", "--batch"])
            let lines = [
                "# old ones", urls[0], origin.url("/a") + "?1", "", "named", urls[3],
                origin.url("/never"),
            ]
            command.input = .bytes(Array(lines.joined(separator: "\n").utf8))
            let result = try await command.run()
            #expect(result.status == 1, "\(result)")
            #expect(result.error.contains("2 images (3 variants)"), "\(result)")
            let missing = result.errorLines.filter {
                $0.hasSuffix("not in the cache")
            }
            #expect(missing == ["prefetch: -:7: \(lines[6]): not in the cache"], "\(result)")
            #expect(try await workspace.query("SELECT * FROM failure").isEmpty)
        }
    }

    // MARK: By selection

    @Test(arguments: [
        (["--all"], 0, "3 images (6 variants), 4 files (", "1 failure"),
        (["--host", "127.0.0.1"], 0, "3 images (6 variants), 4 files (", "1 failure"),
        (["--host", "example.com"], 6, "0 images (0 variants), 0 files (0 B)", ""),
        (["--all", "--variant", "web"], 3, "0 images (3 variants), 2 files (", ""),
        (["--all", "--variant", "jpeg;q=50;strip=safe"], 3, "0 images (3 variants), 2 files", ""),
        (["--failed"], 6, "0 images (0 variants), 0 files (0 B)", "1 failure"),
    ])
    func removesSelectedImages(options: [String], left: Int, text: String, failures: String)
        async throws
    {
        try await withImages { _, workspace, _ in
            let rows = try await workspace.query("SELECT * FROM variant ORDER BY 1, 2")
            let estimate = try await workspace.command(["remove", "-n"] + options).run()
            #expect(estimate.status == 0, "\(estimate)")
            #expect(try await workspace.query("SELECT * FROM variant ORDER BY 1, 2") == rows)
            #expect(try files(workspace) == 4)

            let result = try await workspace.command(["remove"] + options).run()
            #expect(result.status == 0, "\(result)")
            #expect(result.error.contains("prefetch: removed \(text)"), "\(result)")
            #expect(result.error.contains("failure") == !failures.isEmpty, "\(result)")
            #expect(result.error.contains(failures) || failures.isEmpty, "\(result)")
            #expect(
                estimate.error == result.error.replacing("removed", with: "would remove"),
                "\(estimate)")
            #expect(try await listed(workspace).count == left)
            let quiet = try await workspace.command(["remove", "-q"] + options).run()
            #expect(quiet.status == 0 && quiet.error.isEmpty, "\(quiet)")
        }
    }

    /// `--failed` also selects a stored image after a failed refresh, even if only by an outage.
    @Test func failedSelectsImagesWithFailedRefresh() async throws {
        try await withImages { origin, workspace, urls in
            origin.serve("/a", .notFound)
            let refreshed = try await workspace.prefetch([urls[0]], "--refresh", "force")
            #expect(refreshed.summary["failed"] == 1, "\(refreshed.result)")
            let result = try await workspace.run("remove", "--failed")
            #expect(
                result.error.contains("1 image (2 variants), 2 files (")
                    && result.error.contains(", 1 failure\n"), "\(result)")
            #expect(try await listed(workspace) == Array(RemoveTests.everything[2...]))
            #expect(try await workspace.query("SELECT * FROM failure").isEmpty)
        }
    }

    @Test func removesImageWithItsLastVariant() async throws {
        try await withImages { _, workspace, urls in
            let first = try await workspace.run("remove", "--variant", "main", urls[0])
            #expect(first.error.contains("0 images (1 variant), 1 file ("), "\(first)")
            let again = try await workspace.run("remove", "--variant", "main", urls[0])
            #expect(
                again.status == 1 && again.error.contains(": not in the cache as 'main'\n"),
                "\(again)")
            let second = try await workspace.run("remove", "--variant", "web", urls[0])
            #expect(second.error.contains("1 image (1 variant), 1 file ("), "\(second)")
            let keys = try await workspace.query("SELECT key FROM resource ORDER BY key")
            #expect(keys == urls[1...2].map { [$0] })
            #expect(try await workspace.query("SELECT * FROM failure").count == 1)
        }
    }

    /// A removed variant is made again from a new download; the others do not change.
    @Test func nextRunRestoresRemovedVariant() async throws {
        try await withImages { origin, workspace, urls in
            _ = try await workspace.run("remove", "--all", "--variant", "web")
            let again = try await workspace.prefetch(
                Array(urls[...2]), "--variant", "web=jpeg,q=50")
            #expect(again.result.status == 0, "\(again.result)")
            #expect(try await listed(workspace) == RemoveTests.everything)
        }
    }

    // MARK: Kills, holders and mistakes

    /// A kill leaves files of removed rows.
    @Test func nextRunRemovesOrphansAfterKill() async throws {
        try await withImages { _, workspace, urls in
            try await workspace.runSQL(
                """
                INSERT INTO property VALUES ('removal_unfinished', 1);
                DELETE FROM resource WHERE key = '\(urls[0])';
                """)
            #expect(try files(workspace) == 4)
            let run = try await workspace.prefetch(Array(urls[1...2]))
            #expect(run.summary.outcomes == ["fresh": 2], "\(run.result)")
            #expect(try files(workspace) == 2)
            #expect(
                try await workspace.query(
                    "SELECT * FROM property WHERE name = 'removal_unfinished'"
                ).isEmpty)
        }
    }

    @Test func waitsForLockOrRefuses() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve("/a", .image(Fixtures.png(), gate: gate))
            origin.serve("/b", .image(Fixtures.png(seed: 2)))
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                _ = try await workspace.prefetch([origin.url("/b")])
                let running = try workspace.prefetchCommand([origin.url("/a")], []).start()
                try await origin.wait(for: "one held") { $0.inFlight == 1 }
                let refused = try await workspace.run("remove", "--all")
                #expect(
                    refused.status == 75 && refused.error.contains("another process holds"),
                    "\(refused)")
                let estimate = try await workspace.run("remove", "--all", "-n")
                #expect(estimate.status == 0, "\(estimate)")
                let waiting = try workspace.command(["remove", "--all", "--lock", "wait"]).start()
                try await eventually("it says that it waits") {
                    waiting.errorSoFar.contains("; waiting for it\n")
                }
                gate.open()
                #expect(await running.wait().status == 0)
                let last = await waiting.wait()
                #expect(
                    last.status == 0 && last.error.contains("2 images (2 variants)"), "\(last)")
            }
        }
    }

    @Test(arguments: [
        ([], "name URLs, or pick images with --host, --failed or --all"),
        (["--variant", "main"], "or --all (every image)"),
        (["--all", "--failed"], "--all cannot be combined with --host or --failed"),
        (
            ["--all", "https://example.com/a"],
            "URLs cannot be combined with --host, --failed or --all"
        ),
        (["--host", "a", "--batch"], "URLs cannot be combined with --host, --failed or --all"),
        (["--batch", "https://example.com/a"], "--batch reads URLs from standard input"),
        (["--base-url", "https://example.com/", "x"], "--format and --base-url need --batch"),
        (["--all", "--lock", "skip"], "--lock takes fail, wait or wait=DURATION here"),
        (["--all", "--variant", "wep"], "unknown variant 'wep' (did you mean 'web'?)"),
    ])
    func rejectsInvalidOptionsWithoutChanges(options: [String], message: String) async throws {
        try await withImages { _, workspace, _ in
            let result = try await workspace.command(["remove"] + options).run()
            #expect(result.status == 64 && result.error.contains(message), "\(result)")
            #expect(try await listed(workspace) == RemoveTests.everything)
        }
    }

    @Test func createsNoCache() async throws {
        try await withWorkspace { workspace in
            for options in [["--all"], ["--all", "-n"], ["https://example.com/a"]] {
                let result = try await workspace.command(["remove"] + options).run()
                #expect(
                    result.status == 1 && result.error.contains("there is no cache yet"),
                    "\(result)")
            }
            #expect(!FileManager.default.fileExists(atPath: workspace.cache))
        }
    }
}
