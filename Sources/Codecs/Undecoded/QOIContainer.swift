internal import PrefetchModel

/// QOI (The Quite OK Image Format, version 1.0): a header, chunks of one or more pixels up to the
/// last, and eight bytes that end the file.
enum QOIContainer: ImageContainer {
    private static let headerBytes = 14
    private static let end: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1]

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        guard let width = beginning.number(at: 4, bytes: 4),
            let height = beginning.number(at: 8, bytes: 4)
        else { return .later }
        return width > 0 && height > 0 ? .known(width: width, height: height) : .unknown
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        guard source.count > headerBytes else { throw .cutHeader }
        guard case .known(let width, let height) = size(in: source) else {
            throw .broken("an image without pixels")
        }
        var left = (ByteEstimate(width) * ByteEstimate(height)).count
        var offset = headerBytes
        while left > 0 {
            guard offset < source.count else { throw .cutImage }
            let chunk = chunk(source[offset])
            try interruption.check(after: chunk.bytes)
            offset += chunk.bytes
            left -= chunk.pixels
        }
        let rest = source.dropFirst(offset).prefix(end.count)
        guard rest.elementsEqual(end.prefix(rest.count)) else {
            throw .broken("no end behind the pixels")
        }
        guard rest.count == end.count else { throw .cutImage }
        return nil
    }

    private static func chunk(_ tag: UInt8) -> (bytes: Int, pixels: Int) {
        switch tag {
        case 0xFE: (4, 1)
        case 0xFF: (5, 1)
        case 0x80...0xBF: (2, 1)
        case 0xC0...: (1, Int(tag & 0x3F) + 1)
        default: (1, 1)
        }
    }
}
