/// The directory of an icon or a cursor, little-endian.
///
/// It has a reserved word, the type (1 or 2), the number of pictures, then 16 bytes for each. The
/// last eight are length and offset of a PNG, or of a bitmap without file header. The other fields
/// are often wrong and ignored. A length that is too small, or passes the end, is replaced by the
/// picture's own.
struct ICOFile {
    struct DirectoryEntry {
        /// The stated range; its end may be wrong.
        let range: Range<Int>
        let isPNG: Bool
        let width: Int
        let height: Int
        /// The bits of a pixel.
        let depth: Int
    }

    private static let directoryBytes = 6
    private static let entryBytes = 16
    /// The bytes of a picture that are enough to find its size.
    private static let leastBytes = 24
    /// Real icons have about ten. Each is examined as a file of its own.
    static let maximumEntries = 256

    let entries: [DirectoryEntry]
    /// The index of the largest picture; among these the first with most colours.
    let largest: Int

    init(_ source: UnsafeRawBufferPointer) throws(CodecError) {
        let cut = CodecError.cutHeader
        guard source.count >= ICOFile.directoryBytes else { throw cut }
        let count = source.littleEndian16(at: 4)
        guard (1...ICOFile.maximumEntries).contains(count) else {
            throw .unsupported("an icon of \(count) pictures, more than \(ICOFile.maximumEntries)")
        }
        var entries: [DirectoryEntry] = []
        for index in 0..<count {
            let place = ICOFile.directoryBytes + index * ICOFile.entryBytes
            guard source.count - place >= ICOFile.entryBytes else { throw cut }
            let length = source.littleEndian32(at: place + 8)
            let start = source.littleEndian32(at: place + 12)
            guard source.count - start >= ICOFile.leastBytes else { throw cut }
            entries.append(try ICOFile.entry(source, start..<start + length))
        }
        self.entries = entries
        largest =
            entries.indices.max {
                let (one, other) = (entries[$0], entries[$1])
                return (one.width * one.height, one.depth, $1)
                    < (other.width * other.height, other.depth, $0)
            } ?? 0
    }

    private static func entry(
        _ source: UnsafeRawBufferPointer, _ range: Range<Int>
    ) throws(CodecError) -> DirectoryEntry {
        let start = range.lowerBound
        let isPNG = source.holds("PNG\r\n\u{1A}\n", at: start + 1) && source[start] == 0x89
        let width: Int
        let height: Int
        let depth = isPNG ? 32 : source.littleEndian16(at: start + 14)
        if isPNG {
            width = source.bigEndian32(at: start + 16)
            height = source.bigEndian32(at: start + 20)
        } else {
            guard [40, 52, 56, 64, 108, 124].contains(source.littleEndian32(at: start)) else {
                throw .broken("a picture that is neither PNG nor BMP")
            }
            width = Int(Int32(truncatingIfNeeded: source.littleEndian32(at: start + 4)))
            // The stated height includes the mask after the colours. It is negative for rows from
            // the top.
            height = abs(Int(Int32(truncatingIfNeeded: source.littleEndian32(at: start + 8)))) / 2
        }
        guard width > 0, height > 0, width <= Int32.max, height <= Int32.max else {
            throw .broken("a picture without pixels")
        }
        return DirectoryEntry(
            range: range, isPNG: isPNG, width: width, height: height, depth: depth)
    }

    /// The bytes of a picture, as many as there are.
    struct ImagePlace {
        let range: Range<Int>
        /// Whether the stated length is wrong.
        let isCorrected: Bool
        /// Whether the directory states bytes beyond the end.
        let passesEnd: Bool
    }

    /// Returns the place of a picture by the stated length, or by its own.
    func place(of entry: DirectoryEntry, in source: UnsafeRawBufferPointer) -> ImagePlace {
        let (start, stated) = (entry.range.lowerBound, entry.range.upperBound)
        let passesEnd = stated > source.count
        let end = ICOFile.end(of: entry, in: source)
        if !passesEnd, end.map({ stated >= $0 }) ?? true {
            return ImagePlace(range: entry.range, isCorrected: false, passesEnd: false)
        }
        // It must not reach into another picture.
        let room = entries.lazy.map(\.range.lowerBound).filter { $0 > start }.min() ?? source.count
        if let end, end <= min(room, source.count) {
            return ImagePlace(range: start..<end, isCorrected: true, passesEnd: passesEnd)
        }
        return ImagePlace(
            range: start..<min(max(stated, room), source.count), isCorrected: false,
            passesEnd: passesEnd)
    }

    /// Returns the end that the picture itself states; nil if that is not known.
    private static func end(of entry: DirectoryEntry, in source: UnsafeRawBufferPointer) -> Int? {
        let start = entry.range.lowerBound
        if entry.isPNG {
            // Chunks of length, type, data and checksum follow eight bytes.
            var offset = start + 8
            for _ in 0..<CodecLimits.maximumPieces where source.count - offset >= 12 {
                let end = offset + 12 + source.bigEndian32(at: offset)
                if source.holds("IEND", at: offset + 4) { return end }
                offset = end
            }
            return nil
        }
        guard source.count - start >= 40 else { return nil }
        let palette = BMPFile.paletteEntries(
            counted: source.littleEndian32(at: start + 32), bitsPerPixel: entry.depth)
        let hasMasks =
            source.littleEndian32(at: start + 16) == 3 && source.littleEndian32(at: start) == 40
        let row = (ByteEstimate(entry.width) * ByteEstimate(entry.depth) + 31) / 32 * 4
        let maskRow = ByteEstimate((entry.width + 31) / 32 * 4)
        return
            (ByteEstimate(start + source.littleEndian32(at: start) + (hasMasks ? 12 : 0))
            + 4 * ByteEstimate(palette) + (row + maskRow) * ByteEstimate(entry.height)).count
    }
}
