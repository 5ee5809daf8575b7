import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct PlanTests {
    private struct Plan: Decodable {
        struct Host: Decodable {
            let host: String
            let requests: Int
            let new: Int
            let expectedBytes: Int?

            enum CodingKeys: String, CodingKey {
                case host, requests, new
                case expectedBytes = "expected_bytes"
            }
        }

        let entries: Int
        let states: [String: Int]
        let requests: Int
        let left: Int
        let exitStatus: Int
        let hosts: [Host]

        enum CodingKeys: String, CodingKey {
            case entries, states, requests, left, hosts
            case exitStatus = "exit_status"
        }

        init(_ result: CommandResult) throws {
            self = try JSONDecoder().decode(Plan.self, from: Data(result.output.utf8))
        }

        /// The states that any entry has.
        var counts: [String: Int] { states.filter { $0.value > 0 } }
    }

    /// The files of a folder, with their contents and times.
    private func snapshot(_ folder: String) throws -> [String: Data] {
        var files: [String: Data] = [:]
        let names = FileManager.default.enumerator(atPath: folder)
        while let name = names?.nextObject() as? String {
            let path = "\(folder)/\(name)"
            // Every reader of a database may make its index of the log and an empty log.
            guard !name.hasSuffix("-shm"), !name.hasSuffix("-wal") else { continue }
            files[name] = FileManager.default.contents(atPath: path) ?? Data()
        }
        return files
    }

    @Test func countsEveryStateAndChangesNothing() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(4)
            let image = Fixtures.png(width: 3, height: 3)
            origin.serve(
                "/stale",
                Response(headers: [("Cache-Control", "max-age=0")], body: image, type: "image/png"))
            origin.serve("/gone", .notFound)
            let (stale, gone) = (origin.url("/stale"), origin.url("/gone"))
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch([urls[0], urls[1], stale, gone])
                let requests = origin.requests.count
                let lines = [
                    urls[0], urls[0], urls[1] + " variant=small=2x2", stale, gone, urls[2],
                    "nothing", urls[3],
                ]
                let manifest = try workspace.manifest(lines)
                let before = try snapshot(workspace.cache)
                let result = try await workspace.run(
                    "plan", manifest, "--json", "--exclude", "*/3.png")
                #expect(try snapshot(workspace.cache) == before)
                #expect(origin.requests.count == requests)
                let plan = try Plan(result)
                #expect(plan.entries == lines.count)
                #expect(
                    plan.counts == [
                        "fresh": 1, "duplicate": 1, "incomplete": 1, "stale": 1, "blacklisted": 1,
                        "new": 1, "invalid": 1, "excluded": 1,
                    ], "\(result)")
                #expect(plan.requests == 3)
                #expect(plan.hosts.map(\.requests) == [3])
                #expect(plan.hosts.first?.new == 1)
                #expect(try #require(plan.hosts.first?.expectedBytes) > 0)
                #expect(plan.exitStatus == 1 && result.status == 1)
                // The run agrees.
                let run = try await workspace.prefetch(lines, "--exclude", "*/3.png")
                #expect(origin.requests.count == requests + 3)
                #expect(run.result.status == result.status)
            }
        }
    }

    @Test func namesEachEntryAndItsReason() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            origin.serve("/gone", .notFound)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch([urls[0], origin.url("/gone")])
                let manifest = try workspace.manifest(
                    ["http://user:secret@nobody.example/x?token=secret", urls[0], urls[1]]
                        + [origin.url("/gone")])
                let result = try await workspace.run("run", "-n", manifest, "-v")
                let lines = result.output.split(separator: "\n")
                #expect(lines.contains("fresh \(urls[0])"), "\(result)")
                #expect(lines.contains("new \(urls[1]): not in the cache"), "\(result)")
                #expect(
                    result.output.contains(
                        "blacklisted \(origin.url("/gone")): failed with HTTP 404"),
                    "\(result)")
                #expect(!result.output.contains("secret"), "\(result)")
                #expect(result.output.contains("2 requests to 2 hosts"), "\(result)")
                let quiet = try await workspace.run("plan", manifest, "-q")
                #expect(quiet.output.isEmpty && quiet.status == 1, "\(quiet)")
            }
        }
    }

    /// The plan reads lists as the run does, with the tables of hosts.
    @Test func knowsTheTablesOfHosts() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(urls)
                let manifest = try workspace.manifest(urls)
                let plain = try Plan(try await workspace.run("plan", manifest, "--json"))
                #expect(plain.counts == ["fresh": 1])
                _ = try workspace.write(
                    Array("[host.\"127.0.0.1\"]\nttl = 0\n".utf8), to: "c.toml")
                let result = try await workspace.run(
                    "plan", manifest, "--json", "--config", "c.toml")
                #expect(try Plan(result).counts == ["stale": 1], "\(result)")
            }
        }
    }

    /// Without a cache everything is new, and none is made.
    @Test func worksWithoutACache() async throws {
        try await withWorkspace { workspace in
            let manifest = try workspace.manifest((0..<5000).map { "http://a.example/\($0)" })
            let result = try await workspace.run("plan", manifest)
            #expect(result.status == 0, "\(result)")
            #expect(result.output.hasPrefix("5000 entries: 5000 new\n5000 requests to 1 host\n"))
            #expect(!FileManager.default.fileExists(atPath: workspace.cache))
            let limited = try await workspace.run("plan", manifest, "--limit", "10", "--json")
            let plan = try Plan(limited)
            #expect(plan.left == 4990 && plan.exitStatus == 3 && limited.status == 3)
            let offline = try Plan(
                try await workspace.run("plan", manifest, "--offline", "--json"))
            #expect(offline.counts == ["excluded": 5000])
            #expect(offline.exitStatus == 1)
            let empty = try workspace.manifest([], name: "empty.txt")
            #expect(try await workspace.run("plan", empty).status == 1)
            #expect(try await workspace.run("plan", empty, "--allow-empty").status == 0)
        }
    }

    /// It neither takes the lock nor waits for it.
    @Test func worksDuringARun() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let urls = origin.serveImages(1)
            origin.serve("/held", .image(Fixtures.png(width: 3, height: 3), gate: gate))
            try await withWorkspace(without: [.stalls]) { workspace in
                let lines = urls + [origin.url("/held")]
                let manifest = try workspace.manifest(lines, name: "plan.txt")
                let run = try workspace.prefetchCommand(lines)
                async let running = run.run()
                try await eventually("both are requested") { origin.requests.count == 2 }
                let plan = try Plan(try await workspace.run("plan", manifest, "--json"))
                #expect(plan.entries == 2 && plan.states["new"] ?? 0 >= 1)
                gate.open()
                #expect(try await running.status == 0)
            }
        }
    }
}
