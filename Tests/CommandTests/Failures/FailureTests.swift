import Glibc
import TestSupport
import Testing

/// One URL, one fault, and the acceptable reasons for it.
struct FailureCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let response: Response
    var options: [String] = []
    let reasons: Set<String>

    init(_ name: String, _ response: Response, _ options: [String] = [], _ reasons: String...) {
        testDescription = name
        self.response = response
        self.options = options
        self.reasons = Set(reasons)
    }
}

extension FailureCase {
    private static func file(_ name: String) -> [UInt8] {
        (try? Fixtures.file(name)) ?? []
    }

    private static let picture = Fixtures.png(width: 40, height: 40, isNoise: true)
    private static let jpeg = file("baseline.jpg")
    private static let html = Array("<!doctype html><title>Sign in</title>".utf8)

    private static func typed(_ type: String, _ body: [UInt8]) -> Response {
        Response(body: body, type: type)
    }

    /// Longer than a busy machine lets a good neighbour wait.
    private static let waiting = ["--stall-timeout", "3s"]

    private static let statuses: [FailureCase] = [
        FailureCase("404", .notFound, [], "http-status"),
        FailureCase("404 with a picture", Response(404, body: picture), [], "http-status"),
        FailureCase(
            "404 whose body breaks off", Response(404, body: picture, framing: .lyingLength(9999)),
            [], "http-status"),
        FailureCase(
            "404 whose body stalls",
            Response(404, body: picture, ending: .stalledAfter(bodyBytes: 5)),
            waiting, "http-status"),
        FailureCase("403", Response(403), [], "http-status"),
        FailureCase("410", Response(410), [], "http-status"),
        FailureCase("500", Response(500), [], "http-status"),
        FailureCase("204", Response(204, framing: .bodiless), [], "http-status", "not-an-image"),
        FailureCase("206 unasked", Response(206, body: picture), [], "http-status"),
        FailureCase("304 unasked", .notModified, [], "http-status"),
        FailureCase("302 without Location", Response(302), [], "redirect", "http-status"),
    ]

    private static let redirects: [FailureCase] = [
        FailureCase("redirect to itself", .redirect(to: "/case"), [], "redirect"),
        FailureCase("twelve redirects", .redirect(to: "/f/redirect/11/x.png"), [], "redirect"),
        FailureCase("redirect to ftp", .redirect(to: "ftp://127.0.0.1/x.png"), [], "redirect"),
        FailureCase("redirect to a file", .redirect(to: "file:///etc/hostname"), [], "redirect"),
        FailureCase(
            "redirect to 404 whose body breaks off",
            Response(
                302, headers: [("Location", "/nowhere")], body: picture,
                framing: .lyingLength(9999)), [], "http-status"),
        FailureCase(
            "redirect to 404 with a large body",
            Response(
                302, headers: [("Location", "/nowhere")],
                body: [UInt8](repeating: 0x20, count: 200_000)), [], "http-status"),
        FailureCase("redirect to 404", .redirect(to: "/nowhere"), [], "http-status"),
    ]

    private static let bodies: [FailureCase] = [
        FailureCase("HTML", .text("<html></html>"), [], "not-an-image"),
        FailureCase("HTML called a PNG", typed("image/png", html), [], "not-an-image"),
        FailureCase("JSON", typed("application/json", Array("{}".utf8)), [], "not-an-image"),
        FailureCase("empty, announced", .image([]), [], "interrupted"),
        FailureCase("empty, chunked", .image([], framing: .chunked), [], "interrupted"),
        FailureCase(
            "empty, close-delimited", .image([], framing: .closeDelimited), [], "interrupted"),
        FailureCase(
            "TIFF", .image(Fixtures.tiff), ["--other-formats", "fail"], "unsupported-image"),
        FailureCase(
            "an animation that is refused", .image(file("animated.png")),
            ["--animated", "refuse"], "unsupported-image"),
        FailureCase("damaged PNG", .image(Fixtures.damaged(picture)), [], "corrupt-image"),
        FailureCase("PNG without its last rows", .image(picture.dropLast(30)), [], "corrupt-image"),
        FailureCase("JPEG without its end", .image(jpeg.dropLast(2)), [], "corrupt-image"),
        FailureCase("half a JPEG", .image(jpeg.dropLast(jpeg.count / 4)), [], "corrupt-image"),
        FailureCase(
            "more pixels than allowed", .image(picture), ["--max-pixels", "1599"], "too-many-pixels"
        ),
        FailureCase(
            "a declared bomb", .image(Fixtures.pngDeclaring(width: 60_000, height: 60_000)), [],
            "too-many-pixels"),
        FailureCase(
            "no-store", Response(headers: [("Cache-Control", "no-store")], body: picture), [],
            "uncacheable"),
    ]

    private static let sizes: [FailureCase] = [
        FailureCase("announced", .image(picture), ["--max-filesize", "1KiB"], "too-large"),
        FailureCase(
            "chunked", .image(picture, framing: .chunked), ["--max-filesize", "1KiB"], "too-large"),
        FailureCase(
            "close-delimited", .image(picture, framing: .closeDelimited),
            ["--max-filesize", "1KiB"], "too-large"),
        FailureCase(
            "announced, never sent",
            .image(picture, framing: .lyingLength(1 << 40), ending: .stalledAfter(bodyBytes: 10)),
            [], "too-large"),
    ]

    private static let cuts: [FailureCase] = [
        FailureCase(
            "closed before the head", Response(ending: .closedBeforeHead), [], "interrupted"),
        FailureCase("closed in the head", Response(ending: .closedInsideHead), [], "interrupted"),
        FailureCase(
            "closed in the body", .image(picture, ending: .closedAfter(bodyBytes: 1000)), [],
            "interrupted"),
        FailureCase("reset before the head", Response(ending: .resetBeforeHead), [], "interrupted"),
        FailureCase("reset in the head", Response(ending: .resetInsideHead), [], "interrupted"),
        FailureCase(
            "reset in the body", .image(picture, ending: .resetAfter(bodyBytes: 1000)), [],
            "interrupted"),
        FailureCase(
            "a close-delimited cut", .image(picture.dropLast(500), framing: .closeDelimited), [],
            "interrupted"),
        FailureCase(
            "a length too long", .image(picture, framing: .lyingLength(picture.count + 5)), [],
            "interrupted"),
        FailureCase(
            "a length too short", .image(picture, framing: .lyingLength(picture.count - 30)), [],
            "corrupt-image", "interrupted"),
    ]

    /// Framing that no client can read correctly: it is refused, with any reason, and never
    /// counts as local.
    private static let framings: [FailureCase] = [
        ("a negative length", .lengthTexts(["-1"])),
        ("a length of letters", .lengthTexts(["many"])),
        ("different lengths, the true one last", .lengthTexts(["5", "\(picture.count)"])),
        ("different lengths, the true one first", .lengthTexts(["\(picture.count)", "5"])),
        ("length and chunks", .chunkedWithLength(5)),
    ].map { name, framing in
        FailureCase(
            name, .image(picture, framing: framing), [], "interrupted", "corrupt-image",
            "not-an-image")
    }

    private static let waits: [FailureCase] = [
        FailureCase(
            "silent before the head", Response(ending: .stalledBeforeHead),
            ["--timeout", "3s"], "timeout"),
        FailureCase(
            "silent in the body", .image(picture, ending: .stalledAfter(bodyBytes: 100)),
            ["--timeout", "3s"], "timeout"),
        FailureCase(
            "stalled before the head", Response(ending: .stalledBeforeHead),
            waiting, "stalled"),
        FailureCase(
            "stalled in the head", Response(ending: .stalledInsideHead),
            waiting, "stalled"),
        FailureCase(
            "stalled in the body", .image(picture, ending: .stalledAfter(bodyBytes: 100)),
            waiting, "stalled"),
    ]

    /// All cases, by their options.
    static let groups: [[FailureCase]] = Dictionary(
        grouping: statuses + redirects + bodies + sizes + cuts + framings + waits, by: \.options
    ).sorted { $0.key.joined() < $1.key.joined() }.map(\.value)
}

@Suite(.timeLimit(.minutes(15)))
struct FailureTests {
    /// Each case at its own host. Nothing is stored of it (the workspace's judge checks the files),
    /// the run exits 1, and a good neighbour at the same host is downloaded.
    @Test(arguments: FailureCase.groups)
    func casesFailWithTheirReason(cases: [FailureCase]) async throws {
        try await withOrigin { origin in
            let small = Fixtures.png(width: 4, height: 4)
            let hosts = cases.indices.map { "c\($0).localhost" }
            origin.serveFaults(of: ["x.png": small]) { request in
                switch request.path {
                case "/good": .image(small)
                case "/case": hosts.firstIndex(of: request.host).map { cases[$0].response }
                default: nil
                }
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let lines = hosts.flatMap { host in
                    ["/case", "/good"].map { origin.url($0, host: host) }
                }
                let command = try workspace.prefetchCommand(lines, cases[0].options)
                let run = try workspace.finish(await command.run(), entries: lines.count)
                #expect(run.result.status == 1, "\(run.result)")
                for (index, failure) in cases.enumerated() {
                    let entry = try #require(run.report[line: 2 * index + 1])
                    let name = failure.testDescription
                    #expect(entry.outcome == "failed", "\(name): \(entry)")
                    #expect(failure.reasons.contains(entry.reason ?? ""), "\(name): \(entry)")
                    #expect(entry.message?.contains("\n") != true, "\(name): \(entry)")
                    #expect(
                        run.report[line: 2 * index + 2]?.outcome == "downloaded",
                        "beside \(name): \(run.result)")
                }
                #expect(try await workspace.judge() == cases.count)
                #expect(run.result.time < .seconds(10))
            }
        }
    }

    /// A closed port, a name that does not exist, and schemes that are not requested.
    @Test func placesThatCannotBeReached() async throws {
        // Bound but not listening: no other process gets the port, and it refuses connections.
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(descriptor, $0, length)
                _ = getsockname(descriptor, $0, &length)
            }
        }
        let port = UInt16(bigEndian: address.sin_port)
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let run = try await workspace.prefetch([
                "http://127.0.0.1:\(port)/a.png", "http://no-such-host.invalid/a.png",
                "ftp://127.0.0.1/a.png", "file:///etc/hostname", "gopher://127.0.0.1/a",
            ])
            #expect(
                run.report.verdicts == [
                    "failed/connect", "failed/dns", "failed/unsupported-scheme",
                    "failed/unsupported-scheme", "failed/unsupported-scheme",
                ], "\(run.result)")
            #expect(run.result.status == 1)
        }
    }

    @Test func slowOriginIsNotStalled() async throws {
        try await withOrigin { origin in
            let picture = Fixtures.png(width: 16, height: 16, isNoise: true)
            var response = Response.image(picture)
            response.drip = (bytes: picture.count / 8, interval: .milliseconds(500))
            origin.serve("/slow", response)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let run = try await workspace.prefetch(
                    [origin.url("/slow")], "--stall-timeout", "3s")
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
            }
        }
    }

    @Test func queueTimeDoesNotCountAsTimeout() async throws {
        try await withOrigin { origin in
            let urls = (0..<6).map { index in
                var response = Response.image(Fixtures.png(seed: index))
                response.delayBeforeHead = .milliseconds(600)
                origin.serve("/\(index)", response)
                return origin.url("/\(index)")
            }
            try await withWorkspace(without: [.stalls]) { workspace in
                let run = try await workspace.prefetch(urls, "-j", "1", "--timeout", "3s")
                #expect(run.summary.outcomes == ["downloaded": 6], "\(run.result)")
            }
        }
    }

    /// All by one handle and, except for closed ones, one connection: the verdict on a response
    /// does not affect the next one.
    @Test(arguments: [[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    func framingIsJudgedPerResponse(kinds: [Int]) async throws {
        try await withOrigin { origin in
            let picture = Fixtures.png(seed: 1)
            var contradictory = Response(body: picture, framing: .closeDelimited)
            contradictory.rawHead =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: \(picture.count)\r\n"
                + "Transfer-Encoding: identity\r\n\r\n"
            let urls = kinds.indices.map { origin.url("/\($0).png") }
            for (place, kind) in kinds.enumerated() {
                origin.serve("/\(place).png", kind == 0 ? contradictory : .picture(picture))
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls, "-j", "1")
                #expect(
                    run.report.verdicts
                        == kinds.map { $0 == 0 ? "failed/interrupted" : "downloaded" },
                    "\(run.result)")
            }
        }
    }
}
