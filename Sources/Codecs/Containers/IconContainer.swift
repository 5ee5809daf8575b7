internal import PrefetchModel

/// Icons and cursors of Windows (Microsoft's "Icons", ICONDIR and ICONDIRENTRY): every picture that the directory names
/// lies within the file.
enum IconContainer: ImageContainer {
    /// Type 1 (icon) or 2 (cursor), at least one picture, and its reserved byte 0.
    static func isAnnounced(by bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= 22 else { return false }
        return bytes[0] == 0 && bytes[1] == 0 && (bytes[2] == 1 || bytes[2] == 2) && bytes[3] == 0
            && (bytes[4] != 0 || bytes[5] != 0) && bytes[9] == 0
    }

    /// Of the largest picture, as the directory has it: 0 is 256.
    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        guard let count = beginning.number(at: 4, bytes: 2, isLittleEndian: true) else {
            return .later
        }
        var largest = (width: 0, height: 0)
        for index in 0..<count {
            let entry = 6 + 16 * index
            guard beginning.holds(16, at: entry) else { return .later }
            let width = beginning[entry] == 0 ? 256 : Int(beginning[entry])
            let height = beginning[entry + 1] == 0 ? 256 : Int(beginning[entry + 1])
            if width * height > largest.width * largest.height { largest = (width, height) }
        }
        return .known(width: largest.width, height: largest.height)
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) {
        // At most 65 535.
        let count = source.number(at: 4, bytes: 2, isLittleEndian: true) ?? 0
        for index in 0..<count {
            let entry = 6 + 16 * index
            try interruption.check(after: 16)
            guard let size = source.number(at: entry + 8, bytes: 4, isLittleEndian: true),
                let place = source.number(at: entry + 12, bytes: 4, isLittleEndian: true)
            else { throw .cut("the directory passes the end of the file") }
            // The head of a bitmap has 40 bytes, and a PNG is larger.
            guard size >= 40, place >= 6 + 16 * count else {
                throw .broken("the directory contradicts itself")
            }
            guard source.holds(size, at: place) else {
                throw .cut("a picture passes the end of the file")
            }
        }
    }
}
