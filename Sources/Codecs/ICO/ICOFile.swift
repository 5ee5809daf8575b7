/// The directory of an icon or a cursor, little-endian.
///
/// It has a reserved word, the type (1 or 2), the number of pictures, then 16 bytes for each. The
/// last eight are length and offset of a PNG, or of a bitmap without file header. The other fields
/// are often wrong and ignored.
struct ICOFile {
    struct Entry {
        let range: Range<Int>
        let isPNG: Bool
        let width: Int
        let height: Int
    }

    private static let directoryBytes = 6
    private static let entryBytes = 16
    /// The bytes of a picture that are enough to find its size.
    private static let leastBytes = 24
    /// Real icons have about ten. Each is examined as a file of its own.
    static let maximumEntries = 256

    let entries: [Entry]
    /// The index of the largest picture; among equals the last, by convention the one with more
    /// colours.
    let largest: Int

    /// - Throws: `unsupported`, `corrupt`.
    init(_ source: UnsafeRawBufferPointer) throws(CodecError) {
        let cut = CodecError.corrupt("the data ends inside the header", isTruncated: true)
        guard source.count >= ICOFile.directoryBytes else { throw cut }
        let count = source.littleEndian16(at: 4)
        guard (1...ICOFile.maximumEntries).contains(count) else {
            throw .unsupported("an icon of \(count) pictures, more than \(ICOFile.maximumEntries)")
        }
        var entries: [Entry] = []
        for index in 0..<count {
            let place = ICOFile.directoryBytes + index * ICOFile.entryBytes
            guard source.count - place >= ICOFile.entryBytes else { throw cut }
            let length = source.littleEndian32(at: place + 8)
            let start = source.littleEndian32(at: place + 12)
            guard length >= ICOFile.leastBytes else {
                throw .corrupt("a picture without data", isTruncated: false)
            }
            guard source.count - start >= ICOFile.leastBytes else { throw cut }
            entries.append(try ICOFile.entry(source, start..<start + length))
        }
        self.entries = entries
        largest =
            entries.indices.max {
                let (one, other) = (entries[$0], entries[$1])
                return (one.width * one.height, $0) < (other.width * other.height, $1)
            } ?? 0
    }

    private static func entry(
        _ source: UnsafeRawBufferPointer, _ range: Range<Int>
    ) throws(CodecError) -> Entry {
        let start = range.lowerBound
        let isPNG = source.holds("PNG\r\n\u{1A}\n", at: start + 1) && source[start] == 0x89
        let width: Int
        let height: Int
        if isPNG {
            width = source.bigEndian32(at: start + 16)
            height = source.bigEndian32(at: start + 20)
        } else {
            guard [40, 52, 56, 64, 108, 124].contains(source.littleEndian32(at: start)) else {
                throw .corrupt("a picture that is neither PNG nor BMP", isTruncated: false)
            }
            width = Int(Int32(truncatingIfNeeded: source.littleEndian32(at: start + 4)))
            // The stated height includes the mask after the colours.
            height = Int(Int32(truncatingIfNeeded: source.littleEndian32(at: start + 8))) / 2
        }
        guard width > 0, height > 0, width <= Int32.max, height <= Int32.max else {
            throw .corrupt("a picture without pixels", isTruncated: false)
        }
        return Entry(range: range, isPNG: isPNG, width: width, height: height)
    }

    /// - Throws: `corrupt` if a picture extends beyond the end.
    func checkRanges(in source: UnsafeRawBufferPointer) throws(CodecError) {
        guard entries.allSatisfy({ $0.range.upperBound <= source.count }) else {
            throw .corrupt("the data ends before the last picture does", isTruncated: true)
        }
    }
}
