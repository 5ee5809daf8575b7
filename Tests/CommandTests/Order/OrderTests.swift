import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct OrderTests {
    enum Order: String, CaseIterable {
        case fifo
        case lifo
    }

    /// Three priorities, mixed, with the values of the words.
    private static let priorities = (0..<42).map { [0, -10, 10, 10, 0, -10, 0][$0 % 7] }
    private static let words = [-10: " priority=low", 0: "", 10: "  priority=high"]

    /// Indices in the required order of starts.
    private static func expected(_ order: Order) -> [Int] {
        priorities.indices.sorted { left, right in
            guard priorities[left] == priorities[right] else {
                return priorities[left] > priorities[right]
            }
            return order == .fifo ? left < right : left > right
        }
    }

    private static func lines(_ origin: Origin) -> [String] {
        zip(origin.serveImages(priorities.count), priorities).map { url, priority in
            url + (words[priority] ?? "")
        }
    }

    /// Connections are reused.
    @Test(arguments: Order.allCases, [1, 8])
    func workersStartInExactOrder(order: Order, jobs: Int) async throws {
        try await withOrigin { origin in
            try await withWorkspace { workspace in
                let lines = OrderTests.lines(origin)
                let run = try await workspace.prefetch(
                    lines, "--order", order.rawValue, "-j", "\(jobs)")
                #expect(run.result.status == 0, "\(run.result)")
                let expected = OrderTests.expected(order)
                #expect(run.report.linesByStart == expected.map { $0 + 1 })
                #expect(origin.snapshot.peakInFlight <= jobs)
                #expect(origin.snapshot.connections <= jobs)
                if jobs == 1 {
                    #expect(origin.snapshot.paths == expected.map { "/image/\($0).png" })
                }
            }
        }
    }

    /// Guards against a known fault of loaders: each new operation depends on all pending ones, so
    /// that their backlog drains one by one with any number of workers.
    @Test(arguments: Order.allCases)
    func allWorkersStayBusy(order: Order) async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.stalls]) { workspace in
                let gate = Gate()
                let lines = origin.serveImages(40, gate: gate)
                let running = try workspace.prefetchCommand(
                    lines, ["--order", order.rawValue, "-j", "8", "--host-concurrency", "8"]
                ).start()
                try await origin.wait(for: "eight at once") { $0.inFlight == 8 }
                for answered in 1...10 {
                    gate.release()
                    try await origin.wait(for: "a start after each answer") { snapshot in
                        snapshot.answered == answered && snapshot.requests.count == 8 + answered
                    }
                }
                gate.open()
                let run = try workspace.finish(await running.wait(), entries: 40)
                #expect(run.summary["downloaded"] == 40, "\(run.result)")
                #expect(origin.snapshot.peakInFlight == 8)
            }
        }
    }

    @Test func duplicatesAreFetchedOnceAndShareTheOutcome() async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let good = origin.serveImages(1)[0]
                let bad = origin.url("/missing.png")
                let run = try await workspace.prefetch(
                    [
                        good, bad, good, good + "#part", bad,
                        good.replacing("/image", with: "/a/../image"),
                    ])
                #expect(run.result.status == 1, "\(run.result)")
                #expect(origin.snapshot.count(of: "/image/0.png") == 1)
                #expect(origin.snapshot.count(of: "/missing.png") == 1)
                #expect(
                    run.summary.outcomes == ["downloaded": 1, "failed": 1, "duplicate": 4],
                    "\(run.result)")
                #expect(run.report[line: 5]?.reason == "http-status")
                #expect(run.report[line: 3]?.reason == nil)
            }
        }
    }
}
