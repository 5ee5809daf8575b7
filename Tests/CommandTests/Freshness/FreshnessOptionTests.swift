import TestSupport
import Testing

/// The flags that decide which images are requested again, and `Vary`.
@Suite(.timeLimit(.minutes(15)))
struct FreshnessOptionTests {
    private static let picture = Fixtures.png(seed: 1)

    /// Two runs over one URL, and whether the second one requests it.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let control: String
        /// The fields of the manifest's line, in both runs.
        var fields = ""
        let first: [String]
        let second: [String]
        let asks: Bool

        init(
            _ control: String, fields: String = "", first: [String] = [], second: [String] = [],
            asks: Bool
        ) {
            testDescription = "\(control) \(fields) \(first) \(second)"
            self.control = control
            self.fields = fields
            self.first = first
            self.second = second
            self.asks = asks
        }
    }

    @Test(arguments: [
        Case("max-age=0", first: ["--ttl", "1h"], second: ["--ttl", "1h"], asks: false),
        Case("no-store", first: ["--ttl", "1h"], second: ["--ttl", "1h"], asks: false),
        Case("no-cache", first: ["--ttl", "1h"], second: ["--ttl", "1h"], asks: false),
        // By this run's flags, not by the flags of the run that stored it.
        Case("max-age=0", second: ["--ttl", "1h"], asks: false),
        Case("max-age=0", first: ["--ttl", "1h"], second: ["--ttl", "1ms"], asks: true),
        Case("max-age=3600", second: ["--ttl", "1ms"], asks: true),
        Case("max-age=3600", first: ["--ttl", "1ms"], second: [], asks: true),
        Case("max-age=0", first: ["--min-ttl", "1h"], asks: false),
        Case("max-age=0", second: ["--min-ttl", "1h"], asks: false),
        Case("no-cache", first: ["--min-ttl", "1h"], second: ["--min-ttl", "1h"], asks: true),
        Case("max-age=3600", first: ["--max-ttl", "1ms"], asks: true),
        Case("max-age=3600", second: ["--max-ttl", "1ms"], asks: true),
        Case("max-age=3600", second: ["--max-ttl", "30m"], asks: false),
        Case("private", first: [], asks: false),
        Case("private", first: ["--default-ttl", "1h"], asks: false),
        Case("private", first: ["--default-ttl", "1ms"], asks: true),
        Case("max-age=3600", first: ["--default-ttl", "1ms"], asks: false),
        Case("max-age=3600", second: ["--ahead", "2h"], asks: true),
        Case("max-age=3600", second: ["--ahead", "30m"], asks: false),
        Case("max-age=0", fields: "ttl=1h", asks: false),
        Case("no-store", fields: "ttl=1h", asks: false),
        Case(
            "max-age=3600", fields: "ttl=1ms", first: ["--ttl", "1h"], second: ["--ttl", "1h"],
            asks: true),
        Case("max-age=0", fields: "ttl=1h", second: ["--ttl", "1ms"], asks: false),
        Case("max-age=0", fields: "ttl=1h", second: ["--ahead", "2h"], asks: true),
    ])
    func flagDecidesWhichImagesAreRequested(this: Case) async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png",
                .picture(
                    FreshnessOptionTests.picture, ("Cache-Control", this.control),
                    ("ETag", "\"v1\"")), .notModified)
            let lines = ["\(origin.url("/a.png")) \(this.fields)"]
            try await withWorkspace { workspace in
                let first = try await workspace.finish(
                    workspace.prefetchCommand(lines, this.first).run())
                #expect(first.report.verdicts == ["downloaded"], "\(first.result)")
                let second = try await workspace.finish(
                    workspace.prefetchCommand(lines, this.second).run())
                #expect(
                    second.report.verdicts == [this.asks ? "revalidated" : "fresh"],
                    "\(second.result)")
                #expect(origin.requests.count == (this.asks ? 2 : 1))
                guard !this.asks else { return }
                try await expectFresh(origin.url("/a.png"), second, in: workspace)
            }
        }
    }

    /// `get`, `list` and `stats` agree with a run that has called an image fresh.
    private func expectFresh(
        _ url: String, _ run: Workspace.Run, in workspace: Workspace
    ) async throws {
        let get = try await workspace.run("get", url)
        #expect(get.status == 0, "\(get)")
        let listed = try await workspace.run("list", "--json")
        let stored = try listed.jsonLines()[0]["expires_at"] as? String ?? ""
        #expect(stored == run.report.entries[0].expiresAt, "\(listed)")
        let expired = try await workspace.run("list", "--expired")
        #expect(expired.output.isEmpty, "\(expired)")
    }

    /// An origin with one picture, and a workspace.
    private func withPicture(
        _ control: String, _ body: (Origin, String, Workspace) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png", .picture(FreshnessOptionTests.picture, ("Cache-Control", control)))
            try await withWorkspace { workspace in
                try await body(origin, origin.url("/a.png"), workspace)
            }
        }
    }

    @Test func shorterLifetimesAreStoredToo() async throws {
        try await withPicture("max-age=86400") { origin, url, workspace in
            _ = try await workspace.prefetch([url])
            let short = try await workspace.prefetch([url], "--max-ttl", "1h")
            #expect(short.report.verdicts == ["fresh"], "\(short.result)")
            let again = try await workspace.prefetch([url])
            #expect(again.report.entries[0].expiresAt == short.report.entries[0].expiresAt)
            let listed = try await workspace.run("list", "--json").jsonLines()
            #expect(listed[0]["expires_at"] as? String == short.report.entries[0].expiresAt)
            #expect(origin.requests.count == 1)
        }
    }

    /// `--refresh none` gives expired images a lifetime, but keeps what must be validated at each
    /// use for a minute alone.
    @Test(arguments: [("max-age=0", 86400), ("no-cache", 60)])
    func refreshNoneLengthensLifetimes(control: String, seconds: Int) async throws {
        try await withPicture(control) { _, url, workspace in
            _ = try await workspace.prefetch([url])
            let run = try await workspace.prefetch([url], "--refresh", "none")
            #expect(run.report.verdicts == ["fresh"], "\(run.result)")
            try await expectFresh(url, run, in: workspace)
            let left = try await workspace.query(
                "SELECT (expires_at - unixepoch() * 1000) / 1000 FROM resource")
            let time = try #require(left[0][0].flatMap { Int($0) })
            #expect((seconds - 50...seconds + 1).contains(time), "\(time)")
        }
    }

    /// A variant made from the stored original of an image that is fresh by the run's rules alone.
    @Test func derivedImageGetsTheRunsLifetime() async throws {
        try await withPicture("max-age=0") { origin, url, workspace in
            _ = try await workspace.prefetch([url], "--store-original")
            #expect(try await workspace.run("get", url).status == 1)
            let second = try await workspace.prefetch(
                [url], "--store-original", "--encode", "jpeg", "--ttl", "1h")
            #expect(second.report.verdicts == ["derived"], "\(second.result)")
            let listed = try await workspace.run("list", "--json").jsonLines()
            #expect(
                Set(listed.map { $0["expires_at"] as? String }) == [
                    second.report.entries[0].expiresAt
                ], "\(listed)")
            #expect(origin.requests.count == 1)
            #expect(try await workspace.run("get", url).status == 0)
            #expect(try await workspace.run("list", "--expired").output.isEmpty)
        }
    }

    @Test func refreshAllRevalidatesAndRefreshNoneRequestsNothing() async throws {
        try await withOrigin { origin in
            let lines = ["/fresh", "/stale"].map(origin.url)
            origin.serve(
                "/fresh",
                .picture(
                    Fixtures.png(seed: 1), ("Cache-Control", "max-age=3600"), ("ETag", "\"1\"")),
                .notModified)
            origin.serve(
                "/stale", .picture(Fixtures.png(seed: 2), ("ETag", "\"2\"")), .notModified)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(lines)
                let none = try await workspace.prefetch(lines, "--refresh", "none")
                #expect(none.summary.outcomes == ["fresh": 2], "\(none.result)")
                #expect(none.result.status == 0 && origin.requests.count == 2)
                for url in lines {
                    let get = try await workspace.run("get", url)
                    #expect(get.status == 0, "\(get)")
                }
                let all = try await workspace.prefetch(lines, "--refresh", "all")
                #expect(all.summary.outcomes == ["revalidated": 2], "\(all.result)")
                let tags = origin.requests.dropFirst(2).map { $0.header("If-None-Match") }
                #expect(Set(tags) == ["\"1\"", "\"2\""])
                let missing = try await workspace.prefetch(
                    [origin.url("/missing")], "--refresh", "none")
                #expect(missing.report.verdicts == ["failed/http-status"], "\(missing.result)")
            }
        }
    }

    @Test func offlineReportsWithoutRequests() async throws {
        try await withOrigin { origin in
            let fresh = origin.url("/fresh")
            let stale = origin.url("/stale")
            let derivable = origin.url("/derivable")
            let old = origin.url("/old")
            origin.serve("/fresh", .image(Fixtures.png(seed: 1)))
            origin.serve("/stale", .picture(Fixtures.png(seed: 2)))
            origin.serve("/derivable", .image(Fixtures.png(seed: 3)))
            origin.serve("/old", .picture(Fixtures.png(seed: 4)))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([fresh, stale])
                _ = try await workspace.prefetch([derivable, old], "--encode", "original")
                _ = try await workspace.prefetch([origin.url("/dead")])
                let asked = origin.requests.count
                let lines = [
                    fresh, stale, origin.url("/missing"), derivable, old, origin.url("/dead"),
                    stale, fresh,
                ]
                let run = try await workspace.prefetch(lines, "--offline")
                #expect(
                    run.report.verdicts == [
                        "fresh", "excluded", "excluded", "derived", "excluded", "excluded",
                        "duplicate", "duplicate",
                    ], "\(run.result)")
                #expect(run.result.status == 1, "\(run.result)")
                let again = try await workspace.prefetch([fresh, derivable], "--offline")
                #expect(again.summary.outcomes == ["fresh": 2], "\(again.result)")
                #expect(again.result.status == 0)
                let forced = try await workspace.prefetch([stale], "--offline", "--ttl", "1h")
                #expect(forced.report.verdicts == ["fresh"] && forced.result.status == 0)
                #expect(origin.requests.count == asked)
            }
        }
    }

    /// `Vary: *` needs a validation at every use.
    @Test func varyOnUserAgentRequestsAgain() async throws {
        try await withOrigin { origin in
            let lines = ["/varies", "/same", "/star"].map(origin.url)
            origin.serve(
                "/star",
                .picture(
                    FreshnessOptionTests.picture, ("Cache-Control", "max-age=3600"),
                    ("Vary", "*"), ("ETag", "\"v1\"")), .notModified)
            origin.serve(
                "/varies",
                .picture(
                    Fixtures.png(seed: 1), ("Cache-Control", "max-age=3600"),
                    ("Vary", "User-Agent"), ("Last-Modified", "Tue, 02 Jan 2024 03:04:05 GMT")))
            origin.serve(
                "/same",
                .picture(
                    Fixtures.png(seed: 2), ("Cache-Control", "max-age=3600"),
                    ("Vary", "Accept-Language")))
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(lines, "--user-agent", "one")
                let same = try await workspace.prefetch(lines, "--user-agent", "one")
                #expect(
                    same.report.verdicts == ["fresh", "fresh", "revalidated"], "\(same.result)")
                let other = try await workspace.prefetch(lines, "--user-agent", "two")
                #expect(
                    other.report.verdicts == ["downloaded", "fresh", "revalidated"],
                    "\(other.result)")
                // The other variant may have been modified at the same time.
                let asked = origin.requests.last { $0.path == "/varies" }
                #expect(asked?.header("If-Modified-Since") == nil)
                let again = try await workspace.prefetch(lines, "--user-agent", "two")
                #expect(
                    again.report.verdicts == ["fresh", "fresh", "revalidated"], "\(again.result)")
                let back = try await workspace.prefetch(lines, "--user-agent", "one")
                #expect(
                    back.report.verdicts == ["downloaded", "fresh", "revalidated"], "\(back.result)"
                )
            }
        }
    }
}
