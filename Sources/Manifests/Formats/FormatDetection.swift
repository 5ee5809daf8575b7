import Glibc
import PrefetchModel

/// Finds the format of a list from its first bytes, and from the extension of its name.
///
/// Conservative: a list of URLs is never taken for something else because of one of its lines.
enum FormatDetection {
    enum DetectedContent: Equatable {
        case list(ManifestFormat)
        /// Something else; `name` continues `looks like …`.
        case other(_ name: String, hint: String?)
    }

    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// `head` is the decompressed start of the source, up to ``ForeignContent/headBytes``.
    static func content(
        of head: UnsafeRawBufferPointer, name: String, _ columns: ColumnRules
    ) -> DetectedContent {
        let isUTF16 = head.starts(with: [0xFF, 0xFE]) || head.starts(with: [0xFE, 0xFF])
        if isUTF16 {
            // expat reads UTF-16. Text in it has an error of its own.
            let isXML = head.dropFirst(2).prefix(2).contains(UInt8(ascii: "<"))
            return .list(isXML ? .sitemap : .text)
        }
        if let name = ForeignContent.name(of: head) { return .other(name, hint: nil) }
        let text = UnsafeBufferPointer(
            rebasing: head.assumingMemoryBound(to: UInt8.self)[
                (head.starts(with: byteOrderMark) ? byteOrderMark.count : 0)...])
        // The first line that isn't a comment.
        let lines = text.split(separator: 0x0A, omittingEmptySubsequences: true)
        guard let first = lines.first(where: { !$0.isBlankOrComment })?.trimmed else {
            return .list(format(ofName: name) ?? .text)
        }
        // Lines such as `<URL>` and `[text](URL)` are reported.
        if first.starts(with: "<http".utf8) || isMarkdownLink(first) { return .list(.text) }
        switch first.first {
        case UInt8(ascii: "<"): return markup(text)
        case UInt8(ascii: "{"):
            // JSON on several lines begins with a short one.
            let isWhole =
                first.last == UInt8(ascii: "}") || !text.contains(0x0A)
                || format(ofName: name) == .jsonl
            return isWhole ? .list(.jsonl) : json
        case UInt8(ascii: "["): return json
        default: break
        }
        let asTable: ManifestFormat = first.contains(UInt8(ascii: "\t")) ? .tsv : .csv
        if isTableHead(first, columns) { return .list(asTable) }
        let separators = first.contains { $0 == UInt8(ascii: "\t") || isSeparator($0) }
        // A text line may have fields after a tab.
        let isText = asTable == .tsv && first.contains(UInt8(ascii: "="))
        if separators, !columns.hasHeader, !isText { return .list(asTable) }
        let named = format(ofName: name)
        // Lists with one URL per line have the extension `csv`, too.
        let isURL = first.starts(with: "http".utf8) && !separators
        return .list(isURL ? .text : named ?? .text)
    }

    private static var json: DetectedContent {
        .other("JSON", hint: "jq -c '.[]' FILE writes the elements of an array as lines")
    }

    private static func format(ofName name: String) -> ManifestFormat? {
        // The name of a list by URL may have a query.
        let file = name.contains("://") ? name.prefix { $0 != "?" } : name[...]
        let path = file.lowercased()
        let plain = path.hasSuffix(".gz") ? String(path.dropLast(3)) : path
        guard let dot = plain.lastIndex(of: ".") else { return nil }
        switch plain[plain.index(after: dot)...] {
        case "csv": return .csv
        case "tsv", "tab": return .tsv
        case "jsonl", "ndjson": return .jsonl
        default: return nil
        }
    }

    private static func isSeparator(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ",") || byte == UInt8(ascii: ";")
    }

    private static func isMarkdownLink(_ line: EntryFields.Bytes) -> Bool {
        guard line.first == UInt8(ascii: "["), let end = line.firstIndex(of: UInt8(ascii: "]"))
        else { return false }
        return line[(end + 1)...].starts(with: "(http".utf8)
    }

    private static func markup(_ text: UnsafeBufferPointer<UInt8>) -> DetectedContent {
        let words = String(decoding: text.prefix(1024), as: UTF8.self).lowercased()
        if words.contains("<rss") || words.contains("<feed") {
            return .other("a feed (XML)", hint: nil)
        }
        if words.contains("<!doctype html") || words.contains("<html") {
            return .other("a web page (HTML)", hint: nil)
        }
        // Another root element is an error of the format.
        return .list(.sitemap)
    }

    /// Whether a line is a table's first row with a column of URLs.
    private static func isTableHead(_ line: EntryFields.Bytes, _ columns: ColumnRules) -> Bool {
        guard columns.hasHeader else { return false }
        let names = line.split(omittingEmptySubsequences: false) {
            $0 == UInt8(ascii: "\t") || isSeparator($0)
        }
        // With these characters it may be a URL or a field.
        let isList = line.contains { ":/=%".utf8.contains($0) }
        guard names.count > 1, !isList else { return false }
        return names.contains { name in
            let word = name.trimmed.filter { $0 != UInt8(ascii: "\"") }
            return columns.isURLColumn(String(decoding: word, as: UTF8.self))
        }
    }
}

/// Recognises files that are no text by their first bytes.
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

    /// The kind of content, for `looks like …`; nil if it may be a list.
    static func name(of head: UnsafeRawBufferPointer) -> String? {
        for signature in signatures where head.starts(with: signature.bytes) {
            return signature.name
        }
        if head.starts(with: "RIFF".utf8), head.dropFirst(8).starts(with: "WEBP".utf8) {
            return "a WebP image"
        }
        return isBinary(head) ? "binary data" : nil
    }

    /// Whether a line is the name of a column with URLs.
    static func isColumnOfURLs(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        line.count < 16 && ColumnRules.rank(of: String(decoding: line, as: UTF8.self)) != nil
    }

    /// Whether 5 % are control characters, including NUL; one bad line has fewer.
    private static func isBinary(_ head: UnsafeRawBufferPointer) -> Bool {
        let controls = head.count { $0 < 0x20 && !$0.isBlank && $0 != 0x0A && $0 != 0x0D }
        return controls > 1 && controls * 20 >= head.count && head.contains(0)
    }
}
