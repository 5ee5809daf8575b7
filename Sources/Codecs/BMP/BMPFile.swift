internal import PrefetchModel

/// The headers of a Windows or OS/2 bitmap, little-endian:
///
/// - 14 bytes: `BM`, file length, two reserved words, offset of the pixels;
/// - a header that begins with its own length: 12 (OS/2 1, 16-bit sides), 16 or 64 (OS/2 2), 40
///   (Windows 3), 52 and 56 (with colour masks), 108 (version 4), 124 (version 5, with an ICC
///   profile);
/// - three or four masks if a 40-byte header says so, or the fourth after a 52-byte header;
/// - the palette: blue, green, red, and an unused byte except in OS/2 1.
///
/// The lengths of the file and of the pixels are ignored, since many files have wrong ones. So is a
/// count of colours that the pixels or the room in front of them do not allow.
struct BMPFile {
    enum Compression {
        case none
        case masks(red: BMPMask, green: BMPMask, blue: BMPMask, alpha: BMPMask?)
        /// Run-length encoding of 4 or 8 bits a pixel.
        case runs
    }

    static let fileHeaderBytes = 14

    let width: Int
    let height: Int
    /// Otherwise the bottom row is stored first.
    let isTopDown: Bool
    /// 1, 4, 8, 16, 24 or 32.
    let bitsPerPixel: Int
    let compression: Compression
    /// The offset of the pixels, and the limit for the end of the palette.
    let pixelOffset: Int
    private let paletteOffset: Int
    /// The colours that the header counts, as far as there are any.
    let countedEntries: Int
    /// The colours that indices may name. Those behind the counted ones are black.
    private let paletteEntries: Int
    private let entryBytes: Int
    /// The stated range of an ICC profile; nil without one.
    let profileRange: Range<Int>?

    var isIndexed: Bool { bitsPerPixel <= 8 }

    var hasAlpha: Bool {
        if case .masks(_, _, _, alpha: .some) = compression { return true }
        return false
    }

    /// Reads everything except the palette.
    ///
    /// - Throws: `unsupported` for rare variants, `corrupt`.
    init(_ source: UnsafeRawBufferPointer) throws(CodecError) {
        func number16(_ offset: Int) -> Int { source.littleEndian16(at: offset) }
        func number32(_ offset: Int) -> Int { source.littleEndian32(at: offset) }
        let start = BMPFile.fileHeaderBytes
        guard source.count >= start + 4, source.count >= start + number32(start) else {
            throw .cutHeader
        }
        let headerBytes = number32(start)
        let isOld = headerBytes == 12
        let signedHeight =
            isOld ? number16(20) : Int(Int32(truncatingIfNeeded: number32(22)))
        width = isOld ? number16(18) : Int(Int32(truncatingIfNeeded: number32(18)))
        height = abs(signedHeight)
        isTopDown = signedHeight < 0
        bitsPerPixel = number16(isOld ? 24 : 28)
        guard width > 0, height > 0, height <= Int32.max else {
            throw .broken("an image without pixels")
        }
        let method = headerBytes >= 40 ? number32(30) : 0
        // Masks have one place: inside a long header, or after a header that ends before it.
        let masksEnd = method == 3 ? 66 : method == 6 ? 70 : 0
        let masksBytes = max(0, masksEnd - start - headerBytes)
        guard source.count >= start + headerBytes + masksBytes else { throw .cutHeader }
        try BMPFile.check(method, bitsPerPixel, isOS2: headerBytes == 64)
        switch method {
        case 0: compression = .none
        case 1, 2: compression = .runs
        default:
            let hasAlpha = method == 6 || headerBytes >= 56
            compression = try BMPFile.masks(
                (0..<(hasAlpha ? 4 : 3)).map { number32(54 + 4 * $0) }, bitsPerPixel: bitsPerPixel)
        }
        let colours = headerBytes >= 40 ? number32(46) : 0
        entryBytes = isOld ? 3 : 4
        paletteOffset = start + headerBytes + masksBytes
        let entries = BMPFile.paletteEntries(counted: colours, bitsPerPixel: bitsPerPixel)
        let offset = number32(10)
        // Some files state 0, or the offset of the palette.
        let isOffsetGood = offset > paletteOffset || offset == paletteOffset && entries == 0
        pixelOffset = isOffsetGood ? offset : paletteOffset + entries * entryBytes
        let room = (pixelOffset - paletteOffset) / entryBytes
        countedEntries = min(entries, room)
        // Behind too small a count the other colours are there. Pillow and browsers show black.
        paletteEntries = bitsPerPixel <= 8 ? min(1 << bitsPerPixel, room) : 0
        let hasProfile = headerBytes >= 124 && number32(70) == 0x4D42_4544
        profileRange =
            hasProfile
            ? start + number32(126)..<start + number32(126) + number32(130) : nil
    }

    /// Returns the number of colours in front of the pixels, at most as many as pixels can name.
    /// Above 8 bits a pixel, the header's count has no meaning: it suggests colours, or counts all
    /// possible ones.
    static func paletteEntries(counted colours: Int, bitsPerPixel: Int) -> Int {
        guard bitsPerPixel <= 8 else { return 0 }
        return colours == 0 ? 1 << bitsPerPixel : min(colours, 1 << bitsPerPixel)
    }

    private static func check(_ method: Int, _ bitsPerPixel: Int, isOS2: Bool) throws(CodecError) {
        switch (method, isOS2) {
        case (0, _), (1, _), (2, _), (3, false), (6, false): break
        case (3, true): throw .unsupported("a BMP of Huffman codes")
        case (4, true): throw .unsupported("a BMP of 24-bit runs")
        case (4, false): throw .unsupported("a BMP around a JPEG")
        case (5, _): throw .unsupported("a BMP around a PNG")
        default: throw .unsupported("a BMP of compression \(method)")
        }
        guard [1, 4, 8, 16, 24, 32].contains(bitsPerPixel) else {
            throw .unsupported("a BMP of \(bitsPerPixel) bits a pixel")
        }
        let isPossible =
            switch method {
            case 1: bitsPerPixel == 8
            case 2: bitsPerPixel == 4
            case 3, 6: bitsPerPixel > 8
            default: true
            }
        guard isPossible else { throw .broken("a compression of another bit depth") }
    }

    private static func masks(
        _ values: [Int], bitsPerPixel: Int
    ) throws(CodecError) -> Compression {
        let most = 1 << bitsPerPixel - 1
        var masks: [BMPMask] = []
        var taken = 0
        for value in values {
            guard value <= most else { throw .broken("a colour mask beyond the pixel") }
            guard value & taken == 0 else { throw .broken("colour masks that overlap") }
            taken |= value
            guard let mask = BMPMask(UInt32(truncatingIfNeeded: value)) else {
                throw .broken("a colour mask with a gap")
            }
            masks.append(mask)
        }
        guard masks[..<3].contains(where: { !$0.isEmpty }) else { throw .broken("no colour masks") }
        let alpha = masks.count > 3 && !masks[3].isEmpty ? masks[3] : nil
        return .masks(red: masks[0], green: masks[1], blue: masks[2], alpha: alpha)
    }

    /// Returns the colours as red, green, blue.
    ///
    /// - Throws: `corrupt` if the data ends inside the palette.
    func palette(in source: UnsafeRawBufferPointer) throws(CodecError) -> [UInt8] {
        guard paletteOffset + countedEntries * entryBytes <= source.count else {
            throw .cut("the data ends inside the palette")
        }
        var palette = [UInt8](repeating: 0, count: 3 * paletteEntries)
        for entry in 0..<countedEntries {
            for channel in 0..<3 {
                palette[3 * entry + channel] =
                    source[paletteOffset + entry * entryBytes + 2 - channel]
            }
        }
        return palette
    }

    /// Returns the ICC profile; nil if it is missing, incomplete or not for RGB.
    func profile(in source: UnsafeRawBufferPointer) -> [UInt8]? {
        guard let profileRange, profileRange.upperBound <= source.count,
            profileRange.count <= CodecLimits.maximumMetadataBytes
        else { return nil }
        let profile = [UInt8](source[profileRange])
        return ICCProfile.fits(profile, channels: 3) ? profile : nil
    }
}

/// The bits of one sample in a pixel: consecutive ones, or none.
struct BMPMask {
    private let mask: UInt32
    private let shift: UInt32
    /// The largest value of the sample.
    private let most: UInt64

    /// Returns nil for a mask with gaps.
    init?(_ mask: UInt32) {
        self.mask = mask
        shift = mask == 0 ? 0 : UInt32(mask.trailingZeroBitCount)
        most = UInt64(mask >> shift)
        guard most & (most + 1) == 0 else { return nil }
    }

    var isEmpty: Bool { mask == 0 }

    /// Returns the sample, scaled to 8 bits and rounded.
    func sample(of pixel: UInt32) -> UInt8 {
        guard most > 0 else { return 0 }
        if most == 255 { return UInt8(truncatingIfNeeded: pixel >> shift) }
        return UInt8(truncatingIfNeeded: (UInt64((pixel & mask) >> shift) * 255 + most / 2) / most)
    }
}

extension UnsafeRawBufferPointer {
    func littleEndian16(at offset: Int) -> Int { Int(self[offset]) | Int(self[offset + 1]) << 8 }

    func littleEndian24(at offset: Int) -> Int {
        littleEndian16(at: offset) | Int(self[offset + 2]) << 16
    }

    func littleEndian32(at offset: Int) -> Int {
        littleEndian16(at: offset) | littleEndian16(at: offset + 2) << 16
    }
}
