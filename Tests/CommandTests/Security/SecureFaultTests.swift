import TestSupport
import Testing

/// Faults of TLS and of HTTP/2.
@Suite(.timeLimit(.minutes(15)))
struct SecureFaultTests {
    private static let picture = Fixtures.png(width: 40, height: 40, isNoise: true)

    /// On a busy machine a handshake takes half a second, with a sanitizer several times as long.
    private static let second = Sanitizer.isActive ? 5 : 2
    private static let limits = [
        "--connect-timeout", "\(second)s", "--stall-timeout", "\(second)s", "--timeout",
        "\(5 * second)s", "--max-filesize", "1MiB",
    ]

    /// The responses of one origin, and the expected verdicts.
    private struct Case {
        let name: String
        var security: OriginSecurity?
        var accepting = Origin.Accepting.requests
        var response = Response.image(SecureFaultTests.picture)
        let verdicts: Set<String>
    }

    private func withOrigins(
        _ cases: ArraySlice<Case>, _ open: [Origin] = [],
        _ body: ([Origin]) async throws -> Void
    ) async throws {
        guard let first = cases.first else { return try await body(open) }
        try await withOrigin(security: first.security, accepting: first.accepting) { origin in
            origin.serve("/x.png", first.response)
            try await withOrigins(cases.dropFirst(), open + [origin], body)
        }
    }

    private static func cases(_ authority: TestAuthority) -> [Case] {
        var old = authority.security()
        old.version = .tls1
        var cut = Response.image(picture.dropLast(500), framing: .closeDelimited)
        cut.closesWithoutNotice = true
        var rude = Response.image(picture)
        rude.closesSilently = true
        rude.closesWithoutNotice = true
        return [
            Case(name: "good", security: authority.security(), verdicts: ["downloaded"]),
            Case(
                name: "expired", security: authority.security(.expired), verdicts: ["failed/tls"]),
            Case(name: "early", security: authority.security(.early), verdicts: ["failed/tls"]),
            Case(
                name: "other name", security: authority.security(.other),
                verdicts: ["failed/tls"]),
            Case(name: "self-signed", security: authority.security(.own), verdicts: ["failed/tls"]),
            Case(name: "TLS 1.0 only", security: old, verdicts: ["failed/tls"]),
            Case(name: "no TLS at all", verdicts: ["failed/tls"]),
            // The client sees one or the other, depending on the progress of the handshake.
            Case(
                name: "closed in the handshake", accepting: .closed,
                verdicts: ["failed/tls", "failed/interrupted"]),
            Case(
                name: "reset in the handshake", accepting: .resetInsideRequest,
                verdicts: ["failed/tls", "failed/interrupted"]),
            Case(name: "silent handshake", accepting: .silence, verdicts: ["failed/connect"]),
            Case(
                name: "a whole body and no notice", security: authority.security(), response: rude,
                verdicts: ["downloaded"]),
            Case(
                name: "a cut that only a notice would tell", security: authority.security(),
                response: cut, verdicts: ["failed/interrupted"]),
            Case(
                name: "cut inside TLS", security: authority.security(),
                response: .image(picture, ending: .resetAfter(bodyBytes: 1000)),
                verdicts: ["failed/interrupted"]),
        ]
    }

    @Test func reportsTLSFaults() async throws {
        let authority = try await TestAuthority.shared()
        let cases = SecureFaultTests.cases(authority)
        try await withOrigins(cases[...]) { origins in
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let lines = origins.map { "https://localhost:\($0.port)/x.png" }
                let command = try workspace.prefetchCommand(
                    lines, SecureFaultTests.limits + ["--cacert", authority.path])
                let run = try workspace.finish(await command.run(), entries: lines.count)
                for (index, row) in cases.enumerated() {
                    let verdict = run.report[line: index + 1]?.verdict ?? ""
                    #expect(
                        row.verdicts.contains(verdict), "\(row.name): \(verdict)\n\(run.result)")
                }
                // A wrong clock makes every certificate look bad: no URL is blacklisted.
                let blacklisted = try await workspace.query(
                    "SELECT url FROM failure WHERE class <> 'transient' "
                        + "OR blacklisted_until IS NOT NULL")
                #expect(blacklisted == [])
                // One connection time-out and no stall; the other second is for a busy machine.
                #expect(
                    run.result.time < .seconds(SecureFaultTests.second) * 1.1 + .seconds(2)
                        || Sanitizer.isActive)
            }
        }
    }

    // MARK: HTTP/2

    /// Rows of one origin, by path.
    private static let streams: [(path: String, response: Response, verdicts: Set<String>)] = {
        func streaming(_ fault: Response.StreamFault) -> Response {
            var response = Response.image(picture)
            response.stream = fault
            return response
        }
        func half(_ file: [UInt8]) -> Response {
            var response = Response.image(file, framing: .chunked)
            response.stream = .ended(bodyBytes: file.count / 2)
            return response
        }
        let bareJPEGXL: [UInt8] = [0xFF, 0x0A, 0b0101_0111, 0] + [UInt8](repeating: 1, count: 996)
        var trickle = Response.image(picture)
        trickle.drip = (bytes: 2, interval: .milliseconds(300))
        let large = Fixtures.png(width: 260, height: 260, isNoise: true)
        return [
            ("/good", .image(picture), ["downloaded"]),
            ("/reset", streaming(.reset(bodyBytes: 1000)), ["failed/interrupted"]),
            ("/reset-at-once", streaming(.reset(bodyBytes: 0)), ["failed/interrupted"]),
            ("/refused", streaming(.refused), ["failed/interrupted"]),
            (
                "/long", .image(picture, framing: .lyingLength(picture.count + 5)),
                ["failed/interrupted"]
            ),
            (
                "/short", .image(picture, framing: .lyingLength(picture.count - 5)),
                ["failed/interrupted", "failed/corrupt-image"]
            ),
            // The end of the stream, without a length and with no error.
            ("/half", half(picture), ["failed/interrupted"]),
            ("/half-jxl", half(bareJPEGXL), ["failed/interrupted"]),
            ("/no-bytes", half([]), ["failed/interrupted"]),
            ("/no-length", .image(picture, framing: .chunked), ["downloaded"]),
            ("/jxl", Response(body: bareJPEGXL, type: "image/jxl"), ["downloaded"]),
            ("/silent", Response(ending: .stalledBeforeHead), ["failed/stalled"]),
            ("/no-body", .image(picture, ending: .stalledAfter(bodyBytes: 0)), ["failed/stalled"]),
            // The client's window is never empty; the origin only behaves as if it were.
            (
                "/window", .image(large, ending: .stalledAfter(bodyBytes: 65_535)),
                ["failed/stalled"]
            ),
            ("/trickle", trickle, ["failed/timeout"]),
            ("/endless", .image(large, framing: .chunked, ending: .endless), ["failed/too-large"]),
            ("/gone", .notFound, ["failed/http-status"]),
            ("/moved", .redirect(to: "/good?moved"), ["downloaded"]),
        ]
    }()

    @Test func streamFaultsDoNotAffectOtherStreams() async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigin(security: authority.security(http2: .init())) { origin in
            for row in SecureFaultTests.streams { origin.serve(row.path, row.response) }
            origin.serve { .image(Fixtures.png(seed: Int($0.path.dropFirst()) ?? 0)) }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let neighbours = 30
                let lines =
                    SecureFaultTests.streams.map { origin.url($0.path, host: "localhost") }
                    + (0..<neighbours).map { origin.url("/\($0)", host: "localhost") }
                // All of them connect and respond in parallel, which may take a busy machine over
                // a second.
                let second = SecureFaultTests.second
                let command = try workspace.prefetchCommand(
                    lines,
                    [
                        "--connect-timeout", "\(15 * second)s", "--stall-timeout",
                        "\(3 * second)s", "--timeout", "\(8 * second)s", "--max-filesize", "1MiB",
                        "--cacert", authority.path, "--host-concurrency", "32",
                    ])
                let run = try workspace.finish(await command.run(), entries: lines.count)
                for (index, row) in SecureFaultTests.streams.enumerated() {
                    let verdict = run.report[line: index + 1]?.verdict ?? ""
                    #expect(
                        row.verdicts.contains(verdict), "\(row.path): \(verdict)\n\(run.result)")
                }
                let arrived = run.report.entries.filter {
                    $0.line > SecureFaultTests.streams.count && $0.outcome == "downloaded"
                }
                #expect(arrived.count == neighbours, "\(run.result)")
            }
        }
    }

    /// Neither connections that end with GOAWAY nor a stream refused once cost an entry.
    @Test func goAwayCostsNoEntry() async throws {
        let authority = try await TestAuthority.shared()
        let security = authority.security(http2: .init(requestsBeforeGoAway: 7))
        try await withOrigin(security: security) { origin in
            let lines = (0..<60).map { index in
                var refused = Response()
                refused.stream = .refused
                let picture = Response.image(Fixtures.png(seed: index))
                if index % 10 == 3 {
                    origin.serve("/\(index)", refused, picture)
                } else {
                    origin.serve("/\(index)", picture)
                }
                return origin.url("/\(index)", host: "localhost")
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let run = try await workspace.prefetch(
                    lines, "--cacert", authority.path, "--retry", "3", "--retry-delay", "10ms")
                #expect(run.summary.outcomes == ["downloaded": 60], "\(run.result)")
                // Sixty responses and six refusals, seven per connection.
                #expect(origin.snapshot.connections >= 10)
                #expect(origin.requests.count >= 66)
            }
        }
    }

    /// A server may accept one stream at a time, or more than the user wants to run.
    @Test(arguments: [1, 1000])
    func respectsAnnouncedAndOwnStreamLimits(streams: Int) async throws {
        let authority = try await TestAuthority.shared()
        let security = authority.security(http2: .init(maximumConcurrentStreams: streams))
        try await withOrigin(security: security) { origin in
            let lines = (0..<40).map { index in
                var response = Response.image(Fixtures.png(seed: index))
                response.delayBeforeHead = .milliseconds(20)
                origin.serve("/\(index)", response)
                return origin.url("/\(index)", host: "localhost")
            }
            try await withWorkspace(without: [.stalls]) { workspace in
                let run = try await workspace.prefetch(
                    lines, "--cacert", authority.path, "--host-concurrency", "6")
                #expect(run.summary.outcomes == ["downloaded": 40], "\(run.result)")
                #expect(origin.snapshot.peakInFlight <= 6)
                if streams > 1 {
                    #expect(origin.snapshot.connections == 1)
                    #expect(origin.snapshot.peakInFlight > 1)
                }
            }
        }
    }
}
