import Foundation
import TestSupport
import Testing

/// `plan --shards`, `run --plan` and `merge --check`.
@Suite(.timeLimit(.minutes(15)))
struct ShardPlanTests {
    private func lines(_ origin: Origin, big: Int, small: Int) -> [String] {
        let big = (0..<big).map { index in
            origin.serve("/b\(index).png", .image(Fixtures.png(seed: index)))
            return origin.url("/b\(index).png", host: "big.localhost")
        }
        let small = (0..<small).map { index in
            origin.serve("/s\(index).png", .image(Fixtures.png(seed: index)))
            return origin.url("/s\(index).png", host: "s\(index).localhost")
        }
        return big + small
    }

    @Test func plannedShardsCoverEachEntryOnce() async throws {
        try await withOrigin { origin in
            let lines = lines(origin, big: 40, small: 40)
            try await withWorkspace { workspace in
                let name = try workspace.manifest(lines + ["bad"], name: "list.txt")
                let plan = try await workspace.run("plan", name, "--shards", "4", "-o", "plan.json")
                #expect(plan.status == 0, "\(plan)")
                #expect(
                    plan.error.contains("prefetch: plan.json: 4 shards of 20 entries each; "),
                    "\(plan)")
                #expect(plan.error.contains("1 bad line, which shard 0 reports"), "\(plan)")
                #expect(plan.error.contains("1 domain in several shards"), "\(plan)")
                var keys: [String] = []
                var digests: Set<String> = []
                for index in 0..<4 {
                    let run = try await workspace.run(
                        name, "--plan", "plan.json", "--shard", "\(index)", "--report",
                        "r\(index).jsonl", "--cache-dir", "shard-\(index)")
                    #expect(run.status == (index == 0 ? 1 : 0), "\(run)")
                    let report = try Report(
                        contentsOfFile: "\(workspace.folder)/r\(index).jsonl")
                    keys += report.entries.map(\.key)
                    let text = try String(
                        contentsOfFile: "\(workspace.folder)/r\(index).jsonl", encoding: .utf8)
                    let last = try #require(text.split(separator: "\n").last)
                    let summary = try #require(
                        try JSONSerialization.jsonObject(with: Data(last.utf8))
                            as? [String: Any])
                    let shard = try #require(summary["shard"] as? [String: Any])
                    digests.insert(try #require(shard["plan"] as? String))
                }
                #expect(keys.sorted() == (lines + ["bad"]).sorted())
                #expect(digests.count == 1)
                // The reports are summaries, too.
                let all = try await workspace.run(
                    "merge", "--check", "plan.json", "r0.jsonl", "r1.jsonl", "r2.jsonl",
                    "r3.jsonl")
                #expect(all.status == 0, "\(all)")
                #expect(all.output.isEmpty, "\(all)")
                #expect(all.error.contains("4 shards have run"), "\(all)")
                let some = try await workspace.run("merge", "--check", "plan.json", "r1.jsonl")
                #expect(some.status == 1, "\(some)")
                #expect(some.output == "0,2-3\n", "\(some)")
                #expect(some.error.contains("3 of 4 shards are missing"), "\(some)")
                let summary =
                    #"{"type":"summary","exit_status":0,"#
                    + #""shard":{"index":0,"count":1,"plan":null}}"#
                try workspace.write(Array(summary.utf8), to: "one.json")
                let one = try await workspace.run("merge", "--check", "1", "one.json")
                #expect(one.status == 0, "\(one)")
                #expect(one.error.contains("1 shard has run"), "\(one)")
                let huge = try await workspace.run("merge", "--check", "99999999999", "one.json")
                #expect(huge.status == 2, "\(huge)")
            }
        }
    }

    @Test func planOfOtherListsIsRefused() async throws {
        try await withOrigin { origin in
            let lines = lines(origin, big: 3, small: 3)
            try await withWorkspace { workspace in
                try workspace.manifest(lines, name: "a.txt")
                try workspace.manifest(lines.reversed(), name: "b.txt")
                #expect(
                    try await workspace.run("plan", "a.txt", "--shards", "2", "-o", "p.json")
                        .status == 0)
                for lists in [["b.txt"], ["a.txt", "b.txt"]] {
                    let run = try await workspace.command(
                        lists + ["--plan", "p.json", "--shard", "0"]
                    ).run()
                    #expect(run.status == 2, "\(run)")
                    #expect(run.error.contains("b.txt: p.json is a plan of other lists"), "\(run)")
                }
                // Another name for the same list does not make it another list.
                try FileManager.default.moveItem(
                    atPath: workspace.folder + "/a.txt", toPath: workspace.folder + "/c.txt")
                let run = try await workspace.run("c.txt", "--plan", "p.json", "--shard", "0")
                #expect(run.status == 0, "\(run)")
                let other = try await workspace.run("c.txt", "--plan", "p.json", "--shard", "0/3")
                #expect(other.status == 64, "\(other)")
                #expect(other.error.contains("the plan has 2 shards, and not 3"), "\(other)")
                // A plan does not replace a list.
                let plan = try await workspace.run("plan", "c.txt", "--shards", "2", "-o", "c.txt")
                #expect(plan.status == 64, "\(plan)")
                #expect(plan.error.contains("c.txt: -o would overwrite the manifest"), "\(plan)")
                let shown = try await workspace.run("plan", "c.txt", "--shards", "2", "-o", "-")
                #expect(shown.output.hasPrefix(#"{"type":"shard-plan","version":1,"#), "\(shown)")
            }
        }
    }

    /// Three shards share the limit of a host; none has more than its part.
    @Test func splitDomainHasAPartOfItsLimits() async throws {
        try await withOrigin { origin in
            let lines = (0..<60).map { index in
                var picture = Response.image(Fixtures.png(seed: index))
                picture.delayBeforeHead = .milliseconds(30)
                origin.serve("/\(index).png", picture)
                return origin.url("/\(index).png", host: "big.localhost")
            }
            try await withWorkspace(without: [.stalls]) { workspace in
                let name = try workspace.manifest(lines, name: "list.txt")
                let plan = try await workspace.run(
                    "plan", name, "--shards", "3", "-o", "p.json", "--host-concurrency", "6")
                #expect(plan.status == 0, "\(plan)")
                // Tables of settings, also with a wider or a narrower pattern, have their part.
                for (index, configuration) in [
                    "", "[host.\"*.localhost\"]\nretry = 1\n",
                    "[host.\"*\"]\nretry = 1\n[host.\"b*.localhost\"]\nhost-concurrency = 3\n",
                ].enumerated() {
                    try workspace.write(Array(configuration.utf8), to: "c.toml")
                    let run = try await workspace.run(
                        name, "--plan", "p.json", "--shard", "\(index)", "--host-concurrency", "6",
                        "--config", "c.toml", "--report", "r.jsonl")
                    #expect(run.status == 0, "\(run)")
                    #expect(origin.snapshot.peakInFlight == 2, "\(configuration)")
                    #expect(try workspace.finish(run).report.entries.count > 10)
                }
                let requests = Set(origin.requests.map(\.path))
                #expect(requests.count == 60)
            }
        }
    }
}
