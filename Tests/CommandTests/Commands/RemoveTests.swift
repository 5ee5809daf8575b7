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

    @Test func removesImagesAndFailures() async throws {
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

            // A file stays while another image shares it.
            let first = try await workspace.run("remove", urls[1])
            #expect(first.error.contains("1 image (2 variants), 0 files (0 B)"), "\(first)")
            #expect(try files(workspace) == 4)
            #expect(try await workspace.run("get", urls[2]).status == 0)
            let second = try await workspace.run("remove", urls[2])
            #expect(second.error.contains("1 image (2 variants), 2 files ("), "\(second)")
            #expect(try files(workspace) == 2)

            // A removed failure is requested again.
            let failure = try await workspace.run("remove", urls[3])
            #expect(failure.status == 0, "\(failure)")
            #expect(
                failure.error.contains("removed 0 images (0 variants), 0 files (0 B), 1 failure"),
                "\(failure)")
            origin.serve("/gone", .image(Fixtures.png(seed: 3)))
            let last = try await workspace.prefetch([urls[3]])
            #expect(last.report.verdicts == ["downloaded"], "\(last.result)")
        }
    }

    @Test func removesOthersThanMissingImages() async throws {
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
            #expect(try await listed(workspace) == Array(RemoveTests.everything[2...]))

            let other = origin.url("/other?token=secret")
            let arguments = try await workspace.run("remove", urls[1], other, urls[2], urls[1])
            #expect(arguments.status == 1, "\(arguments)")
            #expect(arguments.error.contains("other?token=***: not in the cache\n"), "\(arguments)")
            #expect(!arguments.error.contains("secret"))
            #expect(arguments.error.contains("2 images (4 variants)"), "\(arguments)")
            #expect(try await listed(workspace).isEmpty)
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
            let unknown = try await workspace.run("remove", "--all", "--variant", "wep")
            #expect(
                unknown.status == 64
                    && unknown.error.contains("unknown variant 'wep' (did you mean 'web'?)"),
                "\(unknown)")
            #expect(try await listed(workspace) == RemoveTests.everything)
            // A removed variant is made again from a new download; the others do not change.
            _ = try await workspace.run("remove", "--all", "--variant", "web")
            let run = try await workspace.prefetch(
                Array(urls[...2]), "--variant", "web=jpeg,q=50")
            #expect(run.result.status == 0, "\(run.result)")
            #expect(try await listed(workspace) == RemoveTests.everything)

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

    // MARK: Kills and dry runs

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

    /// A dry run names the images, for `remove --batch` and the like.
    @Test func dryRunsPrintKeys() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(urls, "--variant", "thumb=4x4")
                let keys = urls.sorted().map { $0 + "\n" }.joined()
                let prune = try await workspace.run("prune", "--max-files", "0", "-n")
                let lines = prune.outputLines.sorted().map { $0 + "\n" }.joined()
                #expect(lines == keys, "\(prune)")
                let json = try await workspace.run("prune", "--max-files", "0", "-n", "--json")
                let objects = try json.jsonLines()
                #expect(objects.count == 4 && objects[3]["type"] as? String == "summary", "\(json)")
                #expect(Set(objects.compactMap { $0["key"] as? String }) == Set(urls), "\(json)")
                let remove = try await workspace.run("remove", urls[1], "-n")
                #expect(remove.output == urls[1] + "\n", "\(remove)")
                let variant = try await workspace.run("remove", "--all", "--variant", "thumb", "-n")
                #expect(
                    variant.outputLines.allSatisfy { $0.contains("\t") }
                        && variant.outputLines.count == 3, "\(variant)")
                let quiet = try await workspace.run("prune", "--max-files", "0", "-n", "-q")
                #expect(quiet.output.isEmpty && quiet.error.isEmpty, "\(quiet)")
                #expect(try await workspace.query("SELECT count(*) FROM variant") == [["6"]])
            }
        }
    }
}
