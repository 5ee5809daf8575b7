import TestSupport
import Testing

/// Bodies that are judged by their beginning.
@Suite(.timeLimit(.minutes(15)))
struct EarlyVerdictTests {
    /// 40 MiB.
    private static let page: [UInt8] =
        Array("<!DOCTYPE html><html><body>".utf8)
        + [UInt8](repeating: UInt8(ascii: "x"), count: 40 << 20)

    /// The maximum that may arrive before a transfer ends: bytes read ahead by the kernel, TLS and
    /// libcurl do not count as received.
    private static let much = 1 << 20

    private static func page(
        framing: Response.Framing = .announced, _ fields: (name: String, value: String)...
    ) -> Response {
        Response(headers: fields, body: page, type: "text/html", framing: framing)
    }

    private static let framings: [Response.Framing] = [.announced, .chunked, .closeDelimited]

    /// Ten failures in a row would end the entries of an unreachable host; these are responses.
    @Test(arguments: framings.indices)
    func largePageIsRefusedEarly(framing: Int) async throws {
        try await withOrigin { origin in
            origin.serve(
                "/page", Self.page(framing: Self.framings[framing], ("ETag", "\"strong\"")))
            let pages = (0..<12).map { origin.url("/page?\($0)") }
            let images = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(
                    pages + images, "--host-concurrency", "2", "--retry", "2")
                #expect(
                    run.summary.outcomes == ["failed": pages.count, "downloaded": images.count],
                    "\(run.result)")
                for entry in run.report.entries where entry.outcome == "failed" {
                    #expect(entry.verdict == "failed/not-an-image")
                    #expect(entry.message == "an HTML page")
                    #expect(entry.httpStatus == 200 && entry.contentType == "text/html")
                    #expect(entry.attempts == 1)
                    #expect((1..<Self.much).contains(entry.bytesReceived))
                }
                #expect(try await workspace.query("SELECT url FROM partial") == [])
                #expect(
                    try await workspace.query("SELECT DISTINCT reason FROM failure")
                        == [["not-an-image"]])
            }
        }
    }

    @Test func otherTransfersOfTheConnectionContinue() async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigin(security: authority.security(http2: .init())) { origin in
            origin.serve("/page", Self.page())
            let picture = Fixtures.png(width: 200, height: 200, isNoise: true)
            var slow = Response.image(picture)
            slow.drip = (bytes: picture.count / 20, interval: .milliseconds(20))
            let lines = (0..<8).flatMap { index in
                origin.serve("/slow/\(index)", slow)
                return ["/slow/\(index)", "/page?\(index)"]
            }.map { origin.url($0, host: "localhost") }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let run = try await workspace.prefetch(
                    lines, "--cacert", authority.path, "--host-concurrency", "16")
                #expect(
                    run.summary.outcomes == ["failed": 8, "downloaded": 8], "\(run.result)")
                #expect(
                    run.report.entries.allSatisfy {
                        $0.outcome == "downloaded" || $0.bytesReceived < Self.much
                    })
                #expect(origin.snapshot.connections == 1)
            }
        }
    }

    /// The rest is cheaper than a new connection.
    @Test func connectionIsKeptForAShortRest() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/page",
                Response(body: Array(Self.page.prefix(64 << 10)), type: "text/html"))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(
                    (0..<4).map { origin.url("/page?\($0)") }, "--host-concurrency", "1")
                #expect(run.summary.reasons == ["not-an-image": 4], "\(run.result)")
                #expect(run.report.entries.allSatisfy { $0.bytesReceived == 64 << 10 })
                #expect(origin.snapshot.connections == 1)
            }
        }
    }

    private struct Row: Sendable, CustomStringConvertible {
        let name: String
        let response: Response
        var options: [String] = []
        let verdict: String
        let message: String

        var description: String { name }
    }

    private static let rows: [Row] = {
        let rest = [UInt8](repeating: 0, count: 8 << 20)
        let wide = Fixtures.pngDeclaring(width: 20_000, height: 20_000)
        let broad = Fixtures.pngDeclaring(width: 9_000, height: 9_000)
        return [
            Row(
                name: "PSD",
                response: Response(body: Array("8BPS\0\u{1}\0\0\0\0\0\0".utf8) + rest),
                options: ["--other-formats", "fail"],
                verdict: "failed/unsupported-image", message: "psd is not decoded"),
            Row(
                name: "pixels", response: .image(wide + rest),
                verdict: "failed/too-many-pixels",
                message: "20000×20000 pixels, more than --max-pixels (100000000)"),
            Row(
                name: "memory", response: .image(broad + rest),
                options: ["--memory", "64MiB"], verdict: "failed/too-many-pixels",
                message: "its pixels need 250 MiB, but --memory leaves 48.0 MiB for them; "
                    + "--memory 334MiB would do"),
            Row(
                name: "structure", response: .image(wide + rest),
                options: ["--encode", "original", "--check", "structure"],
                verdict: "failed/too-many-pixels",
                message: "20000×20000 pixels, more than --max-pixels (100000000)"),
            // A body that must not be stored is not judged.
            Row(
                name: "no-store", response: page(("Cache-Control", "no-store")),
                verdict: "failed/uncacheable",
                message: "the origin forbids storing it (Cache-Control: no-store)"),
            // An announced size is refused first.
            Row(
                name: "too large", response: page(), options: ["--max-filesize", "1MiB"],
                verdict: "failed/too-large",
                message: "the announced body is larger than --max-filesize (1.00 MiB)"),
        ]
    }()

    @Test(arguments: rows)
    private func earlyVerdictEqualsFullVerdict(row: Row) async throws {
        try await withOrigin { origin in
            origin.serve("/x", row.response)
            try await withWorkspace { workspace in
                let command = try workspace.prefetchCommand([origin.url("/x")], row.options)
                let run = try workspace.finish(await command.run(), entries: 1)
                let entry = try #require(run.report[line: 1])
                #expect(entry.verdict == row.verdict, "\(run.result)")
                #expect(entry.message?.hasPrefix(row.message) == true, "\(entry.message ?? "")")
                #expect(entry.bytesReceived < Self.much)
            }
        }
    }

    /// Stored bytes are not judged again, neither as a whole nor by their beginning.
    @Test func storedBytesAreAcceptedUnderStricterLimits() async throws {
        let picture = Fixtures.png(width: 300, height: 300, isNoise: true)
        try await withOrigin { origin in
            origin.serve("/a.png", .picture(picture))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let list = [origin.url("/a.png")]
                let first = try await workspace.prefetch(list)
                #expect(first.report.verdicts == ["downloaded"], "\(first.result)")
                let second = try await workspace.prefetch(list, "--max-pixels", "10")
                #expect(second.report.verdicts == ["downloaded"], "\(second.result)")
                #expect(second.report[line: 1]?.message == "the same bytes as before")
                origin.serve("/a.png", Self.page())
                let third = try await workspace.prefetch(list)
                #expect(third.report.verdicts == ["failed/not-an-image"], "\(third.result)")
                #expect((third.report[line: 1]?.bytesReceived ?? .max) < Self.much)
            }
        }
    }

    /// A whole body in place of the rest makes a kept part useless, even when it is refused.
    @Test func partIsDiscardedWhenAPageArrives() async throws {
        let picture = Fixtures.png(width: 800, height: 800, isNoise: true)
        try await withOrigin { origin in
            var broken = Response.image(picture, ending: .closedAfter(bodyBytes: 1_500_000))
            broken.headers.append(("ETag", "\"1\""))
            origin.serve("/a.png", broken, Self.page())
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let list = [origin.url("/a.png")]
                let first = try await workspace.prefetch(list)
                #expect(first.report.verdicts == ["failed/interrupted"], "\(first.result)")
                let parts = try await workspace.query("SELECT url FROM partial")
                #expect(parts.count == 1)
                let second = try await workspace.prefetch(list)
                #expect(second.report.verdicts == ["failed/not-an-image"], "\(second.result)")
                #expect(try await workspace.query("SELECT url FROM partial") == [])
            }
        }
    }
}
