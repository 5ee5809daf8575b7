import CPNG
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// A PNG's displayed pixels for any colour type: 16-bit RGBA, to which every other depth scales
/// exactly.
struct ShownPixels: Equatable {
    let width: Int
    let height: Int
    let pixels: [SIMD4<UInt16>]

    init(png bytes: [UInt8]) throws {
        let rows = try PackedRows(png: bytes)
        width = rows.width
        height = rows.height
        let palette = try PNGTests.data(of: .PLTE, in: bytes) ?? []
        let transparency = try PNGTests.data(of: .tRNS, in: bytes) ?? []
        let channels = [1, 1, 3, 1, 2, 2, 4][rows.colorType]
        let most: UInt16 = .max >> (16 - rows.bitDepth)
        let key = stride(from: 0, to: transparency.count - 1, by: 2).map { index -> UInt16 in
            // Only the bits of the depth count.
            let high = UInt16(transparency[index]) << 8
            return (high | UInt16(transparency[index + 1])) & most
        }
        let scale: UInt16 = .max / most
        /// Converts unscaled samples; grey is given three times.
        func shown(_ values: SIMD4<UInt16>) -> SIMD4<UInt16> {
            switch rows.colorType {
            case 3:
                let index = Int(values.x)
                guard index * 3 + 2 < palette.count else { return SIMD4(0, 0, 0, 65535) }
                let alpha = index < transparency.count ? transparency[index] : 255
                return 257
                    &* SIMD4(
                        UInt16(palette[3 * index]), UInt16(palette[3 * index + 1]),
                        UInt16(palette[3 * index + 2]), UInt16(alpha))
            case 4, 6: return scale &* values
            default:
                let isKey =
                    key.count == channels && key[0] == values.x && key[key.count / 2] == values.y
                    && key[key.count - 1] == values.z
                var result = scale &* values
                result.w = isKey ? 0 : 65535
                return result
            }
        }
        // For a single sample, each value is converted once.
        let single =
            channels == 1 && rows.bitDepth <= 8
            ? (0..<UInt16(1 << rows.bitDepth)).map { shown(SIMD4($0, $0, $0, 0)) } : []
        var pixels: [SIMD4<UInt16>] = []
        pixels.reserveCapacity(width * height)
        for y in 0..<height {
            for x in 0..<width {
                let first = UInt16(rows.sample(x * channels, inRow: y))
                if !single.isEmpty {
                    pixels.append(single[Int(first)])
                    continue
                }
                var values = SIMD4(first, first, first, 0)
                if channels > 2 {
                    values.y = UInt16(rows.sample(x * channels + 1, inRow: y))
                    values.z = UInt16(rows.sample(x * channels + 2, inRow: y))
                }
                if channels % 2 == 0 {
                    values.w = UInt16(rows.sample(x * channels + channels - 1, inRow: y))
                }
                pixels.append(shown(values))
            }
        }
        self.pixels = pixels
    }

    func pixel(_ x: Int, _ y: Int) -> SIMD4<UInt16> { pixels[y * width + x] }
}

extension PackedRows {
    /// The unscaled sample at `index` in a row.
    func sample(_ index: Int, inRow y: Int) -> Int {
        if bitDepth == 16 {
            let start = y * rowBytes + 2 * index
            return Int(samples[start]) << 8 | Int(samples[start + 1])
        }
        let bit = index * bitDepth
        return Int(samples[y * rowBytes + bit / 8]) >> (8 - bitDepth - bit % 8)
            & ((1 << bitDepth) - 1)
    }
}

/// A generated PNG.
struct GeneratedPNG {
    var width = 40
    var height = 30
    let colorType: Int
    let bitDepth: Int
    /// Complete chunks before the image data.
    var chunks: [UInt8] = []

    var channels: Int { [1, 1, 3, 1, 2, 2, 4][colorType] }

    /// Creates the file; `pixel` returns each pixel's samples, within the bit depth.
    func bytes(_ pixel: (_ x: Int, _ y: Int) -> [Int]) throws -> [UInt8] {
        var image = try rows(pixel)
        defer { cpng_image_free(&image) }
        let strategy = cpng_strategy(
            filter: CPNG_FILTER_NONE, compressor: CPNG_LIBDEFLATE, level: 1)
        return try #require(try encoded(&image, chunks: chunks, strategy: strategy))
    }

    func rows(_ pixel: (_ x: Int, _ y: Int) -> [Int]) throws -> cpng_image {
        let bits = channels * bitDepth
        let rowBytes = (width * bits + 7) / 8
        var image = cpng_image()
        image.width = UInt32(width)
        image.height = UInt32(height)
        image.bit_depth = Int32(bitDepth)
        image.color_type = Int32(colorType)
        image.row_bytes = rowBytes
        image.filter_distance = Int32(max(bits / 8, 1))
        let memory = try #require(calloc((rowBytes + 1) * height, 1))
        let bytes = memory.assumingMemoryBound(to: UInt8.self)
        image.rows = bytes
        for y in 0..<height {
            let row = bytes + y * (rowBytes + 1) + 1
            for x in 0..<width {
                let samples = pixel(x, y)
                for (channel, sample) in samples.enumerated() {
                    let bit = (x * channels + channel) * bitDepth
                    if bitDepth == 16 {
                        row[bit / 8] = UInt8(sample >> 8)
                        row[bit / 8 + 1] = UInt8(sample & 255)
                    } else {
                        row[bit / 8] |= UInt8(sample << (8 - bitDepth - bit % 8))
                    }
                }
            }
        }
        return image
    }
}

/// Encodes a whole file; nil if it would reach `maximum` bytes. Keeps the rows.
func encoded(
    _ image: inout cpng_image, chunks: [UInt8] = [], strategy: cpng_strategy,
    maximum: Int = .max / 4
) throws -> [UInt8]? {
    var output: UnsafeMutablePointer<UInt8>?
    var length = 0
    try #require(
        cpng_encode(
            &image, chunks, chunks.count, strategy, true, maximum, &output, &length) == CCODEC_OK)
    defer { free(output) }
    return output.map { [UInt8](UnsafeBufferPointer(start: $0, count: length)) }
}

extension ImageHeader {
    /// The peak of ``ImageHeader/estimate(for:)``, in bytes.
    func decodeMemoryBytes(for recipe: Recipe) -> Int { estimate(for: recipe).peak.count }
}
