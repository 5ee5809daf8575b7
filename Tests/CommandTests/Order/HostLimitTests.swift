import Glibc
import TestSupport
import Testing

/// The requests of each host, seen from the origin: three names resolve to one.
@Suite(.timeLimit(.minutes(15)))
struct HostLimitTests {
    /// A different picture for every path that ends with a number.
    private static func picture(_ request: Origin.Request) -> Response {
        let number = request.path.split(separator: "/").last.flatMap { Int($0) }
        return .image(Fixtures.png(seed: number ?? 0))
    }

    /// `/N` at `a.localhost` first returns 500 where N is a multiple of 4, and redirects to
    /// `b.localhost` where N is odd. Responses are slow enough for more to overlap.
    private func serveDetours(_ origin: Origin, _ count: Int) -> [String] {
        for index in 0..<count {
            var picture = Response.image(Fixtures.png(seed: index))
            var failure = Response(500)
            var hop = Response.redirect(to: origin.url("/target/\(index)", host: "b.localhost"))
            picture.delayBeforeHead = .milliseconds(30)
            failure.delayBeforeHead = .milliseconds(30)
            hop.delayBeforeHead = .milliseconds(30)
            origin.serve("/target/\(index)", picture)
            switch index % 4 {
            case 0: origin.serve("/\(index)", failure, picture)
            case 2: origin.serve("/\(index)", picture)
            default: origin.serve("/\(index)", hop)
            }
        }
        return (0..<count).map { origin.url("/\($0)", host: "a.localhost") }
    }

    @Test func respectsConcurrencyLimitsOfHostsAndRun() async throws {
        try await withOrigin { origin in
            let lines = serveDetours(origin, 60)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let run = try await workspace.prefetch(
                    lines, "-j", "5", "--host-concurrency", "3", "--retry", "2", "--retry-delay",
                    "20ms")
                #expect(run.summary.outcomes == ["downloaded": 60], "\(run.result)")
                let snapshot = origin.snapshot
                #expect(snapshot["a.localhost"].requests == 75)
                #expect(snapshot["b.localhost"].requests == 30)
                // Reached and not exceeded.
                #expect(snapshot["a.localhost"].peakInFlight == 3)
                #expect(snapshot["b.localhost"].peakInFlight <= 3)
                #expect(snapshot.peakInFlight <= 5)
            }
        }
    }

    /// A host is one host, however a redirect spells it.
    @Test(arguments: ["LOCALHOST", "u:p@localhost", "%6Cocalhost"])
    func spellingsOfAHostShareItsLimit(host: String) async throws {
        try await withOrigin { origin in
            for index in 0..<6 {
                var picture = Response.image(Fixtures.png(seed: index))
                var hop = Response.redirect(to: "//\(host):\(origin.port)/target/\(index)")
                picture.delayBeforeHead = .milliseconds(30)
                hop.delayBeforeHead = .milliseconds(30)
                origin.serve("/target/\(index)", picture)
                origin.serve("/\(index)", hop)
            }
            let lines = (0..<6).map { origin.url("/\($0)", host: "me:secret@localhost") }
            try await withWorkspace(without: [.stalls]) { workspace in
                let run = try await workspace.prefetch(
                    lines, "--host-concurrency", "1", "--header", "X-Key: 1")
                #expect(run.summary.outcomes == ["downloaded": 6], "\(run.result)")
                #expect(origin.snapshot.peakInFlight == 1)
                // The host's credentials stay with it.
                for request in origin.requests {
                    #expect(request.header("X-Key") == "1")
                    #expect(request.header("Authorization") == "Basic bWU6c2VjcmV0")
                }
                let rows = try await workspace.query(
                    "SELECT count(*) FROM resource WHERE final_url LIKE 'http://localhost:%'")
                #expect(rows == [["6"]])
            }
        }
    }

    /// Next hops and retries wait in the file when memory has room for one entry.
    @Test(arguments: ["fifo", "lifo"])
    func hopsAndRetriesWaitOnDisk(order: String) async throws {
        try await withOrigin { origin in
            let lines = serveDetours(origin, 60)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let run = try await workspace.prefetch(
                    lines, "-j", "5", "--host-concurrency", "1", "--retry", "2", "--retry-delay",
                    "20ms", "--queue-capacity", "1", "--order", order)
                #expect(run.summary.outcomes == ["downloaded": 60], "\(run.result)")
                let snapshot = origin.snapshot
                #expect(snapshot["a.localhost"].requests == 75)
                #expect(snapshot["b.localhost"].requests == 30)
                for (index, entry) in run.report.entries.sorted(by: { $0.line < $1.line })
                    .enumerated()
                {
                    #expect(entry.attempts == (index % 4 == 0 ? 2 : 1), "\(index)")
                }
                #expect(Set(run.report.entries.map(\.start)).count == 60)
            }
        }
    }

    /// A late arrival is nearer to the next one, so whole series of starts are compared.
    /// The machine gets less time than the 6 retries of `a.localhost` take.
    @Test func respectsHostIntervals() async throws {
        try await withOrigin { origin in
            let lines = serveDetours(origin, 24)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let run = try await workspace.prefetch(
                    lines, "--host-interval", "200ms", "--retry", "2", "--retry-delay", "20ms")
                #expect(run.summary.outcomes == ["downloaded": 24], "\(run.result)")
                for (name, count) in [("a.localhost", 30), ("b.localhost", 12)] {
                    let arrivals = origin.snapshot[name].arrivals
                    try #require(arrivals.count == count)
                    let whole = arrivals[count - 1] - arrivals[0]
                    #expect(whole > .milliseconds((count - 1) * 200 - 400), "\(name)")
                    let spans = zip(arrivals, arrivals.dropFirst(5)).map { $1 - $0 }.sorted()
                    #expect(spans[spans.count / 2] > .milliseconds(5 * 200 - 400), "\(name)")
                }
            }
        }
    }

    /// Full jitter: each wait is random between zero and a limit that doubles. One wait has no
    /// minimum, but twenty together have. The first ones last ten limits on average, with a
    /// deviation of 1.3. The third ones last ten of their own limits, which are four times as
    /// long.
    @Test func retriesWaitLongerEachTime() async throws {
        try await withOrigin { origin in
            origin.serve { _ in Response(500) }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let count = 20
                let run = try await workspace.prefetch(
                    (0..<count).map { origin.url("/\($0)") }, "--retry", "3", "--retry-delay",
                    "200ms", "--host-concurrency", "32")
                #expect(run.summary.reasons == ["http-status": count], "\(run.result)")
                let requests = Dictionary(grouping: origin.requests, by: \.path)
                #expect(requests.count == count)
                var firstWaits = Duration.zero
                var lastWaits = Duration.zero
                for (path, asked) in requests {
                    try #require(asked.count == 4, "\(path)")
                    firstWaits += asked[1].arrivedAt - asked[0].arrivedAt
                    lastWaits += asked[3].arrivedAt - asked[2].arrivedAt
                }
                #expect(firstWaits > .milliseconds(200 * 4))
                #expect(lastWaits > .milliseconds(800 * 4))
            }
        }
    }

    /// A date has no fractions of a second: this one is two to three seconds ahead.
    @Test func pausesAHostUntilItsRetryAfterDate() async throws {
        try await withOrigin { origin in
            origin.serve { [unowned origin] request in
                request.path == "/0" && origin.snapshot.count(of: "/0") == 1
                    ? .unavailable(503, retryAfter: HTTPDateText.now(plus: 3))
                    : HostLimitTests.picture(request)
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let lines =
                    (0..<5).map { origin.url("/\($0)", host: "a.localhost") }
                    + (5..<25).map { origin.url("/\($0)", host: "b.localhost") }
                let run = try await workspace.prefetch(
                    lines, "--host-concurrency", "1", "--retry", "1", "--retry-delay", "10ms")
                #expect(run.summary.outcomes == ["downloaded": 25], "\(run.result)")
                let limited = origin.snapshot["a.localhost"]
                #expect(limited.requests == 6)
                #expect(limited.intervals.first.map { $0 > .seconds(2) } == true)
                let second = try #require(limited.arrivals.dropFirst().first)
                #expect(origin.snapshot["b.localhost"].arrivals.allSatisfy { $0 < second })
            }
        }
    }

    /// The target of a redirect demands the pause, and only it gets it.
    @Test func pausesTheTargetOfARedirectOnly() async throws {
        try await withOrigin { origin in
            let target = origin.url("/target/0", host: "b.localhost")
            origin.serve("/0", .redirect(to: target))
            origin.serve(
                "/target/0", .unavailable(429, retryAfter: "2"), .image(Fixtures.png(seed: 0)))
            origin.serve(HostLimitTests.picture)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let lines =
                    (0..<30).map { origin.url("/\($0)", host: "a.localhost") }
                    + [origin.url("/40", host: "b.localhost")]
                let run = try await workspace.prefetch(
                    lines, "-j", "1", "--retry", "1", "--retry-delay", "10ms")
                #expect(run.summary.outcomes == ["downloaded": 31], "\(run.result)")
                let paused = try #require(origin.snapshot["b.localhost"].intervals.first)
                #expect(paused > .seconds(2))
                let pauseEnd = origin.snapshot["b.localhost"].arrivals[1]
                let meanwhile = origin.snapshot["a.localhost"].arrivals.count { $0 < pauseEnd }
                #expect(meanwhile >= 30)
            }
        }
    }

    /// 200,000 entries of a pausing host precede 10 of another one, which finish
    /// before the pause ends.
    @Test(.enabled(if: !Sanitizer.isActive, "too many entries for a sanitizer"))
    func aPausedHostDoesNotDelayOthers() async throws {
        try await withOrigin { origin in
            origin.serve { request in
                request.host == "a.localhost"
                    ? .unavailable(429, retryAfter: "280") : HostLimitTests.picture(request)
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let count = 200_000
                try workspace.manifest(
                    (0..<count).map { origin.url("/\($0)", host: "a.localhost") }
                        + (0..<10).map { origin.url("/\($0)", host: "b.localhost") })
                let running = try workspace.command([
                    "manifest.txt", "--host-concurrency", "1", "--retry", "3", "--summary", "json",
                ]).start()
                try await origin.wait(for: "the ten") { $0["b.localhost"].requests == 10 }
                #expect(origin.snapshot["a.localhost"].requests == 1)
                // The signal may cancel a response on its way: the rows show the finished ones.
                try await eventually("ten are stored") {
                    try await workspace.query("SELECT count(*) FROM resource") == [["10"]]
                }
                running.signal(SIGINT)
                let result = await running.wait()
                #expect(result.signal == SIGINT, "\(result)")
                let summary = try Report.Summary(json: result.output)
                #expect(summary["downloaded"] == 10, "\(result)")
                #expect(summary.entries == count + 10)
                #expect(summary["cancelled"] + summary["failed"] == count)
            }
        }
    }
}
