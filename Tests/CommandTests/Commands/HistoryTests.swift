import Foundation
import Glibc
import TestSupport
import Testing

/// `history` and `stats` about earlier runs.
@Suite(.timeLimit(.minutes(15)))
struct HistoryTests {
    /// The columns of each line of `history`.
    private func history(_ workspace: Workspace, _ options: String...) async throws -> [[String]] {
        let result = try await workspace.command(["history"] + options).run()
        #expect(result.status == 0 && result.error.isEmpty, "\(result)")
        return result.outputLines.map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }

    private func objects(_ workspace: Workspace) async throws -> [[String: Any]] {
        try await workspace.run("history", "--json").jsonLines()
    }

    @Test func listsLatestRunFirstWithOutcomes() async throws {
        try await withOrigin { origin in
            let picture = Fixtures.png(width: 40, height: 40, isNoise: true)
            let received = picture.count + Response.notFound.body.count
            origin.serve("/a.png", .image(picture))
            origin.serve("/gone", .notFound)
            origin.serve("/busy", .unavailable())
            let urls = ["/a.png", "/gone", "/busy"].map(origin.url)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(Array(urls[...1]))
                _ = try await workspace.prefetch(urls)
                _ = try await workspace.prefetch(urls)
                let lines = try await history(workspace)
                try #require(lines.count == 3 && lines.allSatisfy { $0.count == 8 }, "\(lines)")
                #expect(
                    lines.map(\.[7]) == [
                        "1 fresh, 1 blacklisted, 1 failed (0 new)",
                        "1 fresh, 1 blacklisted, 1 failed (1 new)",
                        "1 downloaded, 1 failed (1 new)",
                    ])
                #expect(lines.map(\.[2]) == ["exit 1", "exit 1", "exit 1"])
                #expect(lines[2][3] == "2" && Int(lines[2][4]) == received, "\(lines)")
                for line in lines {
                    #expect((try? Date(line[0], strategy: .iso8601)) != nil, "\(lines)")
                    #expect(Double(line[1]) != nil, "\(lines)")
                }
                #expect(try await history(workspace, "-n", "2") == Array(lines[..<2]))

                let latest = try await objects(workspace)
                try #require(latest.count == 3)
                let first = latest[2]
                #expect(first["state"] as? String == "ended" && first["exit_status"] as? Int == 1)
                #expect(first["entries"] as? Int == 2 && first["requests"] as? Int == 2)
                #expect(first["bytes_received"] as? Int == received)
                #expect(first["new_failures"] as? Int == 1 && first["signal"] is NSNull)
                #expect((first["outcomes"] as? [String: Int])?["downloaded"] == 1)
                #expect(first["manifest"] as? String == "manifest-1.txt")
                #expect(first["duration_ms"] is Double)

                let stats = try await workspace.run("stats")
                #expect(stats.output.contains("exit 1\n"), "\(stats)")
                #expect(
                    stats.output.contains("1 fresh, 1 blacklisted, 1 failed (0 new)"), "\(stats)")
                let sums = try #require(
                    try await workspace.run("stats", "--json").jsonLines().first)
                let last = try #require(sums["last_run"] as? NSDictionary)
                #expect(last == latest[0] as NSDictionary)
            }
        }
    }

    /// A run stopped by a signal, a current one, and a killed one.
    @Test func reportsEndOfEachRun() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve("/held", .picture(Fixtures.png(), gate: gate))
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                func start() async throws -> RunningCommand {
                    let running = try workspace.prefetchCommand([origin.url("/held")]).start()
                    try await origin.wait(for: "one held") { $0.inFlight == 1 }
                    return running
                }
                func end(_ running: RunningCommand) async throws {
                    _ = await running.wait()
                    try await origin.wait(for: "none held") { $0.inFlight == 0 }
                }
                let stopped = try await start()
                stopped.signal(SIGTERM)
                gate.release()
                try await end(stopped)
                #expect(try await history(workspace).map(\.[2]) == ["SIGTERM"])

                let killed = try await start()
                #expect(try await history(workspace).first?[2] == "running")
                let running = try #require(try await objects(workspace).first)
                #expect(running["state"] as? String == "running", "\(running)")
                #expect(running["ended_at"] is NSNull && running["outcomes"] is NSNull)
                #expect(killed.signal(SIGKILL))
                gate.release()
                try await end(killed)
                let lines = try await history(workspace)
                #expect(lines.map(\.[2]) == ["killed", "SIGTERM"])
                #expect(Array(lines[0][3...]) == ["-", "-", "-", "-", "-"] && lines[0][1] == "-")
                let ended = try await objects(workspace)[1]
                #expect(ended["exit_status"] as? Int == 143 && ended["signal"] as? Int == 15)
                // Only the last run can be the holder of the cache.
                let last = try await start()
                #expect(
                    try await history(workspace).map(\.[2]) == ["running", "killed", "SIGTERM"])
                gate.open()
                try await end(last)
                #expect(
                    try await history(workspace).map(\.[2]) == ["exit 0", "killed", "SIGTERM"])
            }
        }
    }

    /// A yearly look at a cache that cron warms each hour.
    @Test func readsIncompleteCountersAndFiltersByTimeAndResult() async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            try workspace.manifest([])
            _ = try await workspace.run("manifest.txt", "--allow-empty")
            for (counters, outcomes, entries) in [
                ("'{\"entries\":2,\"failed\":2}'", "2 failed", 2), ("'no JSON'", "-", nil),
                ("NULL", "-", nil), ("'{\"entries\":3,\"bytes_received\":-1}'", "-", 3),
            ] as [(String, String, Int?)] {
                try await workspace.runSQL("UPDATE run SET counters = \(counters)")
                #expect(try await history(workspace).first?[7] == outcomes)
                let object = try #require(try await objects(workspace).first)
                #expect(object["entries"] as? Int == entries, "\(object)")
                #expect(object["new_failures"] is NSNull, "\(object)")
                #expect(try await workspace.run("stats").status == 0, "\(counters)")
            }
            let hours = 8784
            // The last one was killed; every hundredth failed, and every thousandth was stopped.
            try await workspace.runSQL(
                """
                UPDATE run SET id = 1000000, manifest = 'last';
                WITH RECURSIVE hour(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM hour WHERE n < \(hours))
                INSERT INTO run (id, started_at, ended_at, manifest, exit_status, counters, files_synced)
                SELECT 1000000 - n, started_at - n * 3600000 + 1800000,
                    iif(n = 1, NULL, started_at - n * 3600000 + 1801000), 'hourly',
                    iif(n = 1, NULL, iif(n % 1000 = 0, 143, n % 100 = 0)), counters, 1
                FROM hour, (SELECT started_at, counters FROM run);
                """)
            func results(_ options: String...) async throws -> [String] {
                let lines = try await workspace.command(["history"] + options).run()
                #expect(lines.status == 0 && lines.error.isEmpty, "\(lines)")
                return lines.outputLines.map { line in
                    String(line.split(separator: "\t")[2])
                }
            }
            #expect(try await results().count == hours + 1)
            let failed = try await results("--failed")
            #expect(failed.count == hours / 100 + 1)
            #expect(failed.first == "killed")
            #expect(failed.count { $0 == "SIGTERM" } == hours / 1000)
            #expect(failed.count { $0 == "exit 1" } == hours / 100 - hours / 1000)
            #expect(try await results("--since", "1h").count == 2)
            #expect(try await results("--since", "30d").count == 30 * 24 + 1)
            #expect(try await results("--since", "0s").isEmpty)
            #expect(try await results("--failed", "--since", "30d", "--limit", "3").count == 3)
            #expect(
                try await results("--failed", "-n", "2", "--since", "3650d") == [
                    "killed", "exit 1",
                ])
            let objects = try await workspace.run(
                "history", "--json", "--failed", "--limit", "1"
            ).jsonLines()
            #expect(objects.map { $0["state"] as? String } == ["killed"])

            // A run keeps all of them.
            _ = try await workspace.run("manifest.txt", "--allow-empty")
            #expect(try await results().count == hours + 2)
        }
    }
}
