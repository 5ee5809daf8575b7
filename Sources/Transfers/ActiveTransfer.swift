internal import CCurl
import Glibc
import PrefetchModel
import URLParsing

/// One easy handle and what its present transfer has got so far.
///
/// Owned by the transfer loop's thread, which keeps it alive while libcurl holds its address, and
/// reused for transfer after transfer: the handle's options are set once.
final class ActiveTransfer {
    let handle: UnsafeMutableRawPointer
    private let configuration: TransferConfiguration
    private let budget: BodyBudget
    private let waiting: WaitingTransfers
    private let cookies: CookieJar?
    private let parser: URLParser
    private let proxies: ProxyRules
    /// The fields of most requests, which bring none of their own, and of foreign ones.
    private let commonFields: FieldList
    private let foreignFields: FieldList
    /// What libcurl was told last: it keeps a reference to the list.
    private var fieldsInForce: FieldList
    private var proxyInForce: String?
    private var credentialsInForce = false
    private var emptiesAddressCache = false
    private var closesConnection = false
    /// For CURLOPT_RESOLVE, kept by reference too.
    private let hostAddresses: FieldList
    /// Where libcurl writes the text of an error.
    private let errorText: UnsafeMutablePointer<CChar>

    private(set) var request = TransferRequest(id: -1, url: RequestURL(normalized: ""))
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
    /// Whether the body is one to keep; known with ``bodyStatus``.
    private var wantsBody = false
    /// The length of the whole body, when the response continues a part of it and tells.
    private var continuedTotal: Int?
    /// Why ``receive(_:)`` ended the transfer itself.
    private var refusal: (reason: FailureReason, message: String)?
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
    private static let drainedBytes = 64 << 10

    /// Seconds; libcurl's default.
    private static let addressLifetime = 60

    /// - Throws: when libcurl has no memory or does not know an option.
    init(
        configuration: TransferConfiguration, budget: BodyBudget, waiting: WaitingTransfers,
        cookies: CookieJar?, parser: URLParser
    ) throws(TransferLoopError) {
        guard let handle = curl_easy_init() else {
            throw TransferLoopError(
                operation: "curl_easy_init", code: Int32(CURLE_FAILED_INIT.rawValue),
                message: "no handle")
        }
        self.handle = handle
        self.configuration = configuration
        self.budget = budget
        self.waiting = waiting
        self.cookies = cookies
        self.parser = parser
        proxies = ProxyRules(configuration.requests.proxies)
        commonFields = FieldList(configuration.fieldLines(isForeign: false))
        foreignFields = FieldList(
            configuration.fieldLines(isForeign: true))
        fieldsInForce = commonFields
        hostAddresses = FieldList(configuration.requests.hostAddresses.map(\.text))
        body = Body(budget: budget)
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        try setConstantOptions()
        try setRequestOptions()
    }

    deinit {
        curl_easy_cleanup(handle)
        errorText.deallocate()
    }

    private func setConstantOptions() throws(TransferLoopError) {
        func milliseconds(_ duration: Duration) -> Int {
            // Zero would mean libcurl's default.
            Int(clamping: max(1, duration.wholeMilliseconds))
        }
        let options: [(CURLoption, Int)] = [
            // A signal-based resolver time-out is not safe beside other threads.
            (CURLOPT_NOSIGNAL, 1),
            (CURLOPT_CONNECTTIMEOUT_MS, milliseconds(configuration.connectTimeout)),
            // Redirects come back to the pipeline, which knows loops, limits and hosts.
            (CURLOPT_FOLLOWLOCATION, 0),
            // Fewer calls into the kernel than with the default of 16 KiB.
            (CURLOPT_BUFFERSIZE, 128 << 10),
        ]
        for (option, value) in options {
            try check(ccurl_easy_set_long(handle, option, value), "option \(option.rawValue)")
        }
        try check(
            ccurl_easy_set_string(handle, CURLOPT_PROTOCOLS_STR, "http,https"), "protocols")
        try check(
            ccurl_easy_set_string(handle, CURLOPT_USERAGENT, configuration.userAgent),
            "user agent")
        // Setting the option at all makes libcurl decode what arrives encoded without being asked
        // for, so that the limit counts pixels' bytes and not a bomb's.
        try check(
            ccurl_easy_set_string(
                handle, CURLOPT_ACCEPT_ENCODING, TransferConfiguration.acceptedEncodings),
            "encodings")
        try check(ccurl_easy_set_pointer(handle, CURLOPT_ERRORBUFFER, errorText), "error text")
        try check(ccurl_easy_set_write_function(handle, receiveBodyBytes), "write function")
        try check(
            ccurl_easy_set_header_function(handle, receiveHeaderLine), "header function")
        try check(
            ccurl_easy_set_open_socket_function(handle, openCheckedSocket), "socket function")
        try check(
            ccurl_easy_set_prerequest_function(handle, checkConnection), "request function")
        let context = Unmanaged.passUnretained(self).toOpaque()
        try check(ccurl_easy_set_pointer(handle, CURLOPT_OPENSOCKETDATA, context), "socket data")
        try check(ccurl_easy_set_pointer(handle, CURLOPT_PREREQDATA, context), "request data")
        try check(ccurl_easy_set_pointer(handle, CURLOPT_HEADERDATA, context), "header data")
        try check(ccurl_easy_set_pointer(handle, CURLOPT_WRITEDATA, context), "write data")
    }

    /// What the user says about all requests.
    private func setRequestOptions() throws(TransferLoopError) {
        let settings = configuration.requests
        let family =
            switch settings.addressFamily {
            case .any: CURL_IPRESOLVE_WHATEVER
            case .ipv4: CURL_IPRESOLVE_V4
            case .ipv6: CURL_IPRESOLVE_V6
            }
        let version = settings.usesHTTP1Only ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS
        let netrc = settings.netrcFile == nil ? CURL_NETRC_IGNORED : CURL_NETRC_OPTIONAL
        let options: [(CURLoption, Int)] = [
            (CURLOPT_HTTP_VERSION, Int(version)),
            (CURLOPT_IPRESOLVE, Int(family)),
            // Of the origin only: an https proxy proves who it is in any case.
            (CURLOPT_SSL_VERIFYPEER, settings.verifiesOrigins ? 1 : 0),
            (CURLOPT_SSL_VERIFYHOST, settings.verifiesOrigins ? 2 : 0),
            (CURLOPT_NETRC, Int(netrc.rawValue)),
        ]
        for (option, value) in options {
            try check(ccurl_easy_set_long(handle, option, value), "option \(option.rawValue)")
        }
        // Each request says which proxy it takes, so that libcurl does not look into the environment.
        try check(ccurl_easy_set_string(handle, CURLOPT_PROXY, ""), "proxy")
        try check(ccurl_easy_set_string(handle, CURLOPT_NOPROXY, ""), "proxy exceptions")
        if let file = settings.netrcFile {
            try check(ccurl_easy_set_string(handle, CURLOPT_NETRC_FILE, file), "netrc file")
        }
        if let file = settings.authorityFile {
            try check(ccurl_easy_set_string(handle, CURLOPT_CAINFO, file), "certificates")
            // Else the system's folder of certificates would be trusted as well.
            try check(ccurl_easy_set_string(handle, CURLOPT_CAPATH, nil), "certificates")
        }
        if let cookies {
            try check(
                ccurl_easy_set_pointer(handle, CURLOPT_SHARE, cookies.share), "cookies")
            // An empty name turns cookies on and reads nothing.
            try check(ccurl_easy_set_string(handle, CURLOPT_COOKIEFILE, ""), "cookies")
        }
        if let list = hostAddresses.pointer {
            try check(ccurl_easy_set_list(handle, CURLOPT_RESOLVE, list), "host addresses")
        }
        try check(
            ccurl_easy_set_list(handle, CURLOPT_HTTPHEADER, commonFields.pointer),
            "request fields")
    }

    private func check(_ code: CURLcode, _ operation: String) throws(TransferLoopError) {
        guard code != CURLE_OK else { return }
        throw TransferLoopError(
            operation: operation, code: Int32(code.rawValue),
            message: String(cString: curl_easy_strerror(code)))
    }

    /// Makes the handle ready for `request`; its end may empty libcurl's cache of addresses, and
    /// close its connection.
    func prepare(
        _ request: TransferRequest, emptiesAddressCache: Bool, closesConnection: Bool
    ) throws(TransferLoopError) {
        self.request = request
        body = Body(budget: budget)
        bytesReceived = 0
        startedAt = .now
        lastByteAt = nil
        isHeadComplete = false
        bodyStatus = nil
        announcedBodyBytes = nil
        wantsBody = false
        continuedTotal = nil
        refusal = nil
        pausedAt = nil
        pausedTime = .zero
        errorText[0] = 0
        let url = request.isForeign ? request.url.withoutCredentials : request.url
        try check(ccurl_easy_set_string(handle, CURLOPT_URL, url.text), "URL")
        // Over TLS a second transfer waits to learn whether the first one's connection can be
        // shared (HTTP/2); plain connections never can and should open at once.
        try check(
            ccurl_easy_set_long(handle, CURLOPT_PIPEWAIT, url.isEncrypted ? 1 : 0),
            "connection sharing")
        if emptiesAddressCache != self.emptiesAddressCache {
            try check(
                ccurl_easy_set_long(
                    handle, CURLOPT_DNS_CACHE_TIMEOUT,
                    emptiesAddressCache ? 0 : ActiveTransfer.addressLifetime),
                "address cache")
            self.emptiesAddressCache = emptiesAddressCache
        }
        if closesConnection != self.closesConnection {
            try check(
                ccurl_easy_set_long(handle, CURLOPT_FORBID_REUSE, closesConnection ? 1 : 0),
                "connection's end")
            self.closesConnection = closesConnection
        }
        try setWay(url)
        try setCredentials()
        try setFields()
    }

    /// The proxy, and which addresses are looked at.
    private func setWay(_ url: RequestURL) throws(TransferLoopError) {
        let rule = request.addressRule ?? configuration.listedAddressRule
        let proxy = proxies.proxy(for: url)
        addresses =
            proxy == nil
            ? AddressChecks(rule: rule) : AddressChecks(rule: rule, proxiedURL: url)
        guard proxy != proxyInForce else { return }
        try check(ccurl_easy_set_string(handle, CURLOPT_PROXY, proxy ?? ""), "proxy")
        proxyInForce = proxy
    }

    private func setCredentials() throws(TransferLoopError) {
        guard let credentials = configuration.requests.credentials else { return }
        // libcurl would send these in place of those in the URL, which were given for it alone.
        let isSent = !request.isForeign && request.url.credentials == nil
        guard isSent != credentialsInForce else { return }
        try check(
            ccurl_easy_set_string(
                handle, CURLOPT_USERNAME, isSent ? credentials.user : nil), "user name")
        try check(
            ccurl_easy_set_string(
                handle, CURLOPT_PASSWORD, isSent ? credentials.password : nil), "password")
        credentialsInForce = isSent
    }

    private func setFields() throws(TransferLoopError) {
        let fields: FieldList
        if !request.fields.isEmpty || !request.userFields.isEmpty && !request.isForeign {
            fields = FieldList(configuration.fieldLines(of: request))
        } else {
            fields = request.isForeign ? foreignFields : commonFields
        }
        guard fields !== fieldsInForce else { return }
        try check(
            ccurl_easy_set_list(handle, CURLOPT_HTTPHEADER, fields.pointer), "request fields")
        // libcurl reads the list during the transfer, so the former one goes after the change.
        fieldsInForce = fields
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
        let code = curl_easy_pause(handle, CURLPAUSE_CONT)
        if code != CURLE_OK, refusal == nil {
            // libcurl has dropped the bytes that it kept: what came after them would leave a hole.
            refusal = (.internal, "resuming failed: \(String(cString: curl_easy_strerror(code)))")
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
        guard refusal == nil else { return 0 }
        if bodyStatus == nil {
            readHead()
            // At once: a length that libcurl cannot read makes it wait for the connection's end.
            if wantsBody, let framingProblem {
                refusal = (.interrupted, framingProblem)
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
                    "the announced body is larger than \(limit)"
                } else if isEncoded {
                    "the body is larger than \(limit) when it is decompressed"
                } else {
                    "the body is larger than \(limit)"
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
            return bytes.count
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
        var status = 0
        ccurl_easy_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        bodyStatus = status
        var length: curl_off_t = -1
        ccurl_easy_get_offset(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length)
        // Far beyond every limit, and sums with it do not overflow.
        announcedBodyBytes = length >= 0 ? min(Int(clamping: length), .max / 4) : nil
        wantsBody = status == 200
        guard status == 206, let continuation = request.continuation,
            case .continues(let total) = continuation.judge(receivedFields())
        else { return }
        wantsBody = true
        continuedTotal = total
        body.leaveGap(continuation.offset)
    }

    private var isEncoded: Bool { field("Content-Encoding") != nil }

    /// Counts a header line that is a cookie.
    fileprivate func countCookie(_ line: UnsafeRawBufferPointer) {
        guard let cookies, line.count > 11, line.first.map({ $0 | 0x20 }) == UInt8(ascii: "s"),
            zip(line, "set-cookie:".utf8).allSatisfy({ $0 | 0x20 == $1 | 0x20 })
        else { return }
        cookies.received(line.count)
    }

    // MARK: Completion

    func complete(_ code: CURLcode, at time: Timestamp) -> TransferCompletion {
        let head = responseHead(at: time)
        let result: TransferCompletion.Result
        var broken: BrokenBody?
        if refusal != nil {
            result = .failure(failure(code, status: head?.status))
        } else if let refused = refusedResponse(head) {
            result = .response(refused, nil)
        } else if let head, let framingProblem {
            result = .failure(
                TransferFailure(
                    reason: .interrupted, curlCode: nil, httpStatus: head.status,
                    message: framingProblem))
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
        guard let head, isHeadComplete, wantsBody, refusal == nil, framingProblem == nil,
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
        if refusal != nil {
            // Raised while resuming; no further byte may come that libcurl would be told with.
            return completion(.failure(failure(CURLE_WRITE_ERROR, status: nil)))
        }
        let reason: FailureReason
        let message: String
        if now - startedAt - pausedTime >= configuration.totalTimeout {
            reason = .timeout
            message = "not complete after \(configuration.totalTimeout)"
        } else if now - waitingSince(now) >= configuration.stallTimeout {
            reason = .stalled
            message = "no byte arrived for \(configuration.stallTimeout)"
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
        var microseconds: curl_off_t = 0
        ccurl_easy_get_offset(handle, CURLINFO_PRETRANSFER_TIME_T, &microseconds)
        return microseconds > 0 ? startedAt + .microseconds(microseconds) : now
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
        var status = 0
        ccurl_easy_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        guard status > 0 else { return nil }
        let fields = receivedFields()
        var version = 0
        ccurl_easy_get_long(handle, CURLINFO_HTTP_VERSION, &version)
        let isFramed =
            version >= Int(CURL_HTTP_VERSION_2_0) || fields.first("content-length") != nil
            || fields.first("transfer-encoding") != nil
        return Response(
            status: status, fields: fields, hasFramedBody: isFramed,
            redirect: (300..<400).contains(status) ? redirect : nil, receivedAt: time)
    }

    private func receivedFields() -> [HeaderField] {
        var fields: [HeaderField] = []
        fields.reserveCapacity(16)
        var previous: UnsafeMutablePointer<curl_header>?
        while let next = curl_easy_nextheader(handle, UInt32(CURLH_HEADER), -1, previous) {
            fields.append(
                HeaderField(
                    name: String(cString: next.pointee.name),
                    value: String(cString: next.pointee.value)))
            previous = next
        }
        return fields
    }

    /// `Location` against the request's URL.
    ///
    /// libcurl's own answer (CURLINFO_REDIRECT_URL) is there only after a body that ended well.
    private var redirect: Redirect? {
        withField("Location") { bytes in
            do throws(EntryBatch.Problem) {
                let target = try parser.parse(bytes, relativeTo: request.url)
                return .to(target.withoutCredentials)
            } catch {
                let shown = RedactedURL(String(decoding: bytes, as: UTF8.self)).description
                return .nowhere(
                    location: String(shown.prefix(ActiveTransfer.shownLocation)),
                    message: error.message)
            }
        }
    }

    /// Of a `Location` that leads nowhere, the characters that are shown.
    private static let shownLocation = 200

    /// Why the length of a response is not believed, which libcurl may accept all the same: what one
    /// reader takes for the body is not what another does (RFC 9112 §6.3).
    private var framingProblem: String? {
        var values: [String] = []
        while let value = field("Content-Length", at: values.count) { values.append(value) }
        switch AnnouncedLength(of: values) {
        case .unknown:
            return nil
        case .unreadable:
            return "the response announces a length that is not a number of bytes"
        case .contradictory:
            return "the response announces different lengths"
        case .bytes:
            guard field("Transfer-Encoding") != nil else { return nil }
            return "the response has both a length and a transfer encoding"
        }
    }

    /// The value of a field of the response, of the first one with this name or of a later one.
    private func field(_ name: String, at index: Int = 0) -> String? {
        withField(name, at: index) { String(decoding: $0, as: UTF8.self) }
    }

    /// Gives the bytes as they came, which need not be UTF-8.
    private func withField<Value>(
        _ name: String, at index: Int = 0, _ body: (UnsafeRawBufferPointer) -> Value
    ) -> Value? {
        var field: UnsafeMutablePointer<curl_header>?
        guard curl_easy_header(handle, name, index, UInt32(CURLH_HEADER), -1, &field) == CURLHE_OK,
            let value = field?.pointee.value
        else { return nil }
        return body(UnsafeRawBufferPointer(start: value, count: strlen(value)))
    }

    private func failure(_ code: CURLcode, status: Int?) -> TransferFailure {
        if let refusal {
            return TransferFailure(
                reason: refusal.reason, curlCode: Int32(code.rawValue), httpStatus: status,
                message: refusal.message)
        }
        if let refused = addresses.failure(code) ?? proxyFailure(code) { return refused }
        return TransferFailure(
            reason: TransferFailure.reason(
                curlCode: code, in: hasSentRequest ? .answering : .connecting),
            curlCode: Int32(code.rawValue), httpStatus: status, message: message(code))
    }

    /// What a proxy said in place of opening a tunnel, for which libcurl has no code of its own.
    private func proxyFailure(_ code: CURLcode) -> TransferFailure? {
        guard code == CURLE_RECV_ERROR else { return nil }
        var status = 0
        ccurl_easy_get_long(handle, CURLINFO_HTTP_CONNECTCODE, &status)
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
        let general = String(cString: curl_easy_strerror(code))
        guard errorText[0] != 0 else { return general }
        let text = String(cString: errorText)
        let secrets = configuration.secrets(of: request)
        return secrets.contains { !$0.isEmpty && text.contains($0) } ? general : text
    }

    /// Connections that were opened for the transfer.
    var openedConnections: Int {
        var count = 0
        ccurl_easy_get_long(handle, CURLINFO_NUM_CONNECTS, &count)
        return count
    }

    private var hasSentRequest: Bool {
        var microseconds: curl_off_t = 0
        ccurl_easy_get_offset(handle, CURLINFO_PRETRANSFER_TIME_T, &microseconds)
        return microseconds > 0
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
