internal import CCurl
import Glibc
import PrefetchModel
import URLParsing

/// What the present transfer of an easy handle has got so far.
///
/// Owned by the transfer loop's thread, which keeps it alive while libcurl holds its address, and
/// reused for transfer after transfer.
final class ActiveTransfer {
    let handle: EasyHandle
    private let configuration: TransferConfiguration
    private let budget: BodyBudget
    private let waiting: WaitingTransfers
    private let cookies: CookieJar?
    private let parser: URLParser
    private let proxies: ProxyRules

    private(set) var request = TransferRequest(id: -1, url: RequestURL(normalized: ""))
    /// Which of the loop's transfers this is, by the order of their starts.
    private(set) var start = 0
    private(set) var body: Body
    private(set) var bytesReceived = 0
    private var startedAt = ContinuousClock.now
    /// When the last byte of the response arrived; nil before the first one.
    fileprivate var lastByteAt: ContinuousClock.Instant?
    /// Whether the empty line that ends a header section has arrived. libcurl takes a connection
    /// that closes inside the section for the end of an empty body.
    fileprivate var isHeadComplete = false
    /// The status whose body is arriving, read at its first byte.
    private var bodyStatus: Int?
    private var announcedBodyBytes: Int?
    /// What was found out about the framing of this transfer's response, once anybody has asked.
    private var judgedFraming: String??
    /// Whether the body is one to keep; known with ``bodyStatus``.
    private var wantsBody = false
    /// The length of the whole body, when the response continues a part of it and tells.
    private var continuedTotal: Int?
    /// Why ``receive(_:)`` ended the transfer itself.
    private var refusal: (reason: FailureReason, message: String)?
    private var inspection = BodyInspection(by: nil, totalBytes: nil)
    /// What it ended the transfer for when the response is fine, and its body of no use.
    private var bodyRefusal: BodyRefusal?
    /// What the addresses that libcurl chose made of the transfer.
    var addresses = AddressChecks(rule: .publicOnly)
    /// Whether libcurl was told to wait because the budget is used up.
    var isPaused: Bool { pausedAt != nil }
    /// Whether it has waited for memory longer than bodies are usually held.
    var hasLongBeenPaused: Bool { pausedAt.map { .now - $0 > .seconds(5) } ?? false }
    private var pausedAt: ContinuousClock.Instant?
    /// What it waits for, while it is paused.
    private(set) var missingBytes = 0
    /// How long it was paused, which is our waiting and not the origin's.
    private var pausedTime: Duration = .zero
    /// Whether this transfer may take memory beyond the budget, so that the run goes on.
    private var overdraws = false

    /// The most of an unwanted body (of a 404, say) that is read to keep its connection.
    static let drainedBytes = 64 << 10

    /// - Throws: when libcurl has no memory or does not know an option.
    init(
        configuration: TransferConfiguration, budget: BodyBudget, waiting: WaitingTransfers,
        cookies: CookieJar?, parser: URLParser
    ) throws(TransferLoopError) {
        handle = try EasyHandle(configuration: configuration, cookies: cookies)
        self.configuration = configuration
        self.budget = budget
        self.waiting = waiting
        self.cookies = cookies
        self.parser = parser
        proxies = ProxyRules(configuration.requests.proxies)
        body = Body(budget: budget)
        try handle.setFunctions(
            write: receiveBodyBytes, header: receiveHeaderLine, openSocket: openCheckedSocket,
            prerequest: checkConnection, context: Unmanaged.passUnretained(self).toOpaque())
    }

    /// Makes the handle ready for `request`; its end may empty libcurl's cache of addresses, and
    /// close its connection.
    func prepare(
        _ request: TransferRequest, emptiesAddressCache: Bool, closesConnection: Bool
    ) throws(TransferLoopError) {
        self.request = request
        start = waiting.nextStart()
        body = Body(budget: budget)
        bytesReceived = 0
        startedAt = .now
        lastByteAt = nil
        isHeadComplete = false
        judgedFraming = .none
        bodyStatus = nil
        announcedBodyBytes = nil
        wantsBody = false
        continuedTotal = nil
        refusal = nil
        inspection = BodyInspection(by: nil, totalBytes: nil)
        bodyRefusal = nil
        pausedAt = nil
        pausedTime = .zero
        let url = request.isForeign ? request.url.withoutCredentials : request.url
        let rule = request.addressRule ?? configuration.listedAddressRule
        let proxy = proxies.proxy(for: url)
        addresses =
            proxy == nil
            ? AddressChecks(rule: rule) : AddressChecks(rule: rule, proxiedURL: url)
        try handle.prepare(
            request, to: url, through: proxy, emptiesAddressCache: emptiesAddressCache,
            // That to a proxy serves every host.
            closesConnection: closesConnection && proxy == nil)
    }

    /// Lets go of the body, of its memory and of the place among those that wait, until the handle is
    /// used again.
    func reset() {
        if isPaused { waiting.remove(self) }
        pausedAt = nil
        if overdraws { waiting.hasOverdraft = false }
        overdraws = false
        waiting.holds(-body.reserved)
        body = Body(budget: budget)
    }

    /// Lets this transfer, which waits, exceed the budget from now on.
    func overdraw() {
        overdraws = true
        waiting.hasOverdraft = true
        waiting.remove(self)
        resume()
    }

    /// Tells libcurl to go on after a pause; ``receive(_:)`` may be called before this returns, and
    /// pause it again. It is no longer among those that wait.
    func resume() {
        if let pausedAt { pausedTime += .now - pausedAt }
        pausedAt = nil
        lastByteAt = .now
        let code = handle.resume()
        if code != CURLE_OK, !isRefused {
            // libcurl has dropped the bytes that it kept: what came after them would leave a hole.
            refusal = (.internal, "resuming failed: \(String(cString: ccurl_easy_strerror(code)))")
        }
    }

    // MARK: Receiving

    /// Takes the next bytes of the body.
    ///
    /// Runs inside libcurl, on the loop's thread: it copies, checks the limits and returns.
    ///
    /// - Returns: the count of bytes taken; anything else ends the transfer, and
    ///   `CURL_WRITEFUNC_PAUSE` makes libcurl offer the same bytes again later.
    fileprivate func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        lastByteAt = .now
        guard !isRefused else { return 0 }
        if bodyStatus == nil {
            readHead()
            // At once: a length that libcurl cannot read makes it wait for the connection's end.
            if wantsBody, let problem = framingProblem {
                refusal = (.interrupted, problem)
                return 0
            }
        }
        guard wantsBody else {
            bytesReceived += bytes.count
            return bytesReceived > ActiveTransfer.drainedBytes ? 0 : bytes.count
        }
        let limit = configuration.maximumBodySize
        let announced = announcedBodyBytes.map { body.gap + $0 } ?? 0
        let expected = max(announced, body.count + bytes.count)
        guard expected <= limit.bytes else {
            let message =
                if announced > limit.bytes {
                    "the announced body is larger than --max-filesize (\(limit))"
                } else if isEncoded {
                    "the body is larger than --max-filesize (\(limit)) when it is decompressed"
                } else {
                    "the body is larger than --max-filesize (\(limit))"
                }
            refusal = (.tooLarge, message)
            return 0
        }
        // An announced body takes its whole share at once: then it can always be completed.
        let size = max(announced, body.grownSize(adding: bytes.count))
        let reserved = body.reserved
        defer { waiting.holds(body.reserved - reserved) }
        switch body.reserveCapacity(min(size, limit.bytes), overdraws: overdraws) {
        case .granted:
            body.append(bytes)
            bytesReceived += bytes.count
            bodyRefusal = inspection.refusal(of: body)
            // What is left of it is not worth waiting for: this ends the transfer, with HTTP/2 its
            // stream and else its connection.
            return bodyRefusal == nil ? bytes.count : 0
        case .overBudget(let missing):
            missingBytes = missing
            if !isPaused {
                pausedAt = .now
                waiting.insert(self)
            }
            return Int(CURL_WRITEFUNC_PAUSE)
        case .outOfMemory:
            refusal = (.internal, "no memory for a body of \(ByteCount(size))")
            return 0
        }
    }

    private func readHead() {
        let status = handle.status
        bodyStatus = status
        announcedBodyBytes = handle.announcedLength
        wantsBody = status == 200
        if wantsBody, let judge = request.judge {
            inspection = BodyInspection(
                by: judge, totalBytes: isEncoded ? nil : announcedBodyBytes)
        }
        guard status == 206, let continuation = request.continuation,
            case .continues(let total) = continuation.judge(handle.fields)
        else { return }
        wantsBody = true
        continuedTotal = total
        body.leaveGap(continuation.offset)
    }

    /// Of the head, which is complete when this is first asked: libcurl compares all of its names for each one that is looked
    /// for, so it is asked once in a transfer.
    private var framingProblem: String? {
        if let judgedFraming { return judgedFraming }
        let problem = handle.framingProblem
        judgedFraming = problem
        return problem
    }

    private var isRefused: Bool { refusal != nil || bodyRefusal != nil }

    private var isEncoded: Bool {
        // `none` is what libcurl takes for `identity`, too.
        let encoding = handle.field("Content-Encoding")?.lowercased() ?? ""
        return !["", "identity", "none"].contains(encoding)
    }

    /// Counts a header line that is a cookie.
    fileprivate func countCookie(_ line: UnsafeRawBufferPointer) {
        guard let cookies, line.count > 11, line.first.map({ $0 | 0x20 }) == UInt8(ascii: "s"),
            zip(line, "set-cookie:".utf8).allSatisfy({ $0 | 0x20 == $1 | 0x20 })
        else { return }
        // Path and domain are the request's where the line does not say them.
        cookies.received(line.count + request.url.text.utf8.count + 64)
    }

    // MARK: Completion

    func complete(_ code: CURLcode, at time: Timestamp) -> TransferCompletion {
        let head = responseHead(at: time)
        let result: TransferCompletion.Result
        var broken: BrokenBody?
        if let bodyRefusal, let head {
            result = .refused(head, bodyRefusal)
        } else if refusal != nil {
            result = .failure(failure(code, status: head?.status))
        } else if let refused = refusedResponse(head) {
            result = .response(refused, nil)
        } else if let head, let problem = framingProblem {
            result = .failure(
                TransferFailure(
                    reason: .interrupted, curlCode: nil, httpStatus: head.status,
                    message: problem))
        } else if code == CURLE_OK, !isHeadComplete {
            result = .failure(
                TransferFailure(
                    reason: .interrupted, curlCode: nil, httpStatus: head?.status,
                    message: "the connection was closed inside the header section"))
        } else if let head, code == CURLE_OK {
            if let continuedTotal, body.count != continuedTotal {
                broken = brokenBody(head)
                result = .failure(
                    TransferFailure(
                        reason: .interrupted, curlCode: nil, httpStatus: head.status,
                        message: "the rest ended at \(body.count) of \(continuedTotal) bytes"))
            } else {
                result = .response(head, body)
            }
        } else {
            broken = brokenBody(head)
            result = .failure(failure(code, status: head?.status))
        }
        return completion(result, broken)
    }

    /// What there is of a body of which no more comes.
    private func brokenBody(_ head: Response?) -> BrokenBody? {
        guard let head, isHeadComplete, wantsBody, !isRefused, framingProblem == nil,
            body.count > body.gap
        else { return nil }
        return BrokenBody(body: body, head: head)
    }

    /// Whether a time-out other than that for connecting has passed, and how the transfer ends then.
    ///
    /// Both are ours: libcurl's total goes on while we make it wait for memory, and its check for
    /// stalls averages over six seconds and counts whole ones.
    func expired(
        at now: ContinuousClock.Instant, wallClock: () -> Timestamp
    ) -> TransferCompletion? {
        guard !isPaused else { return nil }
        if isRefused {
            // Raised while resuming; no further byte may come that libcurl would be told with.
            if let bodyRefusal, let head = responseHead(at: wallClock()) {
                return completion(.refused(head, bodyRefusal))
            }
            return completion(.failure(failure(CURLE_WRITE_ERROR, status: nil)))
        }
        let reason: FailureReason
        let message: String
        if now - startedAt - pausedTime >= configuration.totalTimeout {
            reason = .timeout
            message =
                "not complete within --timeout (\(configuration.totalTimeout.quantityDescription))"
        } else if now - waitingSince(now) >= configuration.stallTimeout {
            reason = .stalled
            message =
                "no byte within --stall-timeout (\(configuration.stallTimeout.quantityDescription))"
        } else {
            return nil
        }
        let head = responseHead(at: wallClock())
        if let refused = refusedResponse(head) { return completion(.response(refused, nil)) }
        return completion(
            .failure(
                TransferFailure(
                    reason: reason, curlCode: nil, httpStatus: head?.status, message: message)),
            brokenBody(head))
    }

    /// Since when the origin owes a byte; `now` before the request could be sent.
    private func waitingSince(_ now: ContinuousClock.Instant) -> ContinuousClock.Instant {
        if let lastByteAt { return lastByteAt }
        return handle.timeToRequest.map { startedAt + $0 } ?? now
    }

    func cancelled(at time: Timestamp) -> TransferCompletion {
        completion(.cancelled, wantsBody ? brokenBody(responseHead(at: time)) : nil)
    }

    private func completion(
        _ result: TransferCompletion.Result, _ brokenBody: BrokenBody? = nil
    ) -> TransferCompletion {
        TransferCompletion(
            id: request.id, result: result, bytesReceived: bytesReceived,
            elapsed: .now - startedAt, address: addresses.connected, brokenBody: brokenBody)
    }

    /// A response without a body to store: its status is the answer, however its body went.
    private func refusedResponse(_ head: Response?) -> Response? {
        guard let head, isHeadComplete, head.status >= 200, head.status != 200,
            !(head.status == 206 && wantsBody)
        else { return nil }
        return head
    }

    private func responseHead(at time: Timestamp) -> Response? {
        let status = handle.status
        guard status > 0 else { return nil }
        let fields = handle.fields
        let isFramed =
            handle.framesBodies || fields.first("content-length") != nil
            || fields.first("transfer-encoding") != nil
        return Response(
            status: status, fields: fields, hasFramedBody: isFramed,
            redirect: (300..<400).contains(status) ? redirect : nil, receivedAt: time)
    }

    /// `Location` against the request's URL.
    ///
    /// libcurl's own answer (CURLINFO_REDIRECT_URL) is there only after a body that ended well.
    private var redirect: Redirect? {
        handle.withField("Location") { bytes in
            guard !bytes.isEmpty else { return nil }
            // The URL itself, then (RFC 3986 section 4.4).
            guard bytes.first != UInt8(ascii: "#") else {
                return .to(request.url.withoutCredentials)
            }
            do throws(URLParsingError) {
                let target = try parser.parse(bytes, relativeTo: request.url)
                return .to(target.withoutCredentials)
            } catch {
                let shown = RedactedURL(String(decoding: bytes, as: UTF8.self)).description
                return .nowhere(
                    location: String(
                        shown.unicodeScalars.prefix(ActiveTransfer.shownLocation)),
                    message: error.message)
            }
        } ?? nil
    }

    /// Of a `Location` that leads nowhere, the Unicode scalars that are shown: one character may have
    /// any number of them.
    private static let shownLocation = 200

    private func failure(_ code: CURLcode, status: Int?) -> TransferFailure {
        if let refusal {
            return TransferFailure(
                reason: refusal.reason, curlCode: Int32(code.rawValue), httpStatus: status,
                message: refusal.message)
        }
        if let refused = addresses.failure(code) ?? proxyFailure(code) { return refused }
        let phase: TransferFailure.Phase =
            handle.timeToRequest != nil ? .answering : .connecting
        return TransferFailure(
            reason: TransferFailure.reason(curlCode: code, in: phase),
            curlCode: Int32(code.rawValue), httpStatus: status,
            message: (TransferFailure.message(curlCode: code, in: phase) ?? message(code))
                + remedy(code, phase))
    }

    /// The flag that decides, of which libcurl knows nothing.
    private func remedy(_ code: CURLcode, _ phase: TransferFailure.Phase) -> String {
        guard code == CURLE_OPERATION_TIMEDOUT, phase == .connecting else { return "" }
        return "; --connect-timeout is \(configuration.connectTimeout.quantityDescription)"
    }

    /// What a proxy said in place of opening a tunnel, for which libcurl has no code of its own.
    private func proxyFailure(_ code: CURLcode) -> TransferFailure? {
        guard code == CURLE_RECV_ERROR else { return nil }
        let status = handle.tunnelStatus
        guard status >= 300 else { return nil }
        // Its credentials are the user's to mend; anything else keeps from the origin for now.
        let asksForCredentials = status == 407
        return TransferFailure(
            reason: asksForCredentials ? .httpStatus : .connect, curlCode: Int32(code.rawValue),
            httpStatus: asksForCredentials ? status : nil,
            message: "the proxy answered \(status) to CONNECT")
    }

    /// What libcurl says, or its general words for the code where what it says holds a secret: some
    /// of its texts repeat a proxy or a URL.
    private func message(_ code: CURLcode) -> String {
        let general = String(cString: ccurl_easy_strerror(code))
        let text = handle.errorText
        let secrets = configuration.secrets(of: request)
        return text.isEmpty || secrets.contains { !$0.isEmpty && text.contains($0) }
            ? general : text
    }
}

/// libcurl's write function; `context` is the ``ActiveTransfer``, which its loop keeps alive.
///
/// File-level, so that it inherits no isolation from code that names it.
private func receiveBodyBytes(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context else { return 0 }
    let transfer = Unmanaged<ActiveTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.receive(UnsafeRawBufferPointer(start: data, count: size * count))
}

/// libcurl's header function, called with each line of a header section, its end included.
///
/// A status line begins a section of its own: interim responses have one before the final one.
/// Trailers after a chunked body come here, too.
private func receiveHeaderLine(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context else { return 0 }
    let transfer = Unmanaged<ActiveTransfer>.fromOpaque(context).takeUnretainedValue()
    let line = UnsafeRawBufferPointer(start: data, count: size * count)
    transfer.lastByteAt = .now
    transfer.countCookie(line)
    if line.first == UInt8(ascii: "H"), line.starts(with: "HTTP/".utf8) {
        transfer.isHeadComplete = false
    } else if line.count <= 2, line.elementsEqual("\r\n".utf8) || line.elementsEqual("\n".utf8) {
        transfer.isHeadComplete = true
    }
    return line.count
}
