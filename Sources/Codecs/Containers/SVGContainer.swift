internal import CXML
internal import PrefetchModel

/// SVG: XML (checked by expat, see `cxml.h`) with the root element `svg`. If it is not well-formed,
/// its tags tell the format and the end.
///
/// It is never rendered, and no reference in it is opened. Its size is not read, since it may be
/// missing or in centimetres.
enum SVGContainer: ImageContainer {
    /// The maximum length before the end of the first tag: comments, and declarations of drawing
    /// programs. A file that exceeds it is not an image.
    static let prologBytes = 64 << 10

    /// Byte order marks.
    private static let marks: [[UInt8]] = [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE]]

    /// Examines at most ``prologBytes`` bytes.
    static func recognition(of bytes: UnsafeRawBufferPointer) -> Recognition {
        if marks.contains(where: { bytes.count < $0.count && $0.starts(with: bytes) }) {
            return .undecided
        }
        guard let letter = firstLetter(of: bytes) else {
            return bytes.count < signatureBytes ? .undecided : .other
        }
        // This rejects nearly everything that is not XML.
        guard letter == UInt8(ascii: "<") else { return .other }
        let prolog = UnsafeRawBufferPointer(rebasing: bytes.prefix(prologBytes))
        guard let start = prolog.baseAddress else { return .other }
        return switch cxml_read(start, prolog.count, false, 1 << 20, nil).end {
        case CXML_SVG: .recognised
        case CXML_UNDECIDED: prolog.count < prologBytes ? .undecided : .other
        case CXML_ROOTLESS: recognition(byTagsOf: prolog)
        default: .other
        }
    }

    /// The same for a prolog that is not well-formed, by the name in the first tag.
    private static func recognition(byTagsOf prolog: UnsafeRawBufferPointer) -> Recognition {
        let cut = prolog.count < prologBytes ? Recognition.undecided : .other
        var rest = ascii(prolog)
        while let start = rest.firstIndex(where: { !isSpace($0) }) {
            rest = rest[start...]
            var end = Array(">".utf8)
            if rest.starts(with: "<?".utf8) {
                end = Array("?>".utf8)
            } else if rest.starts(with: "<!--".utf8) {
                end = Array("-->".utf8)
            } else if rest.starts(with: "<!DOCTYPE".utf8) {
                let words = rest.split(maxSplits: 2, whereSeparator: isSpace)
                guard words.count > 2 || words.last?.contains(UInt8(ascii: ">")) == true else {
                    return cut
                }
                guard words.count > 1, isSVG(words[1]) else { return .other }
                let quotes = rest.prefix { $0 != UInt8(ascii: ">") }
                if quotes.contains(UInt8(ascii: "[")) { end = Array("]>".utf8) }
            } else {
                guard rest.first == UInt8(ascii: "<") else { return .other }
                let name = rest.dropFirst().prefix { !isSpace($0) && !">/".utf8.contains($0) }
                guard name.endIndex < rest.endIndex else { return cut }
                return isSVG(name) ? .recognised : .other
            }
            guard let next = rest.indices.first(where: { rest[$0...].starts(with: end) }) else {
                return cut
            }
            rest = rest[(next + end.count)...]
        }
        return cut
    }

    /// Whether a tag's name is `svg`, with any prefix.
    private static func isSVG(_ tag: ArraySlice<UInt8>) -> Bool {
        let name = tag.prefix { !isSpace($0) && !">/[".utf8.contains($0) }
        return name.split(separator: UInt8(ascii: ":")).last.map { $0.elementsEqual("svg".utf8) }
            ?? false
    }

    /// The bytes of ASCII characters, in any encoding that XML may begin in.
    private static func ascii(_ bytes: some Sequence<UInt8>) -> ArraySlice<UInt8> {
        bytes.filter { $0 > 0 && $0 < 0x80 }[...]
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x09, 0x0A, 0x0D, 0x20].contains(byte) }

    /// Whether the last tag ends the drawing.
    private static func endsWithItsTag(_ source: UnsafeRawBufferPointer) -> Bool {
        let tail = ascii(source.suffix(signatureBytes))
        guard let last = tail.last(where: { !isSpace($0) }), last == UInt8(ascii: ">"),
            let start = tail.lastIndex(of: UInt8(ascii: "<"))
        else { return false }
        let tag = tail[(start + 1)...]
        return tag.first == UInt8(ascii: "/") && isSVG(tag.dropFirst())
    }

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize { .unknown }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        guard let start = source.baseAddress else { throw .cut("no bytes") }
        try interruption.look()
        let verdict = cxml_read(start, source.count, true, memoryBytes, interruption.pointer)
        let text = String(cString: verdict.message)
        let message = "XML: " + (verdict.line > 0 ? "line \(verdict.line): \(text)" : text)
        switch verdict.end {
        case CXML_SVG: return nil
        case CXML_INTERRUPTED: throw interruption.error
        case CXML_ENCODING: throw .unsupported("an SVG in the encoding \(text) is not read")
        case CXML_LIMIT: throw .limitExceeded(message)
        case CXML_CUT, CXML_UNDECIDED: throw .cut(message)
        case CXML_OTHER: throw .broken("XML: no element svg around it all")
        default:
            guard verdict.is_ended || endsWithItsTag(source) else { throw .cut(message) }
            return ImageWarning(text: "not well-formed \(message)")
        }
    }

    /// The parser's memory budget; a file that exceeds it is refused.
    ///
    /// Attribute values are assembled in buffers that double as they grow; element and other names
    /// are stored.
    static func memoryBytes(ofSource bytes: Int) -> Int {
        let (fourfold, isTooMuch) = bytes.multipliedReportingOverflow(by: 4)
        return isTooMuch
            ? .max : fourfold.addingReportingOverflow(1 << 20).overflow ? .max : fourfold + 1 << 20
    }

    /// The first byte that is neither white space, in any encoding that XML may begin in, nor a
    /// byte order mark; nil if there is only white space.
    private static func firstLetter(of bytes: UnsafeRawBufferPointer) -> UInt8? {
        let blank: Set<UInt8> = [0x09, 0x0A, 0x0D, 0x20, 0]
        var start = 0
        for mark in marks where bytes.starts(with: mark) { start = mark.count }
        return bytes[start...].prefix(signatureBytes).first { !blank.contains($0) }
    }
}
