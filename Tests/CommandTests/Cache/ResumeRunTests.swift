import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct ResumeRunTests {
    /// About 1.9 MB.
    private static let picture = Fixtures.png(width: 800, height: 800, seed: 3, isNoise: true)
    private var picture: [UInt8] { ResumeRunTests.picture }
    private static let kept = 1_500_000
    private static let tag = "\"version-1\""

    /// Serves an interrupted response to the first request, then ranges.
    private func serve(
        _ origin: Origin, first: Response? = nil, range: RangeAnswer = .right, tag: String = tag
    ) {
        var first =
            first
            ?? Response.image(
                picture, ending: .closedAfter(bodyBytes: ResumeRunTests.kept))
        if !first.headers.contains(where: { $0.name == "ETag" || $0.name == "Last-Modified" }) {
            first.headers.append(("ETag", ResumeRunTests.tag))
        }
        let picture = picture
        let asked = Mutex(0)
        origin.serve { [first] request in
            let number = asked.withLock { asked in
                asked += 1
                return asked
            }
            return number == 1
                ? first : .range(of: picture, tag: tag, to: request, range)
        }
    }

    private func parts(_ workspace: Workspace) async throws -> [[String?]] {
        try await workspace.query("SELECT url, etag, bytes, total FROM partial")
    }

    /// Resumed by a retry in the same run, or by the next run.
    @Test(arguments: [true, false])
    func resumesInterruptedBody(inSameRun: Bool) async throws {
        try await withOrigin { origin in
            serve(origin)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let list = [origin.url("/a.png")]
                let count = String(ResumeRunTests.kept)
                let last: Workspace.Run
                if inSameRun {
                    last = try await workspace.prefetch(
                        list, "--retry", "1", "--retry-delay", "10ms")
                    #expect(last.report[line: 1]?.bytesReceived == picture.count)
                    #expect(last.report[line: 1]?.attempts == 2)
                } else {
                    let first = try await workspace.prefetch(list)
                    #expect(first.report.verdicts == ["failed/interrupted"], "\(first.result)")
                    #expect(
                        try await parts(workspace)
                            == [[list[0], Self.tag, count, String(picture.count)]])
                    last = try await workspace.prefetch(list)
                    #expect(last.report[line: 1]?.bytesReceived == picture.count - Self.kept)
                }
                #expect(last.report.verdicts == ["downloaded"], "\(last.result)")
                #expect(last.report[line: 1]?.message == "continued from byte \(count)")
                let second = try #require(origin.requests.last)
                #expect(second.header("range") == "bytes=\(count)-")
                #expect(second.header("if-range") == Self.tag)
                #expect(origin.requests.count == 2)
                #expect(try await parts(workspace).isEmpty)
                #expect(try await workspace.judge(sources: [list[0]: picture]) == 1)
                // The validators belong to the complete response.
                #expect(try await workspace.query("SELECT etag FROM resource") == [[Self.tag]])
            }
        }
    }

    /// If the range response is unusable, the whole picture is requested in the same attempt.
    @Test(arguments: RangeAnswer.allCases)
    func completesAfterAnyRangeResponse(answer: RangeAnswer) async throws {
        try await withOrigin { origin in
            serve(origin, range: answer)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let list = [origin.url("/a.png")]
                let run = try await workspace.prefetch(
                    list, "--retry", "1", "--retry-delay", "10ms")
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                #expect(run.report[line: 1]?.attempts == 2)
                let ranges = origin.requests.map { $0.header("range") != nil }
                switch answer {
                case .right, .ignored: #expect(ranges == [false, true])
                default: #expect(ranges == [false, true, false])
                }
                #expect(try await parts(workspace).isEmpty)
                #expect(try await workspace.judge(sources: [list[0]: picture]) == 1)
            }
        }
    }

    @Test func discardsPartsThatDoNotFit() async throws {
        let other = Fixtures.png(width: 800, height: 800, seed: 4, isNoise: true)
        #expect(other.count == picture.count)
        try await withOrigin { origin in
            func ranges(_ path: String) -> [Bool] {
                origin.requests.filter { $0.path == path }.map { $0.header("range") != nil }
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let retry = ["--retry", "1", "--retry-delay", "10ms"]
                var stored = 0
                func expectWhole(_ path: String, _ options: [String]) async throws -> Workspace.Run
                {
                    stored += 1
                    let run = try await workspace.prefetch([origin.url(path)], options)
                    #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                    #expect(try await parts(workspace).isEmpty)
                    #expect(
                        try await workspace.judge(sources: [origin.url(path): picture]) == stored)
                    return run
                }

                // The part would be requested in each run.
                serve(origin)
                _ = try await workspace.prefetch([origin.url("/gone.png")])
                #expect(try await parts(workspace).count == 1)
                origin.serve("/gone.png", .notFound)
                let gone = try await workspace.prefetch([origin.url("/gone.png")])
                #expect(gone.report.verdicts == ["failed/http-status"], "\(gone.result)")
                #expect(ranges("/gone.png") == [false, true, false])
                #expect(try await parts(workspace).isEmpty)

                serve(origin, tag: "\"version-2\"")
                let changed = try await expectWhole("/changed.png", retry)
                #expect(changed.report[line: 1]?.message == nil)
                #expect(ranges("/changed.png").count == 2)

                // The origin claims that the parts belong together, but they do not.
                serve(
                    origin,
                    first: .image(other, ending: .closedAfter(bodyBytes: ResumeRunTests.kept)))
                _ = try await expectWhole("/other.png", retry)
                #expect(ranges("/other.png") == [false, true, false])

                // The next run finds a part with changed bytes.
                serve(origin)
                _ = try await workspace.prefetch([origin.url("/damaged.png")])
                let folder = workspace.cache + "/tmp"
                let names = try FileManager.default.contentsOfDirectory(atPath: folder)
                #expect(names.count == 1)
                let name = try #require(names.first)
                let file = try #require(FileHandle(forUpdatingAtPath: "\(folder)/\(name)"))
                try file.seek(toOffset: 1_000_000)
                try file.write(contentsOf: Data("damage".utf8))
                try file.close()
                _ = try await expectWhole("/damaged.png", [])
                #expect(ranges("/damaged.png") == [false, true, false])
            }
        }
    }

    /// The rest is interrupted repeatedly; each transfer adds to the part.
    @Test func keepsPartAcrossRepeatedInterruptions() async throws {
        try await withOrigin { origin in
            let picture = picture
            let asked = Mutex(0)
            origin.serve { request in
                let number = asked.withLock { asked in
                    asked += 1
                    return asked
                }
                var response = Response.range(of: picture, tag: Self.tag, to: request)
                if number < 4 {
                    response.ending = .closedAfter(bodyBytes: number == 1 ? 1_200_000 : 200_000)
                }
                return response
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let list = [origin.url("/a.png")]
                let run = try await workspace.prefetch(
                    list, "--retry", "3", "--retry-delay", "10ms")
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                let starts = origin.requests.compactMap { $0.header("range") }
                    .compactMap { Int($0.dropFirst(6).dropLast()) }
                #expect(starts == [1_200_000, 1_400_000, 1_600_000])
                #expect(try await workspace.judge(sources: [list[0]: picture]) == 1)
            }
        }
    }

    /// Bodies that cannot be resumed, or are too small to.
    @Test(arguments: [
        "small", "weak", "no validator", "young date", "no-store", "encoded", "too large",
        "lengths",
    ])
    func discardsUnresumableBodies(kind: String) async throws {
        var first = Response.image(
            picture, ending: .closedAfter(bodyBytes: ResumeRunTests.kept))
        var options: [String] = []
        switch kind {
        case "small": first.ending = .closedAfter(bodyBytes: 1 << 20)
        case "weak": first.headers.append(("ETag", "W/\"1\""))
        case "no validator": first.headers.append(("Last-Modified", "never"))
        case "young date":
            first.headers += [
                ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("Date", "Sun, 06 Nov 1994 08:50:36 GMT"),
            ]
        case "no-store":
            first.headers = [("ETag", Self.tag), ("Cache-Control", "no-store")]
        case "encoded": first.headers.append(("Content-Encoding", "gzip"))
        case "too large":
            first.framing = .chunked
            first.ending = .complete
            options = ["--max-filesize", "1400KiB"]
        case "lengths":
            first.framing = .lengthTexts(["1900000", "1800000"])
        default: Issue.record("what is \(kind)?")
        }
        try await withOrigin { [first, options] origin in
            serve(origin, first: first)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let command = try workspace.prefetchCommand([origin.url("/a.png")], options)
                let run = try workspace.finish(await command.run(), entries: 1)
                #expect(run.summary["failed"] == 1, "\(run.result)")
                #expect(try await parts(workspace).isEmpty)
            }
        }
    }

    @Test func resumesWithSufficientlyOldLastModified() async throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        var first = Response.image(
            picture, framing: .chunked, ending: .closedAfter(bodyBytes: ResumeRunTests.kept))
        first.headers += [("Last-Modified", date), ("Date", "Sun, 06 Nov 1994 08:50:37 GMT")]
        try await withOrigin { [first] origin in
            let picture = picture
            origin.serve { request in
                guard let range = request.header("range"),
                    let start = Int(range.dropFirst(6).dropLast())
                else { return first }
                // Without Last-Modified, as the standard recommends.
                return Response(
                    206,
                    headers: [
                        ("Content-Range", "bytes \(start)-\(picture.count - 1)/\(picture.count)"),
                        ("Cache-Control", "max-age=60"),
                    ], body: Array(picture.dropFirst(start)), type: "image/png")
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let list = [origin.url("/a.png")]
                _ = try await workspace.prefetch(list)
                #expect(
                    try await workspace.query("SELECT last_modified, total FROM partial")
                        == [[date, nil]])
                let run = try await workspace.prefetch(list)
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                #expect(origin.requests.last?.header("if-range") == date)
                #expect(
                    try await workspace.query("SELECT last_modified FROM resource") == [[date]])
                #expect(try await workspace.judge(sources: [list[0]: picture]) == 1)
            }
        }
    }

    /// A stall and the user's signal keep the received part, like an interruption.
    @Test(arguments: ["stalled", "signal"])
    func keepsPartAfterStallOrSignal(end: String) async throws {
        try await withOrigin { origin in
            serve(
                origin,
                first: .image(picture, ending: .stalledAfter(bodyBytes: ResumeRunTests.kept)))
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let list = [origin.url("/a.png")]
                let options = end == "stalled" ? ["--stall-timeout", "3s"] : []
                let running = try workspace.prefetchCommand(list, options).start()
                if end == "signal" {
                    try await origin.wait(for: "a request") { $0.inFlight == 1 }
                    try await running.waitUntilTaken(SIGINT)
                    running.signal(SIGINT)
                }
                let first = try workspace.finish(await running.wait(), entries: 1)
                #expect(
                    first.report.verdicts == [end == "stalled" ? "failed/stalled" : "cancelled"],
                    "\(first.result)")
                #expect(try await parts(workspace).count == 1)
                let second = try await workspace.prefetch(list)
                #expect(second.report.verdicts == ["downloaded"], "\(second.result)")
                #expect(
                    origin.requests.last?.header("range") == "bytes=\(ResumeRunTests.kept)-")
                #expect(try await workspace.judge(sources: [list[0]: picture]) == 1)
            }
        }
    }

    /// An earlier attempt's failure does not determine the entry's outcome.
    @Test func reportsCancelledResumeAsCancelled() async throws {
        try await withOrigin { origin in
            let picture = picture
            let asked = Mutex(0)
            let more = picture.count - Self.kept - 1000
            origin.serve { request in
                let number = asked.withLock { asked in
                    asked += 1
                    return asked
                }
                guard number > 1 else {
                    var first = Response.image(
                        picture, ending: .closedAfter(bodyBytes: Self.kept))
                    first.headers.append(("ETag", Self.tag))
                    return first
                }
                var rest = Response.range(of: picture, tag: Self.tag, to: request, .right)
                rest.ending = .stalledAfter(bodyBytes: more)
                return rest
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let list = [origin.url("/a.png")]
                let running = try workspace.prefetchCommand(
                    list, ["--retry", "1", "--retry-delay", "10ms"]
                ).start()
                try await origin.wait(for: "the second request") { $0.requests.count == 2 }
                try await running.waitUntilTaken(SIGINT)
                running.signal(SIGINT)
                let first = try workspace.finish(await running.wait(), entries: 1)
                #expect(first.report.verdicts == ["cancelled"], "\(first.result)")
                #expect(try await workspace.query("SELECT * FROM failure").isEmpty)
                #expect(try await parts(workspace).count == 1)
            }
        }
    }

    /// Redirects lead to the part's URL; a different final URL starts over.
    @Test(arguments: ["/b.png", "/c.png"])
    func resumesOnlyFromSameFinalURL(target: String) async throws {
        try await withOrigin { origin in
            let picture = picture
            let hops = Mutex(0)
            origin.serve { request in
                if request.path == "/a.png" {
                    let hop = hops.withLock { hops in
                        hops += 1
                        return hops
                    }
                    return .redirect(to: hop == 1 ? "/b.png" : target)
                }
                var response = Response.range(of: picture, tag: Self.tag, to: request)
                if response.status == 200, request.path == "/b.png" {
                    response.ending = .closedAfter(bodyBytes: ResumeRunTests.kept)
                }
                return response
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let list = [origin.url("/a.png")]
                _ = try await workspace.prefetch(list)
                #expect(try await parts(workspace).map { $0[0] } == [origin.url("/b.png")])
                let run = try await workspace.prefetch(list)
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                let ranges = origin.requests.compactMap { $0.header("range") }
                #expect(ranges.count == (target == "/b.png" ? 1 : 0))
                // A complete body from another URL makes the part useless.
                #expect(try await parts(workspace).isEmpty)
                #expect(try await workspace.judge(sources: [list[0]: picture]) == 1)
            }
        }
    }
}
