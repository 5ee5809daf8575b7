import TestSupport
import Testing

/// The outage rule over whole runs: failures of networks, proxies or portals are not blacklisted.
@Suite(.timeLimit(.minutes(15)))
struct OutageTests {
    private static let count = 200

    private func lines(_ origins: [Origin]) -> [String] {
        (0..<OutageTests.count).map { origins[$0 % origins.count].url("/\($0).png") }
    }

    private func serve(_ origins: [Origin], _ answering: @escaping Origin.Answering) {
        for origin in origins { origin.serve(answering) }
    }

    private let healthy: Origin.Answering = { request in
        .image(Fixtures.png(seed: Int(request.path.dropFirst().dropLast(4)) ?? 0))
    }

    /// Expects the run's outage, and that the next run, with a healthy origin, downloads
    /// everything.
    private func expectNothingHeld(
        _ workspace: Workspace, _ origins: [Origin], reason: String
    ) async throws {
        let lines = lines(origins)
        for _ in 1...2 {
            let run = try await workspace.prefetch(lines, "--summary", "json")
            #expect(run.summary.reasons == [reason: lines.count], "\(run.result)")
            let wanted = Report.Summary.Outage(
                reason: reason, failures: lines.count, heldBack: lines.count, asked: lines.count,
                hosts: origins.count)
            #expect(run.summary.outage == wanted, "\(run.result)")
            #expect(try Report.Summary(json: run.result.output).outage == wanted)
            let rows = try await workspace.query(
                "SELECT count(*), sum(runs_in_a_row), count(blacklisted_until) FROM failure")
            #expect(rows.first?.dropFirst() == ["0", "0"], "\(rows)")
            // Entries of given-up hosts were not requested and left nothing.
            let noted = try #require(rows.first?.first.flatMap { $0 }.flatMap { Int($0) })
            #expect((12...lines.count).contains(noted))
        }
        let told = try await workspace.prefetch(lines)
        #expect(
            told.result.error.contains(
                ": all \(lines.count) requests failed ("),
            "\(told.result)")
        serve(origins, healthy)
        let next = try await workspace.prefetch(lines)
        #expect(next.summary.outcomes == ["downloaded": lines.count], "\(next.result)")
        #expect(next.summary.outage == nil)
        #expect(try await workspace.query("SELECT * FROM failure") == [])
    }

    /// Three hosts, two of them by port and one by address.
    private func withThreeOrigins(_ body: ([Origin]) async throws -> Void) async throws {
        try await withOrigin { first in
            try await withOrigin { second in
                try await withOrigin(address: "::1") { third in
                    try await body([first, second, third])
                }
            }
        }
    }

    private enum Fault: CaseIterable {
        case portalPage, portalRedirect, failingServers
    }

    /// OutageRuleTests has what is an outage.
    @Test(arguments: Fault.allCases)
    private func anOutageBlacklistsNothing(fault: Fault) async throws {
        let page = Response.text("<!doctype html><title>Sign in</title>")
        try await withOrigin { portal in
            portal.serve("/login", page)
            let login = portal.url("/login")
            try await withThreeOrigins { origins in
                serve(origins) { _ in
                    switch fault {
                    case .portalPage: page
                    case .portalRedirect: .redirect(to: login)
                    case .failingServers: .unavailable()
                    }
                }
                try await withWorkspace(without: [.retries, .probes]) { workspace in
                    try await expectNothingHeld(
                        workspace, origins,
                        reason: fault == .failingServers ? "http-status" : "not-an-image")
                }
            }
        }
    }

    /// Removed images are blacklisted during an outage too.
    @Test func removedImagesAreBlacklistedDuringAnOutage() async throws {
        try await withOrigin { origin in
            origin.serve { request in
                let number = Int(request.path.dropFirst().dropLast(4)) ?? 0
                return Response(number < 120 ? 400 : number < 160 ? 404 : 410)
            }
            let healthy = healthy
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let lines = lines([origin])
                let run = try await workspace.prefetch(lines)
                let wanted = Report.Summary.Outage(
                    reason: "http-status", failures: 120, heldBack: 120, asked: 200, hosts: 1)
                #expect(run.summary.outage == wanted, "\(run.result)")
                origin.serve(healthy)
                let next = try await workspace.prefetch(lines)
                #expect(
                    next.summary.outcomes == ["downloaded": 120, "blacklisted": 80],
                    "\(next.result)")
            }
        }
    }

    @Test func closedPortsAndFailingServersBlacklistNothing() async throws {
        try await withOrigin { ill in
            ill.serve { _ in .unavailable(502) }
            let closed = try await Origin.startOnPortOfItsOwn()
            let lines =
                (0..<120).map { closed.url("/\($0).png") } + (0..<80).map { ill.url("/\($0).png") }
            try await closed.stop()
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let run = try await workspace.prefetch(lines)
                #expect(
                    run.summary.reasons == ["connect": 120, "http-status": 80], "\(run.result)")
                #expect(
                    run.summary.outage
                        == Report.Summary.Outage(
                            reason: "connect", failures: 120, heldBack: 120, asked: 200, hosts: 1))
                let rows = try await workspace.query(
                    "SELECT reason, sum(runs_in_a_row), count(blacklisted_until) FROM failure "
                        + "GROUP BY reason ORDER BY reason")
                #expect(rows == [["connect", "0", "0"], ["http-status", "80", "0"]])
                ill.serve(healthy)
                try await withOrigin(port: closed.port) { opened in
                    opened.serve(healthy)
                    let next = try await workspace.prefetch(lines)
                    #expect(next.summary.outcomes == ["downloaded": 200], "\(next.result)")
                }
            }
        }
    }
}
