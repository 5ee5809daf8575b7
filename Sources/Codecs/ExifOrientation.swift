/// The tag `Orientation` of EXIF (JEITA CP-3451, 4.6.4 A): how stored pixels are turned for display.
enum ExifOrientation {
    static let upright = 1

    /// The orientation in a TIFF structure, 1…8; 1 where there is none that makes sense.
    static func value(inTIFF bytes: UnsafeRawBufferPointer) -> Int {
        let isLittleEndian: Bool
        if bytes.holds("II*\0", at: 0) {
            isLittleEndian = true
        } else if bytes.holds("MM\0*", at: 0) {
            isLittleEndian = false
        } else {
            return upright
        }
        func number16(_ offset: Int) -> Int {
            let value = bytes.bigEndian16(at: offset)
            return isLittleEndian ? (value & 0xFF) << 8 | value >> 8 : value
        }
        func number32(_ offset: Int) -> Int {
            isLittleEndian
                ? number16(offset + 2) << 16 | number16(offset)
                : number16(offset) << 16 | number16(offset + 2)
        }
        guard bytes.count >= 10 else { return upright }
        let directory = number32(4)
        guard directory <= bytes.count - 2 else { return upright }
        for index in 0..<number16(directory) {
            let entry = directory + 2 + 12 * index
            guard entry <= bytes.count - 12 else { return upright }
            guard number16(entry) == 0x0112 else { continue }
            let value = number16(entry + 2) == 3 ? number16(entry + 8) : upright
            return (1...8).contains(value) ? value : upright
        }
        return upright
    }

    /// The smallest TIFF structure that says it: one directory with one entry, big-endian.
    static func minimalTIFF(_ orientation: Int) -> [UInt8] {
        [0x4D, 0x4D, 0, 0x2A, 0, 0, 0, 8, 0, 1]
            + [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(truncatingIfNeeded: orientation), 0, 0]
            + [0, 0, 0, 0]
    }
}
