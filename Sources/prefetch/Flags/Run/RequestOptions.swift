import ArgumentParser
import Glibc
import Hashing
import Pipeline
import PrefetchModel
import Reporting

/// Flags about header fields, credentials, proxies and addresses.
///
/// No message repeats a value, since it may be a secret.
struct RequestOptions: ParsableArguments {
    @Option(RunFlags.header) var headers: [String]
    @Option(RunFlags.userAgent) var userAgent: String
    @Option(RunFlags.user) var credentials: String?
    @Flag(RunFlags.netrc) var usesNetrc: Bool
    @Option(RunFlags.netrcFile) var netrcFile: String?
    @Option(RunFlags.cookieJar) var cookieJar: String?
    @Option(RunFlags.proxy) var proxy: String?
    @Option(RunFlags.noProxy) var proxyExceptions: String?
    @Option(RunFlags.authorityFile) var authorityFile: String?
    @Flag(RunFlags.insecure) var insecure: Bool
    @Option(RunFlags.certificate) var certificate: String?
    @Option(RunFlags.certificateKey) var certificateKey: String?
    @Option(RunFlags.resolve) var hostAddresses: [String]
    @Flag(RunFlags.http1) var usesHTTP1Only: Bool
    @Flag(RunFlags.ipv4) var usesIPv4Only: Bool
    @Flag(RunFlags.ipv6) var usesIPv6Only: Bool
    @Flag(RunFlags.allowDowngrade) var allowsDowngrade: Bool
    @Flag(RunFlags.allowLinkLocal) var allowsLinkLocal: Bool
    @Flag(RunFlags.denyPrivate) var deniesPrivate: Bool

    func validate() throws {
        guard !userAgent.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw ValidationError("--user-agent must not contain control characters")
        }
        if usesIPv4Only, usesIPv6Only {
            throw ValidationError("--ipv4 and --ipv6 cannot be combined")
        }
        if allowsLinkLocal, deniesPrivate {
            throw ValidationError("--allow-link-local and --deny-private cannot be combined")
        }
        if cookieJar == "-" {
            throw ValidationError("--cookie-jar takes a file, and not -")
        }
        if usesNetrc, netrcFile != nil {
            throw ValidationError("--netrc and --netrc-file cannot be combined")
        }
        if insecure, authorityFile != nil {
            throw ValidationError("--insecure and --cacert cannot be combined")
        }
        if certificateKey != nil, certificate == nil {
            throw ValidationError("--key needs --cert")
        }
        let paths = [
            ("--netrc-file", netrcFile), ("--cookie-jar", cookieJar), ("--cacert", authorityFile),
            ("--cert", certificate), ("--key", certificateKey),
        ]
        for (name, path) in paths where path?.isEmpty == true {
            throw ValidationError("\(name) needs a path")
        }
    }

    /// - Throws: `UserError` with status 64 for an invalid value, 2 for a file that can't be
    ///   used.
    func apply(to configuration: inout RunConfiguration) throws {
        configuration.limits.allowsDowngrade = allowsDowngrade
        var requests = RequestSettings()
        requests.fields = try fields()
        requests.credentials = try credentials.map(RequestOptions.credentials)
        if let (path, contents) = try netrc() {
            requests.netrcFile = path
            requests.netrcFingerprint = SHA256Hasher().digest(of: contents).description
        }
        if let cookieJar {
            requests.cookieJar = cookieJar
            requests.cookieFingerprints = RequestOptions.fingerprints(
                ofCookies: try checkedCookies(of: cookieJar))
        }
        requests.proxies = try proxies()
        if let authorityUse { try RequestOptions.trust(authorityUse, in: &requests) }
        if let folder = authorityFolder {
            requests.authorityFolder = folder
            let text = requests.authorityFingerprint + folder
            requests.authorityFingerprint = SHA256Hasher().digest(of: text).description
        }
        requests.verifiesOrigins = !insecure
        if let certificate {
            requests.clientCertificate = try RequestOptions.certificate(
                certificate, key: certificateKey)
        }
        requests.hostAddresses = try hostAddresses.map { text in
            guard let addresses = HostAddresses(text: text) else {
                throw RequestOptions.usage(
                    "--resolve takes HOST:PORT:ADDRESS[,ADDRESS], like example.com:443:192.0.2.7")
            }
            return addresses
        }
        requests.usesHTTP1Only = usesHTTP1Only
        requests.addressFamily = usesIPv4Only ? .ipv4 : usesIPv6Only ? .ipv6 : .any
        requests.allowsLinkLocal = allowsLinkLocal
        requests.deniesPrivate = deniesPrivate
        configuration.requests = requests
    }

    /// Warns about `--insecure` in every run, even with `-q`.
    func warn() {
        guard insecure else { return }
        StandardError.write(
            "prefetch: --insecure: certificates are not verified: anyone on the network path can "
                + "pose as the origin")
        StandardError.write("hint: --cacert FILE trusts the CA certificates in that file")
    }

    /// The fields of `--header`.
    func fields() throws -> [HeaderField] { try RequestOptions.fields(of: headers) }

    /// The fields of values of `--header`, in their order.
    static func fields(of values: [String]) throws -> [HeaderField] {
        var fields: [HeaderField] = []
        for given in values {
            guard given.hasPrefix("@") else {
                fields.append(try field(given, "--header"))
                continue
            }
            let path = String(given.dropFirst())
            let text = try contents(of: path, "--header")
            for (index, line) in lines(text).enumerated() where !line.isEmpty {
                fields.append(try field(line, "\(path): line \(index + 1)"))
            }
        }
        return fields
    }

    private static func field(
        _ line: some StringProtocol, _ subject: String
    ) throws(UserError) -> HeaderField {
        do {
            return try HeaderField(requestLine: line)
        } catch {
            throw usage("\(subject): \(error.message)")
        }
    }

    /// The netrc file, given or the user's; nil if no flag asks for one.
    private var netrcUse: WrittenFiles.Use? {
        if usesNetrc {
            let path = environment("NETRC") ?? environment("HOME").map { $0 + "/.netrc" }
            return path.map { WrittenFiles.Use(path: $0, name: "--netrc") }
        }
        return netrcFile.map { WrittenFiles.Use(path: $0, name: "--netrc-file") }
    }

    /// The path and contents of the netrc file; nil if no flag asks for one.
    private func netrc() throws -> (path: String, contents: String)? {
        guard let use = netrcUse else {
            guard usesNetrc else { return nil }
            throw UserError(
                "--netrc: neither NETRC nor HOME is set",
                hint: "name the file with --netrc-file")
        }
        // Reading it here reports an unreadable file; libcurl would treat it as empty.
        return (use.path, try RequestOptions.contents(of: use.path, use.name, limit: 16 << 20))
    }

    /// The file of trusted certificates, given or from the environment as for curl; nil without.
    private var authorityUse: WrittenFiles.Use? {
        guard !insecure else { return nil }
        let places =
            [("--cacert", authorityFile)]
            + RunFlags.authorityFile.row.environment.map { ($0, environment($0)) }
        return places.lazy.compactMap { name, path in
            path.map { WrittenFiles.Use(path: $0, name: name) }
        }.first
    }

    /// The folder of trusted certificates from the environment. As for curl, it adds to the file of
    /// `SSL_CERT_FILE`, and any other file replaces it.
    private var authorityFolder: String? {
        guard !insecure, authorityUse == nil || authorityUse?.name == "SSL_CERT_FILE" else {
            return nil
        }
        return environment("SSL_CERT_DIR")
    }

    /// Trusts the certificates of a file instead of the system's.
    static func trust(_ use: WrittenFiles.Use, in requests: inout RequestSettings) throws {
        let text = try RequestOptions.contents(of: use.path, use.name, limit: 64 << 20)
        guard text.firstRange(of: "-----BEGIN") != nil else {
            throw UserError(
                "\(use.path): contains no certificate",
                hint: "\(use.name) names a PEM file, which has a line -----BEGIN CERTIFICATE-----")
        }
        requests.authorityFile = use.path
        requests.authorityFingerprint = SHA256Hasher().digest(of: text).description
    }

    private func proxies() throws -> ProxySettings {
        if let proxy { return try RequestOptions.proxies(proxy, exceptions: proxyExceptions) }
        let settings = ProxySettings(exceptions: proxyExceptions, environment: environment)
        for case let given? in [settings.http, settings.https] where !ProxySettings.isProxy(given) {
            throw UserError(
                "a proxy in the environment is not \(RequestOptions.proxyForm)",
                hint: "see http_proxy, https_proxy and all_proxy; \(RequestOptions.proxySchemes); "
                    + "--proxy '' uses none")
        }
        return settings
    }

    private static let proxyForm = "[SCHEME://][USER:PASSWORD@]HOST[:PORT]"
    private static let proxySchemes =
        "SCHEME is one of \(ProxySettings.schemes.joined(separator: ", "))"

    /// The settings of a proxy for all requests, given as the value of the flag.
    static func proxies(_ value: String, exceptions: String?) throws -> ProxySettings {
        let settings = ProxySettings(
            explicit: try secret(value, "--proxy"), exceptions: exceptions, environment: environment
        )
        guard settings.http.map(ProxySettings.isProxy) ?? true else {
            throw usage("--proxy takes \(proxyForm), or @FILE", hint: proxySchemes)
        }
        return settings
    }

    /// The credentials in a value of `--user`.
    static func credentials(_ value: String) throws -> Credentials {
        guard let parsed = Credentials(text: try secret(value, "--user")) else {
            throw usage("--user takes NAME:PASSWORD without control characters, or @FILE")
        }
        return parsed
    }

    /// The certificate in these files.
    static func certificate(_ file: String, key: String?) throws -> ClientCertificate {
        let limit = 1 << 20
        let text = try contents(of: file, "--cert", limit: limit)
        guard text.contains("-----BEGIN CERTIFICATE-----") else {
            throw UserError(
                "\(file): contains no certificate", hint: "--cert names a PEM file")
        }
        let ownText = try key.map { try contents(of: $0, "--key", limit: limit) }
        let keyText = ownText ?? text
        guard keyText.contains("PRIVATE KEY-----") else {
            throw UserError(
                "\(key ?? file): contains no private key", hint: "--key names a PEM file with it")
        }
        guard !keyText.contains("ENCRYPTED") else {
            throw UserError(
                "\(key ?? file): the private key is encrypted",
                hint: "openssl pkey -in \(key ?? file) -out PLAIN writes one that is not")
        }
        return ClientCertificate(
            file: file, keyFile: key,
            fingerprint: SHA256Hasher().digest(of: text + (ownText ?? "")).description)
    }

    /// The files that these flags read.
    var filesRead: [WrittenFiles.Use] {
        let texts = (headers + [credentials, proxy].compactMap(\.self)).filter { $0.hasPrefix("@") }
        let certificates = [(certificate, "--cert"), (certificateKey, "--key")].compactMap {
            path, name in path.map { WrittenFiles.Use(path: $0, name: name) }
        }
        return [netrcUse, authorityUse].compactMap(\.self) + certificates
            + texts.map { WrittenFiles.Use(path: String($0.dropFirst()), name: "@FILE") }
    }

    /// The folders that hold files which these flags read. OpenSSL takes a list of folders.
    var foldersRead: [WrittenFiles.Use] {
        (authorityFolder ?? "").split(separator: ":").map {
            WrittenFiles.Use(path: String($0), name: "SSL_CERT_DIR")
        }
    }

    /// Checks that the jar can be read and written, before the run instead of at its end, and that
    /// it is one: libcurl would empty any other file.
    ///
    /// - Returns: the lines of its cookies.
    private func checkedCookies(of path: String) throws -> [Substring] {
        do throws(ReportingError) {
            try OutputFile.checkReplacing(path)
        } catch {
            // Anything else is said of the folder or the file.
            if case .foreignLink = error { throw error }
        }
        var status = stat()
        guard stat(path, &status) != 0 else {
            let text = try RequestOptions.contents(of: path, "--cookie-jar", limit: 64 << 20)
            let cookies = try RequestOptions.cookies(in: text, path)
            guard access(path, W_OK) == 0 else {
                throw RequestOptions.unusable(path, "--cookie-jar", errno)
            }
            return cookies
        }
        guard errno == ENOENT else { throw RequestOptions.unusable(path, "--cookie-jar", errno) }
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        guard access(folder, W_OK | X_OK) == 0 else {
            throw UserError(
                "\(folder): \(String(cString: strerror(errno)))",
                hint: "--cookie-jar writes a file in this folder")
        }
        return []
    }

    private static func cookies(in text: String, _ path: String) throws -> [Substring] {
        let mark: Unicode.Scalar = "\u{FEFF}"
        let scalars = text.unicodeScalars
        // At line feeds alone: a cookie may contain other line separators.
        let lines = (scalars.first == mark ? scalars.dropFirst() : scalars[...]).split(
            separator: "\n", omittingEmptySubsequences: false)
        var cookies: [Substring] = []
        // Comments alone may be any file, so they need the format's own.
        var firstComment: Int?
        var hasHeader = false
        for (index, scalars) in lines.enumerated() {
            var line = Substring(scalars)
            if line.unicodeScalars.last == "\r" { line.unicodeScalars.removeLast() }
            guard !isIgnored(line) else {
                hasHeader = hasHeader || isHeader(line)
                if line.hasPrefix("#") { firstComment = firstComment ?? index }
                continue
            }
            cookies.append(line)
            guard isCookie(line) else { throw isNoCookie(index, path) }
        }
        if cookies.isEmpty, !hasHeader, let firstComment { throw isNoCookie(firstComment, path) }
        return cookies
    }

    private static func isNoCookie(_ index: Int, _ path: String) -> UserError {
        UserError(
            "\(path): line \(index + 1) is not a cookie in Netscape's format",
            hint: "--cookie-jar replaces this file at the end; name a new one, or one that "
                + "`curl -c` or a browser's export in this format has written")
    }

    /// Whether a comment is the first line of the format, as curl and browsers write it.
    private static func isHeader(_ line: Substring) -> Bool {
        ["# Netscape HTTP Cookie File", "# HTTP Cookie File"].contains { line.hasPrefix($0) }
    }

    /// Whether a line is blank or a comment.
    private static func isIgnored(_ line: Substring) -> Bool {
        line.hasPrefix("#") && !line.hasPrefix("#HttpOnly_") || line.allSatisfy(\.isWhitespace)
    }

    /// Whether a line is a cookie: domain, subdomains, path, TLS only, expiry, name and value.
    private static func isCookie(_ line: Substring) -> Bool {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
        return fields.count == 7 && fields[2].hasPrefix("/")
            && [fields[1], fields[3]].allSatisfy { ["TRUE", "FALSE"].contains($0) }
            && fields[4].first?.isNumber == true
    }

    /// Fingerprints of the paths, names and values by domain. Expiry dates change with every
    /// response.
    private static func fingerprints(ofCookies lines: [Substring]) -> [String: String] {
        let cookies = lines.map { $0.split(separator: "\t", omittingEmptySubsequences: false) }
        let hasher = SHA256Hasher()
        return Dictionary(grouping: cookies) { fields in
            let domain =
                fields[0].hasPrefix("#HttpOnly_")
                ? fields[0].dropFirst("#HttpOnly_".count) : fields[0]
            return domain.drop { $0 == "." }.lowercased()
        }.mapValues { cookies in
            let texts = cookies.map { "\($0[2])\t\($0[5])\t\($0[6])" }.sorted()
            let digest = hasher.digest(of: texts.joined(separator: "\n"))
            return String(digest.leadingWords.0 >> 32, radix: 16)
        }
    }
}
