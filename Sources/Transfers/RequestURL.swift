internal import CCurl

/// Looks into the URL of a request with libcurl's own parser, so that what is found is what libcurl
/// will do.
enum RequestURL {
    /// The host: numeric IPv4 in its usual form however it was spelled, IPv6 in brackets, names in
    /// any case of letters; nil when libcurl will refuse the URL.
    static func host(of url: String) -> String? {
        guard let host = part(CURLUPART_HOST, of: url) else { return nil }
        guard !host.utf8.allSatisfy({ $0 < 0x80 }) else { return host }
        // Full-width digits are digits after the mapping of international names.
        return part(CURLUPART_HOST, of: url, flags: UInt32(CURLU_PUNYCODE)).flatMap {
            part(CURLUPART_HOST, of: "http://\($0)/")
        }
    }

    static func isEncrypted(_ url: String) -> Bool {
        url.utf8.prefix(6).map { $0 | 0x20 }.elementsEqual("https:".utf8.map { $0 | 0x20 })
    }

    /// The URL without user name and password; nil when libcurl will refuse it.
    static func withoutUserInformation(_ url: String) -> String? {
        guard url.utf8.contains(UInt8(ascii: "@")) else { return url }
        return parse(url) { parser in
            for part in [CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS] {
                guard curl_url_set(parser, part, nil, 0) == CURLUE_OK else { return nil }
            }
            return text(CURLUPART_URL, of: parser)
        }
    }

    static func hasUserInformation(_ url: String) -> Bool {
        url.utf8.contains(UInt8(ascii: "@")) && part(CURLUPART_USER, of: url) != nil
    }

    /// The password in the URL, percent-encoded and as it is; empty without one.
    static func passwords(in url: String) -> [String] {
        guard url.utf8.contains(UInt8(ascii: "@")) else { return [] }
        return [0, UInt32(CURLU_URLDECODE)].compactMap {
            part(CURLUPART_PASSWORD, of: url, flags: $0)
        }
    }

    private static func part(_ part: CURLUPart, of url: String, flags: UInt32 = 0) -> String? {
        parse(url) { text(part, of: $0, flags: flags) }
    }

    private static func parse(_ url: String, _ body: (OpaquePointer) -> String?) -> String? {
        guard let parser = curl_url() else { return nil }
        defer { curl_url_cleanup(parser) }
        // As of a proxy: the scheme may be missing, or one that only proxies have.
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME)
        guard curl_url_set(parser, CURLUPART_URL, url, flags) == CURLUE_OK else { return nil }
        return body(parser)
    }

    private static func text(
        _ part: CURLUPart, of parser: OpaquePointer, flags: UInt32 = 0
    ) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(parser, part, &text, flags) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}

extension AddressClass {
    /// The class of the address that a URL names by number, in any spelling, or as `localhost`
    /// (RFC 6761 §6.3); nil for other names.
    init?(hostOf url: String) {
        guard var host = RequestURL.host(of: url) else { return nil }
        if host.hasSuffix(".") {
            // Whoever resolves the name drops it.
            host.removeLast()
            host = RequestURL.host(of: "http://\(host)/") ?? host
        }
        if host.hasPrefix("[") { host = String(host.dropFirst().prefix { $0 != "]" }) }
        let name = host.lowercased()
        if name == "localhost" || name.hasSuffix(".localhost") {
            self = .loopback
        } else {
            self.init(text: host)
        }
    }
}
