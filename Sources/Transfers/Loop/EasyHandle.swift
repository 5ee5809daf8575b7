internal import CCurl
import Glibc
import PrefetchModel

/// A libcurl easy handle with typed access to options and response information.
///
/// The run's options are set once, the request's before each. Used by the loop's thread only.
final class EasyHandle {
    let pointer: UnsafeMutableRawPointer
    private let configuration: TransferConfiguration
    private let shared: SharedData
    /// The settings in force of the present request's host.
    private var host: TransferEnvironment.HostLimits
    /// The paths of that host's authorities.
    private var paths: TrustedAuthorities.Paths
    private var authoritiesInForce = TrustedAuthorities.ofFile
    /// The list that libcurl was given last, and references.
    private var fieldsInForce = FieldList([])
    /// Whether an earlier request was signed.
    private var hasSigned = false
    private(set) var challenge = DigestChallenge()
    /// Whether the present response's content coding is ignored.
    private(set) var passesContentThrough = false
    /// The list of CURLOPT_RESOLVE, which libcurl references too.
    private let hostAddresses: FieldList
    private let errorBuffer: UnsafeMutablePointer<CChar>

    /// Seconds; libcurl's default.
    private static let addressLifetime = 60

    init(_ host: TransferEnvironment.HostLimits, shared: SharedData) throws(UserError) {
        guard let handle = ccurl_easy_init() else {
            throw UserError(libcurl: "curl_easy_init", CURLE_FAILED_INIT, "no handle")
        }
        pointer = handle
        configuration = host.configuration
        self.shared = shared
        self.host = host
        paths = TrustedAuthorities.Paths(configuration.requests, defaultsOf: handle)
        hostAddresses = FieldList(configuration.requests.hostAddresses.map(\.text))
        errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        try setConstantOptions()
        try setUserOptions()
    }

    deinit {
        ccurl_easy_cleanup(pointer)
        errorBuffer.deallocate()
    }

    /// The challenge of the scheme Digest (RFC 7616) that libcurl keeps.
    struct DigestChallenge {
        private(set) var origin: String?
        /// Whether libcurl had it before the present request.
        private(set) var isOld = false

        fileprivate mutating func expect(from origin: String) {
            isOld = self.origin != nil
            self.origin = origin
        }
    }

    // MARK: Options

    private func setConstantOptions() throws(UserError) {
        // A signal-based resolver time-out is not safe with other threads.
        try set(CURLOPT_NOSIGNAL, 1)
        // The pipeline follows redirects: it knows loops, limits and hosts.
        try set(CURLOPT_FOLLOWLOCATION, 0)
        // Fewer system calls than with the default of 16 KiB. Each transfer has one buffer.
        try set(CURLOPT_BUFFERSIZE, 64 << 10)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        // With this option libcurl decodes even an unrequested encoding: the size limit
        // counts decoded bytes and stops decompression bombs.
        try set(CURLOPT_ACCEPT_ENCODING, TransferConfiguration.acceptedEncodings)
        try set(CURLOPT_ERRORBUFFER, pointer: errorBuffer)
        // Some services never send the 100 that libcurl waits a second for.
        try set(CURLOPT_EXPECT_100_TIMEOUT_MS, 250)
        // Allocated by the first upload.
        try set(CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10)
    }

    private func setUserOptions() throws(UserError) {
        let settings = configuration.requests
        let family =
            switch settings.addressFamily {
            case .any: CURL_IPRESOLVE_WHATEVER
            case .ipv4: CURL_IPRESOLVE_V4
            case .ipv6: CURL_IPRESOLVE_V6
            }
        let version = settings.usesHTTP1Only ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS
        let netrc = settings.netrcFile == nil ? ccurl_netrc_ignored : ccurl_netrc_optional
        try set(CURLOPT_HTTP_VERSION, Int(version))
        try set(CURLOPT_IPRESOLVE, Int(family))
        try set(CURLOPT_NETRC, netrc)
        // Each request names its proxy. libcurl must ignore the environment.
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_PROXY_CAINFO, paths.proxyFile)
        try set(CURLOPT_NOPROXY, "")
        try set(CURLOPT_NETRC_FILE, settings.netrcFile)
        try setHostOptions()
        // OpenSSL would read it from the terminal.
        try set(CURLOPT_KEYPASSWD, "")
        try set(CURLOPT_SHARE, pointer: shared.pointer)
        // An empty name turns cookies on and reads nothing.
        if settings.cookieJar != nil { try set(CURLOPT_COOKIEFILE, "") }
        if hostAddresses.pointer != nil { try set(CURLOPT_RESOLVE, hostAddresses) }
    }

    private func setHostOptions() throws(UserError) {
        let verifies = host.configuration.requests.verifiesOrigins
        try set(CURLOPT_USERAGENT, host.configuration.userAgent)
        // Zero would mean libcurl's default.
        try set(
            CURLOPT_CONNECTTIMEOUT_MS,
            Int(clamping: max(1, host.configuration.limits.connectTimeout.wholeMilliseconds)))
        // For origins only: the certificate of an https proxy is always verified.
        try set(CURLOPT_SSL_VERIFYPEER, verifies ? 1 : 0)
        try set(CURLOPT_SSL_VERIFYHOST, verifies ? 2 : 0)
        try trust(.ofFile)
    }

    /// Sets both paths, also to nil: libcurl has defaults of its own.
    private func trust(_ authorities: TrustedAuthorities) throws(UserError) {
        let usesFile = paths.file != nil && authorities == .ofFile
        try set(CURLOPT_CAINFO, usesFile ? paths.file : nil)
        try set(CURLOPT_CAPATH, usesFile ? nil : paths.folder)
        authoritiesInForce = authorities
    }

    /// Sets the callbacks, which run on the loop's thread. The one for closed sockets runs even
    /// after the transfer, as long as the multi handle exists.
    func setFunctions(
        of transfer: ActiveTransfer, _ connections: OriginConnections
    ) throws(UserError) {
        let codes = [
            ccurl_easy_set_byte_function(pointer, CURLOPT_WRITEFUNCTION, receiveBodyBytes),
            ccurl_easy_set_byte_function(pointer, CURLOPT_HEADERFUNCTION, receiveHeaderLine),
            ccurl_easy_set_byte_function(pointer, CURLOPT_READFUNCTION, sendBodyBytes),
            ccurl_easy_set_open_socket_function(
                pointer, CURLOPT_OPENSOCKETFUNCTION, openCheckedSocket),
            ccurl_easy_set_close_socket_function(
                pointer, CURLOPT_CLOSESOCKETFUNCTION, closeSocket),
            ccurl_easy_set_prerequest_function(pointer, CURLOPT_PREREQFUNCTION, checkConnection),
        ]
        for code in codes { try EasyHandle.check(code, "functions") }
        for option in [
            CURLOPT_OPENSOCKETDATA, CURLOPT_PREREQDATA, CURLOPT_HEADERDATA, CURLOPT_WRITEDATA,
            CURLOPT_READDATA,
        ] {
            try set(option, pointer: Unmanaged.passUnretained(transfer).toOpaque())
        }
        try set(
            CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(connections).toOpaque())
    }

    func prepare(
        _ attempt: TransferAttempt, to url: RequestURL, by host: TransferEnvironment.HostLimits,
        through proxy: String?, emptiesAddressCache: Bool, closesConnection: Bool
    ) throws(UserError) {
        let request = attempt.request
        errorBuffer[0] = 0
        try set(CURLOPT_URL, url.text)
        try set(
            CURLOPT_DNS_CACHE_TIMEOUT, emptiesAddressCache ? 0 : EasyHandle.addressLifetime)
        try set(CURLOPT_FORBID_REUSE, closesConnection ? 1 : 0)
        if host.number != self.host.number {
            self.host = host
            paths = TrustedAuthorities.Paths(host.configuration.requests, defaultsOf: pointer)
            try setHostOptions()
        }
        if attempt.authorities != authoritiesInForce { try trust(attempt.authorities) }
        try setMethod(request)
        let certificate =
            request.isForeign ? nil : host.configuration.requests.clientCertificate
        try set(CURLOPT_SSLCERT, certificate?.file)
        try set(CURLOPT_SSLKEY, certificate.map { $0.keyFile ?? $0.file })
        decodeContent()
        try set(CURLOPT_PROXY, proxy ?? "")
        try setCredentials(for: request, byDigest: attempt.usesDigest)
        try setFields(for: request)
    }

    private func setMethod(_ request: TransferRequest) throws(UserError) {
        // Resets the other methods.
        try set(CURLOPT_HTTPGET, 1)
        let exchange = request.exchange
        switch exchange?.method {
        case nil, .get:
            // Without a body, libcurl sends HEAD.
            if request.bodyUse == .none { try set(CURLOPT_NOBODY, 1) }
        case .delete: break
        case .put:
            try set(CURLOPT_UPLOAD, 1)
            try set(CURLOPT_INFILESIZE_LARGE, size: exchange?.content.count ?? 0)
        case .post:
            try set(CURLOPT_POST, 1)
            try set(CURLOPT_POSTFIELDSIZE_LARGE, size: exchange?.content.count ?? 0)
        }
        try set(CURLOPT_CUSTOMREQUEST, exchange?.method == .delete ? "DELETE" : nil)
    }

    private func setCredentials(
        for request: TransferRequest, byDigest: Bool
    ) throws(UserError) {
        if byDigest { challenge.expect(from: request.url.origin) }
        let signature = request.exchange?.signature
        // A libcurl for origins alone need not know it.
        if hasSigned || signature != nil {
            try set(CURLOPT_AWS_SIGV4, signature.map { "aws:amz:\($0.region):s3" })
        }
        hasSigned = signature != nil
        // The signature is an authentication of its own.
        if signature == nil {
            try set(
                CURLOPT_HTTPAUTH,
                byDigest ? ccurl_authentication_digest : ccurl_authentication_basic)
        }
        // libcurl would send these instead of the URL's own, which were given for it alone.
        let isSent = !request.isForeign && request.url.credentials == nil
        let credentials =
            signature?.credentials ?? (isSent ? host.configuration.requests.credentials : nil)
        try set(CURLOPT_USERNAME, credentials?.user)
        try set(CURLOPT_PASSWORD, credentials?.password)
    }

    private func setFields(for request: TransferRequest) throws(UserError) {
        // The signature covers the fields of this list, and a service gets no others.
        let lines =
            if request.exchange != nil {
                request.fields.map { "\($0.name): \($0.value)" }
            } else {
                host.configuration.fieldLines(
                    isForeign: request.isForeign, request.userFields, conditions: request.fields)
            }
        let list = FieldList(lines)
        try set(CURLOPT_HTTPHEADER, list)
        // libcurl references the old one until now.
        fieldsInForce = list
    }

    /// Takes back ``passContentThrough()``.
    func decodeContent() {
        guard passesContentThrough else { return }
        passesContentThrough =
            ccurl_easy_set_long(pointer, CURLOPT_HTTP_CONTENT_DECODING, 1) != CURLE_OK
    }

    /// Leaves the present body as it is sent. Called before the body.
    func passContentThrough() {
        passesContentThrough =
            ccurl_easy_set_long(pointer, CURLOPT_HTTP_CONTENT_DECODING, 0) == CURLE_OK
    }

    /// Resumes after a pause. libcurl may call the write function before this returns.
    func resume() -> CURLcode { ccurl_easy_pause(pointer, CURLPAUSE_CONT) }

    /// Whether the connection failed because no authority of the file issued the certificate. An
    /// authority of the folder may have issued it.
    func mayTrustFolder(after code: CURLcode) -> Bool {
        code == CURLE_PEER_FAILED_VERIFICATION && authoritiesInForce == .ofFile
            && paths.file != nil && paths.folder != nil
            && TrustedAuthorities.isIssuerUnknown(number(CURLINFO_SSL_VERIFYRESULT))
    }

    /// libcurl's message about an error; empty without one.
    var errorText: String { String(cString: errorBuffer) }
}

// Setting options by the kinds of their values.

extension EasyHandle {
    func set(_ option: CURLoption, _ value: Int) throws(UserError) {
        try check(ccurl_easy_set_long(pointer, option, value), option)
    }

    /// Sets a text, which libcurl copies; nil for libcurl's default.
    func set(_ option: CURLoption, _ text: String?) throws(UserError) {
        try check(ccurl_easy_set_string(pointer, option, text), option)
    }

    func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer) throws(UserError) {
        try check(ccurl_easy_set_pointer(pointer, option, value), option)
    }

    /// Sets a size, which may exceed 2 GiB.
    func set(_ option: CURLoption, size: Int) throws(UserError) {
        try check(ccurl_easy_set_offset(pointer, option, size), option)
    }

    /// Sets a list, which libcurl references.
    func set(_ option: CURLoption, _ list: FieldList) throws(UserError) {
        try check(ccurl_easy_set_list(pointer, option, list.pointer), option)
    }

    private func check(_ code: CURLcode, _ option: CURLoption) throws(UserError) {
        try EasyHandle.check(code, "option \(option.rawValue)")
    }

    static func check(_ code: CURLcode, _ operation: @autoclosure () -> String) throws(UserError) {
        guard code != CURLE_OK else { return }
        throw UserError(libcurl: operation(), code)
    }
}

extension UserError {
    /// An error of libcurl itself, which ends the loop.
    init(libcurl operation: String, _ code: CURLcode, _ message: String? = nil) {
        let message = message ?? String(cString: ccurl_easy_strerror(code))
        self.init(.failed, "libcurl", "\(operation): \(message) (\(code.rawValue))")
    }
}
