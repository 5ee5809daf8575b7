internal import PrefetchModel

/// Tags of TIFF 6.0, of its supplements, of EXIF 3.0 and of C2PA.
enum TIFFTag: Int {
    case width = 256
    case height = 257
    case stripOffsets = 273
    case orientation = 274
    case stripByteCounts = 279
    case tileOffsets = 324
    case tileByteCounts = 325
    case directories = 330
    case jpegOffset = 513
    case jpegByteCount = 514
    case jpegQuantisation = 519
    case jpegDCTables = 520
    case jpegACTables = 521
    case xmp = 700
    case iptc = 33723
    case exif = 34665
    case positions = 34853
    case manifest = 52545
}

/// The byte order and offset width of a TIFF.
struct TIFFLayout {
    let bytes: UnsafeRawBufferPointer
    let isLittleEndian: Bool
    let isBig: Bool

    var offsetBytes: Int { isBig ? 8 : 4 }
    var entryBytes: Int { isBig ? 20 : 12 }
    /// The bytes of the number of entries.
    var countBytes: Int { isBig ? 8 : 2 }
    var headerBytes: Int { isBig ? 16 : 8 }

    init?(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        switch [UInt8](bytes.prefix(4)) {
        case [0x49, 0x49, 0x2A, 0]: (isLittleEndian, isBig) = (true, false)
        case [0x4D, 0x4D, 0, 0x2A]: (isLittleEndian, isBig) = (false, false)
        case [0x49, 0x49, 0x2B, 0]: (isLittleEndian, isBig) = (true, true)
        case [0x4D, 0x4D, 0, 0x2B]: (isLittleEndian, isBig) = (false, true)
        default: return nil
        }
        // BigTIFF states its offset width, which is always 8, and then 0.
        guard !isBig || number(at: 4, 2) == 8 && number(at: 6, 2) == 0
        else { return nil }
    }

    /// The offset of the first directory.
    var first: Int? { number(at: isBig ? 8 : 4, offsetBytes) }

    func number(at offset: Int, _ width: Int) -> Int? {
        bytes.number(at: offset, bytes: width, isLittleEndian: isLittleEndian)
    }

    func bytes(of number: Int, _ width: Int) -> [UInt8] {
        isLittleEndian
            ? Array(UInt64(number).littleEndianBytes.prefix(width))
            : Array(UInt64(number).bigEndianBytes.suffix(width))
    }
}

/// The values of a directory entry, inside the entry or elsewhere in the file.
struct TIFFField {
    let layout: TIFFLayout
    let start: Int
    let width: Int
    let count: Int

    subscript(index: Int) -> Int? {
        let (distance, isTooFar) = index.multipliedReportingOverflow(by: width)
        guard !isTooFar else { return nil }
        let (place, isBeyond) = start.addingReportingOverflow(distance)
        return isBeyond ? nil : layout.number(at: place, width)
    }

    /// The bytes of all values; nil if the file ends before.
    var place: Range<Int>? {
        let (length, isTooLong) = count.multipliedReportingOverflow(by: width)
        guard !isTooLong, layout.bytes.holds(length, at: start) else { return nil }
        return start..<start + length
    }
}

/// A directory with all entries within the file.
struct TIFFDirectory {
    let entries: Int
    /// The offset of the next directory; 0 for none.
    let next: Int
    /// Whether the file states the next directory. Readers take a file that ends with the entries
    /// for one without another directory.
    let hasNext: Bool
    /// The whole directory with its number of entries and the offset of the next one.
    let place: Range<Int>
    let layout: TIFFLayout
    private let start: Int

    init?(at offset: Int, _ layout: TIFFLayout) {
        let source = layout.bytes
        guard let entries = layout.number(at: offset, layout.countBytes),
            case let (length, isTooLong) = entries.multipliedReportingOverflow(
                by: layout.entryBytes), !isTooLong,
            source.holds(length, at: offset + layout.countBytes)
        else { return nil }
        let end = offset + layout.countBytes + length
        let next = layout.number(at: end, layout.offsetBytes)
        // Part of a pointer may be nonzero.
        guard next != nil || entries > 0 && source[end...].allSatisfy({ $0 == 0 }) else {
            return nil
        }
        self.entries = entries
        self.next = next ?? 0
        hasNext = next != nil
        place = offset..<(hasNext ? end + layout.offsetBytes : source.count)
        self.layout = layout
        start = offset + layout.countBytes
    }

    /// The tags of offsets and lengths of pictures. Technical note 2 calls the last pair obsolete,
    /// but cameras write it.
    static let dataTags: [(TIFFTag, TIFFTag)] = [
        (.stripOffsets, .stripByteCounts), (.tileOffsets, .tileByteCounts),
        (.jpegOffset, .jpegByteCount),
    ]

    /// Returns the bytes of an entry, with its values if they fit.
    func entry(_ index: Int) -> Range<Int> {
        let begin = start + index * layout.entryBytes
        return begin..<begin + layout.entryBytes
    }

    func tag(of entry: Range<Int>) -> Int { layout.number(at: entry.lowerBound, 2) ?? 0 }

    /// Returns nil if the field is missing or its type is not an integer.
    func field(_ tag: TIFFTag) -> TIFFField? {
        let widths = [1: 1, 3: 2, 4: 4, 13: 4, 16: 8, 18: 8]
        return values(tag) { widths[$0] }
    }

    /// Returns the bytes of a field of any type; nil if it is missing or not whole.
    func bytes(_ tag: TIFFTag) -> Range<Int>? { values(tag, TIFFDirectory.width)?.place }

    /// Returns the values of a field of any type; nil for an unknown one.
    func values(of entry: Range<Int>) -> TIFFField? { values(of: entry, TIFFDirectory.width) }

    /// The bytes of a value of a type; nil for an unknown one.
    private static func width(_ type: Int) -> Int? {
        [
            1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8,
            17: 8, 18: 8,
        ][type]
    }

    private func values(_ tag: TIFFTag, _ width: (Int) -> Int?) -> TIFFField? {
        for index in 0..<entries {
            let entry = entry(index)
            if self.tag(of: entry) == tag.rawValue { return values(of: entry, width) }
        }
        return nil
    }

    private func values(of entry: Range<Int>, _ width: (Int) -> Int?) -> TIFFField? {
        guard let type = layout.number(at: entry.lowerBound + 2, 2), let width = width(type),
            let count = layout.number(at: entry.lowerBound + 4, layout.offsetBytes)
        else { return nil }
        let place = entry.lowerBound + 4 + layout.offsetBytes
        // Values that fit are stored in the entry itself.
        let (bytes, isTooLong) = count.multipliedReportingOverflow(by: width)
        guard !isTooLong else { return nil }
        if bytes <= layout.offsetBytes {
            return TIFFField(layout: layout, start: place, width: width, count: count)
        }
        guard let elsewhere = layout.number(at: place, layout.offsetBytes) else { return nil }
        return TIFFField(layout: layout, start: elsewhere, width: width, count: count)
    }

    /// The value of a field that has exactly one.
    func value(of tag: TIFFTag) -> Int? {
        field(tag).flatMap { $0.count == 1 ? $0[0] : nil }
    }
}
