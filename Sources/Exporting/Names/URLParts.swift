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
