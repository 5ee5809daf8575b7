import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct RetryTests {
    private let picture = Fixtures.png(seed: 1)

    /// Temporary failures are retried, from the listed URL, until the limit; others are not.
    @Test func retriesTemporaryFailures() async throws {
        try await withOrigin { origin in
            let redirect = Response.redirect(to: "/target")
            let image = Response.image(picture)
            origin.serve(
                "/twice", .unavailable(), .image(picture, ending: .resetAfter(bodyBytes: 5)), image)
            origin.serve("/always", Response(500))
            origin.serve("/gone", .notFound)
            origin.serve("/first-hop", .unavailable(), redirect)
            origin.serve("/second-hop", .redirect(to: "/failing-target"))
            origin.serve("/failing-target", .unavailable(), image)
            origin.serve("/target", image)
            let names = ["twice", "always", "gone", "first-hop", "second-hop"]
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let run = try await workspace.prefetch(
                    names.map { origin.url("/\($0)", host: "\($0).localhost") }, "--retry", "2",
                    "--retry-delay", "10ms")
                #expect(
                    run.report.verdicts == [
                        "downloaded", "failed/http-status", "failed/http-status", "downloaded",
                        "downloaded",
                    ], "\(run.result)")
                #expect(run.result.status == 1)
                let attempts = [3, 3, 1, 2, 2]
                #expect((1...5).map { run.report[line: $0]?.attempts } == attempts)
                #expect(names.map { origin.snapshot.count(of: "/\($0)") } == attempts)
                // One failed run, with any number of attempts.
                let rows = try await workspace.query(
                    "SELECT attempts, runs_in_a_row FROM failure ORDER BY url")
                #expect(rows == [["3", "1"], ["1", "1"]])
            }
        }
    }

    @Test func givesUpAHostWithTooLongAPauseAndRemembersIt() async throws {
        try await withOrigin { limited in
            try await withOrigin { other in
                limited.serve { _ in .unavailable(429, retryAfter: "3600") }
                let free = other.serveImages(3)
                try await withWorkspace(without: [.retries, .probes]) { workspace in
                    let lines = (0..<20).map { limited.url("/\($0).png") } + free
                    let run = try await workspace.prefetch(
                        lines, "--host-concurrency", "1", "--retry", "3")
                    #expect(run.summary.outcomes == ["downloaded": 3, "failed": 20])
                    #expect(run.summary.reasons == ["http-status": 20], "\(run.result)")
                    #expect(limited.snapshot.requests.count == 1)
                    let message = try #require(run.report[line: 2]?.message)
                    #expect(message.contains("asked for a pause until 20"), "\(message)")
                    #expect(run.report[line: 2]?.attempts == 0)
                    let next = try await workspace.prefetch(lines, "--retry", "3")
                    #expect(next.summary.outcomes == ["fresh": 3, "failed": 20])
                    #expect(limited.snapshot.requests.count == 1)
                    let rows = try await workspace.query(
                        """
                        SELECT host, (cooling_until - updated_at) / 1000 BETWEEN 3500 AND 3600
                        FROM host
                        """)
                    #expect(rows == [[limited.url(""), "1"]])
                    // After the pause, the host is requested.
                    try await workspace.runSQL("UPDATE host SET cooling_until = updated_at + 1")
                    limited.serve { request in
                        .image(Fixtures.png(seed: Int(request.path.dropFirst().dropLast(4)) ?? 0))
                    }
                    let last = try await workspace.prefetch(lines, "--refresh", "none")
                    #expect(last.summary.outcomes == ["downloaded": 20, "fresh": 3])
                }
            }
        }
    }

    /// A dead host costs a few connections, however many entries it has, and blacklists nothing.
    @Test func aDeadHostCostsLittle() async throws {
        let port = try await withOrigin { $0.port }
        try await withOrigin { other in
            let free = other.serveImages(5)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let dead = (0..<3000).map { "http://127.0.0.1:\(port)/\($0).png" }
                let run = try await workspace.prefetch(
                    dead + free, "--retry", "2", "--retry-delay", "20ms")
                #expect(run.summary.outcomes == ["downloaded": 5, "failed": 3000])
                #expect(run.summary.reasons == ["connect": 3000], "\(run.result)")
                let asked = run.report.entries.filter { $0.outcome == "failed" && $0.start != nil }
                #expect(asked.count < 60)
                #expect(
                    try await workspace.query(
                        "SELECT count(*) FROM failure WHERE blacklisted_until IS NOT NULL") == [
                            ["0"]
                        ])
            }
        }
    }

    /// Over ten megabytes of waiting entries; most of them move to the file. They are shorter under
    /// a sanitizer.
    @Test(arguments: ["fifo", "lifo"])
    func theOrderIsExactWithAQueueOnDisk(order: String) async throws {
        try await withOrigin { origin in
            let image = Fixtures.png(width: 1, height: 1)
            origin.serve { _ in .image(image) }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let count = 4000
                let words = ["", " priority=high", " priority=low"]
                let padding = String(repeating: "x", count: Sanitizer.isActive ? 0 : 2500)
                let lines = (0..<count).map {
                    origin.url("/\($0).png?\(padding)") + words[$0 % 3]
                }
                // All priorities have been read before the first start.
                let gate = Gate()
                origin.serve("/first.png", Response.image(picture, gate: gate))
                let command = try workspace.prefetchCommand(
                    [origin.url("/first.png") + " priority=100"] + lines,
                    [
                        "--order", order, "-j", "1", "--queue-capacity", "50", "--encode",
                        "original", "--progress", "always",
                    ])
                let running = try command.start()
                try await eventually("everything is read") {
                    running.errorSoFar.contains("\(count + 1)")
                }
                gate.open()
                let run = try workspace.finish(await running.wait(), entries: count + 1)
                #expect(run.summary.outcomes["failed"] == nil, "\(run.result)")
                let numbers = order == "fifo" ? Array(0..<count) : (0..<count).reversed()
                let expected = [1, 0, 2].flatMap { rest in numbers.filter { $0 % 3 == rest } }
                #expect(
                    origin.snapshot.paths.dropFirst() == expected.map { "/\($0).png" }[...])
            }
        }
    }

    /// The stored target has another spelling: it is requested in the present one, and no copy
    /// under the old one is confirmed.
    @Test func refetchesARememberedRedirectOfAnotherSpelling() async throws {
        try await withOrigin { origin in
            var image = Response.image(picture)
            image.headers = [("Cache-Control", "no-cache"), ("ETag", "\"1\"")]
            origin.serve("/old.png", .redirect(301, to: "/new.png"))
            origin.serve("/new.png", image)
            try await withWorkspace { workspace in
                let lines = [origin.url("/old.png", host: "localhost")]
                _ = try await workspace.prefetch(lines)
                let target = origin.url("/new.png", host: "localhost")
                let spelled = "HTTP://u:p@LOCALHOST:\(origin.port)/%6Eew.png"
                try await workspace.runSQL(
                    "UPDATE resource SET final_url = '\(spelled)', permanent_url = '\(spelled)'")
                let second = try await workspace.prefetch(lines)
                #expect(second.report.verdicts == ["downloaded"], "\(second.result)")
                #expect(origin.snapshot.paths == ["/old.png", "/new.png", "/new.png"])
                #expect(origin.requests.last?.header("If-None-Match") == nil)
                #expect(origin.requests.last?.header("Authorization") == nil)
                #expect(
                    try await workspace.query("SELECT final_url, permanent_url FROM resource")
                        == [[target, target]])
                // A loop is one in any spelling.
                origin.serve("/a", .redirect(to: "//LOCALHOST:\(origin.port)/x/../%61#b"))
                let loop = try await workspace.prefetch([origin.url("/a", host: "u:p@localhost")])
                #expect(loop.report.verdicts == ["failed/redirect"], "\(loop.result)")
                #expect(loop.report[line: 1]?.message?.contains("loop") == true)
                #expect(origin.snapshot.count(of: "/a") == 1)
            }
        }
    }

    @Test func remembersPermanentRedirectsUntilTheyFailOrAreStale() async throws {
        try await withOrigin { origin in
            var image = Response.image(picture)
            image.headers = [("Cache-Control", "no-cache"), ("ETag", "\"1\"")]
            origin.serve("/old.png", .redirect(301, to: "/new.png"))
            origin.serve("/new.png", image)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let lines = [origin.url("/old.png")]
                _ = try await workspace.prefetch(lines)
                origin.serve("/new.png", .notModified)
                let second = try await workspace.prefetch(lines)
                #expect(second.report.verdicts == ["revalidated"], "\(second.result)")
                #expect(origin.snapshot.paths == ["/old.png", "/new.png", "/new.png"])
                // The target no longer exists, and the listed URL has the image itself.
                origin.serve("/new.png", .notFound)
                origin.serve("/old.png", image)
                let third = try await workspace.prefetch(lines)
                #expect(third.report.verdicts == ["downloaded"], "\(third.result)")
                #expect(origin.snapshot.paths.suffix(2) == ["/new.png", "/old.png"])
                _ = try await workspace.prefetch(lines)
                #expect(origin.snapshot.paths.suffix(1) == ["/old.png"])
                try await remembersWhileFresh(origin, workspace, image)
            }
        }
    }

    /// The origin has a redirect once, and the image itself from then on.
    private func remembersWhileFresh(
        _ origin: Origin, _ workspace: Workspace, _ image: Response
    ) async throws {
        let fields = ["no-store", "no-cache", "max-age=0", "max-age=60", "max-age=90", "public"]
        let lines = fields.map { origin.url("/moved/\($0)") }
        origin.serve("/gone.png", image)
        for field in fields {
            var redirect = Response.redirect(308, to: "/gone.png")
            redirect.headers.append(("Cache-Control", field))
            origin.serve("/moved/\(field)", redirect)
        }
        _ = try await workspace.prefetch(lines)
        for field in fields { origin.serve("/moved/\(field)", image) }
        // A lifetime passes.
        try await workspace.runSQL(
            "UPDATE resource SET permanent_until = validated_at WHERE key LIKE '%=90'")
        let before = origin.snapshot.paths.count
        _ = try await workspace.prefetch(lines)
        let again = Set(origin.snapshot.paths.dropFirst(before))
        let fresh = ["max-age=60", "public"]
        #expect(
            again
                == Set(["/gone.png"] + fields.filter { !fresh.contains($0) }.map { "/moved/\($0)" })
        )
        _ = try await workspace.prefetch(lines, "--refresh", "all")
        #expect(origin.snapshot.count(of: "/moved/public") == 2)
    }
}
