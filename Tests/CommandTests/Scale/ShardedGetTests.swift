import Foundation
import TestSupport
import Testing

/// `get --caches` finds images in the caches of shards that are not merged.
@Suite(.timeLimit(.minutes(15)))
struct ShardedGetTests {
    private static let images = 30

    /// Runs each shard of a list over nine domains, and gives the URLs.
    private func withShards(
        plan: Bool, _ body: (Workspace, [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let urls = (0..<Self.images).map { index in
                origin.serve("/\(index).png", .image(Fixtures.png(seed: index)))
                // One domain has most of them: a plan splits it.
                return origin.url(
                    "/\(index).png",
                    host: index % 3 == 0 ? "h\(index % 9).localhost" : "large.localhost")
            }
            try await withWorkspace { workspace in
                let list = try workspace.manifest(urls)
                var shard = ["--shard"]
                if plan {
                    let made = try await workspace.run(
                        "plan", list, "--shards", "4", "-o", "plan.json")
                    #expect(made.status == 0, "\(made)")
                    shard = ["--plan", "plan.json", "--shard"]
                }
                for index in 0..<4 {
                    let run = try await workspace.command(
                        ["run", list, "--cache-dir", "shard-\(index)", "--ttl", "1h", "-q"]
                            + shard + [plan ? "\(index)" : "\(index)/4"]
                    ).run()
                    #expect(run.status == 0, "\(run)")
                }
                try await body(workspace, urls)
            }
        }
    }

    @Test(arguments: [false, true])
    func imagesAreFoundInTheirShards(plan: Bool) async throws {
        try await withShards(plan: plan) { workspace, urls in
            let places = ["--caches", "shard-{shard}"] + (plan ? ["--plan", "plan.json"] : [])
            var paths: [String] = []
            for url in urls {
                let result = try await workspace.command(["get", url] + places).run()
                #expect(result.status == 0, "\(result)")
                paths += result.outputLines
            }
            #expect(Set(paths.map { $0.prefix(7) }).count > 1, "more than one shard has images")
            // A batch prints in the order of its lines, missing images included.
            var batch = workspace.command(["get", "--batch", "--json"] + places)
            let lines = urls.reversed() + ["http://other.localhost/1.png", "no url"]
            batch.input = .bytes(Array(lines.joined(separator: "\n").utf8))
            let answers = try await batch.run()
            #expect(answers.status == 1)
            let objects = try answers.jsonLines()
            #expect(objects.prefix(urls.count).map { $0["path"] as? String } == paths.reversed())
            #expect(objects.count == lines.count)
            #expect(objects.suffix(2).allSatisfy { $0["path"] is NSNull })
            let missing = try await workspace.command(
                ["get", "http://other.localhost/1.png"] + places
            ).run()
            #expect(missing.status == 1)

            // Unusable caches are refused.
            guard plan else { return }
            try FileManager.default.removeItem(atPath: "\(workspace.folder)/shard-2")
            let fewer = try await workspace.run(
                "get", urls[0], "--caches", "shard-{shard}", "--plan", "plan.json")
            #expect(fewer.status == 2)
            #expect(fewer.error.contains("shard-2 is missing, but shard-3 is there"))
            let none = try await workspace.run("get", urls[0], "--caches", "none-{shard}")
            #expect(none.status == 1)
            #expect(none.error.contains("none-0: there is no cache yet"))
            for arguments in [
                ["--caches", "shard"], ["--caches", "s-{shard}", "--sink", "s3://bucket"],
                ["--plan", "plan.json"], ["--sink", "s3://bucket", "--batch"],
            ] {
                let wrong = try await workspace.command(["get", urls[0]] + arguments).run()
                #expect(wrong.status == 64, "\(wrong)")
            }
        }
    }
}
