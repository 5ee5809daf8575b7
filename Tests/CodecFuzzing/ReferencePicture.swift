internal import CReferenceDecoders
internal import Glibc
internal import PrefetchModel

/// An image decoded by libjpeg or libpng alone.
final class ReferencePicture {
    private var picture = creference_picture()

    /// Decodes a JPEG or PNG; nil for other formats.
    ///
    /// - Parameters:
    ///   - source: The whole file.
    ///   - format: The format of the file.
    ///   - maximumPixels: Width times height from which on the verdict is `CREFERENCE_LIMIT`.
    ///   - maximumScans: The limit of a JPEG's scans.
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
        default: return nil
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

    /// The error, else the first warning; empty if there is neither.
    var message: String {
        withUnsafeBytes(of: &picture.message) { text in
            String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    private var pixels: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: picture.pixels, count: picture.pixels == nil ? 0 : picture.length)
    }

    /// The number of bytes of a pixel in ``pixels``.
    private var bytesPerPixel: Int { pixels.count / max(width * height, 1) }

    /// The pixels after applying an EXIF orientation, with the new width and height.
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

    /// Describes the first difference between a PNG's pixels and this picture's, after applying the
    /// EXIF orientation; nil if they are equal. Colours under full transparency count.
    func difference(from png: ReferencePicture, orientation: Int) -> String? {
        let (width, height, expected) = upright(orientation)
        guard width == png.width, height == png.height else {
            return "\(png.width)×\(png.height) instead of \(width)×\(height) pixels"
        }
        if channels == 4, expected.count == png.pixels.count {
            // Comparing single pixels takes several times as long.
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
        // Compares 8-bit grey or RGB with opaque 16-bit RGBA.
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
