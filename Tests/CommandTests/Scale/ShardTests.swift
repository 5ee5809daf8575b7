import Foundation
import TestSupport
import Testing

/// `run --shard` takes one part of the lists.
@Suite(.timeLimit(.minutes(15)))
struct ShardTests {
    private static let domains = [
        "example.com", "example.co.uk", "a.github.io", "b.github.io", "localhost", "127.0.0.1",
        "[::1]", "xn--bcher-kva.example", "example.org", "example.net", "h1.localhost",
    ]

    /// URLs of several hosts of each domain, in text, and one bad line.
    private static let lines: [String] =
        domains.flatMap { domain in
            (0..<6).map { index in
                let prefix =
                    domain.contains(".") && !domain.hasPrefix("127") ? "w\(index % 2)." : ""
                return "http://\(domain.hasPrefix("[") ? "" : prefix)\(domain)/\(index).png"
            }
        } + ["no url", "http://EXAMPLE.com./dot.png"]

    private func shard(
        _ workspace: Workspace, _ list: String, _ arguments: [String],
        environment: [String: String] = [:]
    ) async throws -> CommandResult {
        var command = workspace.command(
            ["plan", list, "--json", "-v", "--allow-empty"] + arguments)
        command.environment.merge(environment) { $1 }
        return try await command.run()
    }

    private func urls(_ result: CommandResult) throws -> [String] {
        try result.jsonLines().dropLast().compactMap { $0["url"] as? String }
    }

    /// Hosts in other spellings, and lines that are no URLs.
    private static let spellings = [
        "http://x.example.com./", "HTTPS://u:p@B.Example.CO.UK:80", "http://www.bücher.example/",
        "http://xn--bcher-kva.example", "http:/x.com/", "http://co.uk/", "http://127.1/",
        "http://%31.1/", "http://[::FFFF:1.2.3.4]:8/", "http://[FE80::1%25eth0]/", "ftp://x.com/",
        "x.com", "", "http://a b.com/", "http:///", "http://x%25y.com/", "mailto:a@b.c",
    ]

    @Test func planPrintsTheShardOfEachLine() async throws {
        try await withWorkspace { workspace in
            let lines = ShardTests.lines + ShardTests.spellings
            let name = try workspace.manifest(
                lines.map { #"{"url":"\#($0)"}"# }, name: "list.jsonl")
            let plan = try await workspace.run("plan", name, "--shards", "7")
            #expect(plan.status == 0 && plan.error.isEmpty, "\(plan)")
            let printed = plan.output.split(separator: "\n").map { Int($0) }
            #expect(printed.count == lines.count)
            for index in 0..<7 {
                let taken = try await shard(workspace, name, ["--shard", "\(index)/7"])
                let numbers = try taken.jsonLines().dropLast().compactMap { $0["line"] as? Int }
                // A row without a URL has a shard, but no result.
                let expected = printed.indices.filter {
                    printed[$0] == index && !lines[$0].isEmpty
                }
                #expect(numbers == expected.map { $0 + 1 })
            }
            // The cache directory is of no use here, and need not be one.
            var withoutCache = workspace.command(["plan", name, "--shards", "7"])
            withoutCache.environment["PREFETCH_CACHE_DIR"] = "/dev/null"
            #expect(try await withoutCache.run().output == plan.output)
            for more in [["--json"], ["--machines", "2"]] {
                let refused = try await workspace.command(
                    ["plan", name, "--shards", "7"] + more
                ).run()
                #expect(refused.status == 64, "\(refused)")
            }
        }
    }

    /// For every form of the list, and every seed of Swift's hashing.
    @Test(arguments: ["text", "csv", "jsonl"])
    func sevenShardsCoverEachEntryOnce(_ format: String) async throws {
        try await withWorkspace { workspace in
            let lines = ShardTests.lines
            let list: [String] =
                switch format {
                case "csv": ["id,url"] + lines.enumerated().map { "\($0),\($1)" }
                case "jsonl": lines.map { #"{"url":"\#($0)"}"# }
                default: lines
                }
            let name = try workspace.manifest(list, name: "list.\(format)")
            let all = try urls(try await shard(workspace, name, []))
            #expect(all.count == lines.count)
            var found: [[String]] = []
            for index in 0..<7 {
                let result = try await shard(workspace, name, ["--shard", "\(index)/7"])
                #expect(result.status == (index == 0 ? 1 : 0), "\(result)")
                found.append(try urls(result))
                let again = try await shard(
                    workspace, name, ["--shard", "\(index)/7"],
                    environment: ["SWIFT_DETERMINISTIC_HASHING": "1"])
                #expect(try urls(again) == found[index])
            }
            #expect(found.flatMap(\.self).sorted() == all.sorted())
            #expect(found.count { !$0.isEmpty } > 3)
            // An array job tells the index, and some also the number of shards.
            #expect(!found[5].isEmpty)
            for (environment, flag) in [
                (["JOB_COMPLETION_INDEX": "5"], "auto/7"),
                (["AWS_BATCH_JOB_ARRAY_INDEX": "5", "AWS_BATCH_JOB_ARRAY_SIZE": "7"], "auto"),
            ] {
                let auto = try await shard(
                    workspace, name, ["--shard", flag], environment: environment)
                #expect(auto.status == 0, "\(auto)")
                #expect(try urls(auto) == found[5], "\(environment)")
            }
            for domain in ShardTests.domains {
                let places = found.indices.filter { index in
                    found[index].contains {
                        for start in ["//", "//w0.", "//w1."]
                        where $0.contains(start + domain + "/") {
                            return true
                        }
                        return false
                    }
                }
                #expect(places.count == 1, "\(domain)")
            }
        }
    }

    @Test func summaryNamesTheShard() async throws {
        try await withOrigin { origin in
            // The registrable domain of both is the whole host.
            let hosts = ["h1.localhost", "h2.localhost", "h3.localhost", "h4.localhost"]
            let lines = hosts.flatMap { host in
                (0..<3).map { index in
                    origin.serve("/\(host)/\(index).png", .image(Fixtures.png(seed: index)))
                    return origin.url("/\(host)/\(index).png", host: host)
                }
            }
            // A redirect to a host of another shard.
            origin.serve(
                "/\(hosts[0])/0.png",
                .redirect(to: origin.url("/h2.localhost/1.png", host: hosts[1])))
            try await withWorkspace { workspace in
                var entries = 0
                var redirects = 0
                for index in 0..<5 {
                    let name = try workspace.manifest(lines, name: "list.txt")
                    let run = try await workspace.run(
                        name, "--shard", "\(index)/5", "--summary", "json")
                    #expect(run.status == 0, "\(run)")
                    let summary = try #require(try run.jsonLines().last)
                    let shard = try #require(summary["shard"] as? [String: Any])
                    #expect(shard["index"] as? Int == index)
                    #expect(shard["count"] as? Int == 5)
                    #expect(shard["plan"] is NSNull)
                    let own = try #require(summary["entries"] as? Int)
                    #expect(shard["other_entries"] as? Int == lines.count - own)
                    entries += own
                    redirects += shard["redirects_elsewhere"] as? Int ?? -1
                }
                #expect(entries == lines.count)
                #expect(redirects == 1, "the hosts are in different shards")
                let text = try await workspace.run("list.txt", "--shard", "0/5")
                #expect(text.error.contains("  shard 0 of 5; "), "\(text)")
            }
        }
    }

    @Test func wrongShardsAreRefused() async throws {
        try await withWorkspace { workspace in
            let name = try workspace.manifest(ShardTests.lines, name: "list.txt")
            try workspace.write(Array("{}".utf8), to: "no-plan.json")
            for (arguments, environment, status, text) in [
                (["--shard", "7/7"], [:], 64, "there is no shard 7 of 7: they are 0 to 6"),
                (["--shard", "1"], [:], 64, "write I/N, like 3/8, or give --plan"),
                (["--shard", "1/0"], [:], 64, "--shard"),
                (["--shard", "-1/7"], [:], 64, "--shard"),
                (["--shard", "auto"], [:], 64, "this is not an array job"),
                (
                    ["--shard", "auto"], ["JOB_COMPLETION_INDEX": "1"], 64,
                    "JOB_COMPLETION_INDEX does not tell the number of shards: write auto/N"
                ),
                (
                    ["--shard", "auto"],
                    [
                        "SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "2",
                        "SLURM_ARRAY_TASK_MIN": "2", "SLURM_ARRAY_TASK_MAX": "3",
                    ], 64, "write auto/N"
                ),
                (
                    ["--shard", "auto/3"], ["JOB_COMPLETION_INDEX": "9"], 64,
                    "there is no shard 9 of 3"
                ),
                (["--plan", "p.json"], [:], 64, "--plan needs --shard"),
                (["--plan", "missing.json", "--shard", "1"], [:], 2, "missing.json: "),
                (
                    ["--plan", "no-plan.json", "--shard", "1"], [:], 2,
                    "no-plan.json: not a shard plan"
                ),
            ] as [([String], [String: String], Int32, String)] {
                var command = workspace.command([name] + arguments)
                command.environment.merge(environment) { $1 }
                let result = try await command.run()
                #expect(result.status == status, "\(result)")
                #expect(result.error.contains(text), "\(text): \(result)")
            }
            // A missing library is named.
            try workspace.write([], to: "libpsl.so.5")
            var command = workspace.command(["plan", name, "--shard", "1/3"])
            command.environment["LD_LIBRARY_PATH"] = workspace.folder
            let result = try await command.run()
            #expect(result.status == 2, "\(result)")
            #expect(result.error.contains("--shard: cannot load libpsl: "), "\(result)")
            #expect(result.error.contains("hint: install libpsl"), "\(result)")
        }
    }
}
