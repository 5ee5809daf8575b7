internal import CReferenceDecoders
internal import Glibc
internal import PrefetchModel

/// An image as libjpeg or libpng alone decode it.
final class ReferencePicture {
    private var picture = creference_picture()

    /// Decodes the JPEG or PNG; nil for another format.
    ///
    /// - Parameters:
    ///   - source: the whole file.
    ///   - format: of the file.
    ///   - maximumPixels: width times height, from which on the verdict is `CREFERENCE_LIMIT`.
    ///   - maximumScans: of a JPEG.
    init?(
        _ source: UnsafeRawBufferPointer, format: ImageFormat, maximumPixels: Int,
        maximumScans: Int
    ) {
        guard let start = source.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            picture.verdict = CREFERENCE_REFUSED
            return
        }
        switch format {
        case .jpeg:
            creference_decode_jpeg(
                start, source.count, UInt64(maximumPixels), Int32(clamping: maximumScans), &picture)
        case .png:
            creference_decode_png(start, source.count, UInt64(maximumPixels), &picture)
        case .webp, .gif, .bmp, .tiff, .avif, .heif, .jpegXL, .jpeg2000, .icon, .svg, .pdf:
            return nil
        }
    }

    deinit { creference_free(&picture) }

    var isDecoded: Bool { picture.verdict.rawValue <= CREFERENCE_WARNED.rawValue }
    var hasWarning: Bool { picture.verdict == CREFERENCE_WARNED }
    var isRefused: Bool { picture.verdict == CREFERENCE_REFUSED }
    var isBeyondLimits: Bool { picture.verdict == CREFERENCE_LIMIT }
    var width: Int { Int(picture.width) }
    var height: Int { Int(picture.height) }
    var channels: Int { Int(picture.channels) }

    /// The error or, without one, the first warning; empty for neither.
    var message: String {
        withUnsafeBytes(of: &picture.message) { text in
            String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    private var pixels: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: picture.pixels, count: picture.pixels == nil ? 0 : picture.length)
    }

    /// As many bytes as a sample has in ``pixels``.
    private var bytesPerPixel: Int { pixels.count / max(width * height, 1) }

    /// The pixels as an orientation has them shown, with their new width and height.
    private func upright(_ orientation: Int) -> (width: Int, height: Int, bytes: [UInt8]) {
        guard orientation != 1, let start = picture.pixels else {
            return (width, height, [UInt8](pixels))
        }
        let turned = [UInt8](unsafeUninitializedCapacity: pixels.count) { target, count in
            guard let target = target.baseAddress else { return }
            creference_turn(
                start, picture.width, picture.height, bytesPerPixel, Int32(orientation), target)
            count = pixels.count
        }
        return orientation < 5 ? (width, height, turned) : (height, width, turned)
    }

    /// Where a PNG's pixels are not those of this picture, turned upright: a text with the first of
    /// them; nil where they are the same. Colours under full transparency count, too.
    func difference(from png: ReferencePicture, orientation: Int) -> String? {
        let (width, height, expected) = upright(orientation)
        guard width == png.width, height == png.height else {
            return "\(png.width)×\(png.height) instead of \(width)×\(height) pixels"
        }
        if channels == 4, expected.count == png.pixels.count {
            // Pixel by pixel takes several times as long.
            let isSame = expected.withUnsafeBytes { expected in
                guard let one = expected.baseAddress, let other = png.pixels.baseAddress else {
                    return expected.isEmpty
                }
                return memcmp(one, other, expected.count) == 0
            }
            if isSame { return nil }
            guard let first = zip(expected, png.pixels).enumerated().first(where: { $1.0 != $1.1 })
            else { return nil }
            let (y, x) = (first.offset / 8).quotientAndRemainder(dividingBy: max(width, 1))
            return "sample \(first.offset % 8 / 2) of the pixel at \(x), \(y)"
        }
        // 8-bit grey or RGB beside opaque RGBA of 16 bits.
        let found = png.pixels.bindMemory(to: UInt16.self)
        for pixel in 0..<width * height {
            for sample in 0..<4 {
                let byte = expected[pixel * channels + (channels == 3 ? sample % 3 : 0)]
                let wanted = sample == 3 ? 65535 : UInt16(byte) * 257
                guard found[4 * pixel + sample] == wanted else {
                    return "sample \(sample) of the pixel at \(pixel % width), \(pixel / width): "
                        + "\(found[4 * pixel + sample]) instead of \(wanted)"
                }
            }
        }
        return nil
    }
}
