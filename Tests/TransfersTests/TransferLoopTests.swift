import Foundation
import PrefetchModel
import TestSupport
import Testing
import Threading

@testable import Transfers

/// The origin's response; PrefetchModel has a type of this name, too.
typealias Response = TestSupport.Response

/// The transfer loop with a real origin on loopback.
@Suite(.timeLimit(.minutes(15)))
struct TransferLoopTests {
    /// Runs requests through a loop on its own thread, and returns the completions by ID.
    ///
    /// The loop is stopped when every request has its completion.
    private func completions(
        of urls: [String], _ configuration: TransferConfiguration = Self.configuration(),
        during work: (TransferLoop) async throws -> Void = { _ in }
    ) async throws -> [Int: TransferCompletion] {
        let loop = try TransferLoop(configuration: configuration) {
            Timestamp(milliseconds: 1_000)
        }
        let received = Monitor([Int: TransferCompletion]())
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let thread = Thread {
            do {
                try loop.run { completions in
                    let isDone = received.withLock {
                        for completion in completions {
                            #expect($0.updateValue(completion, forKey: completion.id) == nil)
                        }
                        return $0.count == urls.count
                    }
                    if isDone { loop.stop() }
                }
            } catch {
                Issue.record(error)
            }
            continuation.finish()
        }
        thread.start()
        loop.start(
            urls.enumerated().map {
                TransferRequest(id: $0.offset, url: RequestURL(parsing: $0.element))
            })
        try await work(loop)
        for await _ in stream {}
        return received.withLock { $0 }
    }

    private static func configuration() -> TransferConfiguration {
        var configuration = TransferConfiguration(userAgent: "prefetch-tests")
        // Tests that hold responses back may be delayed by others that decode.
        configuration.limits.stallTimeout = .seconds(300)
        return configuration
    }

    private func body(_ completion: TransferCompletion?) throws -> [UInt8] {
        guard case .response(_, let body?) = try #require(completion).result else {
            Issue.record("no body: \(String(describing: completion))")
            return []
        }
        return body.withUnsafeBytes { Array($0) }
    }

    private func failure(_ completion: TransferCompletion?) throws -> TransferFailure {
        guard case .failure(let failure) = try #require(completion).result else {
            throw Unexpected(description: "\(String(describing: completion))")
        }
        return failure
    }

    private struct Unexpected: Error, CustomStringConvertible {
        let description: String
    }

    private static let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    @Test(arguments: [Response.Framing.announced, .chunked, .closeDelimited])
    func deliversWholeBodies(framing: Response.Framing) async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(Self.bytes, framing: framing))
            let result = try await completions(of: ["http://127.0.0.1:\(origin.port)/a"])[0]
            #expect(try body(result) == Self.bytes)
            #expect(result?.bytesReceived == Self.bytes.count)
            guard case .response(let head, _)? = result?.result else { return }
            #expect(head.status == 200)
            #expect(head.fields.first("cache-control") == "max-age=3600")
            if case .closeDelimited = framing {
                #expect(!head.hasFramedBody)
            } else {
                #expect(head.hasFramedBody)
            }
        }
    }

    @Test(arguments: [Response.Framing.announced, .chunked, .closeDelimited])
    func refusesABodyOverTheLimitWithAnyFraming(framing: Response.Framing) async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(Self.bytes, framing: framing))
            var configuration = Self.configuration()
            configuration.limits.maximumBodySize = ByteCount(Self.bytes.count - 1)
            let urls = ["http://127.0.0.1:\(origin.port)/a"]
            let refused = try await completions(of: urls, configuration)[0]
            #expect(try failure(refused).reason == .tooLarge)
            configuration.limits.maximumBodySize = ByteCount(Self.bytes.count)
            let accepted = try await completions(of: urls, configuration)[0]
            #expect(try body(accepted) == Self.bytes)
        }
    }

    @Test func reusesConnectionsAndHandles() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(Self.bytes))
            let url = "http://127.0.0.1:\(origin.port)/a"
            // Sequential: each request is started by the completion of the previous one.
            let count = 20
            let loop = try TransferLoop(configuration: Self.configuration()) {
                Timestamp(milliseconds: 0)
            }
            let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
            let thread = Thread {
                do {
                    try loop.run { completions in
                        for completion in completions {
                            continuation.yield(completion.id)
                            if completion.id + 1 < count {
                                loop.start([
                                    TransferRequest(
                                        id: completion.id + 1, url: RequestURL(parsing: url))
                                ])
                            } else {
                                loop.stop()
                            }
                        }
                    }
                } catch {
                    Issue.record(error)
                }
                continuation.finish()
            }
            thread.start()
            loop.start([TransferRequest(id: 0, url: RequestURL(parsing: url))])
            var identifiers: [Int] = []
            for await identifier in stream { identifiers.append(identifier) }
            #expect(identifiers == Array(0..<count))
            #expect(origin.snapshot.connections == 1)
            #expect(
                origin.snapshot.requests.allSatisfy { $0.header("User-Agent") == "prefetch-tests" })
            #expect(
                origin.snapshot.requests.allSatisfy { $0.header("Accept-Encoding") == "identity" })
        }
    }

    /// Bodies of 300 kB under a budget of 400 kB: each waits until the previous one is released.
    /// With a budget of 50 kB none fits, and they still arrive one at a time.
    @Test(arguments: [Response.Framing.announced, .chunked, .closeDelimited], [400_000, 50_000])
    func aSmallBudgetDelaysBodiesWithoutLoss(
        framing: Response.Framing, budget: Int
    ) async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(Self.bytes, framing: framing))
            var configuration = Self.configuration()
            configuration.bodyBudget = ByteCount(budget)
            let loop = try TransferLoop(configuration: configuration) { Timestamp(milliseconds: 0) }
            let count = 12
            let (stream, continuation) = AsyncStream.makeStream(of: TransferCompletion.self)
            let thread = Thread {
                do {
                    try loop.run { for completion in $0 { continuation.yield(completion) } }
                } catch {
                    Issue.record(error)
                }
                continuation.finish()
            }
            thread.start()
            let url = "http://127.0.0.1:\(origin.port)/a"
            loop.start((0..<count).map { TransferRequest(id: $0, url: RequestURL(parsing: url)) })
            var arrived = 0
            for await completion in stream {
                #expect(try body(completion) == Self.bytes)
                arrived += 1
                if arrived == count { loop.stop() }
            }
            #expect(arrived == count)
        }
    }

    @Test(arguments: [
        (Response.Ending.closedAfter(bodyBytes: 1000), Response.Framing.announced),
        (.closedAfter(bodyBytes: 1000), .chunked),
        (.resetAfter(bodyBytes: 1000), .announced),
        (.closedBeforeHead, .announced), (.resetBeforeHead, .announced),
        (.closedInsideHead, .announced), (.resetInsideHead, .announced),
        (.complete, .lyingLength(400_000)), (.complete, .chunkedWithLength(300_000)),
        (.complete, .lengthTexts(["300000", "299999"])), (.complete, .lengthTexts(["-5"])),
        (.complete, .lengthTexts(["99999999999999999999999"])),
        (.complete, .lengthTexts(["+300000"])), (.complete, .lengthTexts(["300000 1"])),
        (.complete, .lengthTexts(["300000, 300001"])),
    ])
    func detectsInterruptedBodies(
        ending: Response.Ending, framing: Response.Framing
    ) async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(Self.bytes, framing: framing, ending: ending))
            let result = try await completions(of: ["http://127.0.0.1:\(origin.port)/a"])[0]
            #expect(try failure(result).reason == .interrupted)
        }
    }

    /// libcurl uses one code for all of these, and for an unknown scheme.
    @Test(arguments: [
        "", "HTTP/3.9 200 OK\r\n\r\n", "HTTP/1.2 200 OK\r\n\r\n", "HTTP/1.1 000 OK\r\n\r\n",
        "HTTP/1.1 0 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1 1000 OK\r\n\r\n",
        "HTTP/1.1 199 OK\r\nContent-Length: 300000\r\n\r\n",
    ])
    func aResponseThatIsNotHTTPIsInterrupted(head: String) async throws {
        try await withOrigin { origin in
            var response = Response(body: Self.bytes, framing: .closeDelimited)
            response.rawHead = head
            origin.serve("/a", response)
            let result = try await completions(of: ["http://127.0.0.1:\(origin.port)/a"])[0]
            #expect(try failure(result).reason == .interrupted)
        }
    }

    @Test func refusesAnUnreadableLengthAtOnce() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a",
                .image(
                    Self.bytes, framing: .lengthTexts(["99999999999999999999999"]),
                    ending: .stalledAfter(bodyBytes: Self.bytes.count)))
            // A stall takes minutes here.
            let result = try await completions(of: ["http://127.0.0.1:\(origin.port)/a"])[0]
            let failure = try failure(result)
            #expect(failure.reason == .interrupted)
            #expect(
                failure.message == "the response announces a length that is not a number of bytes")
        }
    }

    @Test func blamesTheOriginForBytesAfterCompressedData() async throws {
        try await withOrigin { origin in
            var response = Response.image(
                Encodings.encoded(Self.bytes, .gzip) + [UInt8](repeating: 7, count: 400))
            response.headers.append(("Content-Encoding", "gzip"))
            origin.serve("/a", response)
            let result = try await completions(of: ["http://127.0.0.1:\(origin.port)/a"])[0]
            let failure = try failure(result)
            #expect(failure.reason == .interrupted)
            #expect(failure.message == "there is data after the end of the compressed body")
        }
    }

    @Test(arguments: ["gzip", "gzip, aws-chunked", "aws-chunked", "UTF-8", "none"])
    func undoesKnownCodings(coding: String) async throws {
        try await withOrigin { origin in
            let half = Self.bytes.count / 2
            let compressed =
                Encodings.encoded(Array(Self.bytes[..<half]), .gzip)
                + Encodings.encoded(Array(Self.bytes[half...]), .gzip)
                + [UInt8](repeating: 0, count: 20)
            var response = Response.image(coding.contains("gzip") ? compressed : Self.bytes)
            response.headers.append(("Content-Encoding", coding))
            origin.serve("/a", response)
            // A second response on the same connection has its own coding.
            origin.serve("/b", .image(Self.bytes))
            let base = "http://127.0.0.1:\(origin.port)"
            let results = try await completions(of: [base + "/a", base + "/b", base + "/a"])
            for index in 0..<3 { #expect(try body(results[index]) == Self.bytes) }
        }
    }

    @Test func blamesTheOriginForACutCompressedBody() async throws {
        try await withOrigin { origin in
            var response = Response.image(Array(Encodings.encoded(Self.bytes, .gzip).dropLast(9)))
            response.headers.append(("Content-Encoding", "gzip"))
            origin.serve("/a", response)
            let result = try await completions(of: ["http://127.0.0.1:\(origin.port)/a"])[0]
            let failure = try failure(result)
            #expect(failure.reason == .interrupted)
            #expect(failure.message == "the compressed body ends too early")
        }
    }

    @Test func blamesTheOriginForAnEndlessHeaderLine() async throws {
        try await withOrigin { origin in
            var response = Response.image(Self.bytes)
            response.headers.append(("X-Long", String(repeating: "x", count: 200_000)))
            origin.serve("/a", response)
            let result = try await completions(of: ["http://127.0.0.1:\(origin.port)/a"])[0]
            let failure = try failure(result)
            #expect(failure.reason == .interrupted)
            #expect(failure.message == "the response header is too long")
        }
    }

    @Test func saysWhichSizeExceedsTheLimit() async throws {
        try await withOrigin { origin in
            let bytes = [UInt8](repeating: 0, count: 300_000)
            var compressed = Response.image(Encodings.encoded(bytes, .gzip))
            compressed.headers.append(("Content-Encoding", "gzip"))
            origin.serve("/compressed", compressed)
            origin.serve("/announced", .image(bytes))
            var plain = Response.image(bytes, framing: .chunked)
            origin.serve("/chunked", plain)
            plain.headers.append(("Content-Encoding", "Identity"))
            origin.serve("/identity", plain)
            var configuration = Self.configuration()
            configuration.limits.maximumBodySize = ByteCount(100_000)
            let limit = ByteCount(100_000)
            let base = "http://127.0.0.1:\(origin.port)"
            let results = try await completions(
                of: ["/compressed", "/announced", "/chunked", "/identity"].map { base + $0 },
                configuration)
            let messages = try (0..<4).map { try failure(results[$0]).message }
            #expect(
                messages == [
                    "the body is larger than --max-filesize (\(limit)) when it is decompressed",
                    "the announced body is larger than --max-filesize (\(limit))",
                    "the body is larger than --max-filesize (\(limit))",
                    "the body is larger than --max-filesize (\(limit))",
                ])
        }
    }

    @Test func distinguishesStallsFromTimeouts() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(Self.bytes, ending: .stalledAfter(bodyBytes: 10)))
            let urls = ["http://127.0.0.1:\(origin.port)/a"]
            var configuration = Self.configuration()
            configuration.limits.stallTimeout = .seconds(1)
            let stalled = try failure(try await completions(of: urls, configuration)[0])
            #expect(stalled.reason == .stalled)
            configuration.limits.stallTimeout = .seconds(15)
            configuration.limits.totalTimeout = .milliseconds(300)
            let timedOut = try failure(try await completions(of: urls, configuration)[0])
            #expect(timedOut.reason == .timeout)
        }
    }

    @Test(arguments: [
        ("http://127.0.0.1:1/", FailureReason.connect), ("http://no-such-host.invalid/", .dns),
        ("gopher://127.0.0.1/", .unsupportedScheme),
    ])
    func mapsFailuresBeforeTheResponse(url: String, reason: FailureReason) async throws {
        let failed = try failure(try await completions(of: [url])[0])
        #expect(failed.reason == reason)
        #expect(failed.curlCode != nil)
    }

    @Test func dropsBodiesOfOtherStatusesAndKeepsTheirConnection() async throws {
        try await withOrigin { origin in
            origin.serve("/a", Response(404, body: Array(Self.bytes.prefix(5000))))
            origin.serve("/b", .redirect(to: "/c?x#y"))
            let base = "http://127.0.0.1:\(origin.port)"
            let results = try await completions(of: ["\(base)/a", "\(base)/b"])
            guard case .response(let notFound, nil)? = results[0]?.result,
                case .response(let redirect, nil)? = results[1]?.result
            else {
                Issue.record("\(results)")
                return
            }
            #expect(notFound.status == 404)
            #expect(redirect.status == 302)
            #expect(redirect.redirect == .to(RequestURL(normalized: "\(base)/c?x")))
        }
    }

    @Test(arguments: [
        ("HTTP://U:P@LocalHost:80/%7ea#f", "http://localhost/~a"),
        ("//LOCALHOST:/", "http://localhost/"), ("http://[::0:1]:80", "http://[::1]/"),
        ("http://bücher.de/é", "http://xn--bcher-kva.de/%C3%A9"), ("http://h./", "http://h./"),
    ])
    func normalisesTargetsOfRedirects(location: String, expected: String) async throws {
        try await withOrigin { origin in
            origin.serve("/a", .redirect(to: location))
            let result = try await completions(of: ["http://127.0.0.1:\(origin.port)/a"])[0]
            guard case .response(let head, nil)? = result?.result else {
                Issue.record("\(String(describing: result))")
                return
            }
            #expect(head.redirect == .to(RequestURL(normalized: expected)))
        }
    }

    @Test func aFragmentRedirectsToTheURLItself() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .redirect(to: "#x"))
            origin.serve("/b", .redirect(to: ""))
            let base = "http://127.0.0.1:\(origin.port)"
            let results = try await completions(of: ["\(base)/a", "\(base)/b"])
            let redirects = results.mapValues { completion -> Redirect? in
                guard case .response(let head, nil) = completion.result else { return nil }
                return head.redirect
            }
            #expect(redirects[0] == .to(RequestURL(normalized: "\(base)/a")))
            #expect(redirects[1] == .some(nil))
        }
    }

    @Test func messagesAboutRedirectsNameNoManifestFlags() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .redirect(to: "example.com:8080/x"))
            let result = try await completions(of: ["http://127.0.0.1:\(origin.port)/a"])[0]
            guard case .response(let head, nil)? = result?.result else {
                Issue.record("\(String(describing: result))")
                return
            }
            #expect(
                head.redirect
                    == .nowhere(
                        location: "example.com:8080/x",
                        message: "only http and https are supported"))
        }
    }

    @Test(arguments: ["ftp://u:secret@h/", "http://u:secret@h:99999/", "http://a|b/"])
    func unusableRedirectsShowNoSecret(location: String) async throws {
        try await withOrigin { origin in
            // A character may have any number of scalars.
            let rest = String(repeating: "x\u{301}\u{301}\u{301}", count: 1000)
            origin.serve("/a", .redirect(to: location + rest))
            let result = try await completions(of: ["http://127.0.0.1:\(origin.port)/a"])[0]
            guard case .response(let head, nil)? = result?.result,
                case .nowhere(let shown, let message)? = head.redirect
            else {
                Issue.record("\(String(describing: result))")
                return
            }
            #expect(!shown.contains("secret") && !message.contains("secret"))
            #expect(shown.unicodeScalars.count <= 200)
        }
    }

    @Test func cancellingDeliversEveryRequestOnce() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve("/a", .image(Self.bytes, gate: gate))
            let urls = (0..<5).map { _ in "http://127.0.0.1:\(origin.port)/a" }
            let results = try await completions(of: urls) { loop in
                try await origin.wait(for: "five requests") { $0.inFlight == 5 }
                loop.cancelAll()
            }
            #expect(results.count == 5)
            for result in results.values {
                guard case .cancelled = result.result else {
                    Issue.record("\(result)")
                    continue
                }
            }
            gate.open()
        }
    }

    /// libcurl keeps the data of each host that lost its connection to another one.
    @Test func closesAHostsLastConnectionAfterMany() async throws {
        try await withOrigin { origin in
            origin.serve { request in
                var response = Response.image([1, 2, 3])
                if request.path == "/closed" { response.headers.append(("Connection", "close")) }
                return response
            }
            func connections(_ path: String, _ count: Int, _ loop: RunningLoop) async -> Int {
                let before = origin.snapshot.connections
                for _ in 0..<count {
                    let answer = await loop.get {
                        TransferRequest(
                            id: $0, url: RequestURL(parsing: origin.url(path)),
                            isLastOfHost: path == "/last")
                    }
                    #expect(answer.status == 200)
                }
                return origin.snapshot.connections - before
            }
            try await withLoop(TransferConfiguration(userAgent: "prefetch-tests")) { loop in
                #expect(await connections("/last", 3, loop) == 1)
                #expect(await connections("/closed", 1100, loop) >= 1099)
                #expect(await connections("/last", 3, loop) == 3)
                #expect(await connections("/kept", 3, loop) == 1)
            }
        }
    }
}
