internal import PrefetchModel

/// The EXIF tag `Orientation` (JEITA CP-3451, 4.6.4 A): how to rotate or flip stored pixels for
/// display.
enum ExifOrientation {
    static let upright = 1

    /// Returns the orientation in a TIFF structure, 1…8; 1 if it is missing or invalid.
    static func value(inTIFF bytes: UnsafeRawBufferPointer) -> Int {
        guard let directory = ExifDirectory(bytes), let place = directory.orientationPlace else {
            return upright
        }
        let value = directory.number(at: place)
        return (1...8).contains(value) ? value : upright
    }

    /// Whether bytes begin with a TIFF header and a first directory with all its entries.
    static func isWhole(tiff bytes: UnsafeRawBufferPointer) -> Bool {
        guard let directory = ExifDirectory(bytes) else { return false }
        return directory.start >= 8
            && directory.start + 2 + 12 * directory.number(at: directory.start) <= bytes.count
    }

    /// Returns the size of a picture after its orientation was applied.
    static func displayedSize(
        _ width: Int, _ height: Int, _ orientation: Int
    ) -> (width: Int, height: Int) {
        Mapping(orientation).isTransposed ? (height, width) : (width, height)
    }

    /// Returns the same structure with orientation 1, for pixels that have it applied.
    static func uprightTIFF(_ tiff: [UInt8]) -> [UInt8] {
        var result = tiff
        tiff.withUnsafeBytes { bytes in
            guard let directory = ExifDirectory(bytes), let place = directory.orientationPlace
            else { return }
            result[place] = directory.isLittleEndian ? 1 : 0
            result[place + 1] = directory.isLittleEndian ? 0 : 1
        }
        return result
    }

    /// Returns the smallest TIFF structure with this orientation: one directory with one entry,
    /// big-endian.
    static func minimalTIFF(_ orientation: Int) -> [UInt8] {
        [0x4D, 0x4D, 0, 0x2A, 0, 0, 0, 8, 0, 1]
            + [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(truncatingIfNeeded: orientation), 0, 0]
            + [0, 0, 0, 0]
    }
}

/// The first directory of a TIFF structure, as far as it is there.
private struct ExifDirectory {
    let bytes: UnsafeRawBufferPointer
    let isLittleEndian: Bool
    let start: Int

    /// Returns nil without a header, or for a directory beyond the end.
    init?(_ bytes: UnsafeRawBufferPointer) {
        isLittleEndian = bytes.holds("II*\0", at: 0)
        guard isLittleEndian || bytes.holds("MM\0*", at: 0), bytes.count >= 10 else { return nil }
        start = isLittleEndian ? bytes.littleEndian32(at: 4) : bytes.bigEndian32(at: 4)
        guard start <= bytes.count - 2 else { return nil }
        self.bytes = bytes
    }

    func number(at offset: Int) -> Int {
        isLittleEndian ? bytes.littleEndian16(at: offset) : bytes.bigEndian16(at: offset)
    }

    /// The offset of the tag's two-byte value; nil if the tag is missing or of another type.
    var orientationPlace: Int? {
        for index in 0..<number(at: start) {
            let entry = start + 2 + 12 * index
            guard entry <= bytes.count - 12 else { return nil }
            guard number(at: entry) == 0x0112 else { continue }
            return number(at: entry + 2) == 3 ? entry + 8 : nil
        }
        return nil
    }
}

extension ExifOrientation {
    /// The lookup from pixels as displayed to pixels as stored: rows from columns, columns counted
    /// from the right, rows from the bottom, as in `cpng_turn`.
    struct Mapping: Hashable {
        var isTransposed: Bool
        var flipsX: Bool
        var flipsY: Bool

        init(_ orientation: Int) {
            isTransposed = orientation >= 5
            flipsX = [2, 3, 7, 8].contains(orientation)
            flipsY = [3, 4, 6, 7].contains(orientation)
        }

        /// The EXIF value of this mapping, 1…8.
        var orientation: Int {
            (1...8).first { Mapping($0) == self } ?? ExifOrientation.upright
        }

        /// Returns the mapping that applies this one and then `next`.
        func followed(by next: Mapping) -> Mapping {
            var result = self
            result.isTransposed = isTransposed != next.isTransposed
            result.flipsX = flipsX != (isTransposed ? next.flipsY : next.flipsX)
            result.flipsY = flipsY != (isTransposed ? next.flipsX : next.flipsY)
            return result
        }
    }

    /// Returns the orientation that turns clockwise by this angle.
    static func code(of turn: Transformation.Turn) -> Int {
        switch turn {
        case .quarter: 6
        case .half: 3
        case .threeQuarters: 8
        }
    }

    static func code(of axis: Transformation.Axis) -> Int {
        switch axis {
        case .horizontal: 2
        case .vertical: 4
        }
    }
}
