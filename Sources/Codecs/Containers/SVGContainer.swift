internal import CXML
internal import PrefetchModel

/// SVG: well-formed XML (by expat, see `cxml.h`) with the element `svg` around it. It is never rendered, nothing that it
/// names is opened, and its size, which may be none or in centimetres, is not read.
enum SVGContainer: ImageContainer {
    /// What may stand before the end of the first tag: comments, and declarations of drawing programs. What has more is
    /// no image.
    static let prologBytes = 64 << 10

    /// What the beginning of a body is, as far as it goes.
    enum Beginning: Hashable {
        case svg
        case undecided
        case other
    }

    /// Looks at ``prologBytes`` at most.
    static func beginning(of bytes: UnsafeRawBufferPointer) -> Beginning {
        guard mayBeXML(bytes) else { return .other }
        let prolog = UnsafeRawBufferPointer(rebasing: bytes.prefix(prologBytes))
        guard let start = prolog.baseAddress else { return .other }
        return switch cxml_read(start, prolog.count, false, 1 << 20, nil).end {
        case CXML_SVG: .svg
        case CXML_UNDECIDED: prolog.count < prologBytes ? .undecided : .other
        default: .other
        }
    }

    static func isAnnounced(by bytes: UnsafeRawBufferPointer) -> Bool {
        beginning(of: bytes) == .svg
    }

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize { .unknown }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) {
        guard let start = source.baseAddress else { throw .cut("no bytes") }
        try interruption.look()
        let verdict = cxml_read(start, source.count, true, memoryBytes, interruption.pointer)
        let text = String(cString: verdict.message)
        let message = "XML: " + (verdict.line > 0 ? "line \(verdict.line): \(text)" : text)
        switch verdict.end {
        case CXML_SVG: return
        case CXML_INTERRUPTED: throw interruption.error
        case CXML_LIMIT: throw .limitExceeded(message)
        case CXML_CUT, CXML_UNDECIDED: throw .cut(message)
        case CXML_OTHER: throw .broken("XML: no element svg around it all")
        default: throw .broken(message)
        }
    }

    /// Values of attributes are put together in memory that doubles as they grow; elements and names are noted.
    /// What takes more is refused.
    static func memoryBytes(ofSource bytes: Int) -> Int {
        let (fourfold, isTooMuch) = bytes.multipliedReportingOverflow(by: 4)
        return isTooMuch
            ? .max : fourfold.addingReportingOverflow(1 << 20).overflow ? .max : fourfold + 1 << 20
    }

    /// Whether the first byte that is no space, in any of the encodings that XML may begin in, is `<`. Nearly all that is
    /// no XML ends here.
    private static func mayBeXML(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let blank: Set<UInt8> = [0x09, 0x0A, 0x0D, 0x20, 0]
        var start = 0
        for mark: [UInt8] in [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE]]
        where bytes.starts(with: mark) {
            start = mark.count
        }
        return bytes[start...].prefix(signatureBytes).first { !blank.contains($0) } == 0x3C
    }
}
