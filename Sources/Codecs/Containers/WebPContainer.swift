internal import PrefetchModel

/// WebP (RFC 9649) in a RIFF file: the length fits, the chunks fill it, and it has a picture or a
/// frame.
enum WebPContainer: ImageContainer {
    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        func number(_ offset: Int, _ bytes: Int) -> Int? {
            beginning.number(at: offset, bytes: bytes, isLittleEndian: true)
        }
        guard beginning.count >= 30 else { return .later }
        // RFC 9649, 2.7: canvas sides minus one.
        if beginning.holds("VP8X", at: 12), let width = number(24, 3), let height = number(27, 3) {
            return .known(width: width + 1, height: height + 1)
        }
        // RFC 9649, 3.4: 14 bits each, minus one.
        if beginning.holds("VP8L", at: 12), beginning[20] == 0x2F, let bits = number(21, 4) {
            return .known(width: bits & 0x3FFF + 1, height: bits >> 14 & 0x3FFF + 1)
        }
        // RFC 6386, 9.1: a start code, then 14 bits each.
        if beginning.holds("VP8 ", at: 12), number(23, 3) == 0x2A_01_9D, let width = number(26, 2),
            let height = number(28, 2), width & 0x3FFF > 0, height & 0x3FFF > 0
        {
            return .known(width: width & 0x3FFF, height: height & 0x3FFF)
        }
        return .unknown
    }

    /// Reads the first EXIF chunk of an extended file.
    static func orientation(in beginning: UnsafeRawBufferPointer) -> Int {
        guard beginning.holds("VP8X", at: 12) else { return ExifOrientation.upright }
        var offset = 12
        for _ in 0..<CodecLimits.maximumPieces {
            guard let size = beginning.number(at: offset + 4, bytes: 4, isLittleEndian: true),
                beginning.holds(size, at: offset + 8)
            else { break }
            if beginning.holds("EXIF", at: offset) {
                let start = offset + 8 + (beginning.holds("Exif\0\0", at: offset + 8) ? 6 : 0)
                guard start <= offset + 8 + size else { break }
                return ExifOrientation.value(
                    inTIFF: UnsafeRawBufferPointer(rebasing: beginning[start..<offset + 8 + size]))
            }
            offset += 8 + size + size % 2
        }
        return ExifOrientation.upright
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        guard let length = source.number(at: 4, bytes: 4, isLittleEndian: true) else {
            throw .cut("the file ends in its header")
        }
        // Bytes after the RIFF length are not part of the image.
        let end = 8 + length
        guard end <= source.count else { throw .cut("shorter than its header says") }
        var offset = 12
        var hasPicture = false
        while offset < end {
            try interruption.check(after: 1024)
            guard end - offset >= 8,
                let size = source.number(at: offset + 4, bytes: 4, isLittleEndian: true),
                size <= end - offset - 8
            else { throw .broken("a chunk passes the end of the file") }
            hasPicture =
                hasPicture || source.holds("VP8 ", at: offset) || source.holds("VP8L", at: offset)
                || source.holds("ANMF", at: offset)
            // Chunks are padded to an even length; the last one may lack the padding.
            offset += 8 + size + size % 2
        }
        guard hasPicture else { throw .broken("no picture") }
        return nil
    }
}
