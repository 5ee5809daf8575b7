import CJPEG
import CPNG
import Foundation
import Testing

/// Samples decoded directly by the C boundary.
struct Pixels: Equatable {
    let width: Int
    let height: Int
    let channels: Int
    let samples: [UInt8]

    /// 8-bit grey or RGB of a JPEG.
    init(jpeg bytes: [UInt8]) throws {
        var limits = cjpeg_limits(
            maximum_pixels: 1 << 28, maximum_scans: 100, maximum_warnings: 100,
            maximum_memory_bytes: 0, least_own_pixels: 0, interruption: nil, preview: nil,
            inks: cjpeg_inks())
        var result = cjpeg_result()
        var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
        try #require(
            cjpeg_decode_scaled(bytes, bytes.count, &limits, 0, 1, &result, &message)
                == CCODEC_OK)
        let start = try #require(result.bytes)
        width = Int(result.width)
        height = Int(result.height)
        channels = Int(result.channels)
        samples = [UInt8](UnsafeBufferPointer(start: start, count: result.length))
        free(start)
    }

    /// RGB.
    init(width: Int, height: Int, samples: [UInt8]) {
        self.width = width
        self.height = height
        channels = 3
        self.samples = samples
    }

    /// Encodes with the C boundary.
    func jpeg(quality: Int, halvesChroma: Bool = true) throws -> [UInt8] {
        var result = cjpeg_result()
        var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
        let status = cjpeg_encode(
            samples, width * channels, UInt32(width), UInt32(height), Int32(channels),
            Int32(quality), halvesChroma, nil, 0, .max / 4, nil, &result, &message)
        try #require(status == CCODEC_OK)
        let start = try #require(result.bytes)
        defer { free(start) }
        return [UInt8](UnsafeBufferPointer(start: start, count: result.length))
    }

    /// In decibels; infinite for equal samples.
    func peakSignalToNoise(_ other: Pixels) -> Double {
        var sum = 0.0
        for (left, right) in zip(samples, other.samples) {
            let difference = Double(left) - Double(right)
            sum += difference * difference
        }
        return 10 * log10(255 * 255 * Double(samples.count) / sum)
    }

    subscript(x: Int, y: Int) -> ArraySlice<UInt8> {
        let start = (y * width + x) * channels
        return samples[start..<start + channels]
    }
}

/// A PNG's rows in its own colour type and depth.
struct PackedRows: Equatable {
    let width: Int
    let height: Int
    let bitDepth: Int
    let colorType: Int
    let rowBytes: Int
    let samples: [UInt8]

    init(png bytes: [UInt8], isOpaque: Bool = false) throws {
        var limits = cpng_limits(
            maximum_pixels: 1 << 28, maximum_warnings: 100, maximum_whole_bytes: .max,
            interruption: nil, lacks_end: false, unended: cpng_form())
        var image = cpng_image()
        var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
        var colours = cpng_colours()
        try #require(
            cpng_decode(bytes, bytes.count, &limits, &image, &colours, &message) == CCODEC_OK)
        defer { cpng_image_free(&image) }
        if isOpaque {
            var opaque = cpng_image()
            let white = [UInt8](repeating: 255, count: 3)
            try #require(cpng_make_opaque(&image, &colours, white, &opaque) == CCODEC_OK)
            swap(&image, &opaque)
            cpng_image_free(&opaque)
        }
        width = Int(image.width)
        height = Int(image.height)
        bitDepth = Int(image.bit_depth)
        colorType = Int(image.color_type)
        rowBytes = image.row_bytes
        samples = image.packed
    }

    /// 8-bit RGBA, as in `EXPECT.tsv`; nil for deeper samples.
    func rgba(palette: [UInt8], transparency: [UInt8]) -> [UInt8]? {
        guard bitDepth <= 8 else { return nil }
        let channels = [1, 1, 3, 1, 2, 2, 4][colorType]
        let most = (1 << bitDepth) - 1
        var output: [UInt8] = []
        output.reserveCapacity(width * height * 4)
        for y in 0..<height {
            for x in 0..<width {
                let values = (0..<channels).map { channel -> Int in
                    let bit = (x * channels + channel) * bitDepth
                    let byte = Int(samples[y * rowBytes + bit / 8])
                    return byte >> (8 - bitDepth - bit % 8) & most
                }
                output += pixel(values, most, palette: palette, transparency: transparency)
            }
        }
        return output
    }

    private func pixel(
        _ values: [Int], _ most: Int, palette: [UInt8], transparency: [UInt8]
    ) -> [UInt8] {
        let key = stride(from: 0, to: transparency.count - 1, by: 2).map {
            Int(transparency[$0]) << 8 | Int(transparency[$0 + 1])
        }
        let alpha: UInt8 = key == values && colorType != 3 ? 0 : 255
        let scaled = values.map { UInt8($0 * 255 / most) }
        switch colorType {
        case 0: return [scaled[0], scaled[0], scaled[0], alpha]
        case 2: return scaled + [alpha]
        case 3:
            let index = values[0]
            guard index * 3 + 2 < palette.count else { return [0, 0, 0, 255] }
            return palette[3 * index..<3 * index + 3]
                + [index < transparency.count ? transparency[index] : 255]
        case 4: return [scaled[0], scaled[0], scaled[0], scaled[1]]
        default: return scaled
        }
    }
}

extension cpng_image {
    /// The rows without their spare bytes.
    var packed: [UInt8] {
        let stride = row_bytes + 1
        let bytes = UnsafeBufferPointer(start: rows, count: stride * Int(height))
        return (0..<Int(height)).flatMap { y in bytes[y * stride..<(y + 1) * stride].dropFirst() }
    }
}
