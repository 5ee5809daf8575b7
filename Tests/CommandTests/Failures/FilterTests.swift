import TestSupport
import Testing

/// The filters for images that a list contains and a run does not want.
@Suite(.timeLimit(.minutes(15)))
struct FilterTests {
    /// 3 MB of 1500 by 700 pixels.
    private static let picture = Fixtures.png(width: 1500, height: 700, isNoise: true)
    /// The maximum that may arrive before a transfer ends.
    private static let much = 1 << 20
    private static let framings: [Response.Framing] = [.announced, .chunked, .closeDelimited]

    struct Row: Sendable, CustomStringConvertible {
        let options: [String]
        let reason: String
        let message: String
        /// Other values of the same kind, which accept the picture.
        let others: [String]

        var description: String { reason }
    }

    private static let rows = [
        Row(
            options: ["--min-size", "1501x0"], reason: "min-size",
            message: "1500×700 pixels, --min-size asks for 1501x0",
            others: ["--min-size", "1500x700"]),
        Row(
            options: ["--min-size", "701x701"], reason: "min-size",
            message: "1500×700 pixels, --min-size asks for 701x701",
            others: ["--min-size", "0x700"]),
        Row(
            options: ["--max-aspect", "2.1"], reason: "max-aspect",
            message: "1500×700 pixels are longer than --max-aspect 2.1 allows",
            others: ["--max-aspect", "2.2"]),
        Row(
            options: ["--min-bytes", "16MiB"], reason: "min-bytes",
            message: "\(picture.count) bytes, --min-bytes asks for 16777216",
            others: ["--min-bytes", "\(picture.count)"]),
    ]

    @Test(arguments: rows, framings.indices)
    func isExcludedByTheBeginningOfTheBody(row: Row, framing: Int) async throws {
        let framing = FilterTests.framings[framing]
        try await withOrigin { origin in
            origin.serve(
                "/a.png", Response(body: FilterTests.picture, type: "image/png", framing: framing))
            let url = origin.url("/a.png")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func run(_ options: [String]) async throws -> Workspace.Run {
                    try await workspace.finish(
                        workspace.prefetchCommand([url], options).run(), entries: 1)
                }
                let first = try await run(row.options)
                // Every wanted image is there.
                #expect(first.result.status == 0, "\(first.result)")
                #expect(first.result.error.contains("  excluded: 1 \(row.reason)\n"))
                #expect(first.summary.exclusions == [row.reason: 1])
                let entry = try #require(first.report[line: 1])
                #expect(entry.verdict == "excluded/\(row.reason)")
                #expect(entry.message == row.message)
                if case .announced = framing {
                    #expect((1..<FilterTests.much).contains(entry.bytesReceived))
                } else if row.reason == "min-bytes" {
                    // The length is unknown before the end.
                    #expect(entry.bytesReceived == FilterTests.picture.count)
                } else {
                    #expect((1..<FilterTests.much).contains(entry.bytesReceived))
                }
                // It is known, and not requested again.
                let again = try await run(row.options + ["--fail-on", "any"])
                #expect(again.report.verdicts == ["excluded/\(row.reason)"], "\(again.result)")
                #expect(again.result.status == 0)
                #expect(again.report[line: 1]?.blacklistedUntil != nil)
                #expect(again.report[line: 1]?.message?.hasPrefix(row.message) == true)
                #expect(origin.requests.count == 1)
                let listed = try await workspace.run("failed", "list", "--json").jsonLines()
                #expect(listed.map { $0["reason"] as? String } == [row.reason])
                let get = try await workspace.run("get", url)
                #expect(get.status == 1 && get.error.contains("excluded as \(row.reason)"))
                // Another rule accepts it.
                let wanted = try await run(row.others)
                #expect(wanted.report.verdicts == ["downloaded"], "\(wanted.result)")
                #expect(try await workspace.query("SELECT key FROM failure") == [])
                // Stored fresh images are not filtered again.
                let kept = try await run(row.options)
                #expect(kept.report.verdicts == ["fresh"])
            }
        }
    }

    @Test func storedCopyStaysUnderNewFilters() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png", .image(Fixtures.png(width: 60, height: 40)),
                .image(Fixtures.png(width: 30, height: 20)))
            let url = origin.url("/a.png")
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch([url, url], "--min-size", "50x30")
                #expect(first.report.verdicts == ["downloaded", "duplicate"])
                let second = try await workspace.prefetch(
                    [url, url], "--min-size", "50x30", "--refresh", "all")
                #expect(
                    second.report.verdicts == ["excluded/min-size", "duplicate/min-size"],
                    "\(second.result)")
                #expect(second.summary.exclusions == ["min-size": 1])
                #expect(second.report[line: 1]?.width == 60)
                #expect(
                    second.report[line: 1]?.message?.contains("; the copy of ") == true,
                    "\(second.result)")
                #expect(try await workspace.run("get", url).status == 0)
            }
        }
    }

    /// A drawing has no pixel size, but its file has a length. Damaged images and other files are
    /// failures, however small.
    @Test func unknownSizeExcludesNothing() async throws {
        try await withOrigin { origin in
            let drawing = Array(#"<svg xmlns="http://www.w3.org/2000/svg"/>"#.utf8)
            origin.serve("/a.svg", Response(body: drawing, type: "image/svg+xml"))
            origin.serve("/a.png", .text("<html></html>"))
            origin.serve("/b.png", .image(Fixtures.damaged(Fixtures.png(width: 60, height: 40))))
            let url = origin.url("/a.svg")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let small = try await workspace.prefetch(
                    [url, origin.url("/a.png"), origin.url("/b.png")], "--min-bytes", "100")
                #expect(
                    small.report.verdicts == [
                        "excluded/min-bytes", "failed/not-an-image", "failed/corrupt-image",
                    ], "\(small.result)")
                #expect(small.result.status == 1)
                let run = try await workspace.prefetch(
                    [url], "--min-size", "640x480", "--max-aspect", "3")
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
            }
        }
    }

    /// Two exclusions and a failure, in the commands that show failures.
    @Test func exclusionsAreNotFailuresInOtherCommands() async throws {
        try await withOrigin { origin in
            origin.serve { request in
                request.path == "/gone.png"
                    ? .notFound : .image(Fixtures.png(width: 8, height: 8, seed: 1))
            }
            let lines = ["/a.png", "/b.png", "/gone.png"].map { origin.url($0) }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(lines, "--min-size", "64x64")
                let host = try #require(
                    try await workspace.run("hosts", "--json").jsonLines().first)
                #expect(host["failed_urls"] as? Int == 1, "\(host)")
                #expect(host["blacklisted_urls"] as? Int == 1, "\(host)")
                let states = try await workspace.run("failed", "list", "--json").jsonLines()
                    .compactMap { $0["state"] as? String }
                #expect(states == ["excluded", "excluded", "blacklisted"])
                let blacklisted = try await workspace.run(
                    "failed", "list", "--blacklisted", "--urls")
                #expect(blacklisted.outputLines == [lines[2]])
                #expect(
                    try await workspace.run("failed", "list", "--urls").outputLines == [lines[2]])
                let named = try await workspace.run(
                    "failed", "list", "--urls", "--reason", "min-size")
                #expect(named.outputLines == Array(lines[..<2]), "\(named)")
                let clear = try await workspace.run("failed", "clear")
                #expect(clear.error == "prefetch: 1 failure, 2 exclusions removed\n", "\(clear)")
            }
        }
    }
}
