import TestSupport
import Testing

private func get(_ path: String, _ fields: String...) -> String {
    "GET \(path) HTTP/1.1\r\n" + (fields + ["Connection: close"]).map { $0 + "\r\n" }.joined()
        + "\r\n"
}

@Suite(.timeLimit(.minutes(15)))
struct OriginFaultTests {
    @Test func countsRequestsPerHost() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve { _ in Response(body: [65], gate: gate) }
            async let answers = withThrowingTaskGroup(of: Void.self) { group in
                for host in ["A.localhost:80", "a.localhost", "b.localhost:99", "[::1]:80"] {
                    group.addTask { _ = try await exchange(origin, get("/", "Host: \(host)")) }
                }
                try await group.waitForAll()
            }
            try await origin.wait(for: "four requests") {
                $0["a.localhost"].inFlight == 2 && $0.inFlight == 4
            }
            gate.open()
            try await answers
            let snapshot = origin.snapshot
            #expect(snapshot["a.localhost"].peakInFlight == 2)
            #expect(snapshot["a.localhost"].inFlight == 0)
            #expect(snapshot["a.localhost"].intervals.count == 1)
            #expect(snapshot["b.localhost"].requests == 1)
            #expect(snapshot["[::1]"].requests == 1)
            #expect(snapshot["c.localhost"].requests == 0)
        }
    }

    @Test func closesConnectionsBeforeResponse() async throws {
        for (accepting, isReset) in [
            (Origin.Accepting.closed, false), (.reset, true), (.resetInsideRequest, true),
        ] {
            try await withOrigin(accepting: accepting) { origin in
                // Writing to a closed connection causes a reset.
                let answer = try? await exchange(origin, accepting == .closed ? "" : get("/"))
                #expect(answer?.bytes.isEmpty != false)
                if isReset, let answer { #expect(answer.isReset, "\(accepting)") }
                try await origin.wait(for: "the connection") { $0.connections == 1 }
                #expect(origin.requests.isEmpty)
            }
        }
    }

    /// curl's status 28: neither refused nor connected in time.
    @Test func fullBacklogTimesOut() async throws {
        try await withOrigin(accepting: .nothing) { origin in
            let result = try await Command(
                executable: "/usr/bin/curl",
                arguments: [
                    "-sS", "--connect-timeout", "0.3", "-w", "%{time_connect}", origin.url("/"),
                ],
                environment: [:], folder: "/tmp"
            ).run()
            #expect(result.status == 28, "\(result)")
            #expect(result.output == "0.000000", "\(result)")
            #expect(origin.snapshot.connections == 0)
        }
    }

    @Test func resetsAfterCompleteResponse() async throws {
        try await withOrigin { origin in
            origin.serve("/", Response(body: Array("abc".utf8), ending: .resetAfterWhole))
            let answer = try await exchange(origin, get("/"))
            #expect(answer.isReset)
            #expect(answer.text.hasSuffix("\r\n\r\nabc"))
        }
    }

    @Test func sendsPreludeAndDelaysClose() async throws {
        try await withOrigin { origin in
            var response = Response(body: [65], framing: .closeDelimited)
            response.prelude = Array("HTTP/1.1 103 Early\r\n\r\n".utf8)
            response.delayBeforeClose = .milliseconds(200)
            origin.serve("/", response)
            let start = ContinuousClock.now
            let answer = try await exchange(origin, get("/"))
            #expect(answer.text.hasPrefix("HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 "))
            #expect(ContinuousClock.now - start >= .milliseconds(200))
        }
    }

    /// For each range response: status, field and body, for a file of six bytes from the third on.
    @Test(arguments: [
        (RangeAnswer.right, "206", "bytes 2-5/6", "cdef"), (.ignored, "200", "", "abcdef"),
        (.otherStart, "206", "bytes 3-5/6", "def"), (.otherTotal, "206", "bytes 2-5/7", "cdef"),
        (.otherUnit, "206", "lines 2-5/6", "cdef"), (.missing, "206", "", "cdef"),
        (.garbage, "206", "bytes from the middle", "cdef"),
        (.otherValidator, "206", "bytes 2-5/6", "cdef"), (.notSatisfiable, "416", "bytes */6", ""),
        (.multipart, "206", "bytes 2-5/6", "--part--\r\n"),
    ])
    func answersRangeRequests(answer: RangeAnswer, status: String, field: String, body: String)
        async throws
    {
        try await withOrigin { origin in
            let file = Array("abcdef".utf8)
            origin.serve { .range(of: file, tag: "\"t\"", to: $0, answer) }
            let range = get("/", "Range: bytes=2-", "If-Range: \"t\"")
            let text = try await exchange(origin, range).text
            #expect(text.hasPrefix("HTTP/1.1 \(status) "))
            #expect(field.isEmpty != text.contains("Content-Range: \(field)"))
            #expect(text.hasSuffix(body))
            if answer == .right {
                let other = get("/", "Range: bytes=2-", "If-Range: \"u\"")
                #expect(try await exchange(origin, other).text.hasPrefix("HTTP/1.1 200 "))
                let beyond = get("/", "Range: bytes=6-")
                #expect(try await exchange(origin, beyond).text.hasPrefix("HTTP/1.1 416 "))
                #expect(try await exchange(origin, get("/")).text.hasPrefix("HTTP/1.1 200 "))
            }
        }
    }

    @Test func bombsHaveExpectedSizes() {
        #expect((40_000..<60_000).contains(Encodings.bomb.count))
        #expect((40_000..<60_000).contains(Encodings.deflateBomb.count))
        #expect(Encodings.stackedBomb.count < 2000)
    }

    @Test func formatsDatesAsIMFFixdate() {
        let text = HTTPDateText.now(plus: 3600)
        #expect(text.utf8.count == 29 && text.hasSuffix(" GMT"))
        #expect(
            text.wholeMatch(of: /[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} 20\d\d \d\d:\d\d:\d\d GMT/)
                != nil)
    }
}
