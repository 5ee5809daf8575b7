import TestSupport
import Testing

/// Networks that fail or change during a run, and recover before the next one.
@Suite(.timeLimit(.minutes(15)))
struct MidwayOutageTests {
    private static let count = 120
    private static let early = 30

    private static let healthy: Origin.Answering = { request in
        .image(Fixtures.png(seed: Int(request.path.dropFirst().dropLast(4)) ?? 0))
    }

    /// Expects that no failure is blacklisted or counted.
    private func expectNothingBlacklisted(_ workspace: Workspace, failures: Int) async throws {
        let rows = try await workspace.query(
            "SELECT count(*), count(blacklisted_until), count(*) FILTER (WHERE class <> 'transient') "
                + "FROM failure")
        #expect(rows.first?.dropFirst() == ["0", "0"], "\(rows)")
        // Entries of the given-up host were not requested and left nothing.
        let noted = try #require(rows.first?.first.flatMap { $0 }.flatMap { Int($0) })
        #expect((3...failures).contains(noted))
    }

    /// Running transfers are cut, later ones refused.
    @Test func vanishingOriginBlacklistsNothing() async throws {
        let first = try await Origin.startOnPortOfItsOwn()
        let gate = Gate()
        first.serve { request in
            var response = MidwayOutageTests.healthy(request)
            response?.gate = gate
            return response
        }
        let lines = (0..<MidwayOutageTests.count).map { first.url("/\($0).png") }
        try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
            let running = try workspace.prefetchCommand(lines, ["-j", "4"]).start()
            gate.release(MidwayOutageTests.early)
            try await first.wait(for: "the early ones and four more") {
                $0.answered == MidwayOutageTests.early && $0.inFlight == 4
            }
            try await first.stop()
            let run = try workspace.finish(await running.wait(), entries: lines.count)
            #expect(run.result.status == 1, "\(run.result)")
            let failures = MidwayOutageTests.count - MidwayOutageTests.early
            #expect(
                run.summary.outcomes
                    == ["downloaded": MidwayOutageTests.early, "failed": failures],
                "\(run.result)")
            #expect(
                Set(run.summary.reasons.keys).isSubset(of: ["connect", "interrupted"]),
                "\(run.result)")
            try await expectNothingBlacklisted(workspace, failures: failures)
            try await withOrigin(port: first.port) { second in
                second.serve(MidwayOutageTests.healthy)
                let next = try await workspace.prefetch(lines)
                #expect(
                    next.summary.outcomes
                        == ["fresh": MidwayOutageTests.early, "downloaded": failures],
                    "\(next.result)")
                #expect(second.requests.count == failures)
                #expect(try await workspace.query("SELECT * FROM failure") == [])
            }
        }
    }

    /// Forty hosts with three entries each, too few to judge one, and a portal that responds for
    /// all.
    @Test func portalBeforeManySmallHostsBlacklistsNothing() async throws {
        try await withOrigin { origin in
            origin.serve { _ in .text("<!doctype html><title>Sign in</title>") }
            let lines = (0..<MidwayOutageTests.count).map { index in
                origin.url("/\(index).png", host: "host\(index % 40).localhost")
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let run = try await workspace.prefetch(lines)
                let wanted = Report.Summary.Outage(
                    reason: "not-an-image", failures: lines.count, heldBack: lines.count,
                    asked: lines.count, hosts: 40)
                #expect(run.summary.outage == wanted, "\(run.result)")
                #expect(origin.snapshot.hosts.count == 40)
                #expect(origin.snapshot.hosts.values.allSatisfy { $0.requests == 3 })
                let blacklisted = try await workspace.query(
                    "SELECT count(*) FROM failure WHERE blacklisted_until IS NOT NULL")
                #expect(blacklisted == [["0"]])
                origin.serve(MidwayOutageTests.healthy)
                let next = try await workspace.prefetch(lines)
                #expect(next.summary.outcomes == ["downloaded": lines.count], "\(next.result)")
            }
        }
    }
}
