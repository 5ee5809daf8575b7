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
                let some = try await workspace.run("merge", "--check", "plan.json", "r1.jsonl")
                #expect(some.status == 1, "\(some)")
                #expect(some.output == "0,2-3\n", "\(some)")
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

    @Test func missingShardsAreIndexRanges() async throws {
        try await withWorkspace { workspace in
            func summary(
                _ index: Int, _ count: Int, status: Int = 0, more: String = ""
            ) throws -> String {
                try workspace.write(
                    Array(
                        """
                        {"type":"summary","exit_status":\(status)\(more),\
                        "shard":{"index":\(index),"count":\(count),"plan":null}}\n
                        """.utf8), to: "s\(index)-\(count).json")
            }
            let done = [0, 1, 2, 4, 5, 16, 20, 21, 22]
            var files = try done.map { try summary($0, 23) }
            files.append(try summary(3, 23, status: 3))
            files.append(try summary(6, 23, more: #","ended_by":"deadline""#))
            files.append(try summary(7, 23, more: #","outcomes":{"cancelled":4}"#))
            files.append(try summary(8, 23, more: #","entries":7"#))
            files.append(try summary(7, 8))
            try workspace.write(Array("no json".utf8), to: "text.json")
            files += ["text.json", "absent.json"]
            let check = try await workspace.command(["merge", "--check", "23"] + files).run()
            #expect(check.status == 1, "\(check)")
            #expect(check.output == "3,6-15,17-19\n", "\(check)")
            for text in [
                "s3-23.json: shard 3 ended with status 3", "s7-8.json: shard 7 of 8",
                "s6-23.json: shard 6 was ended by --deadline",
                "s7-23.json: shard 7 has 4 cancelled entries",
                "s8-23.json: shard 8 ran other lists, with 7 lines instead of 0",
                "text.json: no summary of a shard", "absent.json: ",
                "14 of 23 shards are missing",
            ] {
                #expect(check.error.contains(text), "\(text): \(check)")
            }
            let whole = try await workspace.command(
                ["merge", "--check", "1", try summary(0, 1)]
            ).run()
            #expect(whole.status == 0, "\(whole)")
            #expect(whole.error.contains("1 shard has run"), "\(whole)")
            for arguments in [["3"], ["3", "s0-23.json", "--json"]] {
                let none = try await workspace.command(["merge", "--check"] + arguments).run()
                #expect(none.status == 64, "\(none)")
            }
            let huge = try await workspace.run("merge", "--check", "99999999999", "s0-23.json")
            #expect(huge.status == 2, "\(huge)")
        }
    }
}
