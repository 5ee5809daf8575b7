internal import CCurl
import PrefetchModel
import Testing

@testable import Transfers

/// The decisions of a transfer, without libcurl and without waiting.
@Suite struct TransferProgressTests {
    private static let start = ContinuousClock.now
    private static let bytes = [UInt8](repeating: 0x61, count: 1000)

    /// The head of a response as a test describes it.
    private struct Head: HeadReading {
        var status = 200
        var announcedLength: Int?
        var isEncoded = false
        var fields: [HeaderField] = []
        var framingProblem: String?
        var timeToRequest: Duration? = .zero
    }

    private static func configuration(maximumBodySize: Int = 1 << 20) -> TransferConfiguration {
        var configuration = TransferConfiguration(userAgent: "prefetch-tests")
        configuration.limits.maximumBodySize = ByteCount(maximumBodySize)
        configuration.limits.stallTimeout = .seconds(10)
        configuration.limits.totalTimeout = .seconds(100)
        return configuration
    }

    private static func progress(
        maximumBodySize: Int = 1 << 20, budget: BodyBudget = BodyBudget(capacity: .max) {},
        continuation: BodyContinuation? = nil, judge: BodyJudge? = nil
    ) -> TransferProgress {
        TransferProgress(
            TransferRequest(
                id: 1, url: RequestURL(normalized: "http://h/1"), continuation: continuation,
                judge: judge),
            configuration(maximumBodySize: maximumBodySize),
            body: Body(budget: budget), startedAt: start)
    }

    private static func response(_ status: Int) -> PrefetchModel.Response {
        PrefetchModel.Response(
            status: status, fields: [], receivedAt: Timestamp(milliseconds: 1_000))
    }

    private static let libcurlFailure = TransferFailure(
        Failure(.interrupted, "libcurl says so"), httpStatus: nil, curlCode: 56)

    private func complete(
        _ progress: inout TransferProgress, _ code: CURLcode = CURLE_OK, status: Int = 200,
        _ head: Head = Head()
    ) -> TransferProgress.TransferEnding {
        progress.complete(code, Self.response(status), of: head) { Self.libcurlFailure }
    }

    // MARK: Receiving

    @Test func storesTheBodyOf200() {
        var progress = Self.progress()
        let head = Head(announcedLength: 2000)
        progress.receiveHead()
        #expect(progress.receive(Self.bytes, of: head) == .taken)
        #expect(progress.body.reserved >= 2000, "an announced body reserves its whole size")
        #expect(progress.receive(Self.bytes, of: head) == .taken)
        #expect(progress.body.count == 2000 && progress.bytesReceived == 2000)
        let ending = complete(&progress)
        #expect(ending.body === progress.body && ending.interruptedBody == nil)
    }

    @Test func drainsOtherBodiesUpToALimit() {
        var progress = Self.progress()
        progress.receiveHead()
        for _ in 0..<65 {
            #expect(progress.receive(Self.bytes, of: Head(status: 404)) == .taken)
        }
        #expect(progress.receive(Self.bytes, of: Head(status: 404)) == .refused)
        #expect(progress.body.count == 0 && progress.body.reserved == 0)
        // The response is complete with its head.
        let ending = complete(&progress, CURLE_WRITE_ERROR, status: 404)
        #expect(ending.status == 404 && ending.body == nil)
    }

    @Test(
        arguments: [
            (1501, false, "the announced body is larger than"),
            (nil, false, "the body is larger than"), (nil, true, "when it is decompressed"),
        ] as [(Int?, Bool, String)])
    func refusesABodyOverTheLimit(announced: Int?, isEncoded: Bool, message: String) {
        var progress = Self.progress(maximumBodySize: 1500)
        let head = Head(announcedLength: announced, isEncoded: isEncoded)
        progress.receiveHead()
        _ = progress.receive(Self.bytes, of: head)
        #expect(progress.receive(Self.bytes, of: head) == .refused)
        #expect(progress.receive(Self.bytes, of: head) == .refused)
        let ending = complete(&progress, CURLE_WRITE_ERROR, head)
        #expect(ending.failure?.reason == .tooLarge && ending.interruptedBody == nil)
        #expect(ending.failure?.message.contains(message) == true)
        #expect(ending.failure?.curlCode == Int(CURLE_WRITE_ERROR.rawValue))
    }

    @Test func refusesContradictoryFramingAtTheFirstByte() {
        var progress = Self.progress()
        let head = Head(framingProblem: "two lengths")
        progress.receiveHead()
        #expect(progress.receive(Self.bytes, of: head) == .refused)
        let ending = complete(&progress, CURLE_WRITE_ERROR, head)
        #expect(ending.failure?.message == "two lengths" && ending.interruptedBody == nil)
        // A response without a body has no first byte.
        progress = Self.progress()
        progress.receiveHead()
        #expect(complete(&progress, CURLE_OK, head).failure?.message == "two lengths")
    }

    @Test func endsABodyThatTheJudgeRefuses() {
        let refusal = Failure(.notAnImage, "text")
        var progress = Self.progress(judge: { _, _ in .refused(refusal) })
        progress.receiveHead()
        #expect(progress.receive(Self.bytes, of: Head(announcedLength: 200_000)) == .refused)
        guard
            case .refused(let response, let failure) = complete(&progress, CURLE_WRITE_ERROR).result
        else {
            Issue.record("not refused")
            return
        }
        #expect(response.status == 200 && failure == refusal)
    }

    @Test func resumesAPartInFrontOfItsBody() {
        for (total, isWhole) in [(1500, true), (1600, false), (nil, true)] as [(Int?, Bool)] {
            let continuation: BodyContinuation = (500, { _ in .continues(total: total) })
            var progress = Self.progress(continuation: continuation)
            progress.receiveHead()
            #expect(progress.receive(Self.bytes, of: Head(status: 206)) == .taken)
            #expect(progress.body.gap == 500 && progress.body.count == 1500)
            let ending = complete(&progress, status: 206)
            #expect((ending.body != nil) == isWhole)
            #expect((ending.interruptedBody != nil) == !isWhole)
            #expect(isWhole || ending.failure?.reason == .interrupted)
        }
    }

    @Test func drainsAPartThatDoesNotBelongToTheBody() {
        let continuation: BodyContinuation = (500, { _ in .isOfNoUse })
        var progress = Self.progress(continuation: continuation)
        progress.receiveHead()
        #expect(progress.receive(Self.bytes, of: Head(status: 206)) == .taken)
        let ending = complete(&progress, status: 206)
        #expect(ending.status == 206 && ending.body == nil)
    }

    // MARK: Memory

    @Test func pausesUntilTheBudgetHasRoom() {
        let budget = BodyBudget(capacity: 4096) {}
        let other = Body(budget: budget)
        _ = other.reserveCapacity(4096, by: .ordinary)
        var progress = Self.progress(budget: budget)
        progress.receiveHead()
        #expect(progress.receive(Self.bytes, of: Head(), at: .seconds(1)) == .paused)
        #expect(progress.clock.isPaused && progress.missingBytes == 4096)
        // libcurl may offer the bytes again while the transfer is paused.
        #expect(progress.receive(Self.bytes, of: Head(), at: .seconds(3)) == .paused)
        #expect(progress.clock.presentPause(at: Self.start + .seconds(5)) == .seconds(4))
        progress.clock.resume(at: Self.start + .seconds(5))
        progress.claim = .overdraft
        #expect(progress.receive(Self.bytes, of: Head(), at: .seconds(5)) == .taken)
        #expect(progress.clock.activeTime(at: Self.start + .seconds(6)) == .seconds(2))
    }

    @Test func pausesBehindOlderTransfersThatWaitForMemory() {
        let budget = BodyBudget(capacity: 4096) {}
        var progress = Self.progress(budget: budget)
        progress.receiveHead()
        progress.claim = .behindOthers
        #expect(progress.receive(Self.bytes, of: Head()) == .paused)
        #expect(progress.missingBytes == 4096 && budget.used == 0)
        progress.claim = .ordinary
        #expect(progress.receive(Self.bytes, of: Head()) == .taken)
    }

    /// A body that left its transfer is released soon, even if that takes long: until then no
    /// other one exceeds the budget.
    @Test func oneBodyExceedsTheBudgetAtATime() {
        let waiting = WaitingTransfers()
        #expect(waiting.needsOverdraft(used: 0, isLongPaused: false))
        for isLongPaused in [false, true] {
            #expect(!waiting.needsOverdraft(used: 4096, isLongPaused: isLongPaused))
        }
        waiting.heldBytes = 4096
        #expect(!waiting.needsOverdraft(used: 4096, isLongPaused: false))
        #expect(waiting.needsOverdraft(used: 4096, isLongPaused: true))
        #expect(!waiting.needsOverdraft(used: 8192, isLongPaused: true))
        waiting.hasOverdraft = true
        #expect(!waiting.needsOverdraft(used: 4096, isLongPaused: true))
    }

    @Test(arguments: ["HTTP/1.1 103 Early Hints: ", "X-Trailer: "])
    func bytesOfFieldsBesideTheHeadAreLimited(beginning: String) {
        let line = beginning + String(repeating: "v", count: 1000) + "\r\n"
        var progress = Self.progress()
        progress.receiveHead()
        var bytes = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\n\r\n".utf8.count
        while progress.receiveHeaderLine(line) { bytes += line.utf8.count }
        let limit = HeaderSections.maximumBytes
        #expect((limit - line.utf8.count + 1...limit).contains(bytes))
        let failure = complete(&progress, CURLE_WRITE_ERROR).failure
        #expect(failure?.reason == .interrupted)
        #expect(failure?.message == "the response has more than 300 KiB of header fields")
    }

    @Test(arguments: ["HTTP/1.1 103 Early Hints\r\n", "X: y\r\n", "\r\n"])
    func fieldsAreCountedInAllHeads(line: String) {
        var progress = Self.progress()
        progress.receiveHead()
        var count = 3
        while progress.receiveHeaderLine(line) { count += 1 }
        #expect(count == HeaderSections.maximumLines)
        let failure = complete(&progress, CURLE_WRITE_ERROR).failure
        #expect(failure?.reason == .interrupted)
        #expect(failure?.message == "the response has more than 1000 header fields")
    }

    @Test(arguments: [
        "Content-Length : 5", "transfer-encoding\t: chunked", "Transfer-Encoding\u{b}: chunked",
        "\u{b}Content-Length: 5", " Content-Length: 5", "Content-Length\u{a0}: 5",
        "Content-\0Length: 5", "X: y\rTransfer-Encoding: chunked", "\rContent-Length : 5",
        "Transfer-Encoding:\r\n chunked", "Content-Length: 5\r\n\t\r\n 5",
    ])
    func aMalformedFramingFieldInterrupts(lines: String) {
        #expect(ending(of: lines).failure?.reason == .interrupted)
    }

    @Test(arguments: [
        "Content-Type : image/png", "X:\r\n y", "Content-Length: 1000\r\nX: y\r\n z",
        "X-Content-Length : 5", "Content-Lengths : 5", "X: Content-Length : 5",
        "Content-Length : 5\r\n\r\nHTTP/1.1 200 OK", "\r\nContent-Length : 5",
    ])
    func otherMalformedFieldsDoNot(lines: String) {
        #expect(ending(of: lines).body?.count == 1000)
    }

    /// Completes a response with these lines in its head.
    private func ending(of lines: String) -> TransferProgress.TransferEnding {
        var progress = Self.progress()
        let head = "HTTP/1.1 200 OK\r\n\(lines)\r\n"
        for line in head.split(separator: "\r\n", omittingEmptySubsequences: false) {
            progress.receiveHeaderLine("\(line)\r\n")
        }
        let reception = progress.receive(Self.bytes, of: Head())
        return complete(&progress, reception == .taken ? CURLE_OK : CURLE_WRITE_ERROR)
    }

    @Test func anEmptyBodyIsInterrupted() {
        var progress = Self.progress()
        progress.receiveHead()
        #expect(complete(&progress).failure?.message == "the body has no byte")
    }

    // MARK: Completion

    @Test(
        arguments: [
            (CURLE_OK, true, nil), (CURLE_OK, false, "the connection was closed inside the header"),
            (CURLE_RECV_ERROR, true, "libcurl says so"),
        ] as [(CURLcode, Bool, String?)])
    func judgesTheEnd(code: CURLcode, isHeadComplete: Bool, message: String?) {
        var progress = Self.progress()
        if isHeadComplete {
            progress.receiveHead()
            _ = progress.receive(Self.bytes, of: Head())
        }
        let ending = complete(&progress, code)
        #expect((ending.failure == nil) == (message == nil))
        if let message { #expect(ending.failure?.message.hasPrefix(message) == true) }
    }

    @Test func aStatusLineBeginsAnotherHeaderSection() {
        var progress = Self.progress()
        progress.receiveHead()
        progress.receiveHeaderLine("HTTP/1.1 200 OK\r\n")
        #expect(complete(&progress).failure?.reason == .interrupted)
    }

    @Test func keepsTheStoredPartOfAnInterruptedBody() {
        var progress = Self.progress()
        progress.receiveHead()
        _ = progress.receive(Self.bytes, of: Head())
        #expect(complete(&progress, CURLE_RECV_ERROR).interruptedBody?.body.count == 1000)
        let cancelled = progress.cancel(of: Head()) { Self.response(200) }
        #expect(cancelled.interruptedBody?.body.count == 1000)
        #expect(progress.cancel(of: Head()) { nil }.interruptedBody == nil)
    }

    // MARK: Time-outs

    private func expire(
        _ progress: inout TransferProgress, at time: Duration, _ head: Head = Head(),
        status: Int? = 200
    ) -> TransferProgress.TransferEnding? {
        progress.expire(at: Self.start + time, of: head) { status.map(Self.response) }
    }

    @Test func expiresAfterTheTotalTime() {
        var progress = Self.progress()
        progress.receiveHead(at: .seconds(99))
        #expect(expire(&progress, at: .milliseconds(99_999)) == nil)
        let failure = expire(&progress, at: .seconds(100))?.failure
        #expect(failure?.reason == .timeout && failure?.httpStatus == 200)
        #expect(failure?.message.hasPrefix("not complete within --timeout") == true)
    }

    @Test func expiresAfterAStall() {
        var progress = Self.progress()
        progress.receiveHead(at: .seconds(1))
        _ = progress.receive(Self.bytes, of: Head(), at: .seconds(2))
        #expect(expire(&progress, at: .milliseconds(11_999)) == nil)
        let ending = expire(&progress, at: .seconds(12))
        #expect(ending?.failure?.reason == .stalled)
        #expect(ending?.interruptedBody?.body.count == 1000)
    }

    @Test func theRateOfABriefResponseIsThatOfItsBody() {
        var progress = TransferProgress(
            TransferRequest(to: "http://h/1", fields: [], exchange: ServiceExchange()),
            Self.configuration(),
            body: Body(budget: BodyBudget(capacity: .max) {}), startedAt: Self.start)
        progress.receiveHeaderLine("HTTP/1.1 100 Continue\r\n")
        progress.receiveHeaderLine("\r\n")
        #expect(expire(&progress, at: .seconds(9)) == nil)
        progress.receiveHead(at: .seconds(9))
        _ = progress.receive([1], of: Head(), at: .seconds(9))
        #expect(expire(&progress, at: .seconds(11)) == nil)
        #expect(expire(&progress, at: .seconds(12))?.failure?.reason == .stalled)
    }

    @Test func stallsAreCountedFromTheRequest() {
        var progress = Self.progress()
        #expect(expire(&progress, at: .seconds(50), Head(timeToRequest: nil)) == nil)
        let connected = Head(timeToRequest: .seconds(45))
        #expect(expire(&progress, at: .seconds(50), connected) == nil)
        #expect(
            expire(&progress, at: .seconds(55), connected, status: nil)?.failure?.reason == .stalled
        )
    }

    @Test func pausesCountAgainstNoTimeout() {
        let budget = BodyBudget(capacity: 0) {}
        var progress = Self.progress(budget: budget)
        progress.receiveHead()
        _ = progress.receive(Self.bytes, of: Head(), at: .seconds(1))
        #expect(expire(&progress, at: .seconds(1000)) == nil)
        progress.clock.resume(at: Self.start + .seconds(1000))
        #expect(expire(&progress, at: .seconds(1009)) == nil)
        #expect(expire(&progress, at: .seconds(1010))?.failure?.reason == .stalled)
    }

    @Test func aBodilessResponseOutlivesItsTimeout() {
        var progress = Self.progress()
        progress.receiveHead()
        let ending = expire(&progress, at: .seconds(100), Head(status: 404), status: 404)
        #expect(ending?.status == 404)
    }

    @Test func aFailedResumeEndsTheTransferAtTheNextCheck() {
        var progress = Self.progress()
        progress.receiveHead()
        progress.resumeFailed("no memory")
        let failure = expire(&progress, at: .seconds(1))?.failure
        #expect(failure?.reason == .internal)
        #expect(failure?.message == "resuming failed: no memory")
    }
}

extension TransferProgress {
    fileprivate mutating func receiveHead(at time: Duration = .zero) {
        for line in ["HTTP/1.1 200 OK\r\n", "ETag: \"e\"\r\n", "\r\n"] {
            receiveHeaderLine(line, at: time)
        }
    }

    @discardableResult
    fileprivate mutating func receiveHeaderLine(_ line: String, at time: Duration = .zero) -> Bool {
        Array(line.utf8).withUnsafeBytes { receiveHeaderLine($0, at: clock.startedAt + time) }
    }

    fileprivate mutating func receive(
        _ bytes: [UInt8], of head: some HeadReading, at time: Duration = .zero
    ) -> Reception {
        bytes.withUnsafeBytes { receive($0, of: head, at: clock.startedAt + time) }
    }
}

extension TransferProgress.TransferEnding {
    fileprivate var failure: TransferFailure? {
        if case .failure(let failure) = result { failure } else { nil }
    }

    fileprivate var status: Int? {
        if case .response(let response, _) = result { response.status } else { nil }
    }

    fileprivate var body: Body? { if case .response(_, let body) = result { body } else { nil } }
}
