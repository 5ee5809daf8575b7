import ArgumentParser
import ConfigurationFiles
import Hashing
import Pipeline
import PrefetchModel

/// Flags about proxies, certificates and the protocols of connections.
struct RouteFlags: FlagRows {
    static let flags = FlagTable(RouteFlags())

    let proxy = RunFlag<String?>(
        "proxy", value: "url",
        help: """
            Proxy, or @FILE with it; '' uses none (default: $http_proxy, $https_proxy, $all_proxy).
            """, inProjects: .refused, inHosts: .likeRun,
        environment: ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"],
        holdsSecret: true
    ) {
        // The table of a host names it, so no exception applies. A run adds --noproxy later.
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
        inProjects: .refused, inHosts: .likeRun
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

    static func combined(_ flags: Flags<RouteFlags>) throws {
        if flags.usesIPv4Only, flags.usesIPv6Only {
            throw ValidationError("--ipv4 and --ipv6 cannot be combined")
        }
        try check(
            isInsecure: flags.insecure, namesAuthority: flags.authorityFile != nil,
            hasCertificate: flags.certificate != nil, hasKey: flags.certificateKey != nil)
    }

    /// Checks the certificates of a run or of the table of a host.
    static func check(
        isInsecure: Bool, namesAuthority: Bool, hasCertificate: Bool, hasKey: Bool
    ) throws {
        if isInsecure, namesAuthority {
            throw ValidationError("--insecure and --cacert cannot be combined")
        }
        if hasKey, !hasCertificate { throw ValidationError("--key needs --cert") }
    }
}

extension Flags<RouteFlags> {
    /// Applies the environment where the flags say nothing.
    func applyEnvironment(to settings: inout RunSettings) throws {
        if self.proxy != nil {
            settings.run.requests.proxies.exceptions =
                ProxySettings(exceptions: self.proxyExceptions, environment: environment).exceptions
        } else {
            settings.run.requests.proxies = try environmentProxies()
        }
        if self.authorityFile == nil, let authorityUse {
            try settings.run.requests.trust(authorityUse)
        }
        if let folder = authorityFolder {
            settings.run.requests.authorityFolder = folder
            let text = settings.run.requests.authorityFingerprint + folder
            settings.run.requests.authorityFingerprint = SHA256Hasher().digest(of: text).description
        }
        try settings.takeCertificate()
    }

    /// The file of trusted certificates, given or from the environment as for curl; nil without.
    var authorityUse: WrittenFiles.Use? {
        let places =
            [("--cacert", self.authorityFile)]
            + RouteFlags.flags.authorityFile.row.environment.map { ($0, environment($0)) }
        return WrittenFiles.uses(places).first
    }

    /// The folder of trusted certificates from the environment. As for curl, it adds to the file of
    /// `SSL_CERT_FILE`, and any other file replaces it.
    var authorityFolder: String? {
        guard authorityUse == nil || authorityUse?.name == "SSL_CERT_FILE" else { return nil }
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
}
