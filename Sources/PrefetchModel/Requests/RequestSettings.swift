import Glibc

/// The user's settings for requests: header fields, credentials and routing.
///
/// Secrets in it never appear in messages, reports or the database.
package struct RequestSettings: Sendable {
    /// Sent with every listed request, but not after a redirect to another origin; an empty value
    /// removes the field.
    package var fields: [HeaderField] = []
    /// The value of `Accept`; nil for the formats that this build decodes.
    package var accept: String?
    /// Used for listed requests without credentials in the URL; never sent after a redirect to
    /// another origin.
    package var credentials: Credentials?
    /// A netrc(5) file: credentials by host, for requests without others.
    package var netrcFile: String?
    package var netrcFingerprint = ""
    /// A cookie file in Netscape's format, read at the start if it exists and written at the end.
    /// Without one, cookies are discarded.
    package var cookieJar: String?
    package var savesCookies = true
    /// Fingerprints of the jar's cookies by domain, in lower case without a leading dot.
    package var cookieFingerprints: [String: String] = [:]
    package var proxies = ProxySettings()
    /// A file of certificates (PEM) to trust instead of the system's.
    package var authorityFile: String?
    /// A folder of certificates under the names of their hashes, in addition to that file or the
    /// system's.
    package var authorityFolder: String?
    /// A fingerprint of the file's contents and the folder's path.
    package var authorityFingerprint = ""
    /// Whether to verify the certificates of origins. If not, anyone on the network path can
    /// impersonate an origin.
    package var verifiesOrigins = true
    /// The certificate that identifies this client; not sent after a redirect to another origin.
    package var clientCertificate: ClientCertificate?
    /// Fixed addresses of names, instead of DNS.
    package var hostAddresses: [HostAddresses] = []
    package var usesHTTP1Only = false
    package var addressFamily: AddressFamily = .any
    /// Allows link-local and metadata addresses for listed requests.
    package var allowsLinkLocal = false
    /// The folder below which `file:` URLs of lists are read; nil for none.
    package var filesBelow: String?
    /// Refuses all addresses that are not public, also for listed requests.
    package var deniesPrivate = false

    package enum AddressFamily: Hashable, Sendable {
        case any, ipv4, ipv6
    }

    package init() {}

    /// The fingerprint of the jar's cookies for a host and its parent domains; `none` without any.
    package func cookieFingerprint(of host: some StringProtocol) -> String {
        guard !cookieFingerprints.isEmpty else { return "none" }
        var domain = Substring(host.lowercased())
        var found: [String] = []
        while true {
            if let fingerprint = cookieFingerprints[String(domain)] { found.append(fingerprint) }
            guard let dot = domain.firstIndex(of: ".") else { break }
            domain = domain[domain.index(after: dot)...]
        }
        return found.isEmpty ? "none" : found.joined(separator: ".")
    }
}

/// A name and a password for HTTP's Basic scheme (RFC 7617).
package struct Credentials: Hashable, Sendable {
    /// Without a colon, except for the keys of a signature.
    package let user: String
    package let password: String

    package init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// Parses `NAME:PASSWORD`; nil without a colon or with control characters (RFC 7617 §2).
    package init?(text: some StringProtocol) {
        let bytes = text.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
            !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else { return nil }
        user = String(decoding: bytes[..<colon], as: UTF8.self)
        password = String(decoding: bytes[bytes.index(after: colon)...], as: UTF8.self)
    }
}

/// A certificate for TLS client authentication, in PEM files.
/// `keyFile` is the file of the private key; nil if `file` has it.
package typealias ClientCertificate = (file: String, keyFile: String?, fingerprint: String)

/// Fixed addresses for a name and port, in the form of `curl --resolve`.
package struct HostAddresses: Hashable, Sendable {
    /// `HOST:PORT:ADDRESS[,ADDRESS…]`, validated.
    package let text: String

    /// Nil unless there is a host (`*` is every host), a port within 1…65535 and at least one IPv4
    /// address or IPv6 address, optionally in brackets.
    package init?(text: String) {
        let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, HostAddresses.isHost(parts[0]),
            parts[1].utf8.count <= 5, parts[1].utf8.allSatisfy(\.isDecimalDigit),
            let port = Int(parts[1]), (1...65535).contains(port)
        else { return nil }
        let addresses = parts[2].split(separator: ",", omittingEmptySubsequences: false)
        guard addresses.allSatisfy(HostAddresses.isAddress) else { return nil }
        self.text = text
    }

    private static func isHost(_ text: Substring) -> Bool {
        // libcurl treats a leading `+` or `-` as a command.
        text == "*"
            || !text.isEmpty
                && text.utf8.allSatisfy {
                    $0.isLetter || $0.isDecimalDigit || "-._".utf8.contains($0)
                } && text.utf8.first != UInt8(ascii: "-")
    }

    private static func isAddress(_ text: Substring) -> Bool {
        var ipv4 = in_addr()
        if inet_pton(AF_INET, String(text), &ipv4) == 1 { return true }
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        var ipv6 = in6_addr()
        return inet_pton(AF_INET6, String(isBracketed ? text.dropFirst().dropLast() : text), &ipv6)
            == 1
    }
}

/// The proxies for requests, and the hosts to connect to directly.
package struct ProxySettings: Hashable, Sendable {
    /// For http URLs: `[SCHEME://][USER:PASSWORD@]HOST[:PORT]`.
    package var http: String?
    package var https: String?
    /// Hosts to connect to directly, in the form of `NO_PROXY`, separated by commas or blanks.
    /// Names include their subdomains; addresses and networks like `10.0.0.0/8` are allowed; `*`
    /// means all.
    package var exceptions: String

    /// Creates settings from flags, which override the environment; `explicit` is the proxy for
    /// all requests. As with curl, `HTTP_PROXY` is ignored: in CGI programs its value is controlled
    /// by clients (https://httpoxy.org).
    package init(
        explicit: String? = nil, exceptions: String? = nil,
        environment: (String) -> String? = { _ in nil }
    ) {
        func first(_ names: String...) -> String? {
            names.lazy.compactMap(environment).first { !$0.isEmpty }
        }
        // An empty value disables the proxy.
        http = explicit ?? first("http_proxy", "all_proxy", "ALL_PROXY")
        https = explicit ?? first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        if http?.isEmpty == true { http = nil }
        if https?.isEmpty == true { https = nil }
        self.exceptions = exceptions ?? first("no_proxy", "NO_PROXY") ?? ""
    }

    package static let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

    /// Whether libcurl will accept a proxy; its error message for an invalid one would contain the
    /// password.
    package static func isProxy(_ text: String) -> Bool {
        guard !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else { return false }
        var rest = Substring(text)
        if let separator = text.firstRange(of: "://") {
            guard schemes.contains(text[..<separator.lowerBound].lowercased()) else { return false }
            rest = text[separator.upperBound...]
        }
        if rest.hasSuffix("/") { rest.removeLast() }
        if let at = rest.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
        var port = Substring("1")
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]") else { return false }
            let tail = rest[rest.index(after: end)...]
            guard tail.isEmpty || tail.hasPrefix(":") else { return false }
            if !tail.isEmpty { port = tail.dropFirst() }
            rest = rest[..<end].dropFirst()
        } else if let colon = rest.firstIndex(of: ":") {
            port = rest[rest.index(after: colon)...]
            rest = rest[..<colon]
        }
        guard let number = UInt16(port), number > 0 else { return false }
        return !rest.isEmpty && !rest.contains { "/?#\\".contains($0) }
    }
}
