internal import PrefetchModel

/// GIF89a: header, logical screen, colour tables, then blocks up to the trailer. At least one block
/// is an image.
enum GIFContainer: ImageContainer {
    /// The size of the logical screen (section 18).
    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        guard let width = beginning.number(at: 6, bytes: 2, isLittleEndian: true),
            let height = beginning.number(at: 8, bytes: 2, isLittleEndian: true)
        else { return .later }
        return width > 0 && height > 0 ? .known(width: width, height: height) : .unknown
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        var walk = Walk(source: source)
        try walk.skip(10)
        let flags = try walk.byte()
        try walk.skip(2)
        try walk.skipTable(flags)
        var (hasPicture, isAnnounced) = (false, false)
        while true {
            if walk.isAtEnd, hasPicture, !isAnnounced { return noTrailer }
            switch try walk.byte() {
            case 0x3B:
                guard hasPicture else { throw .broken("no picture") }
                return nil
            case 0x21:
                isAnnounced = try walk.byte() == 0xF9
            case 0x2C:
                (hasPicture, isAnnounced) = (true, false)
                try walk.skip(8)
                try walk.skipTable(try walk.byte())
                // The minimum code size.
                try walk.skip(1)
            default:
                throw .broken("a block of no known kind")
            }
            try walk.skipBlocks(interruption)
        }
    }

    /// The warning about a file that ends behind a block that announces no other.
    static let noTrailer = ImageWarning(
        text: "the last byte, which ends a GIF, is missing", lacksEnd: true)

    private struct Walk {
        let source: UnsafeRawBufferPointer
        var offset = 0

        var isAtEnd: Bool { offset == source.count }

        mutating func skip(_ count: Int) throws(CodecError) {
            guard source.holds(count, at: offset) else {
                throw .cut("the file ends before its trailer")
            }
            offset += count
        }

        mutating func byte() throws(CodecError) -> UInt8 {
            try skip(1)
            return source[offset - 1]
        }

        /// Skips the colour table of 2 to 256 entries if the flags announce one (sections 18 and
        /// 20).
        mutating func skipTable(_ flags: UInt8) throws(CodecError) {
            if flags & 0x80 != 0 { try skip(3 << (Int(flags & 7) + 1)) }
        }

        /// Skips sub-blocks of 1 to 255 bytes, each after its length, up to the empty one (section
        /// 15).
        mutating func skipBlocks(_ interruption: Interruption) throws(CodecError) {
            while case let length = Int(try byte()), length > 0 {
                try skip(length)
                try interruption.check(after: length)
            }
        }
    }
}
