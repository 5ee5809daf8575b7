import TestSupport
import Testing
import Threading

/// The pace of hosts on the wire; the origin's own record is the judge.
@Suite(.timeLimit(.minutes(15)))
struct PacingTests {
    /// Serves at most `count` requests in any second, and refuses the others with 429.
    private func serve(_ origin: Origin, atMost count: Int) {
        let times = Monitor([ContinuousClock.Instant]())
        origin.serve { request in
            let isAllowed = times.update { times in
                let now = ContinuousClock.now
                times.removeAll { now - $0 > .seconds(1) }
                guard times.count < count else { return false }
                times.append(now)
                return true
            }
            guard isAllowed else { return .unavailable(429) }
            return .image(Fixtures.png(seed: Int(request.path.dropFirst().dropLast(4)) ?? 0))
        }
    }

    private func lines(_ origin: Origin, _ numbers: Range<Int>) -> [String] {
        numbers.map { origin.url("/\($0).png") }
    }

    /// Without a retry: refusals for the pace use none.
    @Test func findsAndRemembersThePaceOfAHost() async throws {
        try await withOrigin { origin in
            serve(origin, atMost: 10)
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(lines(origin, 0..<60))
                #expect(first.summary.outcomes == ["downloaded": 60], "\(first.result)")
                let refused = origin.snapshot.requests.count - 60
                #expect(refused <= 24, "\(refused) refusals")
                let host = try #require(
                    try await workspace.run("hosts", "list", "--json").jsonLines().first)
                #expect(host["state"] as? String == "limited")
                #expect(host["limited_by"] as? String == "refusals")
                let rate = try #require(host["requests_per_second"] as? Double)
                #expect((3...15).contains(rate), "\(rate)")
                let second = try await workspace.prefetch(lines(origin, 60..<120))
                #expect(second.summary.outcomes == ["downloaded": 60], "\(second.result)")
                let again = origin.snapshot.requests.count - 120 - refused
                #expect(again <= 9, "\(again) refusals with the remembered pace")
            }
        }
    }

    /// The killed run's pace is used, and the host's change since is noticed.
    @Test func killedRunLeavesItsPace() async throws {
        try await withOrigin { origin in
            serve(origin, atMost: 5)
            try await withWorkspace { workspace in
                let running = try workspace.prefetchCommand(lines(origin, 0..<200)).start()
                try await eventually("the stored pace") {
                    let rows = try? await workspace.query(
                        "SELECT count(*) FROM host WHERE interval_us IS NOT NULL")
                    return rows == [["1"]]
                }
                running.signal(9)
                _ = await running.wait()
                let before = origin.snapshot.requests.count
                serve(origin, atMost: 20)
                let next = try await workspace.prefetch(lines(origin, 200..<230))
                #expect(next.summary.outcomes == ["downloaded": 30], "\(next.result)")
                #expect(origin.snapshot.requests.count - before <= 33)
            }
        }
    }

    /// Each image is refused once; a `Retry-After` shows that the pace is meant.
    @Test(arguments: OrderTests.Order.allCases)
    func refusedEntriesKeepTheirPlaces(order: OrderTests.Order) async throws {
        try await withOrigin { origin in
            // Otherwise the first refusal may be due to its image.
            origin.serve("/good.png", .image(Fixtures.png(seed: 100)))
            for number in 0..<12 {
                origin.serve(
                    "/\(number).png", .unavailable(429, retryAfter: "0"),
                    .image(Fixtures.png(seed: number)))
            }
            let lines =
                (0..<12).map { number in
                    origin.url("/\(number).png") + (number % 4 == 0 ? " priority=high" : "")
                } + [origin.url("/good.png") + " priority=100"]
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(
                    lines, "--order", order.rawValue, "--host-concurrency", "1",
                    "--queue-capacity", "3", "--retry-delay", "1ms")
                #expect(run.summary.outcomes == ["downloaded": 13], "\(run.result)")
                let high = (0..<12).filter { $0 % 4 == 0 }
                let others = (0..<12).filter { $0 % 4 != 0 }
                let expected =
                    order == .fifo ? high + others : high.reversed() + others.reversed()
                #expect(
                    origin.snapshot.paths
                        == ["/good.png"] + expected.flatMap { ["/\($0).png", "/\($0).png"] })
                #expect(run.report.entries.allSatisfy { $0.attempts == 1 })
            }
        }
    }

    @Test func stopsWhenTheHostsQuotaIsUsed() async throws {
        try await withOrigin { origin in
            let window = Monitor((start: ContinuousClock.now, used: 0, number: 1))
            origin.serve { request in
                let (used, reset) = window.update { window in
                    let now = ContinuousClock.now
                    if now - window.start >= .seconds(2) { window = (now, 0, window.number + 1) }
                    window.used += 1
                    return (window.used, Duration.seconds(2) - (now - window.start))
                }
                guard used <= 8 else { return .unavailable(429) }
                return Response(
                    headers: [
                        ("RateLimit-Remaining", "\(8 - used)"),
                        ("RateLimit-Reset", "\(reset.components.seconds + 1)"),
                    ],
                    body: Fixtures.png(seed: Int(request.path.dropFirst().dropLast(4)) ?? 0),
                    type: "image/png")
            }
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(lines(origin, 0..<20))
                #expect(run.summary.outcomes == ["downloaded": 20], "\(run.result)")
                // A window may end while requests are on their way. Without the fields there are
                // about five refusals in a window.
                let windows = window.withLock { $0.number }
                let refusals = origin.snapshot.requests.count - 20
                #expect(refusals <= 2 * windows, "\(refusals) refusals in \(windows) windows")
            }
        }
    }

    @Test func fixedPacingKeepsToTheNumbers() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let urls = origin.serveImages(20, gate: gate)
            try await withWorkspace(without: [.stalls]) { workspace in
                let running = try workspace.prefetchCommand(urls, ["--pacing", "fixed"]).start()
                try await origin.wait(for: "eight at once") { $0.inFlight == 8 }
                gate.open()
                #expect(await running.wait().status == 0)
                #expect(origin.snapshot.peakInFlight == 8)
                #expect(try await workspace.query("SELECT count(*) FROM host") == [["0"]])
            }
        }
    }

    @Test func reportSaysHowEachResponseArrived() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetchCommand(
                    urls, ["--host-concurrency", "1", "--report", "-"]
                ).run()
                let results = try run.jsonLines().filter {
                    $0["type"] as? String == "result"
                }.sorted { ($0["line"] as? Int ?? 0) < ($1["line"] as? Int ?? 0) }
                #expect(results.map { $0["protocol"] as? String } == ["http/1.1", "http/1.1"])
                #expect(results.map { $0["connection_reused"] as? Bool } == [false, true])
                #expect(results.map { $0["address"] as? String } == ["127.0.0.1", "127.0.0.1"])
                #expect(results.map { $0["connect_ms"] is Double } == [true, false])
                #expect(results.allSatisfy { $0["tls_ms"] == nil })
                for result in results {
                    let latency = try #require(result["ttfb_ms"] as? Double)
                    let transfer = try #require(result["transfer_ms"] as? Double)
                    #expect(latency > 0 && latency <= transfer)
                }
            }
        }
    }
}
