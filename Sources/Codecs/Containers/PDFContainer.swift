internal import PrefetchModel

/// PDF (ISO 32000-1, 7.5): not an image format, but servers send it in place of images, and naming
/// it helps.
///
/// The header is at offset 0. The last 1,024 bytes contain `startxref` with an offset inside the
/// file, and `%%EOF`. Objects are not read, so the size of a page is unknown.
enum PDFContainer: ImageContainer {
    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize { .unknown }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        // Acrobat searches the last 1,024 bytes (ISO 32000-1, annex H.3, note 18).
        let first = max(0, source.count - 1024)
        guard let end = last("%%EOF", in: source, from: first, to: source.count),
            let start = last("startxref", in: source, from: first, to: end)
        else { throw .cut("no end of file") }
        var digits = source[(start + 9)..<end].drop {
            $0 == 0x20 || $0 == 0x0D || $0 == 0x0A || $0 == 0x09
        }
        var place = 0
        var hasPlace = false
        while let digit = digits.first, (0x30...0x39).contains(digit) {
            place = min(place * 10 + Int(digit - 0x30), source.count)
            hasPlace = true
            digits.removeFirst()
        }
        guard hasPlace else { throw .broken("startxref without a place") }
        guard place < source.count else { throw .cut("its table passes the end of the file") }
        return nil
    }

    private static func last(
        _ text: StaticString, in source: UnsafeRawBufferPointer, from first: Int, to end: Int
    ) -> Int? {
        (first..<end).last { source.holds(text, at: $0) }
    }
}
