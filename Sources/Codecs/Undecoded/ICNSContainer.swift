internal import PrefetchModel

/// Apple's icons: the length of the file, and elements with types and lengths that fill it.
enum ICNSContainer: ImageContainer {
    private static let headBytes = 8

    /// The sides of the pictures by type: all are squares.
    private static let sides: [(type: StaticString, pixels: Int)] = [
        ("ICON", 32), ("ICN#", 32), ("icl4", 32), ("icl8", 32), ("il32", 32), ("ics#", 16),
        ("ics4", 16), ("ics8", 16), ("is32", 16), ("ich#", 48), ("ich4", 48), ("ich8", 48),
        ("ih32", 48), ("it32", 128), ("ic04", 16), ("ic05", 32), ("icp4", 16), ("icp5", 32),
        ("icp6", 64), ("ic07", 128), ("ic08", 256), ("ic09", 512), ("ic10", 1024), ("ic11", 32),
        ("ic12", 64), ("ic13", 256), ("ic14", 512),
    ]

    /// The largest picture's.
    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        guard let end = beginning.number(at: 4, bytes: 4) else { return .later }
        var largest = 0
        var offset = headBytes
        while offset < end {
            guard beginning.holds(headBytes, at: offset) else { return .later }
            let side = sides.first { beginning.holds($0.type, at: offset) }?.pixels ?? 0
            largest = max(largest, side)
            offset += max(beginning.bigEndian32(at: offset + 4), headBytes)
        }
        return largest > 0 ? .known(width: largest, height: largest) : .unknown
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        guard let end = source.number(at: 4, bytes: 4), end <= source.count else {
            throw .cut("shorter than its header says")
        }
        var offset = headBytes
        while offset < end {
            try interruption.check(after: headBytes)
            guard end - offset >= headBytes,
                case let length = source.bigEndian32(at: offset + 4),
                length >= headBytes, length <= end - offset
            else { throw .broken("an element passes the end of the file") }
            offset += length
        }
        guard offset > headBytes else { throw .broken("no picture") }
        return nil
    }
}
