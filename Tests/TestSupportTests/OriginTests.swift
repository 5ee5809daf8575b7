import TestSupport
import Testing

private func get(_ path: String, closing: Bool = true) -> String {
    "GET \(path) HTTP/1.1\r\nHost: test\r\n\(closing ? "Connection: close\r\n" : "")\r\n"
}

@Suite(.timeLimit(.minutes(15)))
struct OriginTests {
    @Test func answersAsScriptedAndRecordsRequests() async throws {
        try await withOrigin { origin in
            var response = Response(body: Array("hello".utf8), type: "text/plain")
            response.closesSilently = true
            origin.serve("/a", response)
            let answer = try await exchange(origin, get("/a?x=1"))
            #expect(
                answer.text
                    == "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=3600\r\n"
                    + "Content-Length: 5\r\n\r\nhello")
            #expect(origin.requests.count == 1)
            #expect(origin.requests.first?.target == "/a?x=1")
            #expect(origin.requests.first?.header("HOST") == "test")
            try await origin.wait(for: "the end of the answer") { $0.answered == 1 }
            #expect(origin.snapshot.inFlight == 0)
        }
    }

    @Test func answersPipelinedRequestsInOrder() async throws {
        try await withOrigin { origin in
            origin.serve("/a", Response(body: [65]))
            var last = Response(body: [66])
            last.closesSilently = true
            origin.serve("/b", last)
            let answer = try await exchange(origin, get("/a", closing: false) + get("/b"))
            #expect(answer.text.split(separator: "HTTP/1.1 200").count == 2)
            #expect(answer.text.hasSuffix("\r\n\r\nB"))
            #expect(origin.requests.map(\.connection) == [1, 1])
            #expect(origin.snapshot.paths == ["/a", "/b"])
        }
    }

    @Test func answersScriptsInTurnAndUnknownPathsWith404() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a", .unavailable(retryAfter: "7"), Response(body: [65], framing: .closeDelimited))
            let first = try await exchange(origin, get("/a"))
            #expect(first.text.hasPrefix("HTTP/1.1 503 "))
            #expect(first.text.contains("Retry-After: 7\r\n"))
            for _ in 0..<2 {
                #expect(try await exchange(origin, get("/a")).text.hasPrefix("HTTP/1.1 200 "))
            }
            #expect(try await exchange(origin, get("/b")).text.hasPrefix("HTTP/1.1 404 "))
        }
    }

    @Test func endsBodiesAsFramingSays() async throws {
        try await withOrigin { origin in
            let body = Array("abcdef".utf8)
            var chunked = Response(body: body, framing: .chunked)
            chunked.drip = (bytes: 4, interval: .milliseconds(1))
            chunked.closesSilently = true
            origin.serve("/chunked", chunked)
            origin.serve("/closed", Response(body: body, framing: .closeDelimited))
            origin.serve("/lying", Response(body: body, framing: .lyingLength(9)))
            origin.serve("/both", Response(body: body, framing: .chunkedWithLength(3)))
            origin.serve("/lengths", Response(body: body, framing: .lengthTexts(["6", "-1"])))
            #expect(
                try await exchange(origin, get("/chunked")).text
                    .hasSuffix("\r\n\r\n4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n"))
            let closed = try await exchange(origin, get("/closed")).text
            #expect(closed.hasSuffix("Connection: close\r\n\r\nabcdef"))
            let lying = try await exchange(origin, get("/lying")).text
            #expect(lying.hasSuffix("Content-Length: 9\r\n\r\nabcdef"))
            let both = try await exchange(origin, get("/both")).text
            #expect(both.contains("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"))
            let lengths = try await exchange(origin, get("/lengths")).text
            #expect(lengths.contains("Content-Length: 6\r\nContent-Length: -1\r\n"))
        }
    }

    @Test(arguments: [0, 1, 3, 6])
    func truncatesBodiesAtGivenByte(count: Int) async throws {
        try await withOrigin { origin in
            origin.serveFaults(of: ["x": Array("abcdef".utf8)])
            for fault in ["cut-announced", "cut-closed"] {
                let answer = try await exchange(origin, get("/f/\(fault)/\(count)/x"))
                #expect(answer.text.hasSuffix("\r\n\r\n" + "abcdef".prefix(count)))
                #expect(!answer.isReset)
            }
            let chunked = try await exchange(origin, get("/f/cut-chunked/\(count)/x")).text
            #expect(!chunked.contains("\r\n0\r\n"))
            if count > 0 { #expect(chunked.contains("\r\n\r\n6\r\n" + "abcdef".prefix(count))) }
        }
    }

    @Test func resetsAtScriptedPoints() async throws {
        try await withOrigin { origin in
            origin.serve("/before", Response(ending: .resetBeforeHead))
            origin.serve("/inside", Response(ending: .resetInsideHead))
            origin.serve("/body", Response(body: [1, 2, 3], ending: .resetAfter(bodyBytes: 1)))
            origin.serve("/closed", Response(ending: .closedBeforeHead))
            for path in ["/before", "/inside", "/body"] {
                #expect(try await exchange(origin, get(path)).isReset, "\(path)")
            }
            let closed = try await exchange(origin, get("/closed"))
            #expect(closed.bytes.isEmpty && !closed.isReset)
        }
    }

    @Test func gateHoldsAnswersInFlight() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve { _ in Response(body: [65], framing: .closeDelimited, gate: gate) }
            async let answers = withThrowingTaskGroup(of: Int.self) { group in
                for index in 0..<5 {
                    group.addTask { try await exchange(origin, get("/\(index)")).bytes.count }
                }
                return try await group.reduce(0) { $0 + min($1, 1) }
            }
            try await origin.wait(for: "five requests") { $0.inFlight == 5 }
            gate.release(2)
            try await origin.wait(for: "two answers") { $0.answered == 2 }
            #expect(origin.snapshot.inFlight == 3)
            gate.open()
            #expect(try await answers == 5)
            #expect(origin.snapshot.peakInFlight == 5)
        }
    }

    @Test func waitTimesOut() async throws {
        try await withOrigin { origin in
            await #expect(throws: Origin.WaitTimedOut.self) {
                try await origin.wait(for: "a request", within: .milliseconds(20)) {
                    !$0.requests.isEmpty
                }
            }
        }
    }

    @Test func stopClosesHeldConnections() async throws {
        let answer = try await withOrigin { origin in
            origin.serve("/a", Response(body: [1, 2], ending: .stalledAfter(bodyBytes: 1)))
            let pending = Task { try await exchange(origin, get("/a")) }
            try await origin.wait(for: "the request") { $0.inFlight == 1 }
            return pending
        }
        #expect(try await answer.value.text.contains("Content-Length: 2"))
    }
}
