import Foundation
import TestSupport
import Testing

/// `prefetch hosts`: shows the remembered hosts as runs use them, and forgets them on demand.
@Suite(.timeLimit(.minutes(15)))
struct HostsTests {
    /// Makes a cache with rows of hosts and failures; times are in milliseconds.
    private func withHosts(_ body: (Workspace, _ now: Int64) async throws -> Void) async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            try workspace.manifest([])
            _ = try await workspace.run("manifest.txt")
            let now = Int64(Date().timeIntervalSince1970 * 1000)
            try await insertHosts(into: workspace, now)
            try await body(workspace, now)
        }
    }

    private func insertHosts(into workspace: Workspace, _ now: Int64) async throws {
        try await workspace.runSQL(
            """
            DELETE FROM host;
            DELETE FROM failure;
            INSERT INTO host (host, concurrency, failures_in_a_row, cooling_until, updated_at) VALUES
                ('http://cool.example', 1, 3, \(now + 86_400_000), \(now)),
                ('http://few.example:8080', 2, 0, \(now - 1000), \(now)),
                ('https://broken.example', NULL, 4, NULL, \(now)),
                ('https://cool.example', NULL, 0, \(now - 1000), \(now - 2000)),
                ('http://tomorrow.example', 1, 1, NULL, \(now + 86_400_000));
            UPDATE host SET interval_us = 200000, latency_us = 1500, limited_by = 'refusals'
                WHERE host = 'http://few.example:8080';
            INSERT INTO failure (key, url, host, reason, http_status, message, attempts, class,
                runs_in_a_row, first_failed_at, last_failed_at, blacklisted_until) VALUES
                ('k1', 'http://cool.example/1', 'http://cool.example', 'dns', NULL, '', 1,
                    'transient', 1, \(now), \(now), NULL),
                ('k2', 'http://cool.example/2', 'http://cool.example', 'dns', NULL, '', 5,
                    'transient', 5, \(now), \(now), \(now + 3_600_000)),
                ('a', 'http://gone.example/', 'http://gone.example', 'http-status', 404, '', 1,
                    'permanent', 1, \(now - 7000), \(now - 7000), \(now - 1000));
            """)
    }

    private func rows(_ workspace: Workspace) async throws -> [[String]] {
        let result = try await workspace.run("hosts")
        #expect(result.status == 0 && result.error.isEmpty, "\(result)")
        return result.outputLines.map {
            $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }

    @Test func hostsAreListedAsTheNextRunTreatsThem() async throws {
        try await withHosts { workspace, now in
            let rows = try await rows(workspace)
            try #require(rows.count == 4 && rows.allSatisfy { $0.count == 10 }, "\(rows)")
            // Columns without the times, by name. A row from the future and an expired one are
            // left out: runs ignore them.
            let others = rows.map { row -> [String] in [row[0]] + Array(row[2...7]) + [row[9]] }
            let expected: [[String]] = [
                ["cooling", "1", "-", "-", "3", "2", "1", "http://cool.example"],
                ["limited", "2", "5.0", "refusals", "0", "0", "0", "http://few.example:8080"],
                ["normal", "-", "-", "-", "0", "1", "0", "http://gone.example"],
                ["failing", "-", "-", "-", "4", "0", "0", "https://broken.example"],
            ]
            #expect(others == expected)
            #expect(rows.map(\.[1]).dropFirst() == ["now", "now", "now"], "\(rows)")
            let next = try Date(rows[0][1], strategy: .iso8601).timeIntervalSince1970
            #expect(Int64(next) == (now + 86_400_000) / 1000)
            #expect(rows[2][8] == "-", "\(rows)")

            let objects = try await workspace.run("hosts", "list", "--json").jsonLines()
            #expect(objects.compactMap { $0["host"] as? String } == rows.map(\.[9]))
            #expect(objects.compactMap { $0["state"] as? String } == rows.map(\.[0]))
            #expect(objects[0]["concurrency"] as? Int == 1)
            #expect(objects[1]["requests_per_second"] as? Double == 5)
            #expect(objects[1]["latency_ms"] as? Double == 1.5)
            #expect(objects[1]["limited_by"] as? String == "refusals")
            #expect(objects[0]["failed_urls"] as? Int == 2)
            #expect(objects[0]["blacklisted_urls"] as? Int == 1)
            #expect(objects[0]["next_request_at"] as? String == rows[0][1])
            #expect(objects[1]["next_request_at"] is NSNull)
            #expect(objects[1]["cooling_until"] is String)
            #expect(objects[2]["concurrency"] is NSNull && objects[2]["updated_at"] is NSNull)
        }
    }

    private static let clearings: [(names: [String], count: Int, unknown: [String])] = [
        ([], 5, []),
        (["cool.example"], 2, []),
        (["HTTP://cool.example"], 1, []),
        (["few.example"], 1, []),
        (["few.example:8080", "broken.example"], 2, []),
        (
            ["few.example:80", "broken.example", "gone.example"], 1,
            ["few.example:80", "gone.example"]
        ),
    ]

    @Test func hostsAreForgotten() async throws {
        try await withHosts { workspace, now in
            for (names, count, unknown) in HostsTests.clearings {
                try await insertHosts(into: workspace, now)
                let result = try await workspace.command(["hosts", "clear"] + names).run()
                #expect(result.status == (unknown.isEmpty ? 0 : 1), "\(result)")
                let cleared = "prefetch: \(count) host\(count == 1 ? "" : "s") cleared"
                let lines = [cleared] + unknown.map { "prefetch: \($0): unknown host" }
                #expect(result.errorLines == lines, "\(result)")
                #expect(result.output.isEmpty, "\(result)")
                let left = try await workspace.query("SELECT count(*) FROM host")
                #expect(left == [["\(5 - count)"]])
                #expect(try await workspace.query("SELECT count(*) FROM failure") == [["3"]])
            }
        }
    }

    /// The rows of a real run are shown, and the run after `clear` requests immediately.
    @Test func asksAPausedHostAgainAfterClear() async throws {
        try await withOrigin { origin in
            origin.serve("/busy", .unavailable(retryAfter: "7200"))
            let url = origin.url("/busy")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([url])
                let host = "http://127.0.0.1:\(origin.port)"
                let rows = try await rows(workspace)
                #expect(rows.map { [$0[0], $0[6], $0[9]] } == [["cooling", "1", host]], "\(rows)")
                let requests = origin.requests.count
                _ = try await workspace.prefetch([url])
                #expect(origin.requests.count == requests)
                // Failures mention the pause, which is longer than the failure itself says.
                let hosts = try await workspace.run("hosts", "--json").jsonLines()
                let until = try #require(hosts.first?["cooling_until"] as? String)
                let failed = try await workspace.run("failed", "list", "--json").jsonLines()
                #expect(failed.first?["next_try_at"] as? String == until, "\(failed)")
                #expect(failed.first?["state"] as? String == "retried", "\(failed)")
                let get = try await workspace.run("get", url)
                #expect(get.status == 1, "\(get)")
                #expect(get.error.contains("; no requests to its host until \(until)"), "\(get)")
                let cleared = try await workspace.run("hosts", "clear", "127.0.0.1")
                #expect(cleared.status == 0, "\(cleared)")
                let after = try await workspace.run("get", url)
                #expect(after.error.contains("the next run requests it again"), "\(after)")
                _ = try await workspace.prefetch([url])
                #expect(origin.requests.count == requests + 1)
            }
        }
    }

    @Test func aRunningRunKeepsItsHosts() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve("/held.png", .image(Fixtures.png(seed: 9), gate: gate))
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                // The command creates no cache.
                let missing = try await workspace.run("hosts")
                #expect(missing.status == 2 && missing.error.contains("no cache yet"), "\(missing)")
                let nothing = try await workspace.run("hosts", "clear")
                #expect(nothing.status == 1 && nothing.error.contains("no cache yet"), "\(nothing)")
                let empty = try await workspace.run("hosts", "clear", "")
                #expect(empty.status == 64, "\(empty)")
                #expect(!FileManager.default.fileExists(atPath: workspace.cache))
                let running = try workspace.prefetchCommand([origin.url("/held.png")]).start()
                try await origin.wait(for: "the held one") { $0.inFlight == 1 }
                let clear = try await workspace.run("hosts", "clear")
                #expect(clear.status == 75 && clear.error.contains("another process"), "\(clear)")
                let list = try await workspace.run("hosts")
                #expect(list.status == 0, "\(list)")
                gate.open()
                _ = await running.wait()
            }
        }
    }
}
