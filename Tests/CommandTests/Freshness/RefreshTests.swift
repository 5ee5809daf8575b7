import Foundation
import TestSupport
import Testing

/// Refreshes that receive a body, fail, or are redirected.
@Suite(.timeLimit(.minutes(15)))
struct RefreshTests {
    private static let old = Fixtures.png(width: 24, height: 24, seed: 1)
    private static let new = Fixtures.png(width: 24, height: 24, seed: 2)

    /// Damages a content file in place, its size unchanged.
    ///
    /// - Returns: its former bytes.
    private static func flipBit(of path: String, in workspace: Workspace) throws -> [UInt8] {
        let whole = try workspace.bytes(of: path)
        var damaged = whole
        damaged[damaged.count / 2] ^= 1
        try Data(damaged).write(to: URL(filePath: "\(workspace.cache)/\(path)"))
        return whole
    }

    /// For stored and damaged images.
    @Test func forceDownloadsUnconditionally() async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve("/a.png", .picture(RefreshTests.old, ("ETag", "\"v1\"")))
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch([url])
                let path = try #require(first.report.entries.first?.path)
                let whole = try RefreshTests.flipBit(of: path, in: workspace)
                let second = try await workspace.prefetch([url], "--refresh", "force")
                let entry = try #require(second.report.entries.first)
                #expect(entry.verdict == "downloaded", "\(second.result)")
                #expect(entry.decodeMilliseconds != nil)
                #expect(origin.requests.last?.header("If-None-Match") == nil)
                #expect(try workspace.bytes(of: path) == whole)
                #expect(try await workspace.judge(sources: [url: RefreshTests.old]) == 1)
            }
        }
    }

    /// A bit of a content file has changed; no run notices that without reading it.
    @Test func downloadRepairsADamagedFile() async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            let other = origin.url("/b.png")
            origin.serve("/a.png", .picture(RefreshTests.old))
            origin.serve("/b.png", .picture(RefreshTests.old))
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch([url])
                let path = try #require(first.report.entries.first?.path)
                for lines in [[other], [url], [other, url]] {
                    let whole = try RefreshTests.flipBit(of: path, in: workspace)
                    let run = try await workspace.prefetch(lines, "--refresh", "all")
                    #expect(
                        run.report.verdicts == lines.map { _ in "downloaded" }, "\(run.result)")
                    #expect(try workspace.bytes(of: path) == whole)
                }
                #expect(
                    try await workspace.judge(
                        sources: [url: RefreshTests.old, other: RefreshTests.old]) == 2)
            }
        }
    }

    /// A failing refresh, and its verdict.
    static let failures: [(name: String, response: Response, verdict: String)] = [
        ("404", .notFound, "failed/http-status"),
        ("403", Response(403), "failed/http-status"),
        ("500", Response(500), "failed/http-status"),
        ("reset", .image(new, ending: .resetBeforeHead), "failed/interrupted"),
        ("cut", .image(new, ending: .closedAfter(bodyBytes: 60)), "failed/interrupted"),
        ("page", .text("<html></html>"), "failed/not-an-image"),
        ("corrupt", .image(Fixtures.damaged(new)), "failed/corrupt-image"),
        ("no-store", .picture(new, ("Cache-Control", "no-store")), "failed/uncacheable"),
        (
            "no-store-304", .notModified(("Cache-Control", "no-store")), "failed/uncacheable"
        ),
        ("206", Response(206, body: new), "failed/http-status"),
        ("loop", .redirect(to: "/loop"), "failed/redirect"),
    ]

    @Test func failedRefreshKeepsTheOldCopy() async throws {
        try await withOrigin { origin in
            for (name, response, _) in RefreshTests.failures {
                origin.serve(
                    "/\(name)", .picture(RefreshTests.old, ("ETag", "\"v1\"")), response)
            }
            let lines = RefreshTests.failures.map { origin.url("/\($0.name)") }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch(lines, "--encode", "original")
                #expect(first.summary["downloaded"] == lines.count, "\(first.result)")
                let path = try #require(first.report.entries.first?.path)
                let before = try workspace.identity(of: path)
                let second = try await workspace.prefetch(lines, "--encode", "original")
                #expect(second.result.status == 1)
                for (index, (name, _, verdict)) in RefreshTests.failures.enumerated() {
                    let entry = try #require(second.report[line: index + 1])
                    #expect(entry.verdict == verdict, "\(name): \(entry)")
                    #expect(entry.message?.contains(" stays") == true, "\(name): \(entry)")
                    #expect(entry.path == path, "\(name): \(entry)")
                    let get = try await workspace.run("get", "--stale", lines[index])
                    #expect(get.output == "\(workspace.cache)/\(path)\n", "\(get)")
                }
                #expect(try workspace.bytes(of: path) == RefreshTests.old)
                #expect(try workspace.identity(of: path) == before)
            }
        }
    }

    // MARK: Redirects

    /// A 304 after a redirect confirms a copy of its own URL only.
    @Test func onlyTheSameRedirectTargetValidatesTheCopy() async throws {
        try await withOrigin { origin in
            let urls = ["/same", "/other"].map(origin.url)
            origin.serve("/same", .redirect(to: "/target"))
            origin.serve("/other", .redirect(to: "/first"), .redirect(to: "/second"))
            let confirmed = Response.notModified(("Cache-Control", "max-age=60"))
            origin.serve("/target", .picture(RefreshTests.old, ("ETag", "\"v1\"")), confirmed)
            origin.serve("/first", .picture(RefreshTests.old, ("ETag", "\"v1\"")))
            origin.serve("/second", confirmed)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for verdicts in [
                    ["downloaded", "downloaded"], ["revalidated", "failed/http-status"],
                    ["fresh", "failed/http-status"],
                ] {
                    let run = try await workspace.prefetch(urls)
                    #expect(run.report.verdicts == verdicts, "\(run.result)")
                }
                let sent = origin.requests.filter { $0.path == "/target" }
                #expect(sent.map { $0.header("If-None-Match") } == [nil, "\"v1\""])
                #expect(origin.snapshot.count(of: "/same") == 2)
            }
        }
    }

    /// A validator belongs to its URL: elsewhere an equal tag, or an older modification date,
    /// means another picture (RFC 9110 §8.8).
    @Test(arguments: [
        (name: "ETag", value: "\"1\""),
        (name: "Last-Modified", value: "Tue, 02 Jan 2024 03:04:05 GMT"),
    ])
    func validatorIsNotSentToAnotherURL(
        field: (name: String, value: String)
    ) async throws {
        try await withOrigin { origin in
            origin.serve("/a", .redirect(to: "/b"), .redirect(to: "/c"))
            origin.serve("/b", .picture(RefreshTests.old, field))
            origin.serve("/direct", .redirect(to: "/b"), .picture(RefreshTests.new, field))
            origin.serve("/x", .picture(RefreshTests.old, field))
            origin.serve("/y", .picture(RefreshTests.new, field))
            // Like an origin that only compares validators.
            origin.serve { request in
                let isConditional =
                    request.header("If-None-Match") ?? request.header("If-Modified-Since")
                return isConditional == nil
                    ? .picture(RefreshTests.new, field) : .notModified
            }
            try await withWorkspace { workspace in
                let first = ["/a", "/direct"].map(origin.url) + ["\(origin.url("/x")) key=k"]
                let second = ["/a", "/direct"].map(origin.url) + ["\(origin.url("/y")) key=k"]
                _ = try await workspace.prefetch(first)
                let run = try await workspace.prefetch(second)
                #expect(run.summary["downloaded"] == 3, "\(run.result)")
                for path in ["/c", "/direct", "/y"] {
                    let asked = origin.requests.filter { $0.path == path }
                    #expect(
                        asked.allSatisfy {
                            $0.header("If-None-Match") == nil
                                && $0.header("If-Modified-Since") == nil
                        }, "\(path)")
                }
                try await workspace.judge(sources: [
                    origin.url("/a"): RefreshTests.new, origin.url("/direct"): RefreshTests.new,
                    "k": RefreshTests.new,
                ])
            }
        }
    }
}
