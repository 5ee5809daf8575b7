import CXML
import Glibc

/// Turns the bytes of a sitemap into UTF-8, piece by piece, by iconv.
///
/// Bytes that the encoding does not have become U+FFFD.
///
/// Not thread-safe.
final class SitemapDecoder {
    /// Nil for UTF-8, which is only checked.
    private let converter: iconv_t?
    /// The beginning of a character at the end of the last piece.
    private var cut: [UInt8] = []

    /// The name of the declared encoding, if it is unknown. The bytes are read as UTF-8 then.
    private(set) var unknownEncoding: String?

    private static let replacement: [UInt8] = [0xEF, 0xBF, 0xBD]
    /// The longest character of all encodings.
    private static let characterBytes = 8

    /// Chooses the encoding by a byte order mark or the pattern of UTF-16, else by the declaration.
    init(head: [UInt8]) {
        let wide = SitemapDecoder.utf16(head)
        guard let name = wide ?? SitemapDecoder.declared(in: head) else {
            converter = nil
            return
        }
        let encoding = wide ?? SitemapDecoder.encoding(named: name)
        // A declaration in ASCII disproves a declared UTF-16.
        guard let encoding, encoding != "UTF-8", encoding != "UTF-16" else {
            converter = nil
            unknownEncoding = encoding == nil ? name : nil
            return
        }
        let opened = iconv_open("UTF-8", encoding)
        let failed = iconv_t(bitPattern: -1)
        converter = opened == failed ? nil : opened
        // Small systems lack some of glibc's modules.
        unknownEncoding = opened == failed ? name : nil
    }

    private static func encoding(named name: String) -> String? {
        var target = [CChar](repeating: 0, count: Int(CXML_ENCODING_NAME))
        guard cxml_find_encoding(name, &target) else { return nil }
        let bytes = target.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
        return String(decoding: bytes, as: UTF8.self)
    }

    deinit {
        if let converter { iconv_close(converter) }
    }

    private static func utf16(_ head: [UInt8]) -> String? {
        if head.starts(with: [0xFF, 0xFE]) || head.starts(with: [0x3C, 0]) { return "UTF-16LE" }
        if head.starts(with: [0xFE, 0xFF]) || head.starts(with: [0, 0x3C]) { return "UTF-16BE" }
        return nil
    }

    /// The encoding that an XML declaration at the beginning names.
    private static func declared(in head: [UInt8]) -> String? {
        // A mark of UTF-8 is stronger.
        guard !head.starts(with: [0xEF, 0xBB, 0xBF]) else { return nil }
        let text = String(decoding: head.map { $0 < 0x80 ? $0 : 0x3F }, as: UTF8.self)
        guard let start = text.firstRange(of: "<?xml"),
            let end = text[start.upperBound...].firstRange(of: "?>")
        else { return nil }
        let declaration = text[start.upperBound..<end.lowerBound]
        guard let name = declaration.firstRange(of: "encoding") else { return nil }
        let value = declaration[name.upperBound...].drop { $0.isWhitespace || $0 == "=" }
        guard let mark = value.first, mark == "\"" || mark == "'" else { return nil }
        return String(value.dropFirst().prefix { $0 != mark }.prefix(60))
    }

    /// Returns the next text, whole characters only, and the offsets of the wrong bytes in it.
    func decoded(_ bytes: UnsafeBufferPointer<UInt8>, isLast: Bool) -> (text: [UInt8], wrong: [Int])
    {
        let input = cut + bytes
        cut = []
        return input.withUnsafeBufferPointer { input in
            converter.map { convert(input, $0, isLast) } ?? check(input, isLast)
        }
    }

    private func check(
        _ input: UnsafeBufferPointer<UInt8>, _ isLast: Bool
    ) -> (text: [UInt8], wrong: [Int]) {
        var (text, wrong): ([UInt8], [Int]) = ([], [])
        var rest = input[...]
        while !rest.isEmpty {
            let piece = UnsafeBufferPointer(rebasing: rest)
            guard let range = EncodingCheck.wrongBytes(in: piece) else {
                text += piece
                break
            }
            text += piece[..<range.lowerBound]
            if range.upperBound == piece.count, !isLast, piece[range.lowerBound] >= 0xC2,
                range.count < 4
            {
                cut = Array(piece[range])
                break
            }
            wrong.append(text.count)
            text += SitemapDecoder.replacement
            rest = rest.dropFirst(range.upperBound)
        }
        return (text, wrong)
    }

    private func convert(
        _ input: UnsafeBufferPointer<UInt8>, _ converter: iconv_t, _ isLast: Bool
    ) -> (text: [UInt8], wrong: [Int]) {
        var (text, wrong): ([UInt8], [Int]) = ([], [])
        var next = UnsafeMutablePointer<CChar>(
            mutating: UnsafeRawPointer(input.baseAddress)?.assumingMemoryBound(to: CChar.self))
        var left = input.count
        while left > 0 {
            // A byte of a single-byte encoding takes three at most, a pair of UTF-16 four.
            let room = 3 * left + SitemapDecoder.characterBytes
            var code: Int32 = 0
            text += [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
                var output: UnsafeMutablePointer<CChar>? = UnsafeMutableRawPointer(
                    buffer.baseAddress)?.assumingMemoryBound(to: CChar.self)
                var space = room
                code = iconv(converter, &next, &left, &output, &space) == -1 ? errno : 0
                count = room - space
            }
            guard code != 0 else { break }
            if code == EINVAL, !isLast, left < SitemapDecoder.characterBytes {
                cut = Array(input.suffix(left))
                break
            }
            guard code != E2BIG else { continue }
            wrong.append(text.count)
            text += SitemapDecoder.replacement
            next = next?.advanced(by: 1)
            left -= 1
        }
        return (text, wrong)
    }
}
