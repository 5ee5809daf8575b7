/// An absolute http or https URL in its normal form: what a request is made to, and what is
/// compared when it has to be known whether two URLs, or their origins, are the same.
///
/// Listed URLs and the targets of redirects are made by one parser, `URLParser`, which says what
/// the normal form is. So equal URLs have equal texts, an authority is followed by a slash, and
/// plain searches for the delimiters are exact.
///
/// It is its text and nothing else, since many wait in queues and go to a file as text.
package struct RequestURL: Hashable, Sendable, CustomStringConvertible {
    /// As it is requested, credentials included: nothing that people read.
    package let text: String

    /// Takes a text that is in the normal form; of any other the properties may be wrong.
    package init(normalized text: String) {
        self.text = text
    }

    /// For people, without secrets.
    package var description: String { RedactedURL(text).description }

    package var isEncrypted: Bool { text.utf8.starts(with: "https:".utf8) }

    /// Scheme, host, and port unless it is the scheme's own: `https://example.com:8443`.
    package var origin: String {
        let (authority, host) = parts
        let origin = text.utf8[..<authority.upperBound]
        guard host.lowerBound != authority.lowerBound else { return String(Substring(origin)) }
        return String(text[..<authority.lowerBound] + text[host])
    }

    /// The host: names in lower case, IPv4 addresses in their usual form, IPv6 addresses in
    /// brackets, with their zone (`[fe80::1%25eth0]`).
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
        // Few URLs have any, and every entry's is looked at several times.
        guard text.withBytes({ $0.contains(UInt8(ascii: "@")) }) else { return nil }
        let (authority, host) = parts
        guard host.lowerBound != authority.lowerBound else { return nil }
        return text[authority.lowerBound..<text.utf8.index(before: host.lowerBound)]
    }

    /// What is stored, compared, and asked at other origins.
    package var withoutCredentials: RequestURL {
        guard credentials != nil else { return self }
        let (authority, host) = parts
        return RequestURL(
            normalized: String(text[..<authority.lowerBound] + text[host.lowerBound...]))
    }

    /// The same with the credentials of another URL, where that one has any and this one has none.
    package func withCredentials(of other: RequestURL) -> RequestURL {
        guard let given = other.credentials, credentials == nil else { return self }
        let start = parts.authority.lowerBound
        return RequestURL(normalized: "\(text[..<start])\(given)@\(text[start...])")
    }

    /// The whole authority, and what of it is host and port.
    private var parts: (authority: Range<String.Index>, host: Range<String.Index>) {
        let bytes = text.utf8
        let scheme = isEncrypted ? "https://".utf8.count : "http://".utf8.count
        let start =
            bytes.index(
                bytes.startIndex, offsetBy: scheme, limitedBy: bytes.endIndex) ?? bytes.endIndex
        let end = bytes[start...].firstIndex(of: UInt8(ascii: "/")) ?? bytes.endIndex
        let at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@"))
        return (start..<end, (at.map { bytes.index(after: $0) } ?? start)..<end)
    }
}
