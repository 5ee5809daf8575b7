internal import CCurl
import Glibc
import PrefetchModel

/// A libcurl easy handle with typed access to options and response information.
///
/// The run's options are set once, the request's before each request. Used only by the transfer
/// loop's thread.
final class EasyHandle {
    let pointer: UnsafeMutableRawPointer
    private let configuration: TransferConfiguration
    private let shared: SharedData
    /// The settings in force of the present request's host.
    private var host: HostState
    private var authoritiesInForce = TrustedAuthorities.ofFile
    /// The fields of requests without their own fields, for listed and for foreign origins.
    private let commonFields: FieldList
    private let foreignFields: FieldList
    /// The list that libcurl was given last, and references.
    private var fieldsInForce: FieldList
    private var proxyInForce: String?
    private var credentialsInForce: Credentials?
    private var certificateInForce: ClientCertificate?
    private var usesDigest = false
    /// The origin whose challenge of Digest libcurl keeps; nil without one.
    private(set) var originOfChallenge: String?
    /// Whether libcurl had that challenge before the present request.
    private(set) var hadChallenge = false
    private var usesHEAD = false
    private var emptiesAddressCache = false
    private var closesConnection = false
    /// Whether the present response's content coding is ignored.
    private(set) var passesContentThrough = false
    /// The list of CURLOPT_RESOLVE, which libcurl references too.
    private let hostAddresses: FieldList
    /// The buffer for libcurl's error texts.
    private let errorBuffer: UnsafeMutablePointer<CChar>

    /// Seconds; libcurl's default.
    private static let addressLifetime = 60

    /// - Throws: when libcurl has no memory or does not know an option.
    init(
        configuration: TransferConfiguration, shared: SharedData
    ) throws(TransferLoopError) {
        guard let handle = ccurl_easy_init() else {
            throw TransferLoopError(
                operation: "curl_easy_init", code: Int32(CURLE_FAILED_INIT.rawValue),
                message: "no handle")
        }
        pointer = handle
        self.configuration = configuration
        self.shared = shared
        host = HostState(configuration, number: nil, of: handle)
        commonFields = FieldList(configuration.fieldLines(isForeign: false))
        foreignFields = FieldList(configuration.fieldLines(isForeign: true))
        fieldsInForce = commonFields
        hostAddresses = FieldList(configuration.requests.hostAddresses.map(\.text))
        errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        try setConstantOptions()
        try setRequestOptions()
    }

    deinit {
        ccurl_easy_cleanup(pointer)
        errorBuffer.deallocate()
    }

    /// The settings of one host.
    private struct HostState {
        /// The value of ``TransferAttempt/hostSettings``.
        let number: Int?
        let configuration: TransferConfiguration
        let authorities: TrustedAuthorities.Paths

        init(
            _ configuration: TransferConfiguration, number: Int?, of handle: UnsafeMutableRawPointer
        ) {
            self.number = number
            self.configuration = configuration
            authorities = TrustedAuthorities.Paths(configuration.requests, defaultsOf: handle)
        }
    }

    // MARK: Options

    private func setConstantOptions() throws(TransferLoopError) {
        let options: [(CURLoption, Int)] = [
            // A signal-based resolver time-out is not safe beside other threads.
            (CURLOPT_NOSIGNAL, 1),
            // The pipeline follows redirects: it knows loops, limits and hosts.
            (CURLOPT_FOLLOWLOCATION, 0),
            // Fewer system calls than with the default of 16 KiB. Each transfer has one buffer.
            (CURLOPT_BUFFERSIZE, 64 << 10),
        ]
        for (option, value) in options {
            try check(ccurl_easy_set_long(pointer, option, value), "option \(option.rawValue)")
        }
        try check(
            ccurl_easy_set_string(pointer, CURLOPT_PROTOCOLS_STR, "http,https"), "protocols")
        try check(
            ccurl_easy_set_string(pointer, CURLOPT_USERAGENT, configuration.userAgent),
            "user agent")
        // With this option libcurl decodes even an unrequested encoding, so that the size limit
        // counts decoded bytes and stops decompression bombs.
        try check(
            ccurl_easy_set_string(
                pointer, CURLOPT_ACCEPT_ENCODING, TransferConfiguration.acceptedEncodings),
            "encodings")
        try check(ccurl_easy_set_pointer(pointer, CURLOPT_ERRORBUFFER, errorBuffer), "error text")
    }

    /// Sets the user's options.
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
            (CURLOPT_NETRC, Int(netrc.rawValue)),
        ]
        for (option, value) in options {
            try check(ccurl_easy_set_long(pointer, option, value), "option \(option.rawValue)")
        }
        // Each request names its proxy, so that libcurl ignores the environment.
        try check(ccurl_easy_set_string(pointer, CURLOPT_PROXY, ""), "proxy")
        try check(ccurl_easy_set_string(pointer, CURLOPT_NOPROXY, ""), "proxy exceptions")
        if let file = settings.netrcFile {
            try check(ccurl_easy_set_string(pointer, CURLOPT_NETRC_FILE, file), "netrc file")
        }
        try setHostOptions()
        // OpenSSL would ask for it at the terminal.
        try check(ccurl_easy_set_string(pointer, CURLOPT_KEYPASSWD, ""), "key's password")
        try check(ccurl_easy_set_pointer(pointer, CURLOPT_SHARE, shared.pointer), "shared data")
        if settings.cookieJar != nil {
            // An empty name turns cookies on and reads nothing.
            try check(ccurl_easy_set_string(pointer, CURLOPT_COOKIEFILE, ""), "cookies")
        }
        if let list = hostAddresses.pointer {
            try check(ccurl_easy_set_list(pointer, CURLOPT_RESOLVE, list), "host addresses")
        }
        try check(
            ccurl_easy_set_list(pointer, CURLOPT_HTTPHEADER, commonFields.pointer),
            "request fields")
    }

    /// Sets the options of the request's host.
    private func setHostOptions() throws(TransferLoopError) {
        let verifies = host.configuration.requests.verifiesOrigins
        let options: [(CURLoption, Int)] = [
            // Zero would mean libcurl's default.
            (
                CURLOPT_CONNECTTIMEOUT_MS,
                Int(clamping: max(1, host.configuration.connectTimeout.wholeMilliseconds))
            ),
            // For origins only: the certificate of an https proxy is always verified.
            (CURLOPT_SSL_VERIFYPEER, verifies ? 1 : 0),
            (CURLOPT_SSL_VERIFYHOST, verifies ? 2 : 0),
        ]
        for (option, value) in options {
            try check(ccurl_easy_set_long(pointer, option, value), "option \(option.rawValue)")
        }
        try trust(.ofFile)
    }

    private func trust(_ authorities: TrustedAuthorities) throws(TransferLoopError) {
        let paths = host.authorities
        let usesFile = paths.file != nil && authorities == .ofFile
        try check(
            ccurl_easy_set_string(pointer, CURLOPT_CAINFO, usesFile ? paths.file : nil),
            "certificates")
        try check(
            ccurl_easy_set_string(pointer, CURLOPT_CAPATH, usesFile ? nil : paths.folder),
            "certificates")
        authoritiesInForce = authorities
    }

    /// Sets the callback for closed sockets, which runs as long as the multi handle exists.
    func setCloseFunction(
        _ close: @escaping @convention(c) (UnsafeMutableRawPointer?, curl_socket_t) -> Int32,
        context: UnsafeMutableRawPointer
    ) throws(TransferLoopError) {
        try check(ccurl_easy_set_close_socket_function(pointer, close), "socket function")
        try check(
            ccurl_easy_set_pointer(pointer, CURLOPT_CLOSESOCKETDATA, context),
            "functions' context")
    }

    /// Sets the callbacks, which run on the loop's thread, and their context.
    func setFunctions(
        write:
            @escaping @convention(c) (
                UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?
            ) -> Int,
        header:
            @escaping @convention(c) (
                UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?
            ) -> Int,
        openSocket:
            @escaping @convention(c) (
                UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?
            ) -> curl_socket_t,
        prerequest:
            @escaping @convention(c) (
                UnsafeMutableRawPointer?, UnsafeMutablePointer<CChar>?,
                UnsafeMutablePointer<CChar>?,
                Int32, Int32
            ) -> Int32,
        context: UnsafeMutableRawPointer
    ) throws(TransferLoopError) {
        try check(ccurl_easy_set_write_function(pointer, write), "write function")
        try check(ccurl_easy_set_header_function(pointer, header), "header function")
        try check(ccurl_easy_set_open_socket_function(pointer, openSocket), "socket function")
        try check(ccurl_easy_set_prerequest_function(pointer, prerequest), "request function")
        for option in [
            CURLOPT_OPENSOCKETDATA, CURLOPT_PREREQDATA, CURLOPT_HEADERDATA, CURLOPT_WRITEDATA,
        ] {
            try check(ccurl_easy_set_pointer(pointer, option, context), "functions' context")
        }
    }

    /// Prepares the handle for a request. The transfer's end may empty libcurl's cache of
    /// addresses, and close its connection.
    func prepare(
        _ attempt: TransferAttempt, to url: RequestURL, through proxy: String?,
        emptiesAddressCache: Bool, closesConnection: Bool
    ) throws(TransferLoopError) {
        let request = attempt.request
        errorBuffer[0] = 0
        try check(ccurl_easy_set_string(pointer, CURLOPT_URL, url.text), "URL")
        if emptiesAddressCache != self.emptiesAddressCache {
            try check(
                ccurl_easy_set_long(
                    pointer, CURLOPT_DNS_CACHE_TIMEOUT,
                    emptiesAddressCache ? 0 : EasyHandle.addressLifetime),
                "address cache")
            self.emptiesAddressCache = emptiesAddressCache
        }
        if closesConnection != self.closesConnection {
            try check(
                ccurl_easy_set_long(pointer, CURLOPT_FORBID_REUSE, closesConnection ? 1 : 0),
                "connection's end")
            self.closesConnection = closesConnection
        }
        if attempt.hostSettings != host.number {
            host = HostState(
                attempt.hostSettings.map { configuration.hosts[$0] } ?? configuration,
                number: attempt.hostSettings, of: pointer)
            try setHostOptions()
        }
        if attempt.authorities != authoritiesInForce { try trust(attempt.authorities) }
        try setMethod(request)
        try setCertificate(request.isForeign ? nil : host.configuration.requests.clientCertificate)
        decodeContent()
        if proxy != proxyInForce {
            try check(ccurl_easy_set_string(pointer, CURLOPT_PROXY, proxy ?? ""), "proxy")
            proxyInForce = proxy
        }
        try setCredentials(for: request, byDigest: attempt.usesDigest)
        try setFields(for: request)
    }

    private func setMethod(_ request: TransferRequest) throws(TransferLoopError) {
        let isHEAD = request.bodyUse == .none
        guard isHEAD != usesHEAD else { return }
        // Without a body, libcurl sends HEAD; HTTPGET takes that back.
        try check(
            ccurl_easy_set_long(pointer, isHEAD ? CURLOPT_NOBODY : CURLOPT_HTTPGET, 1), "method")
        usesHEAD = isHEAD
    }

    private func setCertificate(
        _ certificate: ClientCertificate?
    ) throws(TransferLoopError) {
        guard certificate != certificateInForce else { return }
        let key = certificate.map { $0.keyFile ?? $0.file }
        try check(
            ccurl_easy_set_string(pointer, CURLOPT_SSLCERT, certificate?.file), "certificate")
        try check(ccurl_easy_set_string(pointer, CURLOPT_SSLKEY, key), "private key")
        certificateInForce = certificate
    }

    private func setCredentials(
        for request: TransferRequest, byDigest: Bool
    ) throws(TransferLoopError) {
        if byDigest != usesDigest {
            try check(
                ccurl_easy_set_long(
                    pointer, CURLOPT_HTTPAUTH,
                    byDigest ? ccurl_authentication_digest : ccurl_authentication_basic),
                "authentication")
            usesDigest = byDigest
        }
        if byDigest {
            hadChallenge = originOfChallenge != nil
            originOfChallenge = request.url.origin
        }
        // libcurl would send these instead of the URL's own, which were given for it alone.
        let isSent = !request.isForeign && request.url.credentials == nil
        let credentials = isSent ? host.configuration.requests.credentials : nil
        guard credentials != credentialsInForce else { return }
        try check(
            ccurl_easy_set_string(pointer, CURLOPT_USERNAME, credentials?.user), "user name")
        try check(
            ccurl_easy_set_string(pointer, CURLOPT_PASSWORD, credentials?.password), "password")
        credentialsInForce = credentials
    }

    private func setFields(for request: TransferRequest) throws(TransferLoopError) {
        let fields: FieldList
        if !request.fields.isEmpty || !request.userFields.isEmpty && !request.isForeign {
            fields = FieldList(configuration.fieldLines(of: request))
        } else {
            fields = request.isForeign ? foreignFields : commonFields
        }
        guard fields !== fieldsInForce else { return }
        try check(
            ccurl_easy_set_list(pointer, CURLOPT_HTTPHEADER, fields.pointer), "request fields")
        // libcurl reads the list during the transfer: the old one is freed after the change.
        fieldsInForce = fields
    }

    /// The content codings that libcurl knows, if it is built with them all.
    private static let knownCodings: Set = [
        "", "identity", "none", "gzip", "x-gzip", "deflate", "br", "zstd",
    ]

    /// Whether libcurl knows all codings that a value of `Content-Encoding` lists.
    static func knows(codings value: String) -> Bool {
        value.lowercased().split(separator: ",").allSatisfy { coding in
            knownCodings.contains(String(coding.filter { !$0.isWhitespace }))
        }
    }

    /// Takes back ``passContentThrough()``.
    func decodeContent() {
        guard passesContentThrough else { return }
        passesContentThrough =
            ccurl_easy_set_long(pointer, CURLOPT_HTTP_CONTENT_DECODING, 1) != CURLE_OK
    }

    /// Leaves the present body as it is sent, as browsers do: uploaders store text such as `UTF-8`
    /// as the coding of their objects. Called before the body.
    func passContentThrough() {
        passesContentThrough =
            ccurl_easy_set_long(pointer, CURLOPT_HTTP_CONTENT_DECODING, 0) == CURLE_OK
    }

    /// Resumes after a pause. libcurl may call the write function before this returns.
    func resume() -> CURLcode { ccurl_easy_pause(pointer, CURLPAUSE_CONT) }

    private func check(_ code: CURLcode, _ operation: String) throws(TransferLoopError) {
        guard code != CURLE_OK else { return }
        throw TransferLoopError(
            operation: operation, code: Int32(code.rawValue),
            message: String(cString: ccurl_easy_strerror(code)))
    }

    /// Whether the connection failed because no authority of the file issued the certificate. An
    /// authority of the folder may have issued it.
    func mayTrustFolder(after code: CURLcode) -> Bool {
        code == CURLE_PEER_FAILED_VERIFICATION && authoritiesInForce == .ofFile
            && host.authorities.file != nil && host.authorities.folder != nil
            && TrustedAuthorities.isIssuerUnknown(number(CURLINFO_SSL_VERIFYRESULT))
    }

    /// libcurl's message about an error; empty without one.
    var errorText: String { String(cString: errorBuffer) }
}
