import Foundation
import TestSupport
import Testing

/// Every fault of the table in one manifest: each at its own host, with a good neighbour.
@Suite(.timeLimit(.minutes(15)))
struct FaultPlanTests {
    /// Small enough that all faults together take seconds, and large enough for a busy machine.
    private enum Limits {
        static let connecting = Duration.seconds(1)
        static let stall = Duration.seconds(3)
        static let total = Duration.seconds(8)
        static let options = [
            "--connect-timeout", "1s", "--stall-timeout", "3s", "--timeout", "8s",
            "--max-filesize", "1MiB",
        ]
    }

    /// One line of the manifest; nil is a good neighbour.
    private struct Line {
        let url: String
        let fault: FaultCase?
    }

    /// The plan's lines. A neighbour is from the same host as the fault before it, unless that
    /// delays the host. It has an address of its own, since duplicates share the first one's
    /// outcome.
    private func lines(_ origin: Origin, _ ports: [Origin], closed: String) -> [Line] {
        var ports = ports[...]
        return FaultCase.all.enumerated().flatMap { index, fault in
            let url =
                switch fault.place {
                case .path: origin.url(fault.path, host: fault.host)
                case .port: ports.removeFirst().url("/x.png")
                case .closedPort: closed
                case .url(let url): url
                }
            let isShared = if case .path = fault.place { !fault.coolsHost } else { false }
            let neighbour = origin.url(
                "/f/plain/\(index)/x.png", host: isShared ? fault.host : "good.localhost")
            return [Line(url: url, fault: fault), Line(url: neighbour, fault: nil)]
        }
    }

    private func withPorts(
        _ kinds: ArraySlice<Origin.Accepting>, _ open: [Origin] = [],
        _ body: ([Origin]) async throws -> Void
    ) async throws {
        guard let kind = kinds.first else { return try await body(open) }
        try await withOrigin(accepting: kind) { origin in
            try await withPorts(kinds.dropFirst(), open + [origin], body)
        }
    }

    private func check(_ entry: Report.Entry, _ fault: FaultCase) {
        if entry.outcome == "downloaded" {
            #expect(fault.expectation.mayArrive, "\(fault): \(entry)")
        } else {
            #expect(entry.outcome == "failed", "\(fault): \(entry)")
            #expect(fault.expectation.reasons.contains(entry.reason ?? ""), "\(fault): \(entry)")
            #expect(entry.message?.isEmpty == false && entry.message?.contains("\n") != true)
        }
    }

    @Test func everyFaultHasItsOutcomeAndReason() async throws {
        #expect(FaultCase.all.count >= 70)
        let kinds = FaultCase.all.compactMap { fault -> Origin.Accepting? in
            if case .port(let kind) = fault.place { kind } else { nil }
        }
        let gone = try await Origin.startOnPortOfItsOwn()
        let closed = gone.url("/x.png")
        try await gone.stop()
        try await withOrigin { origin in
            origin.serveFaults()
            try await withPorts(kinds[...]) { ports in
                try await withWorkspace(without: [.retries, .probes]) { workspace in
                    let lines = lines(origin, ports, closed: closed)
                    let command = try workspace.prefetchCommand(
                        lines.map(\.url), Limits.options + ["--other-formats", "fail"])
                    let run = try workspace.finish(await command.run(), entries: lines.count)
                    #expect(run.result.status == 1, "\(run.result)")
                    for (index, line) in lines.enumerated() {
                        let entry = try #require(run.report[line: index + 1])
                        if let fault = line.fault {
                            check(entry, fault)
                        } else {
                            let before = lines[index - 1].fault.map { "\($0)" } ?? ""
                            #expect(entry.outcome == "downloaded", "beside \(before): \(entry)")
                        }
                    }
                    try await checkKinds(workspace)
                    checkTime(run.result)
                }
            }
        }
    }

    /// Checks how this run's failures affect later ones.
    private func checkKinds(_ workspace: Workspace) async throws {
        // A refusal has a row that does not count.
        let rows = try await workspace.query(
            """
            SELECT url, iif(
                http_status IN (401, 403, 407) AND runs_in_a_row = 0 AND blacklisted_until IS NULL,
                'ours', class) FROM failure
            """)
        let kinds = Dictionary(
            rows.map { ($0[0] ?? "", $0[1] ?? "") }, uniquingKeysWith: { first, _ in first })
        for fault in FaultCase.all {
            guard case .path = fault.place, let kind = fault.expectation.kind else { continue }
            let found = kinds.first { $0.key.contains("//\(fault.host):") }?.value
            #expect(found == kind.rawValue, "\(fault)")
        }
    }

    /// The sum of the time-outs that must expire one after the other, and a tenth more. Two
    /// seconds are for the rest (about 500 responses in a debug build, during all other tests).
    private func checkTime(_ result: CommandResult) {
        let sum = FaultCase.all.reduce(Duration.zero) { sum, fault in
            switch fault.wait {
            case .none: sum
            case .connecting: sum + Limits.connecting
            case .stall: sum + Limits.stall
            case .total: sum + Limits.total
            }
        }
        #expect(result.time < sum * 1.1 + .seconds(2), "\(sum)")
    }
}
