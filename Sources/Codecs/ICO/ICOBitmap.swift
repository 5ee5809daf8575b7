internal import CPNG

/// A bitmap of an icon: a BMP without file header. Its stated height is doubled, since a mask
/// follows the colours.
///
/// The mask has one bit a pixel, 1 for transparent, in rows padded to 32 bits and in the order of
/// the colours: from the bottom, or from the top with a negative height. A 32-bit bitmap has its
/// alpha in the fourth byte and may lack the mask, or a part of it. If that alpha is 0 everywhere,
/// as older programs write it, the mask applies.
struct ICOBitmap {
    /// The bitmap as a BMP file.
    private let bytes: ImageBytes
    private let file: BMPFile
    private let mask: [UInt8]?
    /// Whether a part of the mask is missing, which no pixel needs.
    let isMaskCut: Bool
    /// Whether its rows begin at the top, which only bitmaps outside of icons may do.
    var isTopDown: Bool { file.isTopDown }

    /// `height` is without the mask. With `isCut`, the file ends before the stated end.
    init(_ source: UnsafeRawBufferPointer, height: Int, isCut: Bool) throws(CodecError) {
        let headerBytes = source.count >= 40 ? source.littleEndian32(at: 0) : .max
        guard source.count >= headerBytes else { throw .cutHeader }
        let method = source.littleEndian32(at: 16)
        guard method == 0 || method == 3, height > 0 else {
            throw .unsupported("an icon of a compressed bitmap")
        }
        let hasFourBytes = source.littleEndian16(at: 14) == 32
        let isTopDown = Int32(truncatingIfNeeded: source.littleEndian32(at: 8)) < 0
        let signedHeight = isTopDown ? -height : height
        func number(_ value: Int) -> [UInt8] {
            UInt32(truncatingIfNeeded: value).littleEndianBytes
        }
        var head = Array("BM".utf8) + [UInt8](repeating: 0, count: 12)
        if hasFourBytes, method == 0, headerBytes == 40 {
            // The header with masks, the last of them for alpha.
            head += number(56) + source[4..<8] + number(signedHeight) + source[12..<16] + number(3)
            head += source[20..<40] + number(0xFF_0000) + number(0xFF00) + number(0xFF)
            head += number(0xFF00_0000)
        } else {
            head += source[0..<8] + number(signedHeight) + source[12..<headerBytes]
        }
        let pieces: [ImagePiece] = [.made(head), .source(headerBytes..<source.count)]
        let bytes = try ImageBytes(joining: pieces, of: source, for: "a picture")
        let file = try bytes.withUnsafeBytes { (bytes) throws(CodecError) in try BMPFile(bytes) }
        let stride = (file.width + 31) / 32 * 4
        let start = file.pixelOffset + (file.width * file.bitsPerPixel + 31) / 32 * 4 * file.height
        if bytes.count - start >= stride * file.height {
            mask = bytes.withUnsafeBytes { Array($0[start..<start + stride * file.height]) }
            isMaskCut = false
        } else {
            let isCut = bytes.count > start || isCut && bytes.count == start
            guard isCut ? ICOBitmap.showsByAlpha(bytes, file) : hasFourBytes else {
                throw .cut("the data ends inside the mask")
            }
            mask = nil
            isMaskCut = isCut
        }
        self.bytes = bytes
        self.file = file
    }

    /// Whether the alpha of any pixel is not 0, so the mask has no effect. The pixels are complete.
    private static func showsByAlpha(_ bytes: ImageBytes, _ file: BMPFile) -> Bool {
        guard case .masks(_, _, _, let alpha?) = file.compression, file.bitsPerPixel == 32 else {
            return false
        }
        return bytes.withUnsafeBytes { bytes in
            (0..<file.width * file.height).contains { pixel in
                let value = bytes.littleEndian32(at: file.pixelOffset + 4 * pixel)
                return alpha.sample(of: UInt32(truncatingIfNeeded: value)) != 0
            }
        }
    }

    func verify(_ interruption: Interruption) throws(CodecError) {
        try bytes.withUnsafeBytes { (bytes) throws(CodecError) in
            try BMPDecoding(bytes, file, WarningNote()).verify(interruption)
        }
    }

    /// Returns a raster of RGB and alpha.
    func raster(_ interruption: Interruption) throws(CodecError) -> Raster {
        let colours = try bytes.withUnsafeBytes { (bytes) throws(CodecError) in
            try BMPDecoding(bytes, file, WarningNote()).raster(interruption)
        }
        defer { withExtendedLifetime(colours) {} }
        let channels = colours.channels
        let raster = try Raster(width: file.width, height: file.height, channels: 4, interruption)
        var isShown = false
        for y in 0..<file.height {
            let from = colours.firstSample + y * colours.stride
            let to = raster.firstSample + y * raster.stride
            for x in 0..<file.width {
                for channel in 0..<3 {
                    to[4 * x + channel] = from[x * channels + (channels == 1 ? 0 : channel)]
                }
                to[4 * x + 3] = channels == 4 ? from[x * channels + 3] : 255
                isShown = isShown || channels == 4 && to[4 * x + 3] != 0
            }
        }
        if channels < 4 || !isShown { apply(mask, to: raster.firstSample) }
        try interruption.check(after: raster.stride * file.height)
        return raster
    }

    private func apply(_ mask: [UInt8]?, to first: UnsafeMutablePointer<UInt8>) {
        let stride = (file.width + 31) / 32 * 4
        for y in 0..<file.height {
            let from = (file.isTopDown ? y : file.height - 1 - y) * stride
            let to = first + y * (4 * file.width + 1)
            for x in 0..<file.width {
                let isTransparent = mask.map { $0[from + x / 8] >> (7 - x % 8) & 1 == 1 } ?? false
                to[4 * x + 3] = isTransparent ? 0 : 255
            }
        }
    }
}
