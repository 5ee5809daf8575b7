internal import PrefetchModel

/// TIFF 6.0 (section 2) and BigTIFF. Header, the chain of directories, and the strips or tiles of
/// each lie within the file.
enum TIFFContainer: ImageContainer {
    /// More directories than any multi-page file has; also ends a cyclic chain.
    private static let maximumDirectories = 10_000

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        // The first directory may follow the picture data.
        guard let layout = Layout(beginning), let start = layout.first,
            let directory = Directory(at: start, layout)
        else { return .later }
        guard let width = directory.value(of: .width), let height = directory.value(of: .height),
            width > 0, height > 0, width <= Int(UInt32.max), height <= Int(UInt32.max)
        else { return .unknown }
        return .known(width: width, height: height)
    }

    static func orientation(in beginning: UnsafeRawBufferPointer) -> Int {
        guard let layout = Layout(beginning), let start = layout.first,
            let value = Directory(at: start, layout)?.value(of: .orientation),
            (1...8).contains(value)
        else { return ExifOrientation.upright }
        return value
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        guard let layout = Layout(source), var offset = layout.first else {
            throw .cut("the file ends in its header")
        }
        guard offset > 0 else { throw .broken("no directory") }
        var directories = 0
        while true {
            guard let directory = Directory(at: offset, layout) else {
                throw .cut("a directory passes the end of the file")
            }
            directories += 1
            guard directories <= maximumDirectories else {
                throw .broken("the chain of directories has no end")
            }
            try interruption.check(after: 32 * directory.entries)
            let hasData = try check(directory, source, interruption)
            if directories == 1, !hasData {
                throw .broken("the first directory has no picture")
            }
            offset = directory.next
            if offset == 0 {
                return directory.hasNext
                    ? nil
                    : ImageWarning(
                        text: "the pointer after the last directory is missing", lacksEnd: true)
            }
        }
    }

    /// - Returns: whether the directory has any picture data.
    private static func check(
        _ directory: Directory, _ source: UnsafeRawBufferPointer, _ interruption: Interruption
    ) throws(CodecError) -> Bool {
        var hasData = false
        // Technical note 2 calls the last pair obsolete, but cameras write it.
        for (offsets, lengths) in [
            (Tag.stripOffsets, Tag.stripByteCounts), (.tileOffsets, .tileByteCounts),
            (.jpegOffset, .jpegByteCount),
        ] {
            guard let places = directory.field(offsets) else { continue }
            guard let sizes = directory.field(lengths), sizes.count == places.count else {
                throw .broken("offsets and lengths of its data do not match")
            }
            hasData = hasData || places.count > 0
            for index in 0..<places.count {
                try interruption.check(after: 64)
                guard let place = places[index], let size = sizes[index] else {
                    throw .cut("a table passes the end of the file")
                }
                guard source.holds(size, at: place) else {
                    throw .cut("data passes the end of the file")
                }
            }
        }
        return hasData
    }

    private enum Tag: Int {
        case width = 256
        case height = 257
        case stripOffsets = 273
        case stripByteCounts = 279
        case orientation = 274
        case tileOffsets = 324
        case tileByteCounts = 325
        case jpegOffset = 513
        case jpegByteCount = 514
    }

    /// The byte order and offset width of a file.
    private struct Layout {
        let bytes: UnsafeRawBufferPointer
        let isLittleEndian: Bool
        let isBig: Bool

        var offsetBytes: Int { isBig ? 8 : 4 }
        var entryBytes: Int { isBig ? 20 : 12 }

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
    }

    /// The values of a directory entry, inside the entry or elsewhere in the file.
    private struct TIFFField {
        let layout: Layout
        let start: Int
        let width: Int
        let count: Int

        subscript(index: Int) -> Int? {
            let (distance, isTooFar) = index.multipliedReportingOverflow(by: width)
            guard !isTooFar else { return nil }
            let (place, isBeyond) = start.addingReportingOverflow(distance)
            return isBeyond ? nil : layout.number(at: place, width)
        }
    }

    /// A directory with all entries within the file.
    private struct Directory {
        let entries: Int
        /// The offset of the next directory; 0 for none.
        let next: Int
        /// Whether the file states the next directory. Readers take a file that ends with the
        /// entries for one without another directory.
        let hasNext: Bool
        private let layout: Layout
        private let start: Int

        init?(at offset: Int, _ layout: Layout) {
            let source = layout.bytes
            let countBytes = layout.isBig ? 8 : 2
            guard let entries = layout.number(at: offset, countBytes),
                case let (length, isTooLong) = entries.multipliedReportingOverflow(
                    by: layout.entryBytes), !isTooLong,
                source.holds(length, at: offset + countBytes)
            else { return nil }
            let end = offset + countBytes + length
            let next = layout.number(at: end, layout.offsetBytes)
            // Part of a pointer may be nonzero.
            guard next != nil || entries > 0 && source[end...].allSatisfy({ $0 == 0 }) else {
                return nil
            }
            self.entries = entries
            self.next = next ?? 0
            hasNext = next != nil
            self.layout = layout
            start = offset + countBytes
        }

        /// Returns nil if the field is missing or its type is not an integer.
        func field(_ tag: Tag) -> TIFFField? {
            for index in 0..<entries {
                let entry = start + index * layout.entryBytes
                guard layout.number(at: entry, 2) == tag.rawValue else { continue }
                let widths = [1: 1, 3: 2, 4: 4, 13: 4, 16: 8, 18: 8]
                guard let type = layout.number(at: entry + 2, 2),
                    let width = widths[type],
                    let count = layout.number(at: entry + 4, layout.offsetBytes)
                else { return nil }
                let place = entry + 4 + layout.offsetBytes
                // Values that fit are stored in the entry itself.
                let (bytes, isTooLong) = count.multipliedReportingOverflow(by: width)
                guard !isTooLong else { return nil }
                if bytes <= layout.offsetBytes {
                    return TIFFField(layout: layout, start: place, width: width, count: count)
                }
                guard let elsewhere = layout.number(at: place, layout.offsetBytes)
                else { return nil }
                return TIFFField(layout: layout, start: elsewhere, width: width, count: count)
            }
            return nil
        }

        /// The value of a field that has exactly one.
        func value(of tag: Tag) -> Int? {
            field(tag).flatMap { $0.count == 1 ? $0[0] : nil }
        }
    }
}
