import Glibc

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
        line.count < 16
            && ColumnRules.commonNames.contains(String(decoding: line, as: UTF8.self).lowercased())
    }

    /// Whether 5 % are control characters, including NUL; one bad line has fewer.
    private static func isBinary(_ head: UnsafeRawBufferPointer) -> Bool {
        let controls = head.count { $0 < 0x20 && !$0.isBlank && $0 != 0x0A && $0 != 0x0D }
        return controls > 1 && controls * 20 >= head.count && head.contains(0)
    }
}
