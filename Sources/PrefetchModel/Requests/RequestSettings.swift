import Glibc

/// How requests are made, as far as users can say: what they carry, and the way that they take.
///
/// Everything in it that may be a secret stays out of messages, reports and the database.
package struct RequestSettings: Sendable {
    /// Sent with every listed request, never where a redirect leads to another origin; an empty
    /// value leaves the field out.
    package var fields: [HeaderField] = []
    /// For every listed request whose URL has none of its own; never sent after a redirect to
    /// another origin.
    package var credentials: Credentials?
    /// A file in the format of netrc(5): credentials by host, for requests without others.
    package var netrcFile: String?
    /// Changes with what that file says.
    package var netrcFingerprint = ""
    /// A file in Netscape's format that cookies are read from at the start, if it is there, and
    /// written to at the end. Without one, no cookie is kept.
    package var cookieJar: String?
    package var proxies = ProxySettings()
    /// A file of certificates (PEM) to trust instead of the system's.
    package var authorityFile: String?
    /// Changes with what that file says.
    package var authorityFingerprint = ""
    /// Whether certificates of origins are looked at. Without, anybody on the way can be the origin.
    package var verifiesOrigins = true
    /// Addresses to take for a name instead of asking for them.
    package var hostAddresses: [HostAddresses] = []
    /// HTTP/1.1 even where HTTP/2 is spoken.
    package var usesHTTP1Only = false
    package var addressFamily: AddressFamily = .any
    /// Sends listed requests to link-local and metadata addresses, too.
    package var allowsLinkLocal = false
    /// Refuses every address that is not public, also for listed requests.
    package var deniesPrivate = false

    package enum AddressFamily: Hashable, Sendable {
        case any, ipv4, ipv6
    }

    package init() {}
}

/// A name and a password for HTTP's Basic scheme (RFC 7617).
package struct Credentials: Hashable, Sendable {
    /// Without a colon.
    package let user: String
    package let password: String

    /// `NAME:PASSWORD`; nil without a colon or with control characters (RFC 7617 §2).
    package init?(text: some StringProtocol) {
        let bytes = text.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
            !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else { return nil }
        user = String(decoding: bytes[..<colon], as: UTF8.self)
        password = String(decoding: bytes[bytes.index(after: colon)...], as: UTF8.self)
    }
}

/// Addresses for one name and port, as `curl --resolve` takes them.
package struct HostAddresses: Hashable, Sendable {
    /// `HOST:PORT:ADDRESS[,ADDRESS…]`, checked.
    package let text: String

    /// nil unless there is a host (`*` is every host), a port within 1…65535 and at least one IPv4
    /// address or IPv6 address, which may stand in brackets.
    package init?(text: String) {
        let parts = text.split(
            separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, HostAddresses.isHost(parts[0]),
            parts[1].utf8.count <= 5, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = Int(parts[1]), (1...65535).contains(port)
        else { return nil }
        let addresses = parts[2].split(separator: ",", omittingEmptySubsequences: false)
        guard addresses.allSatisfy(HostAddresses.isAddress) else { return nil }
        self.text = text
    }

    private static func isHost(_ text: Substring) -> Bool {
        // libcurl takes a first `+` or `-` for a command.
        text == "*"
            || !text.isEmpty
                && text.utf8.allSatisfy {
                    (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0)
                        || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
                        || $0 == UInt8(ascii: "_")
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

/// The proxies for requests, and the hosts that are asked without one.
package struct ProxySettings: Hashable, Sendable {
    /// For http URLs: `[SCHEME://][USER:PASSWORD@]HOST[:PORT]`.
    package var http: String?
    /// For https URLs.
    package var https: String?
    /// Hosts that are asked directly, as `NO_PROXY` has them: names with all that ends in them,
    /// addresses, and networks as `10.0.0.0/8`, separated by commas or blanks; `*` for all.
    package var exceptions: String

    /// - Parameters:
    ///   - explicit: the proxy for everything, which goes before those of the environment.
    ///   - exceptions: go before those of the environment.
    ///   - environment: the value of a variable of that name. `HTTP_PROXY` is not asked for: a web
    ///     server sets it from what strangers send (https://httpoxy.org), so that curl does not
    ///     either.
    package init(
        explicit: String? = nil, exceptions: String? = nil,
        environment: (String) -> String? = { _ in nil }
    ) {
        func first(_ names: String...) -> String? {
            names.lazy.compactMap(environment).first { !$0.isEmpty }
        }
        // An empty one is how to say that there is none.
        http = explicit ?? first("http_proxy", "all_proxy", "ALL_PROXY")
        https = explicit ?? first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        if http?.isEmpty == true { http = nil }
        if https?.isEmpty == true { https = nil }
        self.exceptions = exceptions ?? first("no_proxy", "NO_PROXY") ?? ""
    }

    package static let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

    /// Whether libcurl will understand a proxy; what it says of one that it does not holds the
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
