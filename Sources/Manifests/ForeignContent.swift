import Glibc

/// Recognises files that are not lists of URLs by their first bytes.
///
/// Conservative: no list of URLs is ever refused because of one of its lines.
enum ForeignContent {
    /// The number of bytes examined.
    static let headBytes = 4096

    private static let signatures: [(bytes: [UInt8], name: String)] = [
        ([0x89, 0x50, 0x4E, 0x47], "a PNG image"), ([0xFF, 0xD8, 0xFF], "a JPEG image"),
        (Array("GIF8".utf8), "a GIF image"), (Array("%PDF-".utf8), "a PDF document"),
        (Array("PK\u{3}\u{4}".utf8), "a ZIP archive"),
        (Array("SQLite format 3\0".utf8), "an SQLite database"),
        (
            [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00],
            "compressed with xz (prefetch reads plain text and gzip)"
        ),
        ([0x28, 0xB5, 0x2F, 0xFD], "compressed with zstd (prefetch reads plain text and gzip)"),
        (Array("BZh".utf8), "compressed with bzip2 (prefetch reads plain text and gzip)"),
    ]

    /// Common names of columns with URLs.
    private static let urlColumns: Set<String> = [
        "url", "urls", "uri", "link", "src", "href", "loc", "image", "image_url", "imageurl",
    ]

    /// The kind of content, for `looks like …`; nil if it may be a list.
    ///
    /// `head` is the decompressed start of the source, up to ``headBytes``.
    static func name(of head: UnsafeRawBufferPointer) -> String? {
        for signature in signatures where head.starts(with: signature.bytes) {
            return signature.name
        }
        if head.starts(with: "RIFF".utf8), head.dropFirst(8).starts(with: "WEBP".utf8) {
            return "a WebP image"
        }
        // UTF-16 has a separate error.
        let isUTF16 = head.starts(with: [0xFF, 0xFE]) || head.starts(with: [0xFE, 0xFF])
        if isUTF16 { return nil }
        if isBinary(head) { return "binary data" }
        let text = head.starts(with: [0xEF, 0xBB, 0xBF]) ? head.dropFirst(3) : head[...]
        let lines = text.split(separator: 0x0A, omittingEmptySubsequences: true)
        // The first line that isn't a comment.
        guard
            let line = lines.lazy.map({ trimmed($0) })
                .first(where: { !$0.isEmpty && $0.first != UInt8(ascii: "#") })
        else { return nil }
        // Lines such as `<URL>` and `[text](URL)` are reported as such.
        if line.starts(with: "<http".utf8) || isMarkdownLink(line) { return nil }
        switch line.first {
        case UInt8(ascii: "<"): return markup(text)
        case UInt8(ascii: "{"):
            return line.last == UInt8(ascii: "}") ? "JSON lines" : "JSON"
        case UInt8(ascii: "["): return "JSON"
        default: return isTableHead(line) ? "a table (CSV)" : nil
        }
    }

    /// Whether a line is the name of a column with URLs.
    static func isColumnOfURLs(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        line.count < 16 && urlColumns.contains(String(decoding: line, as: UTF8.self).lowercased())
    }

    private static func isMarkdownLink(_ line: Slice<UnsafeRawBufferPointer>) -> Bool {
        guard line.first == UInt8(ascii: "["), let end = line.firstIndex(of: UInt8(ascii: "]"))
        else { return false }
        return line[(end + 1)...].starts(with: "(http".utf8)
    }

    /// Whether 5 % are control characters, including NUL; one bad line has fewer.
    private static func isBinary(_ head: UnsafeRawBufferPointer) -> Bool {
        let controls = head.count { $0 < 0x20 && !$0.isBlank && $0 != 0x0A && $0 != 0x0D }
        return controls > 1 && controls * 20 >= head.count && head.contains(0)
    }

    private static func trimmed(
        _ line: Slice<UnsafeRawBufferPointer>
    ) -> Slice<UnsafeRawBufferPointer> {
        func isSpace(_ byte: UInt8) -> Bool { byte.isBlank || byte == 0x0D }
        var line = line.drop(while: isSpace)
        while let last = line.last, isSpace(last) { line.removeLast() }
        return line
    }

    private static func markup(_ text: Slice<UnsafeRawBufferPointer>) -> String {
        let words = String(decoding: text.prefix(1024), as: UTF8.self).lowercased()
        if words.contains("<urlset") || words.contains("<sitemapindex") { return "a sitemap (XML)" }
        if words.contains("<rss") || words.contains("<feed") { return "a feed (XML)" }
        if words.contains("<!doctype html") || words.contains("<html") {
            return "a web page (HTML)"
        }
        return "XML"
    }

    /// Whether a line is a table's header with a column of URLs.
    private static func isTableHead(_ line: Slice<UnsafeRawBufferPointer>) -> Bool {
        let names = line.split(omittingEmptySubsequences: false) { byte in
            byte == UInt8(ascii: ",") || byte == UInt8(ascii: ";") || byte == UInt8(ascii: "\t")
        }
        // With these characters it may be a URL or a field.
        let isList = line.contains { ".:/=%".utf8.contains($0) }
        guard names.count > 1, !isList else { return false }
        return names.contains { name in
            let word = trimmed(name).filter { $0 != UInt8(ascii: "\"") }
            return urlColumns.contains(String(decoding: word, as: UTF8.self).lowercased())
        }
    }
}
