/// An absolute http or https URL in normal form, used for requests and for comparing URLs and
/// origins; in lists also a `data:` or `file:` URL, of the origin `data://` or `file://`.
///
/// `URLParser` creates it from listed URLs and redirect targets, and defines the normal form. So
/// equal URLs have equal texts, an authority is followed by a slash, and delimiters can be found by
/// plain search.
///
/// Holds only its text, since many wait in queues and in the spill file.
package struct RequestURL: Hashable, Sendable, CustomStringConvertible {
    /// The text to request, including credentials; never show it.
    package let text: String

    /// Wraps a text in normal form; for any other text the properties may be wrong.
    package init(normalized text: String) {
        self.text = text
    }

    package var description: String { RedactedURL(text).description }

    /// Whether no request is sent: `data:` and `file:`.
    package var isLocal: Bool { text.utf8.starts(with: "data:".utf8) || isFile }

    package var isFile: Bool { text.utf8.starts(with: "file:".utf8) }

    package var isEncrypted: Bool { text.utf8.starts(with: "https:".utf8) }

    /// Scheme, host, and port unless it is the scheme's own: `https://example.com:8443`.
    package var origin: String {
        if text.utf8.starts(with: "data:".utf8) { return "data://" }
        let (authority, host) = parts
        let origin = text.utf8[..<authority.upperBound]
        guard host.lowerBound != authority.lowerBound else { return String(Substring(origin)) }
        return String(text[..<authority.lowerBound] + text[host])
    }

    /// The host: a lower-case name, an IPv4 address in dotted form, or an IPv6 address in brackets
    /// with its zone (`[fe80::1%25eth0]`).
    package var host: Substring {
        let bytes = text.utf8[parts.host]
        let afterAddress =
            bytes.first == UInt8(ascii: "[")
            ? bytes.firstIndex(of: UInt8(ascii: "]")) ?? bytes.startIndex : bytes.startIndex
        let end = bytes[afterAddress...].firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        return text[bytes.startIndex..<end]
    }

    /// `NAME[:PASSWORD]`, percent-encoded; nil without.
    package var credentials: Substring? {
        // Fast path: few URLs have credentials, and every entry's is checked several times.
        guard text.withBytes({ $0.contains(UInt8(ascii: "@")) }) else { return nil }
        let (authority, host) = parts
        guard host.lowerBound != authority.lowerBound else { return nil }
        return text[authority.lowerBound..<text.utf8.index(before: host.lowerBound)]
    }

    /// The URL to store, to compare, and to request from other origins.
    package var withoutCredentials: RequestURL {
        guard credentials != nil else { return self }
        let (authority, host) = parts
        return RequestURL(
            normalized: String(text[..<authority.lowerBound] + text[host.lowerBound...]))
    }

    /// The URL with the credentials of `other`, if this one has none.
    package func withCredentials(of other: RequestURL) -> RequestURL {
        guard let given = other.credentials, credentials == nil else { return self }
        let start = parts.authority.lowerBound
        return RequestURL(normalized: "\(text[..<start])\(given)@\(text[start...])")
    }

    private var parts: (authority: Range<String.Index>, host: Range<String.Index>) {
        let bytes = text.utf8
        if text.utf8.starts(with: "data:".utf8) {
            let start = bytes.index(bytes.startIndex, offsetBy: "data:".utf8.count)
            return (start..<start, start..<start)
        }
        let scheme = isEncrypted ? "https://".utf8.count : "http://".utf8.count
        let start =
            bytes.index(
                bytes.startIndex, offsetBy: scheme, limitedBy: bytes.endIndex) ?? bytes.endIndex
        let end = bytes[start...].firstIndex(of: UInt8(ascii: "/")) ?? bytes.endIndex
        let at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@"))
        return (start..<end, (at.map { bytes.index(after: $0) } ?? start)..<end)
    }
}

/// The addresses that a request may be sent to.
package enum AddressRule: Hashable, BitwiseCopyable, Sendable {
    /// For listed URLs. Loopback and private addresses are allowed, since the user may run a server
    /// there. Link-local addresses are refused by default, because the metadata services of clouds
    /// hand out credentials there.
    case listed(allowsLinkLocal: Bool)
    /// `--deny-private`, for lists from a third party: public addresses only.
    case publicOnly
    /// For a redirect from a public address: public addresses only, even if the lists may name
    /// others. This prevents SSRF into the user's network.
    case redirectedFromPublic
}
