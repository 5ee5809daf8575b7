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
        if let (name, hint) = ForeignContent.kind(of: head) { return .other(name, hint: hint) }
        let text = UnsafeBufferPointer(
            rebasing: head.assumingMemoryBound(to: UInt8.self)[
                (head.starts(with: byteOrderMark) ? byteOrderMark.count : 0)...])
        // Only markup may have blank lines and further marks in front, which the format passes.
        if text.first(where: { $0 > 0x20 && $0 < 0x7F }) == UInt8(ascii: "<"),
            text.first(where: { !$0.isBlank && $0 != 0x0A && $0 != 0x0D }) != UInt8(ascii: "<")
        {
            return markup(text)
        }
        // The first line that isn't a comment.
        let lines = text.split(omittingEmptySubsequences: true) { $0 == 0x0A || $0 == 0x0D }
        guard let line = lines.first(where: { !$0.isBlankOrComment }) else {
            return .list(format(ofName: name) ?? .text)
        }
        if TableDialect(declaredBy: line) != nil { return .list(.csv) }
        let first = line.trimmed
        // Lines such as `<URL>` and `[text](URL)` are reported.
        if first.starts(with: "<http".utf8) || isMarkdownLink(first) { return .list(.text) }
        switch first.first {
        case UInt8(ascii: "<"): return markup(text)
        case UInt8(ascii: "{"):
            // JSON on several lines begins with a short one.
            let isWhole =
                first.last == UInt8(ascii: "}") || first.endIndex == text.endIndex
                || format(ofName: name) == .jsonl
            return isWhole ? .list(.jsonl) : .other("JSON", hint: jsonObjectHint)
        case UInt8(ascii: "["):
            return first.elementsEqual("[InternetShortcut]".utf8)
                ? .other("an Internet shortcut", hint: shortcutHint)
                : .other("JSON", hint: jsonArrayHint)
        default: break
        }
        let separator = TableDialect(firstLine: first, columns).separator
        let asTable: ManifestFormat = separator == TableDialect.tab ? .tsv : .csv
        if columns.isHead(first) { return .list(asTable) }
        let separators = TableDialect.hasSeparator(first)
        // A text line may have fields after a tab.
        let isText = asTable == .tsv && first.contains(UInt8(ascii: "="))
        if separators, !columns.hasHeader, !isText { return .list(asTable) }
        let named = format(ofName: name)
        // Lists with one URL per line have the extension `csv`, too.
        let isURL = first.starts(with: "http".utf8) && !separators
        return .list(isURL ? .text : named ?? .text)
    }

    private static let jsonArrayHint = "jq -cr '.[]' FILE writes the elements of the array as lines"
    private static let jsonObjectHint =
        "jq -r '.. | strings | select(test(\"^https?://\"))' FILE writes all URLs in it as lines"
    private static let shortcutHint = "sed -n 's/^URL=//p' FILE writes its URL as a line"

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

    private static func isMarkdownLink(_ line: EntryFields.Bytes) -> Bool {
        guard line.first == UInt8(ascii: "["), let end = line.firstIndex(of: UInt8(ascii: "]"))
        else { return false }
        return line[(end + 1)...].starts(with: "(http".utf8)
    }

    private static func markup(_ text: UnsafeBufferPointer<UInt8>) -> DetectedContent {
        let words = String(decoding: text.prefix(1024), as: UTF8.self).lowercased()
        if words.contains("<rss") || words.contains("<feed") {
            return .other("a feed (XML)", hint: feedHint(words))
        }
        if words.contains("<!doctype html") || words.contains("<html") {
            return .other("a web page (HTML)", hint: nil)
        }
        // Another root element is an error of the format.
        return .list(.sitemap)
    }

    private static func feedHint(_ words: String) -> String {
        words.contains("base.google.com/ns")
            ? "xmllint --xpath '//*[local-name()=\"image_link\"]/text()' FILE | "
                + "sed 's/&amp;/\\&/g' writes the pictures of its products as lines"
            : "links of feeds are not read; write them as lines"
    }
}

/// Recognises files that are no text by their first bytes.
enum ForeignContent {
    /// The number of bytes examined.
    static let headBytes = 4096

    private static let signatures: [(bytes: [UInt8], name: String, hint: String?)] = [
        ([0x89, 0x50, 0x4E, 0x47], "a PNG image", importHint),
        ([0xFF, 0xD8, 0xFF], "a JPEG image", importHint),
        (Array("GIF8".utf8), "a GIF image", importHint),
        (Array("%PDF-".utf8), "a PDF document", nil),
        (Array("PK\u{3}\u{4}".utf8), "a ZIP archive", "save a sheet in it as CSV, or unzip it"),
        ([0xD0, 0xCF, 0x11, 0xE0], "a document of an office program", "save the sheet as CSV"),
        (
            Array("SQLite format 3\0".utf8), "an SQLite database",
            "sqlite3 -csv -header FILE 'SELECT * FROM t' writes a table as CSV"
        ),
        (Array("PAR1".utf8), "a Parquet file", frameHint("parquet")),
        (Array("ARROW1\0\0".utf8), "an Arrow file", frameHint("feather")),
        ([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00], "compressed with xz", pipeHint("xz")),
        ([0x28, 0xB5, 0x2F, 0xFD], "compressed with zstd", pipeHint("zstd")),
        (Array("BZh".utf8), "compressed with bzip2", pipeHint("bzip2")),
    ]

    private static let importHint = "pass a list of URLs; prefetch import takes files"

    private static func pipeHint(_ command: String) -> String {
        "\(command) -dc FILE | prefetch run -"
    }

    private static func frameHint(_ kind: String) -> String {
        "python3 -c \"import pandas; pandas.read_\(kind)('FILE').to_csv('list.csv', index=False)\" "
            + "writes it as CSV"
    }

    /// The kind of content, for `looks like …`, and a remedy; nil if it may be a list.
    static func kind(of head: UnsafeRawBufferPointer) -> (name: String, hint: String?)? {
        for signature in signatures where head.starts(with: signature.bytes) {
            return (signature.name, signature.hint)
        }
        if head.starts(with: "RIFF".utf8), head.dropFirst(8).starts(with: "WEBP".utf8) {
            return ("a WebP image", importHint)
        }
        if head.count > 3, head[1] == 0, head[3] == 0, head[0] != 0, head[2] != 0 {
            return ("UTF-16 without a byte order mark", "iconv -f UTF-16LE -t UTF-8 FILE")
        }
        return isBinary(head) ? ("binary data", nil) : nil
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
