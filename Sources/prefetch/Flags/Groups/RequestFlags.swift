import ArgumentParser
import ConfigurationFiles
import Hashing
import Pipeline
import PrefetchModel
import Reporting

/// Flags about header fields, credentials, proxies and addresses.
///
/// No message repeats a value, since it may be a secret.
struct RequestFlags: FlagRows {
    static let flags = FlagTable(RequestFlags())

    let headers = RunFlag<[String]>(
        repeatable: "header", value: "name: value",
        help: """
            Header field for every request, or @FILE with one per line; 'Name:' removes a field. \
            Never sent cross-origin by a redirect.
            """, brief: "header field for every request, or @FILE",
        inProjects: .refusedWithSecrets,
        inHosts: .entries {
            $0.headers = $0.headers.replaced(by: try RequestFiles.fields(of: $1))
        }, holdsSecret: true
    ) { $0.run.requests.fields = try RequestFiles.fields(of: $1) }

    let userAgent = RunFlag<String>(
        "user-agent", value: "text", default: RunFlags.defaults.userAgent,
        help: "Value of the User-Agent field.",
        inHosts: .entries {
            $0.headers = $0.headers.replaced(by: [HeaderField(name: "User-Agent", value: $1)])
        },
        check: ValueCheck {
            $0.utf8.contains { $0 < 0x20 || $0 == 0x7F }
                ? "must not contain control characters" : nil
        }
    ) { $0.run.userAgent = $1 }

    let credentials = RunFlag<String?>(
        "user", value: "name:password",
        help: """
            Credentials for every listed origin, or @FILE, which keeps them out of the process \
            list. Never sent cross-origin by a redirect.
            """, inProjects: .refused, inHosts: .likeRun, holdsSecret: true
    ) { $0.run.requests.credentials = try RequestFiles.credentials($1) }

    let usesNetrc = RunFlag<Bool>(
        "netrc", help: "Read credentials from $NETRC, or else ~/.netrc.",
        inProjects: .refused)

    let netrcFile = RunFlag<String?>(
        "netrc-file", value: "file", help: "Read credentials from this file.",
        inProjects: .refused, replaces: ["netrc"], check: .path)

    let cookieJar = RunFlag<String?>(
        "cookie-jar", value: "file",
        help: "Read cookies from this file if it exists, and write them back at the end.",
        inProjects: .refused,
        check: ValueCheck {
            $0.isEmpty ? "needs a path" : $0 == "-" ? "takes a file, and not -" : nil
        }
    ) {
        $0.run.requests.cookieJar = $1
        $0.run.requests.cookieFingerprints = try CookieJar.fingerprints(of: $1)
    }

    let proxy = RunFlag<String?>(
        "proxy", value: "url",
        help: """
            Proxy, or @FILE with it; '' uses none (default: $http_proxy, $https_proxy, $all_proxy).
            """, inProjects: .refused, inHosts: .likeRun,
        environment: ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"],
        holdsSecret: true
    ) {
        // The table of a host names it, so no exception applies. A run adds those of --noproxy.
        $0.run.requests.proxies = try RequestFiles.proxies($1)
    }

    let proxyExceptions = RunFlag<String?>(
        "noproxy", value: "list",
        help: "Hosts and networks to reach without a proxy (default: $no_proxy).",
        inProjects: .refused, environment: ["no_proxy", "NO_PROXY"])

    let authorityFile = RunFlag<String?>(
        "cacert", value: "file",
        help: """
            Trust the certificates in this PEM file instead of the system's (default: \
            $CURL_CA_BUNDLE, else $SSL_CERT_FILE; a folder: $SSL_CERT_DIR).
            """, inProjects: .refused, inHosts: .likeRun,
        environment: ["CURL_CA_BUNDLE", "SSL_CERT_FILE"], check: .path
    ) {
        // A table names the authorities to trust at its host.
        $0.run.requests.verifiesOrigins = true
        $0.run.requests.authorityFolder = nil
        try $0.run.requests.trust(WrittenFiles.Use(path: $1, name: "--cacert"))
    }

    let insecure = RunFlag<Bool>(
        "insecure",
        help: "Do not verify certificates: anyone on the network path can pose as the origin.",
        inProjects: .refused, inHosts: .likeRun, replaces: ["cacert"]
    ) { $0.run.requests.verifiesOrigins = !$1 }

    let certificate = RunFlag<String?>(
        "cert", value: "file",
        help: "Client certificate (PEM), with its key unless --key names it.",
        inProjects: .refused, inHosts: .likeRun, check: .path
    ) { $0.certificate = $1 }

    let certificateKey = RunFlag<String?>(
        "key", value: "file", help: "Private key of --cert (PEM, not encrypted).",
        inProjects: .refused, inHosts: .likeRun, check: .path
    ) { $0.certificateKey = $1 }

    let hostAddresses = RunFlag<[String]>(
        repeatable: "resolve", value: "host:port:address,...",
        help: "Use these addresses for a host and port instead of DNS; repeatable.",
        inProjects: .refused
    ) { $0.run.requests.hostAddresses = try $1.map(RequestFiles.addresses) }

    let usesHTTP1Only = RunFlag<Bool>(
        "http1.1", help: "Use only HTTP/1.1."
    ) { $0.run.requests.usesHTTP1Only = $1 }

    let usesIPv4Only = RunFlag<Bool>(
        "ipv4", short: "4", help: "Use only IPv4."
    ) { if $1 { $0.run.requests.addressFamily = .ipv4 } }

    let usesIPv6Only = RunFlag<Bool>(
        "ipv6", short: "6", help: "Use only IPv6.", replaces: ["ipv4"]
    ) { if $1 { $0.run.requests.addressFamily = .ipv6 } }

    let allowsDowngrade = RunFlag<Bool>(
        "allow-downgrade", help: "Also follow redirects from https to http.",
        inProjects: .refused
    ) { $0.run.limits.allowsDowngrade = $1 }

    let allowsLinkLocal = RunFlag<Bool>(
        "allow-link-local",
        help: "Allow link-local addresses, which include the metadata services of clouds.",
        inProjects: .refused
    ) { $0.run.requests.allowsLinkLocal = $1 }

    let deniesPrivate = RunFlag<Bool>(
        "deny-private",
        help: """
            Refuse loopback, private and link-local addresses, for lists you do not trust (SSRF).
            """, inProjects: .refused
    ) { $0.run.requests.deniesPrivate = $1 }
}

extension RequestFlags {
    static func combined(_ flags: Flags<RequestFlags>) throws {
        if flags.usesIPv4Only, flags.usesIPv6Only {
            throw ValidationError("--ipv4 and --ipv6 cannot be combined")
        }
        if flags.allowsLinkLocal, flags.deniesPrivate {
            throw ValidationError("--allow-link-local and --deny-private cannot be combined")
        }
        if flags.usesNetrc, flags.netrcFile != nil {
            throw ValidationError("--netrc and --netrc-file cannot be combined")
        }
        if flags.insecure, flags.authorityFile != nil {
            throw ValidationError("--flags.insecure and --cacert cannot be combined")
        }
        if flags.certificateKey != nil, flags.certificate == nil {
            throw ValidationError("--key needs --cert")
        }
    }
}

extension Flags<RequestFlags> {
    /// Applies the flags, and the environment where they say nothing.
    ///
    /// - Throws: `UserError` with status 64 for an invalid value, 2 for a file that can't be
    ///   used.
    func applyWithEnvironment(to settings: inout RunSettings) throws {
        try apply(to: &settings)
        var requests = settings.run.requests
        if let (path, contents) = try netrc() {
            requests.netrcFile = path
            requests.netrcFingerprint = SHA256Hasher().digest(of: contents).description
        }
        if self.proxy != nil {
            requests.proxies.exceptions =
                ProxySettings(exceptions: self.proxyExceptions, environment: environment).exceptions
        } else {
            requests.proxies = try environmentProxies()
        }
        if self.authorityFile == nil, let authorityUse { try requests.trust(authorityUse) }
        if let folder = authorityFolder {
            requests.authorityFolder = folder
            let text = requests.authorityFingerprint + folder
            requests.authorityFingerprint = SHA256Hasher().digest(of: text).description
        }
        settings.run.requests = requests
        try settings.takeCertificate()
    }

    /// Warns about `--insecure` in every run, even with `-q`.
    func warn() {
        guard self.insecure else { return }
        StandardError.write(
            "prefetch: --insecure: certificates are not verified: anyone on the network path can "
                + "pose as the origin")
        StandardError.write("hint: --cacert FILE trusts the CA certificates in that file")
    }

    /// The netrc file, given or the user's; nil if no flag asks for one.
    private var netrcUse: WrittenFiles.Use? {
        if self.usesNetrc {
            let path = environment("NETRC") ?? environment("HOME").map { $0 + "/.netrc" }
            return path.map { WrittenFiles.Use(path: $0, name: "--netrc") }
        }
        return self.netrcFile.map { WrittenFiles.Use(path: $0, name: "--netrc-file") }
    }

    /// The path and contents of the netrc file; nil if no flag asks for one.
    private func netrc() throws -> (path: String, contents: String)? {
        guard let use = netrcUse else {
            guard self.usesNetrc else { return nil }
            throw UserError(
                "--netrc: neither NETRC nor HOME is set",
                hint: "name the file with --netrc-file")
        }
        // Reading it here reports an unreadable file; libcurl would treat it as empty.
        return (use.path, try RequestFiles.contents(of: use.path, use.name, limit: 16 << 20))
    }

    /// The file of trusted certificates, given or from the environment as for curl; nil without.
    private var authorityUse: WrittenFiles.Use? {
        guard !self.insecure else { return nil }
        let places =
            [("--cacert", self.authorityFile)]
            + RequestFlags.flags.authorityFile.row.environment.map { ($0, environment($0)) }
        return places.lazy.compactMap { name, path in
            path.map { WrittenFiles.Use(path: $0, name: name) }
        }.first
    }

    /// The folder of trusted certificates from the environment. As for curl, it adds to the file of
    /// `SSL_CERT_FILE`, and any other file replaces it.
    private var authorityFolder: String? {
        guard !self.insecure, authorityUse == nil || authorityUse?.name == "SSL_CERT_FILE" else {
            return nil
        }
        return environment("SSL_CERT_DIR")
    }

    private func environmentProxies() throws -> ProxySettings {
        let settings = ProxySettings(exceptions: self.proxyExceptions, environment: environment)
        for case let given? in [settings.http, settings.https] where !ProxySettings.isProxy(given) {
            throw UserError(
                "a proxy in the environment is not \(RequestFiles.proxyForm)",
                hint: "see http_proxy, https_proxy and all_proxy; \(RequestFiles.proxySchemes); "
                    + "--proxy '' uses none")
        }
        return settings
    }

    /// The files that these flags read.
    var filesRead: [WrittenFiles.Use] {
        let texts = (self.headers + [self.credentials, self.proxy].compactMap(\.self)).filter {
            $0.hasPrefix("@")
        }
        let certificates = [(self.certificate, "--cert"), (self.certificateKey, "--key")].compactMap
        {
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
}
