internal import CCurl
import PrefetchModel

/// The state of one request's transfer, replaced with the next request.
///
/// Decides which bytes are stored and how the transfer ends, by limits that libcurl does not check:
/// its total time-out continues while a transfer is paused for memory, and its check for stalls
/// averages over six seconds. Reads the response's head through ``HeadReading`` alone.
struct TransferProgress {
    /// Why this program ended a transfer itself.
    enum TransferRefusal {
        case failure(Failure)
        /// The response is fine, but its body is of no use.
        case body(Failure)
    }

    /// The use of a response's body, decided at its first byte.
    private enum Handling {
        /// Read up to ``drainedBytes`` to keep the connection. Its beginning may give the reason
        /// of an error.
        case drained(ErrorReason)
        /// Received whole and dropped.
        case dropped
        /// Written into the file of the request's exchange.
        case written(Int32, offset: Int)
        /// `total`: the length of the whole body when the response resumes it and says so.
        case stored(announcedBytes: Int?, total: Int?)

        /// Whether the body is an image that must arrive whole.
        var isWanted: Bool { if case .drained = self { false } else { true } }
    }

    enum Reception {
        case taken
        /// The budget is used up: libcurl offers the same bytes again after a resume.
        case paused
        case refused
    }

    /// The end of a transfer, without its counts and times.
    struct TransferEnding {
        let result: TransferCompletion.TransferResult
        let interruptedBody: InterruptedBody?

        init(_ result: TransferCompletion.TransferResult, _ interruptedBody: InterruptedBody? = nil)
        {
            self.result = result
            self.interruptedBody = interruptedBody
        }
    }

    let request: TransferRequest
    private let configuration: TransferConfiguration
    let body: Body
    private(set) var bytesReceived = 0
    private var sections: HeaderSections
    var clock: TransferClock
    private var handling: Handling?
    /// The first result of ``framingProblem(of:)``: each look-up compares all field names.
    private var knownFraming: String??
    private var inspection = BodyInspection(totalBytes: nil)
    private(set) var refusal: TransferRefusal?
    /// The bytes that a paused transfer waits for.
    private(set) var missingBytes = 0
    var claim = Body.MemoryClaim.ordinary

    /// Bytes of an unwanted body (of a 404, say) that are read to keep its connection.
    static let drainedBytes = 64 << 10

    init(
        _ request: TransferRequest, _ configuration: TransferConfiguration, body: Body,
        startedAt: ContinuousClock.Instant
    ) {
        self.request = request
        self.configuration = configuration
        self.body = body
        clock = TransferClock(startedAt: startedAt)
        sections = HeaderSections(mayDecode: request.exchange == nil)
    }

    // MARK: Sending

    /// Fills libcurl's buffer with the bytes of the request's body that follow the first `sent`.
    ///
    /// - Returns: their count, zero at the end; nil if the transfer ends here.
    mutating func send(
        into buffer: UnsafeMutableRawBufferPointer, sent: Int, at now: ContinuousClock.Instant
    ) -> Int? {
        guard let exchange = request.exchange else { return 0 }
        clock.noteByte(at: now)
        do {
            return try exchange.fill(buffer, from: sent)
        } catch {
            refusal = .failure(error)
            return nil
        }
    }

    // MARK: Receiving

    /// Takes one line of a header section, its final empty line included.
    ///
    /// - Returns: whether the transfer continues.
    mutating func receiveHeaderLine(
        _ line: UnsafeRawBufferPointer, at now: ContinuousClock.Instant
    ) -> Bool {
        let problem = sections.receive(line)
        clock.noteHead(at: now, isComplete: sections.isComplete)
        guard let problem else { return true }
        refusal = .failure(Failure(.interrupted, problem))
        return false
    }

    /// Whether libcurl leaves the body as it is.
    var leavesContent: Bool { sections.leavesContent }

    private var decoder: ContentDecoder? { sections.decoder }

    /// Takes the next bytes of the body.
    mutating func receive(
        _ bytes: UnsafeRawBufferPointer, of head: some HeadReading,
        at now: ContinuousClock.Instant
    ) -> Reception {
        clock.noteBody(at: now)
        guard refusal == nil else { return .refused }
        let handling: Handling
        if let known = self.handling {
            handling = known
        } else {
            handling = bodyHandling(head)
            self.handling = handling
            if refusal != nil { return .refused }
            // Not at the end: after an unreadable length, libcurl waits for the connection's.
            if handling.isWanted, let problem = framingProblem(of: head) {
                return refuse(.interrupted, problem)
            }
        }
        switch handling {
        case .stored(let announcedBytes, _):
            return decoder == nil
                ? store(bytes, announcedBytes: announcedBytes, of: head, at: now)
                : decode(bytes, announcedBytes: announcedBytes, of: head, at: now)
        case .dropped:
            bytesReceived += bytes.count
            let most = configuration.limits.maximumBodySize
            guard bytesReceived <= most.bytes else {
                return refuse(.tooLarge, "the body is larger than --max-filesize (\(most))")
            }
            return .taken
        case .written(let file, let offset):
            return write(bytes, to: file, at: offset, of: head)
        case .drained(var reason):
            bytesReceived += bytes.count
            note(bytes, in: &reason)
            self.handling = .drained(reason)
            return bytesReceived > TransferProgress.drainedBytes ? .refused : .taken
        }
    }

    private mutating func write(
        _ bytes: UnsafeRawBufferPointer, to file: Int32, at offset: Int, of head: some HeadReading
    ) -> Reception {
        let limit = bodyLimit(head)
        guard bytesReceived + bytes.count <= limit.bytes else { return refuse(over: limit) }
        do {
            try ServiceExchange.write(bytes, to: file, at: offset + bytesReceived)
        } catch {
            refusal = .failure(error)
            return .refused
        }
        bytesReceived += bytes.count
        return .taken
    }

    /// Notes the beginning of an error's body, decoded. One that cannot be decoded says nothing.
    private func note(_ bytes: UnsafeRawBufferPointer, in reason: inout ErrorReason) {
        guard let decoder else { return reason.append(bytes) }
        _ = try? decoder.decode(bytes) { part in
            reason.append(part)
            return true
        }
    }

    /// Decodes and stores the next bytes of the body.
    private mutating func decode(
        _ bytes: UnsafeRawBufferPointer, announcedBytes: Int?, of head: some HeadReading,
        at now: ContinuousClock.Instant
    ) -> Reception {
        guard let decoder else { return .refused }
        var reception = Reception.taken
        do {
            _ = try decoder.decode(bytes) { part in
                reception = store(part, announcedBytes: announcedBytes, of: head, at: now)
                return reception == .taken
            }
        } catch {
            return refuse(error.reason, error.message)
        }
        return reception
    }

    private func bodyLimit(_ head: some HeadReading) -> ByteCount {
        request.exchange?.limit(ofStatus: head.status) ?? configuration.limits.maximumBodySize
    }

    private mutating func refuse(over limit: ByteCount) -> Reception {
        refuse(.tooLarge, "the body is larger than \(limit)")
    }

    private mutating func store(
        _ bytes: UnsafeRawBufferPointer, announcedBytes: Int?, of head: some HeadReading,
        at now: ContinuousClock.Instant
    ) -> Reception {
        let limit = bodyLimit(head)
        let announced = announcedBytes.map { body.gap + $0 } ?? 0
        guard max(announced, body.count + bytes.count) <= limit.bytes else {
            if request.exchange != nil { return refuse(over: limit) }
            let message =
                if announced > limit.bytes {
                    "the announced body is larger than --max-filesize (\(limit))"
                } else if decoder != nil || head.isEncoded {
                    "the body is larger than --max-filesize (\(limit)) when it is decompressed"
                } else {
                    "the body is larger than --max-filesize (\(limit))"
                }
            return refuse(.tooLarge, message)
        }
        // An announced body reserves its whole size: then it can always be completed.
        let size = max(announced, body.grownSize(adding: bytes.count))
        switch body.reserveCapacity(min(size, limit.bytes), by: claim) {
        case .granted:
            body.append(bytes)
            bytesReceived += bytes.count
            guard let failure = inspection.refusal(of: body) else { return .taken }
            // Ends the HTTP/2 stream, or the connection: the rest is not worth waiting for.
            refusal = .body(failure)
            return .refused
        case .overBudget(let missing):
            missingBytes = missing
            clock.pause(at: now)
            return .paused
        case .outOfMemory:
            return refuse(.internal, "no memory for a body of \(ByteCount(size))")
        }
    }

    private mutating func refuse(_ reason: FailureReason, _ message: String) -> Reception {
        refusal = .failure(Failure(reason, message))
        return .refused
    }

    private mutating func bodyHandling(_ head: some HeadReading) -> Handling {
        let status = head.status
        if let exchange = request.exchange {
            if case .file(let file, let offset, _) = exchange.output, [200, 206].contains(status) {
                return .written(file, offset: offset)
            }
            return .stored(announcedBytes: head.announcedLength, total: nil)
        }
        if configuration.responses.accepts(status: status) {
            if let failure = configuration.responses.refusal(
                ofType: head.fields.first("content-type"))
            {
                refusal = .body(failure)
                return .drained(ErrorReason())
            }
            if request.bodyUse == .dropped { return .dropped }
            let announced = head.announcedLength
            if let judge = request.judge {
                inspection = BodyInspection(
                    judge: judge,
                    totalBytes: decoder != nil || head.isEncoded ? nil : announced)
            }
            return .stored(announcedBytes: announced, total: nil)
        }
        guard status == 206, let continuation = request.continuation,
            case .continues(let total) = continuation.judge(head.fields)
        else { return .drained(ErrorReason()) }
        body.leaveGap(continuation.offset)
        return .stored(announcedBytes: head.announcedLength, total: total)
    }

    private mutating func framingProblem(of head: some HeadReading) -> String? {
        if let knownFraming { return knownFraming }
        let problem = sections.framingProblem ?? head.framingProblem
        knownFraming = problem
        return problem
    }

    private var storesBody: Bool { if case .stored = handling { true } else { false } }

    /// Notes that libcurl could not resume. It has dropped the bytes that it kept, so that any
    /// later ones would leave a hole.
    mutating func resumeFailed(_ message: String) {
        guard refusal == nil else { return }
        refusal = .failure(Failure(.internal, "resuming failed: \(message)"))
    }

    // MARK: Endings

    /// Judges a transfer that libcurl has ended with `code`.
    ///
    /// `response` is the head as far as it arrived, nil without a status. `failure` is the failure
    /// that `code` stands for; it is called where nothing else is to blame.
    mutating func complete(
        _ code: CURLcode, _ response: Response?, of head: some HeadReading,
        failure: () -> TransferFailure
    ) -> TransferEnding {
        let status = response?.status
        if var response = bodiless(response) {
            // Without a body the fields alone may give one.
            var reason = ErrorReason()
            if case .drained(let found) = handling { reason = found }
            response.reason = reason.text(
                status: response.status, fields: response.fields,
                hiding: response.status < 400 ? [] : configuration.secretWords(of: request))
            return TransferEnding(.response(response, nil))
        }
        if let ending = ending(of: response, code) { return ending }
        if response != nil, let problem = framingProblem(of: head) {
            return interrupted(problem, status)
        }
        if code == CURLE_OK, !sections.isComplete {
            return interrupted("the connection was closed inside the header section", status)
        }
        guard let response, code == CURLE_OK else {
            return TransferEnding(.failure(failure()), interruptedBody(response, of: head))
        }
        if request.exchange != nil { return TransferEnding(.response(response, body)) }
        if storesBody, decoder?.isAtEnd == false {
            return interrupted("the compressed body ends too early", status)
        }
        if case .stored(_, let total?) = handling, body.count != total {
            return interrupted(
                "the rest ended at \(body.count) of \(total) bytes", status,
                interruptedBody(response, of: head))
        }
        let isDropped = request.bodyUse == .dropped
        guard (isDropped ? bytesReceived : body.count) > 0 else {
            // An error without a body is the error itself.
            if !Response.wholeStatuses.contains(response.status), response.status != 206 {
                return TransferEnding(.response(response, nil))
            }
            return interrupted("the body has no byte", status)
        }
        return TransferEnding(.response(response, isDropped ? nil : body))
    }

    /// Ends a transfer after its total or stall time-out, or that could not be resumed.
    ///
    /// `response` is called only for an end.
    ///
    /// - Returns: nil for a transfer that continues.
    mutating func expire(
        at now: ContinuousClock.Instant, of head: some HeadReading, response: () -> Response?
    ) -> TransferEnding? {
        guard !clock.isPaused else { return nil }
        // No callback may run any more that would report a refusal to libcurl.
        if refusal != nil, let ending = ending(of: response(), CURLE_WRITE_ERROR) { return ending }
        let limits = configuration.limits
        let failure: Failure
        if clock.activeTime(at: now) >= limits.totalTimeout {
            failure = Failure(
                .timeout,
                "not complete within --timeout (\(limits.totalTimeout.quantityDescription))")
        } else if clock.stalledTime(at: now, timeToRequest: head.timeToRequest)
            >= limits.stallTimeout
        {
            failure = Failure(
                .stalled,
                "no byte within --stall-timeout (\(limits.stallTimeout.quantityDescription))")
        } else if isTooSlow(at: now) {
            failure = Failure(.stalled, "the response arrives at less than 1 KiB a second")
        } else {
            return nil
        }
        let response = response()
        if let response = bodiless(response) { return TransferEnding(.response(response, nil)) }
        return TransferEnding(
            .failure(TransferFailure(failure, httpStatus: response?.status)),
            interruptedBody(response, of: head))
    }

    /// The end of a transfer that this program has refused; nil for others.
    private func ending(of response: Response?, _ code: CURLcode) -> TransferEnding? {
        switch refusal {
        case .body(let failure)?: response.map { TransferEnding(.refused($0, failure)) }
        case .failure(let failure)?:
            TransferEnding(
                .failure(
                    TransferFailure(
                        failure, httpStatus: response?.status, curlCode: Int(code.rawValue))))
        case nil: nil
        }
    }

    /// Whether a brief response is slower than a service that means to end it.
    private func isTooSlow(at now: ContinuousClock.Instant) -> Bool {
        guard request.exchange?.isBrief == true else { return false }
        let bytes = clock.timeToBody == nil ? sections.bytes : bytesReceived
        let expected = Duration.seconds(Double(bytes) / ServiceExchange.leastRate)
        return clock.receivingTime(at: now) > ServiceExchange.rateGrace + expected
    }

    /// Ends a transfer that was cancelled.
    ///
    /// `response` is called only where a part of the body may be kept.
    mutating func cancel(of head: some HeadReading, response: () -> Response?) -> TransferEnding {
        guard storesBody, refusal == nil else { return TransferEnding(.cancelled) }
        return TransferEnding(.cancelled, interruptedBody(response(), of: head))
    }

    private func interrupted(
        _ message: String, _ status: Int?, _ interruptedBody: InterruptedBody? = nil
    ) -> TransferEnding {
        TransferEnding(
            .failure(TransferFailure(Failure(.interrupted, message), httpStatus: status)),
            interruptedBody)
    }

    /// A response without a stored body: it is complete with its head, however the body ends.
    private func bodiless(_ response: Response?) -> Response? {
        guard request.exchange == nil, let response, sections.isComplete, response.status >= 200
        else { return nil }
        let hasImage =
            configuration.responses.accepts(status: response.status)
            || response.status == 206 && storesBody
        return hasImage && request.bodyUse != .none ? nil : response
    }

    /// The stored part of a body that ends early.
    private mutating func interruptedBody(
        _ response: Response?, of head: some HeadReading
    ) -> InterruptedBody? {
        guard let response, sections.isComplete, storesBody, refusal == nil, body.count > body.gap,
            framingProblem(of: head) == nil
        else { return nil }
        return InterruptedBody(body: body, head: response)
    }
}
