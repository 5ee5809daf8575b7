/// The EXIF tag `Orientation` (JEITA CP-3451, 4.6.4 A): how to rotate or flip stored pixels for
/// display.
enum ExifOrientation {
    static let upright = 1

    /// Returns the orientation in a TIFF structure, 1…8; 1 if it is missing or invalid.
    static func value(inTIFF bytes: UnsafeRawBufferPointer) -> Int {
        guard let (place, isLittleEndian) = place(inTIFF: bytes) else { return upright }
        let value = number16(place, of: bytes, isLittleEndian)
        return (1...8).contains(value) ? value : upright
    }

    /// Whether bytes begin with a TIFF header and a first directory with all its entries.
    static func isWhole(tiff bytes: UnsafeRawBufferPointer) -> Bool {
        guard let directory = directory(inTIFF: bytes) else { return false }
        let count = number16(directory.offset, of: bytes, directory.isLittleEndian)
        return directory.offset >= 8 && directory.offset + 2 + 12 * count <= bytes.count
    }

    /// Returns the size of a picture after its orientation was applied.
    static func displayedSize(
        _ width: Int, _ height: Int, _ orientation: Int
    ) -> (width: Int, height: Int) {
        Mapping(orientation).isTransposed ? (height, width) : (width, height)
    }

    /// Returns the same structure with orientation 1, for pixels that have it applied.
    static func uprightTIFF(_ tiff: [UInt8]) -> [UInt8] {
        guard let (place, isLittleEndian) = tiff.withUnsafeBytes({ place(inTIFF: $0) }) else {
            return tiff
        }
        var result = tiff
        result[place] = isLittleEndian ? 1 : 0
        result[place + 1] = isLittleEndian ? 0 : 1
        return result
    }

    private static func number16(
        _ offset: Int, of bytes: UnsafeRawBufferPointer, _ isLittleEndian: Bool
    ) -> Int {
        let value = bytes.bigEndian16(at: offset)
        return isLittleEndian ? (value & 0xFF) << 8 | value >> 8 : value
    }

    /// Returns the offset of the tag's two-byte value; nil if the tag is missing or of another
    /// type.
    private static func place(
        inTIFF bytes: UnsafeRawBufferPointer
    ) -> (offset: Int, isLittleEndian: Bool)? {
        guard let (directory, isLittleEndian) = directory(inTIFF: bytes) else { return nil }
        func number16(_ offset: Int) -> Int {
            ExifOrientation.number16(offset, of: bytes, isLittleEndian)
        }
        for index in 0..<number16(directory) {
            let entry = directory + 2 + 12 * index
            guard entry <= bytes.count - 12 else { return nil }
            guard number16(entry) == 0x0112 else { continue }
            return number16(entry + 2) == 3 ? (entry + 8, isLittleEndian) : nil
        }
        return nil
    }

    /// Returns the offset of the first directory; nil without a header, or beyond the end.
    private static func directory(
        inTIFF bytes: UnsafeRawBufferPointer
    ) -> (offset: Int, isLittleEndian: Bool)? {
        let isLittleEndian: Bool
        if bytes.holds("II*\0", at: 0) {
            isLittleEndian = true
        } else if bytes.holds("MM\0*", at: 0) {
            isLittleEndian = false
        } else {
            return nil
        }
        func number16(_ offset: Int) -> Int {
            ExifOrientation.number16(offset, of: bytes, isLittleEndian)
        }
        func number32(_ offset: Int) -> Int {
            isLittleEndian
                ? number16(offset + 2) << 16 | number16(offset)
                : number16(offset) << 16 | number16(offset + 2)
        }
        guard bytes.count >= 10 else { return nil }
        let directory = number32(4)
        return directory <= bytes.count - 2 ? (directory, isLittleEndian) : nil
    }

    /// Returns the smallest TIFF structure with this orientation: one directory with one entry,
    /// big-endian.
    static func minimalTIFF(_ orientation: Int) -> [UInt8] {
        [0x4D, 0x4D, 0, 0x2A, 0, 0, 0, 8, 0, 1]
            + [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(truncatingIfNeeded: orientation), 0, 0]
            + [0, 0, 0, 0]
    }
}
