import CCurl
import Glibc
package import PrefetchModel

/// Normalises the text of a URL, from a manifest or a redirect, to the URL that is requested.
///
/// libcurl's URL API parses the text. libcurl also makes the request, so that the two never
/// disagree about the host. The result is normalised as RFC 3986 §6.2.2 and §6.2.3 allow:
/// - scheme and host in lower case, the default port and empty user information removed, an empty
///   path as `/`, dot segments removed, no fragment;
/// - hosts: numeric IPv4 addresses as libcurl rewrites them (`127.1` → `127.0.0.1`), international
///   names in their ASCII form (by libidn2, non-transitional), IPv6 addresses as in RFC 5952. A
///   full stop at the end of a name stays: resolvers skip their search list for it, and libcurl
///   sends it in `Host`, so that it may name another host;
/// - escapes in upper case, escaped unreserved bytes decoded; a `%` without an escape becomes
///   `%25`; bytes that are not allowed in a URL (spaces, quotation marks, `<>\^{|}`, the accent,
///   and all from 0x80) are escaped one by one. A path or query need not be UTF-8: its bytes are
///   escaped, too, as libcurl does under `CURLU_URLENCODE`.
///
/// An empty query keeps its `?`, since libcurl sends it. libcurl accepts `http:/host/` and
/// `http:///host/` for `http://host/`. A cache key is the request's URL without user information.
///
/// The result is always ASCII, and normalising it again changes nothing: text that libcurl reads
/// differently the second time (`http://%31.1/`) is read until it is stable.
///
/// Not shared between threads.
package final class URLParser {
    let classes = ByteClasses()
    /// Holds the parsed base of all texts; each relative reference resolves on a duplicate of it.
    private let base: OpaquePointer?
    /// The schemes besides http and https of listed URLs.
    private let localSchemes: LocalSchemes
    /// Whether canonical text may bypass libcurl. The results are the same, which tests prove.
    private let usesFastPath: Bool
    private let locale = InternationalLocale()
    /// The text for libcurl, NUL-terminated; reused to save an allocation per line.
    private var terminated: [CChar] = []

    /// Another reading changes at most an escaped or international host, by one layer per turn.
    /// More layers are an attack.
    private static let maximumTurns = 4

    package init() {
        base = nil
        localSchemes = []
        usesFastPath = true
    }

    /// - Throws: when the base is not an absolute `http` or `https` URL, or libcurl cannot be
    ///   loaded.
    package init(
        baseURL: String?, allowing localSchemes: LocalSchemes = [], usesFastPath: Bool = true
    ) throws(URLParsingError) {
        self.usesFastPath = usesFastPath
        self.localSchemes = localSchemes
        guard let baseURL else {
            base = nil
            return
        }
        // The base is parsed like any URL, and is absolute then.
        base = try URLParser.handle(of: try URLParser().parse(baseURL.utf8))
    }

    deinit {
        if let base { ccurl_url_cleanup(base) }
    }

    /// The normalised URL of a text, which may be relative when there is a base. White space is
    /// not trimmed.
    ///
    /// - Throws: `unsupportedScheme` for schemes other than `http` and `https`, and `invalidEntry`
    ///   for everything else; the message never holds user information. `missingLibrary` when
    ///   libcurl is needed and cannot be loaded.
    package func parse(
        _ bytes: some Sequence<UInt8>
    ) throws(URLParsingError) -> RequestURL {
        try parse(Array(bytes), base: base)
    }

    /// The normalised URL of a text that may be relative to `url`, like `Location`.
    package func parse(
        _ bytes: some Sequence<UInt8>, relativeTo url: RequestURL
    ) throws(URLParsingError) -> RequestURL {
        let handle = try URLParser.handle(of: url)
        defer { ccurl_url_cleanup(handle) }
        return try parse(Array(bytes), base: handle)
    }

    private func parse(
        _ bytes: [UInt8], base: OpaquePointer?
    ) throws(URLParsingError) -> RequestURL {
        var text: [UInt8] = []
        let range = try append(bytes.span, base: base, to: &text).url
        return RequestURL(normalized: String(decoding: text[range], as: UTF8.self))
    }

    /// A handle with an absolute URL; the caller frees it.
    private static func handle(of url: RequestURL) throws(URLParsingError) -> OpaquePointer {
        let handle = try newHandle()
        let status = url.text.withCString { ccurl_url_set(handle, CURLUPART_URL, $0, 0) }
        guard status == CURLUE_OK else {
            ccurl_url_cleanup(handle)
            throw URLParsingError(.invalidEntry, "the base URL is not valid")
        }
        return handle
    }

    /// Appends the normalised URL to `text`, followed by its cache key. Without user information,
    /// both are the same range. An error leaves `text` unchanged.
    package func append(
        _ bytes: Span<UInt8>, to text: inout [UInt8]
    ) throws(URLParsingError) -> (url: Range<Int>, key: Range<Int>) {
        try append(bytes, base: base, to: &text)
    }

    private func append(
        _ bytes: Span<UInt8>, base: OpaquePointer?, to text: inout [UInt8]
    ) throws(URLParsingError) -> (url: Range<Int>, key: Range<Int>) {
        let start = text.count
        if usesFastPath, isCanonical(bytes) {
            bytes.withUnsafeBufferPointer { text.append(contentsOf: $0) }
            return (start..<text.count, start..<text.count)
        }
        if base == nil || base == self.base, try appendLocal(bytes, localSchemes, to: &text) {
            return (start..<text.count, start..<text.count)
        }
        var current = try parsed(bytes, base: base)
        var turns = 1
        while !(usesFastPath && isCanonical(current.bytes.span)) {
            let next = try parsed(current.bytes.span, base: nil)
            if next.bytes == current.bytes { break }
            turns += 1
            guard turns <= URLParser.maximumTurns else {
                throw URLParsingError(.invalidEntry, "the host name has too many layers of escapes")
            }
            current = next
        }
        text.append(contentsOf: current.bytes)
        let url = start..<text.count
        guard !current.userInformation.isEmpty else { return (url, url) }
        text.append(contentsOf: current.bytes[..<current.userInformation.lowerBound])
        text.append(contentsOf: current.bytes[current.userInformation.upperBound...])
        return (url, url.upperBound..<text.count)
    }

    /// A normalised URL and the range of its user information, with `@`; empty for none.
    private struct ParsedURL {
        var bytes: [UInt8] = []
        var userInformation = 0..<0
    }

    /// Parses once with libcurl, and normalises.
    private func parsed(
        _ bytes: Span<UInt8>, base: OpaquePointer?
    ) throws(URLParsingError) -> ParsedURL {
        try checkScheme(bytes, hasBase: base != nil, isListed: base == nil || base == self.base)
        try terminate(bytes)
        // A handle with a URL resolves the next one against it, and cannot be emptied: setting the
        // URL to NULL does nothing.
        let made: OpaquePointer? =
            if let base { ccurl_url_dup(base) } else { try URLParser.newHandle() }
        guard let handle = made else { throw URLParser.problem(CURLUE_OUT_OF_MEMORY) }
        defer { ccurl_url_cleanup(handle) }
        let status = ccurl_url_set(handle, CURLUPART_URL, terminated, UInt32(CURLU_URLENCODE))
        guard status == CURLUE_OK else { throw URLParser.problem(status) }
        return try normalized(handle)
    }

    private func normalized(_ handle: OpaquePointer) throws(URLParsingError) -> ParsedURL {
        var result = ParsedURL()
        result.bytes.reserveCapacity(terminated.count + 16)

        let scheme = try URLParser.part(CURLUPART_SCHEME, of: handle, absent: CURLUE_NO_SCHEME)
        let schemeText = (scheme ?? []).map(\.lowercased)
        let defaultPort: [UInt8]
        switch schemeText {
        case Array("http".utf8): defaultPort = Array("80".utf8)
        case Array("https".utf8): defaultPort = Array("443".utf8)
        default: throw URLParser.problem(CURLUE_UNSUPPORTED_SCHEME)
        }
        result.bytes += schemeText
        result.bytes += "://".utf8

        try appendUserInformation(of: handle, to: &result)
        try appendHost(of: handle, to: &result.bytes)
        if let port = try URLParser.part(CURLUPART_PORT, of: handle, absent: CURLUE_NO_PORT),
            port != defaultPort
        {
            result.bytes.append(UInt8(ascii: ":"))
            result.bytes += port
        }
        if let path = try URLParser.part(CURLUPART_PATH, of: handle, absent: CURLUE_OK) {
            var text: [UInt8] = []
            appendNormalized(path, allowed: ByteClasses.path, to: &text)
            URLParser.removeDotSegments(&text)
            result.bytes += text
        }
        if let query = try URLParser.part(CURLUPART_QUERY, of: handle, absent: CURLUE_NO_QUERY) {
            result.bytes.append(UInt8(ascii: "?"))
            appendNormalized(query, allowed: ByteClasses.query, to: &result.bytes)
        }
        return result
    }

    /// Empty user information is dropped: libcurl would send empty credentials.
    private func appendUserInformation(
        of handle: OpaquePointer, to result: inout ParsedURL
    ) throws(URLParsingError) {
        let user = try URLParser.part(CURLUPART_USER, of: handle, absent: CURLUE_NO_USER)
        let password = try URLParser.part(
            CURLUPART_PASSWORD, of: handle, absent: CURLUE_NO_PASSWORD)
        guard !(user ?? []).isEmpty || !(password ?? []).isEmpty else { return }
        let start = result.bytes.count
        let allowed = ByteClasses.userInformation
        appendNormalized(user ?? [], allowed: allowed, to: &result.bytes)
        if let password {
            result.bytes.append(UInt8(ascii: ":"))
            appendNormalized(password, allowed: allowed, to: &result.bytes)
        }
        result.bytes.append(UInt8(ascii: "@"))
        result.userInformation = start..<result.bytes.count
    }

    private func appendHost(
        of handle: OpaquePointer, to text: inout [UInt8]
    ) throws(URLParsingError) {
        let host = try URLParser.part(CURLUPART_HOST, of: handle, absent: CURLUE_NO_HOST)
        guard let host, !host.isEmpty else { throw URLParser.problem(CURLUE_NO_HOST) }
        if host.first == UInt8(ascii: "[") {
            text.append(UInt8(ascii: "["))
            text += try URLParser.usualIPv6(host.dropFirst().dropLast())
            if let zone = try URLParser.part(
                CURLUPART_ZONEID, of: handle, absent: CURLUE_NO_ZONEID)
            {
                guard
                    zone.allSatisfy({
                        classes.table[Int($0)] & ByteClasses.unreserved != 0
                    })
                else { throw URLParser.problem(CURLUE_BAD_IPV6) }
                // RFC 6874 §2.
                text += "%25".utf8
                text += zone
            }
            text.append(UInt8(ascii: "]"))
            return
        }
        if host.allSatisfy({ $0 < 0x80 }) {
            try appendASCIIHost(host, to: &text)
            return
        }
        // libcurl reports "out of memory" for a name that cannot be converted.
        let converted = try locale.run { () throws(URLParsingError) -> [UInt8]? in
            try URLParser.part(
                CURLUPART_HOST, of: handle, flags: UInt32(CURLU_PUNYCODE),
                absent: CURLUE_OUT_OF_MEMORY)
        }
        guard let converted, !converted.isEmpty else {
            throw URLParser.problem(CURLUE_BAD_HOSTNAME)
        }
        try appendASCIIHost(converted, to: &text)
    }

    /// An IPv6 address as in RFC 5952. libcurl keeps a spelling that would not get shorter, like
    /// `::AB` or `::FFFF:1.2.3.4`.
    private static func usualIPv6(
        _ bytes: some Sequence<UInt8>
    ) throws(URLParsingError) -> [UInt8] {
        var address = in6_addr()
        guard inet_pton(AF_INET6, String(decoding: Array(bytes), as: UTF8.self), &address) == 1
        else { throw problem(CURLUE_BAD_IPV6) }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(AF_INET6, &address, &text, socklen_t(text.count)) != nil else {
            throw problem(CURLUE_BAD_IPV6)
        }
        return text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    }

    /// Refuses names that libcurl accepts but no resolver can resolve (`a|b`, `a%b`).
    private func appendASCIIHost(
        _ host: [UInt8], to text: inout [UInt8]
    ) throws(URLParsingError) {
        for byte in host {
            let lower = byte.lowercased
            guard classes.table[Int(lower)] & ByteClasses.host != 0 else {
                throw URLParser.problem(CURLUE_BAD_HOSTNAME)
            }
            text.append(lower)
        }
    }

    /// Copies the text for libcurl, with spaces after the first `?` or `#` escaped.
    ///
    /// libcurl writes a space in a query as `+`, which means a space only in forms.
    private func terminate(_ bytes: Span<UInt8>) throws(URLParsingError) {
        terminated.removeAll(keepingCapacity: true)
        terminated.reserveCapacity(bytes.count + 1)
        var isBehindPath = false
        for index in bytes.indices {
            let byte = bytes[index]
            guard byte >= 0x20, byte != 0x7F else {
                throw URLParsingError(.invalidEntry, "a control character in the URL")
            }
            if byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") { isBehindPath = true }
            if byte == UInt8(ascii: " "), isBehindPath {
                terminated.append(CChar(bitPattern: UInt8(ascii: "%")))
                terminated.append(CChar(bitPattern: UInt8(ascii: "2")))
                terminated.append(CChar(bitPattern: UInt8(ascii: "0")))
            } else {
                terminated.append(CChar(bitPattern: byte))
            }
        }
        terminated.append(0)
    }
}
