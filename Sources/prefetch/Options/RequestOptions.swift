import ArgumentParser
import CacheStorage
import Glibc
import Hashing
import Pipeline
import PrefetchModel

/// Flags of `run` about what requests carry, and the way that they take.
///
/// No message here repeats a value: most of them may be secrets.
struct RequestOptions: ParsableArguments {
    @Option(
        name: .customLong("header"),
        help: ArgumentHelp(
            """
            Header field for every request, or @FILE with one per line; 'Name:' removes a field. \
            Never sent cross-origin by a redirect.
            """, valueName: "name: value"))
    var headers: [String] = []

    @Option(
        name: .customLong("user-agent"),
        help: ArgumentHelp("Value of the User-Agent field.", valueName: "text"))
    var userAgent = "prefetch/\(Prefetch.version)"

    @Option(
        name: .customLong("user"),
        help: ArgumentHelp(
            """
            Credentials for every listed origin, or @FILE, which keeps them out of the process list. \
            Never sent cross-origin by a redirect.
            """, valueName: "name:password"))
    var credentials: String?

    @Flag(name: .customLong("netrc"), help: "Read credentials from $NETRC, or else ~/.netrc.")
    var usesNetrc = false

    @Option(
        name: .customLong("netrc-file"),
        help: ArgumentHelp("Read credentials from this file.", valueName: "file"))
    var netrcFile: String?

    @Option(
        name: .customLong("cookie-jar"),
        help: ArgumentHelp(
            "Read cookies from this file if it exists, and write them back at the end.",
            valueName: "file"))
    var cookieJar: String?

    @Option(
        help: ArgumentHelp(
            """
            Proxy, or @FILE with it; '' uses none (default: $http_proxy, $https_proxy, $all_proxy).
            """, valueName: "url"))
    var proxy: String?

    @Option(
        name: .customLong("noproxy"),
        help: ArgumentHelp(
            "Hosts and networks to reach without a proxy (default: $no_proxy).", valueName: "list"))
    var proxyExceptions: String?

    @Option(
        name: .customLong("cacert"),
        help: ArgumentHelp(
            "Trust the certificates in this PEM file instead of the system's.", valueName: "file"))
    var authorityFile: String?

    @Flag(
        help: "Do not verify certificates: anyone on the network path can pose as the origin.")
    var insecure = false

    @Option(
        name: .customLong("resolve"),
        help: ArgumentHelp(
            "Use these addresses for a host and port instead of DNS; repeatable.",
            valueName: "host:port:address,..."))
    var hostAddresses: [String] = []

    @Flag(name: .customLong("http1.1"), help: "Use only HTTP/1.1.")
    var usesHTTP1Only = false

    @Flag(name: [.customShort("4"), .customLong("ipv4")], help: "Use only IPv4.")
    var usesIPv4Only = false

    @Flag(name: [.customShort("6"), .customLong("ipv6")], help: "Use only IPv6.")
    var usesIPv6Only = false

    @Flag(
        name: .customLong("allow-downgrade"),
        help: "Also follow redirects from https to http.")
    var allowsDowngrade = false

    @Flag(
        name: .customLong("allow-link-local"),
        help: "Allow link-local addresses, the metadata services of clouds among them.")
    var allowsLinkLocal = false

    @Flag(
        name: .customLong("deny-private"),
        help: """
            Refuse loopback, private and link-local addresses, for lists you do not trust (SSRF).
            """)
    var deniesPrivate = false

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
        if usesNetrc, netrcFile != nil {
            throw ValidationError("--netrc and --netrc-file cannot be combined")
        }
        if insecure, authorityFile != nil {
            throw ValidationError("--insecure and --cacert cannot be combined")
        }
        let paths = [
            ("--netrc-file", netrcFile), ("--cookie-jar", cookieJar), ("--cacert", authorityFile),
        ]
        for (name, path) in paths where path?.isEmpty == true {
            throw ValidationError("\(name) needs a path")
        }
    }

    /// - Throws: ``CommandFailure`` with status 64 for a value that is not good, 2 for a file that
    ///   cannot be used.
    func apply(to configuration: inout RunConfiguration) throws {
        configuration.limits.allowsDowngrade = allowsDowngrade
        var requests = RequestSettings()
        requests.fields = try fields()
        if let credentials {
            let text = try secret(credentials, "--user")
            guard let parsed = Credentials(text: text) else {
                throw RequestOptions.usage(
                    "--user takes NAME:PASSWORD without control characters, or @FILE")
            }
            requests.credentials = parsed
        }
        if let (path, contents) = try netrc() {
            requests.netrcFile = path
            requests.netrcFingerprint = SHA256Hasher().digest(of: contents).description
        }
        if let cookieJar {
            try checkCookieJar(cookieJar)
            requests.cookieJar = cookieJar
        }
        requests.proxies = try proxies()
        if let authorityFile {
            let text = try RequestOptions.contents(of: authorityFile, "--cacert", limit: 64 << 20)
            guard text.firstRange(of: "-----BEGIN") != nil else {
                throw CommandFailure.unusable(
                    "\(authorityFile): no certificate in it",
                    hint: "--cacert takes PEM files, which contain lines that begin with -----BEGIN"
                )
            }
            requests.authorityFile = authorityFile
            requests.authorityFingerprint = SHA256Hasher().digest(of: text).description
        }
        requests.verifiesOrigins = !insecure
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

    /// Said at every run, `-q` or not.
    func warn() {
        guard insecure else { return }
        StandardError.write(
            "prefetch: --insecure: certificates are not checked, so anyone on the network path can "
                + "pose as the origin")
        StandardError.write("hint: --cacert FILE trusts the authorities in that file instead")
    }

    private func fields() throws -> [HeaderField] {
        try headers.flatMap { given -> [HeaderField] in
            guard given.hasPrefix("@") else {
                return [try RequestOptions.field(given, "--header")]
            }
            let path = String(given.dropFirst())
            let text = try RequestOptions.contents(of: path, "--header")
            var fields: [HeaderField] = []
            for (index, line) in RequestOptions.lines(text).enumerated() where !line.isEmpty {
                fields.append(
                    try RequestOptions.field(line, "\(path): line \(index + 1)"))
            }
            return fields
        }
    }

    private static func field(
        _ line: some StringProtocol, _ subject: String
    ) throws -> HeaderField {
        do throws(HeaderField.RequestProblem) {
            return try HeaderField(requestLine: line)
        } catch {
            throw usage("\(subject): \(error.message)")
        }
    }

    /// The file of credentials, if there is one, and what it says.
    private func netrc() throws -> (path: String, contents: String)? {
        var path = netrcFile
        if usesNetrc {
            path = RequestOptions.environment("NETRC")
            if path == nil, let home = RequestOptions.environment("HOME") {
                path = home + "/.netrc"
            }
            guard path != nil else {
                throw CommandFailure.unusable(
                    "--netrc: there is no HOME to look for .netrc in",
                    hint: "name the file with --netrc-file")
            }
        }
        guard let path else { return nil }
        // libcurl takes a file that it cannot read for one that says nothing.
        return (path, try RequestOptions.contents(of: path, "--netrc-file", limit: 16 << 20))
    }

    private func proxies() throws -> ProxySettings {
        let settings = ProxySettings(
            explicit: try proxy.map { try secret($0, "--proxy") }, exceptions: proxyExceptions,
            environment: RequestOptions.environment)
        for given in [settings.http, settings.https] {
            guard let given, !ProxySettings.isProxy(given) else { continue }
            throw RequestOptions.usage(
                proxy == nil
                    ? "a proxy in the environment is not [SCHEME://][USER:PASSWORD@]HOST[:PORT]"
                    : "--proxy takes [SCHEME://][USER:PASSWORD@]HOST[:PORT], or @FILE",
                hint: "SCHEME is one of \(ProxySettings.schemes.joined(separator: ", "))"
                    + (proxy == nil ? "; --proxy '' asks for none" : ""))
        }
        return settings
    }

    /// Before the run rather than at its end.
    private func checkCookieJar(_ path: String) throws {
        var status = stat()
        guard stat(path, &status) != 0 else {
            if status.st_mode & S_IFMT == S_IFREG {
                _ = try RequestOptions.contents(of: path, "--cookie-jar", limit: 64 << 20)
            }
            guard status.st_mode & S_IFMT != S_IFDIR else {
                throw RequestOptions.unusable(path, "--cookie-jar", EISDIR)
            }
            guard access(path, W_OK) == 0 else {
                throw RequestOptions.unusable(path, "--cookie-jar", errno)
            }
            return
        }
        guard errno == ENOENT else { throw RequestOptions.unusable(path, "--cookie-jar", errno) }
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        guard access(folder, W_OK | X_OK) == 0 else {
            throw RequestOptions.unusable(folder, "--cookie-jar", errno)
        }
    }
}

// MARK: - Files and the environment

extension RequestOptions {
    /// A value, or the first line of the file that it names with `@`.
    private func secret(_ value: String, _ flag: String) throws -> String {
        guard value.hasPrefix("@") else { return value }
        let text = try RequestOptions.contents(of: String(value.dropFirst()), flag)
        return RequestOptions.lines(text).first.map(String.init) ?? ""
    }

    /// Without the line ends, which may be CR LF: a character of its own to Swift.
    private static func lines(_ text: String) -> [Substring] {
        text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    }

    private static func contents(
        of path: String, _ flag: String, limit: Int = 64 << 10
    ) throws -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unusable(path, flag, errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw unusable(path, flag, errno) }
            if count == 0 { break }
            bytes += buffer[..<count]
            guard bytes.count <= limit else {
                throw CommandFailure.unusable(
                    "\(path): more than \(ByteCount(limit)), which is not read for \(flag)")
            }
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure.unusable("\(path): not UTF-8, which \(flag) asks for")
        }
        return text
    }

    private static func unusable(_ path: String, _ flag: String, _ cause: Int32) -> CommandFailure {
        CommandFailure.unusable(
            "\(path): \(String(cString: strerror(cause)))", hint: "\(flag) names this file")
    }

    private static func usage(_ message: String, hint: String? = nil) -> CommandFailure {
        CommandFailure(exitStatus: EX_USAGE, message: message, hint: hint)
    }

    /// nil for an empty one, too.
    static func environment(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }
}
