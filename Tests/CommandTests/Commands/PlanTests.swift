import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
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

    @Test func countsAndNamesEveryStateAndChangesNothing() async throws {
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

                let named = try workspace.manifest(
                    ["http://user:secret@nobody.example/x?token=secret", urls[0], urls[2], gone],
                    name: "named.txt")
                let verbose = try await workspace.run("run", "-n", named, "-v")
                #expect(verbose.outputLines.contains("fresh \(urls[0])"), "\(verbose)")
                #expect(
                    verbose.outputLines.contains("new \(urls[2]): not in the cache"),
                    "\(verbose)")
                #expect(
                    verbose.output.contains("blacklisted \(gone): failed with HTTP 404"),
                    "\(verbose)")
                #expect(!verbose.output.contains("secret"), "\(verbose)")
                #expect(verbose.output.contains("2 requests to 2 hosts"), "\(verbose)")
                let quiet = try await workspace.run("plan", named, "-q")
                #expect(quiet.output.isEmpty && quiet.status == 1, "\(quiet)")

                // The plan reads lists as the run does, with the tables of hosts.
                let fresh = try workspace.manifest([urls[0]], name: "fresh.txt")
                let plain = try Plan(try await workspace.run("plan", fresh, "--json"))
                #expect(plain.counts == ["fresh": 1])
                try workspace.writeConfiguration(
                    "[host.\"127.0.0.1\"]\nttl = 0\n", to: "c.toml")
                let table = try await workspace.run("plan", fresh, "--json", "--config", "c.toml")
                #expect(try Plan(table).counts == ["stale": 1], "\(table)")
                #expect(origin.requests.count == requests)

                // The run agrees.
                let run = try await workspace.prefetch(lines, "--exclude", "*/3.png")
                #expect(origin.requests.count == requests + 3)
                #expect(run.result.status == result.status)
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
}
