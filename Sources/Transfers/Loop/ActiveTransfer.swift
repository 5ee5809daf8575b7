internal import CCurl
import PrefetchModel
import URLParsing

/// An easy handle with the progress of its present request.
///
/// The transfer loop's thread owns it, and keeps it alive while libcurl holds its address. From
/// libcurl 8.1 on, it is reused for one request after another.
final class ActiveTransfer {
    let handle: EasyHandle
    private let environment: TransferEnvironment
    private(set) var progress: TransferProgress
    /// Its number among the loop's transfers, in the order of their starts.
    private(set) var start = 0
    var addresses = AddressChecks(rule: .publicOnly)
    private var attempt: TransferAttempt
    private var settings: TransferEnvironment.HostLimits
    /// Bytes of the request's body that libcurl has taken.
    private var bytesSent = 0
    /// Nil for a plain connection, which is never shared.
    private(set) var use: ConnectionUse?

    /// Unicode scalars shown of a `Location`: a character may have any number.
    private static let shownLocationScalars = 200
    /// The number of times that one request is sent again without a failure.
    private static let maximumResends = 3
    /// A pause for memory after which the oldest transfer no longer waits for other transfers.
    private static let longPause: Duration = .seconds(5)

    init(_ environment: TransferEnvironment) throws(UserError) {
        handle = try EasyHandle(environment.common, shared: environment.shared)
        self.environment = environment
        attempt = ActiveTransfer.idleAttempt
        settings = environment.common
        progress = ActiveTransfer.idleProgress(environment, since: .now)
        try handle.setFunctions(of: self, environment.connections)
    }

    /// Prepares the handle for a request. The transfer's end may empty libcurl's cache of
    /// addresses, and close its connection.
    func prepare(
        _ attempt: TransferAttempt, emptiesAddressCache: Bool, closesConnection: Bool
    ) throws(UserError) {
        let request = attempt.request
        self.attempt = attempt
        bytesSent = 0
        use = attempt.origin.map { ConnectionUse(origin: $0) }
        start = environment.waiting.nextStart()
        settings = environment.settings(for: attempt)
        progress = TransferProgress(
            request, settings.configuration, body: Body(budget: environment.budget),
            startedAt: .now)
        let url = request.isForeign ? request.url.withoutCredentials : request.url
        let rule = request.addressRule ?? environment.configuration.listedAddressRule
        let proxy = settings.proxies.proxy(for: url)
        addresses = AddressChecks(rule: rule, proxiedURL: proxy == nil ? nil : url)
        try handle.prepare(
            attempt, to: url, by: settings, through: proxy,
            emptiesAddressCache: emptiesAddressCache,
            // A proxy's connection serves all hosts.
            closesConnection: closesConnection && proxy == nil)
    }

    /// Releases the body and its memory, and leaves the queue for memory.
    func reset() {
        let waiting = environment.waiting
        if progress.clock.isPaused { waiting.remove(self) }
        if progress.claim == .overdraft { waiting.hasOverdraft = false }
        waiting.heldBytes -= progress.body.reserved
        progress = ActiveTransfer.idleProgress(environment, since: progress.clock.startedAt)
        attempt = ActiveTransfer.idleAttempt
    }

    private static let idleAttempt = TransferAttempt(
        TransferRequest(id: -1, url: RequestURL(normalized: "")))

    private static func idleProgress(
        _ environment: TransferEnvironment, since start: ContinuousClock.Instant
    ) -> TransferProgress {
        TransferProgress(
            idleAttempt.request, environment.configuration,
            body: Body(budget: environment.budget), startedAt: start)
    }

    // MARK: Waiting for memory

    var origin: String { attempt.request.url.origin }

    var hasLongBeenPaused: Bool {
        progress.clock.presentPause(at: .now).map { $0 > ActiveTransfer.longPause } ?? false
    }

    /// Lets this paused transfer exceed the budget from now on.
    func overdraw() {
        progress.claim = .overdraft
        environment.waiting.hasOverdraft = true
        environment.waiting.remove(self)
        resume()
    }

    /// Resumes a transfer. ``receive(_:)`` may run before this returns, and pause it again.
    func resume() {
        progress.clock.resume(at: .now)
        let code = handle.resume()
        if code != CURLE_OK {
            progress.resumeFailed(String(cString: ccurl_easy_strerror(code)))
        }
    }

    /// Whether the handle may be used for an attempt: a challenge of Digest is one origin's.
    func fits(_ attempt: TransferAttempt) -> Bool {
        guard attempt.usesDigest, let origin = handle.challenge.origin else { return true }
        return !attempt.needsNewHandle && origin == attempt.request.url.origin
    }

    // MARK: Connecting

    /// Returns whether another connection to the origin may be opened, and notes a refusal.
    func takesSocket() -> Bool {
        guard let use else { return true }
        let mayOpen = environment.connections.mayOpen(use)
        self.use?.isRefused = !mayOpen
        return mayOpen
    }

    /// Notes a new socket, or the system's error without one.
    func opened(_ socket: Int32, _ cause: Int32) {
        addresses.opened(socket, cause)
        environment.watchdog.opened(socket)
        if let rate = environment.rate, socket >= 0 {
            // Without the small buffer the rate still holds, over a longer time.
            var size = rate.receiveBufferBytes
            setsockopt(
                socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout.size(ofValue: size)))
        }
        guard let use, socket >= 0 else { return }
        environment.connections.noteOpened(socket, use)
        self.use?.isConnecting = true
    }

    func noteRequest() {
        // libcurl may repeat a request on another connection.
        bytesSent = 0
        guard let use else { return }
        if attempt.authorities == .ofFolder { environment.connections.noteIssuerInFolder(use) }
        environment.connections.noteRequest(use)
        self.use?.isConnecting = false
        self.use?.isSent = true
    }

    /// Notes the first line of a head; a proxy's response to CONNECT precedes the request.
    private func receiveStatus(_ line: UnsafeRawBufferPointer) {
        guard var use, use.isSent else { return }
        use.isAnswered = true
        use.isShared = line.starts(with: "HTTP/2".utf8)
        self.use = use
        environment.connections.noteAnswer(use, isShared: use.isShared)
    }

    /// The next attempt of a request that libcurl has ended without a result; nil with a result.
    func nextAttempt(after code: CURLcode) -> TransferAttempt? {
        var next = attempt
        if mayUseDigest(after: code) {
            environment.connections.noteDigest(origin)
            // libcurl takes a second challenge for a refusal of the credentials.
            next.needsNewHandle = attempt.usesDigest
            next.usesDigest = true
            return next
        }
        guard let use, !use.isAnswered else { return nil }
        // The origin's connections carry no more transfers: it waits for another one's end.
        if code == CURLE_COULDNT_CONNECT, use.isRefused { return next }
        guard addresses.failure(code) == nil else { return nil }
        if handle.mayTrustFolder(after: code) { return next.trusting(.ofFolder) }
        // A GOAWAY leaves requests unprocessed that the peer had not read. libcurl sends most of
        // them again itself. A GET may be sent twice (RFC 9110 §9.2.2).
        let isUnprocessed = [
            CURLE_HTTP2, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE,
        ].contains(code)
        guard isUnprocessed, use.isSent, handle.openedConnections == 0,
            environment.connections.isShared(use), next.resends < ActiveTransfer.maximumResends
        else { return nil }
        next.resends += 1
        return next
    }

    /// Whether the origin has refused credentials of the scheme Basic, and wants Digest.
    private func mayUseDigest(after code: CURLcode) -> Bool {
        let request = attempt.request
        let requests = settings.configuration.requests
        let hasCredentials =
            requests.netrcFile != nil
            || !request.isForeign
                && (requests.credentials != nil || request.url.credentials != nil)
        let isFirstChallenge = attempt.usesDigest ? handle.challenge.isOld : true
        return code == CURLE_OK && handle.status == 401 && isFirstChallenge && hasCredentials
            && handle.offersDigest
    }

    private func pause(for rate: ByteRate, at now: ContinuousClock.Instant) {
        // Both directions may be offered.
        if !progress.clock.isPaused { rate.pause(self, of: origin) }
        progress.clock.pause(at: now)
    }

    // MARK: Sending

    /// Fills libcurl's buffer with the next bytes of the request's body, inside libcurl.
    ///
    /// - Returns: their count; `CURL_READFUNC_PAUSE` makes libcurl call again after a resume.
    func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let now = ContinuousClock.now
        if let rate = environment.rate, !rate.mayTake(at: now) {
            pause(for: rate, at: now)
            return Int(CURL_READFUNC_PAUSE)
        }
        guard let count = progress.send(into: buffer, sent: bytesSent, at: now) else {
            return Int(CURL_READFUNC_ABORT)
        }
        environment.rate?.take(count, of: origin)
        bytesSent += count
        return count
    }

    // MARK: Receiving

    /// Takes the next bytes of the body.
    ///
    /// Runs inside libcurl, on the loop's thread: it copies, checks the limits and returns.
    ///
    /// - Returns: the count of bytes taken; any other number ends the transfer, and
    ///   `CURL_WRITEFUNC_PAUSE` makes libcurl offer the same bytes again later.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        if let use { environment.connections.noteBytes(use) }
        if let rate = environment.rate, !rate.mayTake(at: .now) {
            pause(for: rate, at: .now)
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        let wasPaused = progress.clock.isPaused
        if progress.claim != .overdraft {
            let isBehind = environment.waiting.oldest.map { $0.start < start } ?? false
            progress.claim = isBehind ? .behindOthers : .ordinary
        }
        let reserved = progress.body.reserved
        let reception = progress.receive(bytes, of: handle, at: .now)
        environment.waiting.heldBytes += progress.body.reserved - reserved
        switch reception {
        case .taken:
            environment.rate?.take(bytes.count, of: origin)
            return bytes.count
        case .refused: return 0
        case .paused:
            if !wasPaused { environment.waiting.insert(self) }
            return Int(CURL_WRITEFUNC_PAUSE)
        }
    }

    /// Takes one line of a header section, inside libcurl.
    ///
    /// - Returns: whether the transfer continues.
    func receiveLine(_ line: UnsafeRawBufferPointer) -> Bool {
        environment.rate?.take(line.count, of: origin)
        if line.starts(with: "HTTP/".utf8) { receiveStatus(line) }
        if let use { environment.connections.noteBytes(use) }
        guard progress.receiveHeaderLine(line, at: .now) else { return false }
        // Path and domain are the request's where the line does not name them.
        if let cookies = environment.cookies, HeaderLine.value(of: "set-cookie", in: line) != nil {
            cookies.received(line.count + progress.request.url.text.utf8.count + 64)
        }
        if line.starts(with: "HTTP/".utf8) { handle.decodeContent() }
        if HeaderLine.value(of: "content-encoding", in: line) != nil {
            progress.leavesContent ? handle.passContentThrough() : handle.decodeContent()
        }
        return true
    }

    // MARK: Completion

    func complete(_ code: CURLcode, at time: Timestamp) -> TransferCompletion {
        let request = progress.request
        let response = response(to: request, at: time)
        return completion(
            progress.complete(code, response, of: handle) {
                failure(code, of: request, status: response?.status)
            })
    }

    /// Ends the transfer if one of our own time-outs has passed; nil otherwise.
    func expire(
        at now: ContinuousClock.Instant, wallClock: () -> Timestamp
    ) -> TransferCompletion? {
        let request = progress.request
        let ending = progress.expire(at: now, of: handle) {
            response(to: request, at: wallClock())
        }
        return ending.map(completion)
    }

    func cancel(at time: Timestamp) -> TransferCompletion {
        let request = progress.request
        return completion(progress.cancel(of: handle) { response(to: request, at: time) })
    }

    private func completion(_ ending: TransferProgress.TransferEnding) -> TransferCompletion {
        TransferCompletion(
            id: progress.request.id, result: ending.result, bytesReceived: progress.bytesReceived,
            elapsed: progress.clock.elapsed(at: .now), connection: handle.responseConnection,
            address: addresses.connected, interruptedBody: ending.interruptedBody)
    }

    // The next functions run while ``progress`` is being changed, so that they must not read it.

    /// The head as far as it has arrived; nil without a status.
    private func response(to request: TransferRequest, at time: Timestamp) -> Response? {
        let status = handle.status
        guard status > 0 else { return nil }
        let fields = handle.fields
        return Response(
            status: status, fields: fields, hasFramedBody: AnnouncedLength.isFramed(by: fields),
            redirect: (300..<400).contains(status) ? redirect(from: request.url) : nil,
            receivedAt: time)
    }

    /// `Location` resolved against the request's URL.
    ///
    /// libcurl's own result (CURLINFO_REDIRECT_URL) exists only after a body that ended well.
    private func redirect(from url: RequestURL) -> Redirect? {
        handle.withField("Location") { bytes in
            guard !bytes.isEmpty else { return nil }
            // A fragment alone means the URL itself (RFC 3986 §4.4).
            guard bytes.first != UInt8(ascii: "#") else { return .to(url.withoutCredentials) }
            do throws(URLParsingError) {
                let target = try environment.parser.parse(bytes, relativeTo: url)
                return .to(target.withoutCredentials)
            } catch {
                let shown = RedactedURL(String(decoding: bytes, as: UTF8.self)).description
                return .nowhere(
                    location: String(
                        shown.unicodeScalars.prefix(ActiveTransfer.shownLocationScalars)),
                    message: error.message)
            }
        } ?? nil
    }

    // MARK: Failures

    private func failure(
        _ code: CURLcode, of request: TransferRequest, status: Int?
    ) -> TransferFailure {
        if let failure = addresses.failure(code) ?? proxyFailure(code) { return failure }
        if let message = certificateRefusal(of: request) {
            return TransferFailure(
                Failure(.tls, message), httpStatus: status, curlCode: Int(code.rawValue),
                persistence: .untrusted)
        }
        let phase: TransferFailure.TransferPhase =
            handle.timeToRequest != nil ? .answering : .connecting
        let message =
            TransferFailure.message(curlCode: code, in: phase) ?? message(code, of: request)
        return TransferFailure(
            Failure(
                TransferFailure.reason(curlCode: code, in: phase), message + remedy(code, phase)),
            httpStatus: status, curlCode: Int(code.rawValue),
            persistence: TransferFailure.persistence(
                curlCode: code, systemError: handle.systemError, text: handle.errorText))
    }

    /// The message for a client certificate that is refused or missing; nil for other failures.
    private func certificateRefusal(of request: TransferRequest) -> String? {
        let text = handle.errorText
        let hasCertificate =
            !request.isForeign && settings.configuration.requests.clientCertificate != nil
        if TransferFailure.refusesCertificate(text) {
            return hasCertificate
                ? "the origin refuses the client certificate of --cert"
                : "the origin requires a client certificate; see --cert"
        }
        guard TransferFailure.mayRefuseCertificate(text) else { return nil }
        return hasCertificate
            ? "the origin refuses the handshake, perhaps for the client certificate of --cert"
            : "the origin refuses the handshake; it may require a client certificate, see --cert"
    }

    /// The flag that sets the time-out, which libcurl's message cannot name.
    private func remedy(_ code: CURLcode, _ phase: TransferFailure.TransferPhase) -> String {
        guard code == CURLE_OPERATION_TIMEDOUT, phase == .connecting else { return "" }
        let timeout = settings.configuration.limits.connectTimeout
        return "; --connect-timeout is \(timeout.quantityDescription)"
    }

    /// A proxy's refusal of a tunnel, for which libcurl has no code of its own.
    private func proxyFailure(_ code: CURLcode) -> TransferFailure? {
        guard code == CURLE_RECV_ERROR else { return nil }
        let status = handle.tunnelStatus
        guard status >= 300 else { return nil }
        // The user can correct credentials; any other status hides the origin for now.
        let asksForCredentials = status == 407
        return TransferFailure(
            Failure(
                asksForCredentials ? .httpStatus : .connect,
                "the proxy answered \(status) to CONNECT"),
            httpStatus: asksForCredentials ? status : nil, curlCode: Int(code.rawValue))
    }

    /// libcurl's message, or its general text for the code where the message holds a secret: some
    /// messages repeat a proxy or a URL.
    private func message(_ code: CURLcode, of request: TransferRequest) -> String {
        let general = String(cString: ccurl_easy_strerror(code))
        let text = handle.errorText
        let secrets = settings.configuration.secrets(of: request)
        return text.isEmpty || secrets.contains { !$0.isEmpty && text.contains($0) }
            ? general : text
    }
}
