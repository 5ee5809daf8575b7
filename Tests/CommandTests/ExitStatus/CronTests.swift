import Foundation
import PrefetchModel
import TestSupport
import Testing
import Threading

/// The output of a job that runs every hour, and the mails that cron sends.
@Suite(.timeLimit(.minutes(15)))
struct CronTests {
    private static let picture = Fixtures.png(seed: 1)

    /// Lets the hours between two runs pass, for the failures.
    private func pass(hours: Int, _ workspace: Workspace) async throws {
        let time = hours * 3600 * 1000
        try await workspace.query(
            """
            UPDATE failure SET last_failed_at = last_failed_at - \(time),
                blacklisted_until = blacklisted_until - \(time),
                first_failed_at = first_failed_at - \(time)
            """)
    }

    /// 404 for good, and a server that is ill: blacklisted after an hour, or by the fifth run.
    /// A failure during an outage prints nothing new and clears no remembered failure.
    @Test func anOutageLeavesKnownFailuresKnown() async throws {
        try await withOrigin { origin in
            let isOut = Monitor(false)
            origin.serve { request in
                if isOut.withLock({ $0 }) { return .unavailable() }
                return request.path.hasPrefix("/gone") ? .notFound : .image(Fixtures.png(seed: 1))
            }
            let lines =
                (0..<3).map { origin.url("/gone/\($0)") }
                + (0..<30).map { origin.url("/\($0).png") }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func run(_ options: String...) async throws -> Workspace.Run {
                    try await workspace.finish(
                        workspace.prefetchCommand(
                            lines, ["--fail-on", "new", "--ttl", "0s"] + options
                        ).run(), entries: lines.count)
                }
                #expect(try await run().result.status == 1)
                #expect(try await run("--retry-failed").result.status == 0)
                let before = try await workspace.query(
                    "SELECT key, reason, http_status, class, runs_in_a_row FROM failure ORDER BY key"
                )
                isOut.update { $0 = true }
                let out = try await run("--retry-failed")
                #expect(out.summary.outage != nil, "\(out.result)")
                isOut.update { $0 = false }
                #expect(
                    try await workspace.query(
                        """
                        SELECT key, reason, http_status, class, runs_in_a_row FROM failure
                        WHERE key LIKE '%gone%' ORDER BY key
                        """) == before)
                let after = try await run("--retry-failed")
                #expect(after.result.status == 0, "\(after.result)")
            }
        }
    }

    @Test func whatIsNothingNewIsMailedOnce() async throws {
        try await withOrigin { origin in
            origin.serve { request in
                request.path == "/good.png"
                    ? .image(CronTests.picture)
                    : request.path == "/ill.png" ? .unavailable(500) : .notFound
            }
            let lines = ["/good.png", "/gone.png", "/ill.png"].map { origin.url($0) }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for hour in 0..<30 {
                    let run = try await workspace.prefetch(lines, "-q", "--fail-on", "new")
                    #expect(run.result.status == (hour == 0 ? 1 : 0), "\(hour): \(run.result)")
                    #expect(run.result.error.isEmpty == (hour > 0), "\(hour): \(run.result)")
                    try await pass(hours: 1, workspace)
                }
                // It was requested again in between, and not each time.
                let asked = origin.requests.count { $0.path == "/gone.png" }
                #expect((3...6).contains(asked))
                let any = try await workspace.prefetch(lines, "-q")
                #expect(any.result.status == 1, "\(any.result)")
                #expect(any.result.error.contains("\n  2 known failures not listed\n"))
                #expect(!any.result.error.contains("gone.png"), "\(any.result)")
            }
        }
    }

    /// Half of the list is at a host that is down and changes its mind about how.
    @Test func statusOfADownHostIsNothingNew() async throws {
        try await withOrigin { origin in
            let status = Monitor(500)
            origin.serve { request in
                let isDown = request.header("host")?.hasPrefix("down.") == true
                return isDown ? Response(status.withLock { $0 }) : .image(CronTests.picture)
            }
            let lines = ["down.localhost", "up.localhost"].flatMap { host in
                (0..<5).map { origin.url("/\($0).png", host: host) }
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for (number, exit) in [(500, Int32(1)), (502, 0), (501, 0), (503, 0), (404, 1)] {
                    status.update { $0 = number }
                    let run = try await workspace.prefetch(
                        lines, "-q", "--fail-on", "new", "--retry-failed", "--ttl", "0s")
                    #expect(run.result.status == exit, "\(number): \(run.result)")
                    #expect(run.result.error.isEmpty == (exit == 0), "\(number): \(run.result)")
                }
            }
        }
    }

    /// One URL of a host that serves others.
    @Test func anotherReasonIsNew() async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve("/good.png", .image(CronTests.picture))
            origin.serve(
                "/a.png", .unavailable(500), .unavailable(500), .unavailable(502), .notFound)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for (status, known) in [(Int32(1), 0), (0, 1), (1, 0), (1, 0)] {
                    let run = try await workspace.prefetch(
                        [origin.url("/good.png"), url], "--fail-on", "new", "--summary", "json",
                        "--refresh", "all")
                    #expect(run.result.status == status, "\(run.result)")
                    #expect(
                        run.result.output.contains("\"known_failures\":\(known),"), "\(run.result)")
                }
                // So is a failure of a line that was corrected.
                for (path, status) in [("/x.png", Int32(1)), ("/x.png", 0), ("/y.png", 1)] {
                    let run = try await workspace.prefetch(
                        [origin.url(path, host: "logo.localhost") + " key=logo"], "--fail-on",
                        "new",
                        "--retry-failed")
                    #expect(run.result.status == status, "\(run.result)")
                }
            }
        }
    }

    /// One URL of the list had failed before for another reason.
    @Test func anOutageIsReportedWhenItBeginsAndWhenItEnds() async throws {
        try await withOrigin { origin in
            let isOut = Monitor(false)
            origin.serve { request in
                if isOut.withLock({ $0 }) { return .unavailable() }
                return request.path == "/0.png" ? .notFound : .image(CronTests.picture)
            }
            let lines = (0..<25).map { origin.url("/\($0).png") }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func expect(
                    _ status: Int32, _ text: String?, location: SourceLocation = #_sourceLocation
                ) async throws {
                    let run = try await workspace.prefetch(
                        lines, "-q", "--fail-on", "new", "--refresh", "all", "--retry-failed")
                    #expect(run.result.status == status, "\(run.result)", sourceLocation: location)
                    #expect(
                        text.map(run.result.error.contains) ?? run.result.error.isEmpty,
                        "\(run.result)", sourceLocation: location)
                }
                try await expect(1, "HTTP 404")
                try await expect(0, nil)
                isOut.update { $0 = true }
                try await expect(1, "outage at \(origin.url("")): all 25 requests failed")
                for _ in 0..<3 { try await expect(0, nil) }
                // Another list of the same cache says nothing about this outage.
                let other = try await workspace.prefetch([], "-q", "--allow-empty")
                #expect(other.result.error.isEmpty, "\(other.result)")
                try await expect(0, nil)
                isOut.update { $0 = false }
                try await expect(0, "the outage at \(origin.url("")) is over")
                try await expect(0, nil)
                isOut.update { $0 = true }
                try await expect(1, "outage at \(origin.url("")): all 25 requests failed")
            }
        }
    }

    /// A warm cache requests too few images for an outage: another one in each run.
    @Test func hostThatStillFailsIsNothingNew() async throws {
        try await withOrigin { origin in
            origin.serve { _ in Response(500) }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for (number, status) in [Int32(1), 0, 0].enumerated() {
                    let run = try await workspace.prefetch(
                        [origin.url("/\(number).png")], "-q", "--fail-on", "new")
                    #expect(run.result.status == status, "\(run.result)")
                }
                origin.serve { request in
                    request.path == "/0.png" ? .image(CronTests.picture) : Response(500)
                }
                for (path, status) in [("/0.png", Int32(0)), ("/9.png", 1), ("/8.png", 0)] {
                    let run = try await workspace.prefetch(
                        [origin.url(path)], "-q", "--fail-on", "new")
                    #expect(run.result.status == status, "\(path): \(run.result)")
                }
            }
        }
    }

    /// A killed run has reported nothing.
    @Test func failureOfAKilledRunIsNew() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve { request in
                guard request.path == "/slow.png" else { return .notFound }
                var response = Response.image(CronTests.picture)
                response.gate = gate
                return response
            }
            let lines = [origin.url("/dead.png"), origin.url("/slow.png")]
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand(lines).start()
                try await eventually("the failure is stored") {
                    // Without a database there is nothing to query yet.
                    (try? await workspace.query("SELECT count(*) FROM failure")) == [["1"]]
                }
                running.signal(SIGKILL)
                _ = await running.wait()
                gate.open()
                for status in [Int32(1), 0] {
                    let run = try await workspace.prefetch(
                        lines, "-q", "--fail-on", "new", "--retry-failed")
                    #expect(run.result.status == status, "\(run.result)")
                }
            }
        }
    }

    /// A host with more entries than are requested before it is given up.
    @Test func aHostThatIsStillDownIsNothingNew() async throws {
        let closed = try await Origin.startOnPortOfItsOwn()
        let lines = (0..<40).map { closed.url("/\($0).png") }
        try await closed.stop()
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            for status in [Int32(1), 0, 0] {
                let run = try await workspace.prefetch(
                    lines, "--fail-on", "new", "--host-concurrency", "2")
                #expect(run.result.status == status, "\(run.result)")
                #expect(run.summary.reasons == ["connect": 40], "\(run.result)")
            }
        }
    }

    @Test func theTwoFlagsGoTogether() async throws {
        try await withOrigin { origin in
            let old = origin.url("/old.png")
            let lines = [old] + (0..<3).map { origin.url("/\($0).png") }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([old])
                let strict = try await workspace.prefetch(
                    lines, "--fail-on", "new", "--max-failures", "2")
                #expect(strict.result.status == 1, "\(strict.result)")
                try await workspace.query("DELETE FROM failure WHERE url <> '\(old)'")
                let tolerant = try await workspace.prefetch(
                    lines, "--fail-on", "new", "--max-failures", "3")
                #expect(tolerant.result.status == 0, "\(tolerant.result)")
                try await workspace.query("DELETE FROM failure WHERE url <> '\(old)'")
                let any = try await workspace.prefetch(lines, "--max-failures", "3")
                #expect(any.result.status == 1, "\(any.result)")
            }
        }
    }

    @Test func theSummaryNamesWhatIsBlacklistedAndTheWayOut() async throws {
        try await withOrigin { origin in
            let lines = (0..<12).map { origin.url("/\($0).png") }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(lines)
                let run = try await workspace.prefetch(lines)
                #expect(run.summary.outcomes == ["blacklisted": 12], "\(run.result)")
                let text = run.result.errorLines
                let named = text.filter {
                    $0.contains(": blacklisted: failed with HTTP 404; next try after 2")
                }
                #expect(named.count == 10, "\(run.result)")
                #expect(named.first?.hasPrefix("  manifest-2.txt:1: \(lines[0]): ") == true)
                #expect(text.contains("  ... and 2 more blacklisted"))
                #expect(
                    text.contains(
                        "hint: `prefetch failed list --blacklisted` lists blacklisted URLs; "
                            + "--retry-failed requests them again"))
                let listed = try await workspace.run("failed", "list", "--blacklisted")
                #expect(listed.outputLines.count == 12, "\(listed)")
            }
        }
    }

    /// The list of `curl -s LIST | prefetch -` is empty when `curl` fails.
    @Test(arguments: [[], ["# a comment", ""]])
    func anEmptyListIsAFailureUnlessAllowed(lines: [String]) async throws {
        try await withWorkspace { workspace in
            let list = try workspace.manifest(lines)
            let quiet = try await workspace.run("run", list, "-q")
            #expect(quiet.status == 1, "\(quiet)")
            #expect(
                quiet.error.contains("no entries; with --allow-empty that is no failure\n"),
                "\(quiet)")
            let allowed = try await workspace.run("run", list, "-q", "--allow-empty")
            #expect(allowed.status == 0 && allowed.error.isEmpty, "\(allowed)")
        }
    }
}
