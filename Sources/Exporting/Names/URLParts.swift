internal import Hashing
import PrefetchModel

/// The parts of an absolute URL (RFC 3986 §3), as written.
package struct URLParts {
    private(set) var scheme: Substring = ""
    /// Host and port, without user information.
    private(set) var host: Substring = ""
    /// Begins with a slash, or is empty.
    private(set) var path: Substring
    /// Without its question mark; nil without one.
    private(set) var query: Substring?

    init(_ url: String) {
        // Without the fragment.
        var rest = url[..<(url.utf8.firstIndex(of: UInt8(ascii: "#")) ?? url.endIndex)]
        if let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?")) {
            query = rest[rest.utf8.index(after: mark)...]
            rest = rest[..<mark]
        }
        path = rest
        guard let colon = rest.utf8.firstIndex(of: UInt8(ascii: ":")),
            rest[colon...].hasPrefix("://")
        else { return }
        scheme = rest[..<colon]
        let authority = rest.utf8.index(colon, offsetBy: 3)
        let end = rest[authority...].utf8.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
        path = rest[end...]
        host = rest[authority..<end]
        if let at = host.utf8.lastIndex(of: UInt8(ascii: "@")) {
            host = host[host.utf8.index(after: at)...]
        }
    }

    /// Returns a URL for names of files, which everyone sees: with digests in place of signatures
    /// and other secret parameters, so that names still differ.
    static func withoutSecrets(_ url: String) -> String {
        RedactedURL.replacingSecrets(of: url) { value in
            let text = String(decoding: value, as: UTF8.self)
            return Array("~\(NameDigest.sha256.hexadecimal(of: text).prefix(8))".utf8)
        }
    }

    /// Returns an absolute URL as Foundation's `URL(string:)` spells it: loaders on Apple's systems
    /// take its `absoluteString` for the key.
    ///
    /// A path, query or fragment with characters outside of RFC 3986 is percent-encoded as a whole,
    /// percent signs included. `normalized` has the host in ASCII.
    static func foundationText(of url: String, normalized: String) -> String {
        let parts = URLParts(url)
        var text = String(url[..<parts.path.startIndex])
        if !text.utf8.allSatisfy({ $0 < 0x80 }) {
            text = text.replacing(parts.host, with: URLParts(normalized).host)
        }
        text += foundationText(of: parts.path, "/")
        if let query = parts.query { text += "?" + foundationText(of: query, "/?") }
        guard let mark = url.utf8.firstIndex(of: UInt8(ascii: "#")) else { return text }
        return text + "#" + foundationText(of: url[url.utf8.index(after: mark)...], "/?")
    }

    private static func foundationText(of component: Substring, _ marks: String) -> String {
        let marks = "-._~!$&'()*+,;=:@" + marks
        let encoded = component.utf8.percentEncoded(except: marks)
        // Valid text differs in percent signs only, which have two digits.
        let isValid =
            component.utf8.percentEncoded(except: marks + "%") == component
            && component.split(separator: "%", omittingEmptySubsequences: false).dropFirst()
                .allSatisfy { $0.utf8.count > 1 && $0.prefix(2).allSatisfy(\.isHexDigit) }
        return isValid ? String(component) : encoded
    }

    package static func percentEncoded(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return byte < 16 ? "%0" + digits : "%" + digits
    }
}

extension Collection<UInt8> where SubSequence: Collection<UInt8> {
    /// A file name without its extension, and the extension without its dot; nil without one. A
    /// name that only begins with a dot has none.
    var stemAndExtension: (stem: SubSequence, extension: SubSequence?) {
        var dot: Index?
        for index in indices where self[index] == UInt8(ascii: ".") { dot = index }
        guard let dot, dot != startIndex, index(after: dot) != endIndex else {
            return (self[...], nil)
        }
        return (self[..<dot], self[index(after: dot)...])
    }
}
