import PrefetchModel

/// The schemes of sources besides HTTP that a list may name.
package struct LocalSchemes: OptionSet, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// RFC 2397
    package static let data = LocalSchemes(rawValue: 1)
    /// RFC 8089, with an absolute path
    package static let file = LocalSchemes(rawValue: 2)
    /// `file`, if the user gives `--files-below`, which the error names.
    package static let fileByFlag = LocalSchemes(rawValue: 4)
}

extension URLParser {
    /// The longest `data:` URL, which is also a key.
    private static let maximumDataBytes = 64 << 10

    /// Appends a `data:` or `file:` URL in normal form, if it is one and allowed.
    ///
    /// - Returns: whether it is one.
    func appendLocal(
        _ bytes: Span<UInt8>, _ allowed: LocalSchemes, to text: inout [UInt8]
    ) throws(URLParsingError) -> Bool {
        // Fast path: most schemes begin with another letter.
        guard bytes.count > 5, [UInt8(ascii: "d"), UInt8(ascii: "f")].contains(bytes[0].lowercased)
        else { return false }
        let scheme = (0..<5).map { bytes[$0].lowercased }
        let rest = bytes.withUnsafeBufferPointer { Array($0[5...]) }
        guard rest.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            // The usual parser reports them.
            return false
        }
        if allowed.contains(.data), scheme.elementsEqual("data:".utf8) {
            guard bytes.count <= URLParser.maximumDataBytes else {
                throw URLParsingError(
                    .invalidEntry,
                    "a data: URL of more than \(ByteCount(URLParser.maximumDataBytes)); "
                        + "write its image to a file, and list that with --files-below")
            }
            guard rest.contains(UInt8(ascii: ",")) else {
                throw URLParsingError(.invalidEntry, "a data: URL without a comma has no data")
            }
            text += "data:".utf8
            appendNormalized(rest, allowed: ByteClasses.query, to: &text)
            return true
        }
        guard scheme.elementsEqual("file:".utf8) else { return false }
        guard allowed.contains(.file) else {
            throw URLParsingError(
                .unsupportedScheme,
                allowed.contains(.fileByFlag)
                    ? "the scheme 'file' needs --files-below DIR, and allows files below DIR"
                    : "the scheme 'file' is for lists in files, and not allowed here")
        }
        var path = rest[...]
        let localHost = "//localhost/".utf8
        if path.prefix(localHost.count).map(\.lowercased).elementsEqual(localHost) {
            path = path.dropFirst(localHost.count - 1)
        }
        if path.starts(with: "///".utf8) { path = path.dropFirst(2) }
        path = path.prefix { !"?#".utf8.contains($0) }
        guard path.first == UInt8(ascii: "/"), !path.starts(with: "//".utf8) else {
            throw URLParsingError(
                .invalidEntry, "a file: URL has an absolute path and no host, like file:///a/b.png")
        }
        var normal: [UInt8] = []
        appendNormalized(Array(path), allowed: ByteClasses.path, to: &normal)
        URLParser.removeDotSegments(&normal)
        text += "file://".utf8
        text += normal
        return true
    }
}
