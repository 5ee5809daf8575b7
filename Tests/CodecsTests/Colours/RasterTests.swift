import CPNG
import CReferenceDecoders
import PrefetchModel
import Testing

@testable import Codecs

/// The rasters that decoders pass to encoders.
@Suite(.serialized, .timeLimit(.minutes(15))) struct RasterTests {
    /// Calls `body` with the source's raster and its interruption.
    private func withRaster<Value>(
        _ source: [UInt8], scale: DecodingScale = .full,
        _ body: (borrowing Raster, Interruption) throws -> Value
    ) throws -> Value {
        try source.withUnsafeBytes { bytes in
            let header = try header(of: bytes)
            let codec = try #require(header.format.codec)
            let interruption = Interruption(CodecLimits(), nil)
            let raster = try codec.open(bytes, header, CodecLimits()).raster(
                at: scale, interruption)
            return try body(raster, interruption)
        }
    }

    private func rows(_ raster: borrowing Raster) -> [UInt8] { raster.rows.packed }

    /// The properties of a raster, which is not copyable and so unusable in an expectation.
    private struct Shape: Equatable {
        var width: Int
        var height: Int
        var channels: Int
        var bitDepth: Int
        var bytesPerRow: Int
        var stride: Int
        var alpha: Raster.Alpha
        var isIndexed = false
    }

    private func shape(_ raster: borrowing Raster) -> Shape {
        Shape(
            width: raster.widthInPixels, height: raster.heightInPixels, channels: raster.channels,
            bitDepth: raster.bitDepth, bytesPerRow: raster.bytesPerRow, stride: raster.stride,
            alpha: raster.alpha, isIndexed: raster.isIndexed)
    }

    @Test(arguments: DecodingScale.allCases)
    func decodesJPEGAtScale(scale: DecodingScale) throws {
        for (source, channels) in [
            (Samples.baselineJPEG, 3), (Samples.progressiveJPEG, 3), (Samples.greyJPEG, 1),
        ] {
            let header = try imageHeader(source)
            let part = scale.rawValue
            let width = (header.widthInPixels + part - 1) / part
            let height = (header.heightInPixels + part - 1) / part
            let (found, count) = try withRaster(source, scale: scale) { raster, _ in
                (shape(raster), rows(raster).count)
            }
            #expect(
                found
                    == Shape(
                        width: width, height: height, channels: channels, bitDepth: 8,
                        bytesPerRow: width * channels, stride: width * channels + 1, alpha: .none))
            #expect(count == width * channels * height)
        }
    }

    /// The eighth-size picture has the mean of the full one.
    @Test func scaledPictureResemblesFullPicture() throws {
        let samples = (0..<64 * 64 * 3).map { place -> UInt8 in
            let column = place / 3 % 64
            return UInt8(3 * column)
        }
        let source = try Pixels(width: 64, height: 64, samples: samples).jpeg(quality: 95)
        let means = try DecodingScale.allCases.map { scale in
            try withRaster(source, scale: scale) { raster, _ in
                let rows = rows(raster)
                return rows.reduce(0) { $0 + Int($1) } / rows.count
            }
        }
        for mean in means { #expect(abs(mean - means[0]) <= 1) }
    }

    @Test func keepsSamplesOfPNG() throws {
        let colour = try withRaster(Samples.colourPNG) { raster, _ in shape(raster) }
        let rgb = Shape(
            width: 12, height: 11, channels: 3, bitDepth: 8, bytesPerRow: 36, stride: 37,
            alpha: .none)
        #expect(colour == rgb)
        let palette = try withRaster(Samples.palettePNG) { raster, _ in shape(raster) }
        #expect(
            palette
                == Shape(
                    width: 21, height: 19, channels: 1, bitDepth: 4, bytesPerRow: 11, stride: 12,
                    alpha: .byColour, isIndexed: true))
        let deep = try withRaster(Samples.deepGreyPNG) { raster, _ in shape(raster) }
        #expect(
            deep
                == Shape(
                    width: 9, height: 10, channels: 1, bitDepth: 16, bytesPerRow: 18, stride: 19,
                    alpha: .none))
        // Only the full scale is supported.
        let scaled = try withRaster(Samples.colourPNG, scale: .eighth) { raster, _ in shape(raster)
        }
        #expect(scaled == rgb)
    }

    @Test func copyIsIndependent() throws {
        let (pixels, copied, changed, opaque) = try withRaster(Samples.colourPNG) {
            raster, interruption in
            let copy = try raster.copy()
            let copied = rows(copy)
            copy.rows.rows?[1] ^= 0xFF
            return (
                rows(raster), copied, rows(copy),
                rows(try raster.opaque(over: .white, interruption))
            )
        }
        #expect(copied == pixels)
        #expect(changed != pixels)
        #expect(opaque == pixels)
    }

    private static let backgrounds: [RGBColor] = [
        .white, RGBColor(red: 51, green: 102, blue: 204),
    ]

    /// Compares with the expansion and the rounding of libpng.
    @Test(.enabled(if: TestData.isAvailable), arguments: backgrounds)
    func blendsAsLibraryDoes(background: RGBColor) throws {
        var kinds: Set<[Int]> = []
        for file in try TestData.expectations(in: "png") where file.isAcceptedByBoth {
            let source = try TestData.bytes(file.path)
            guard try imageHeader(source).pixels < 300_000, refusal(source) == nil,
                try warning(source) == nil
            else { continue }
            let (samples, channels, showsColour) = try withRaster(source) { raster, interruption in
                kinds.insert([raster.channels, raster.bitDepth, raster.alpha == .none ? 0 : 1])
                let showsColour = raster.alpha != .none && !background.isGrey
                let opaque = try raster.opaque(over: background, interruption)
                return (rows(opaque), opaque.channels, showsColour)
            }
            #expect(channels == (source[25] & 2 != 0 || showsColour ? 3 : 1), "\(file.path)")
            let expected = try blended(source, over: background)
            #expect(samples == expected.flatMap { $0.prefix(channels) }, "\(file.path)")
        }
        #expect(kinds.count > 12)
    }

    /// The pixels by libpng, red, green and blue, over a background.
    private func blended(_ source: [UInt8], over background: RGBColor) throws -> [[UInt8]] {
        var picture = creference_picture()
        creference_decode_png(source, source.count, 300_000, &picture)
        defer { creference_free(&picture) }
        let start = try #require(picture.pixels)
        // As in `png_do_scale_16_to_8`.
        let samples = UnsafeRawBufferPointer(start: start, count: picture.length)
            .bindMemory(to: UInt16.self).map { sample in
                let (high, low) = (Int(sample >> 8), Int(sample & 255))
                return high + ((low - high + 128) * 65535) >> 24
            }
        let behind = [background.red, background.green, background.blue].map(Int.init)
        return stride(from: 0, to: samples.count, by: 4).map { place in
            let alpha = samples[place + 3]
            return (0..<3).map { channel in
                let value = samples[place + channel] * alpha + behind[channel] * (255 - alpha)
                return UInt8((value + 127) / 255)
            }
        }
    }
}
