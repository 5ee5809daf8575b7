import CReferenceDecoders
import CodecFuzzing
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// JPEGs without subsampling that are made again from their coefficients.
@Suite(.timeLimit(.minutes(10))) struct HalvedChromaTests {
    private static let whole = [1, 1, 1]
    private static let halved = [2, 1, 1]

    /// The sampling factors of the components, equal in both directions.
    private func factors(_ jpeg: [UInt8]) throws -> [Int] {
        let frame = try #require(try jpeg.withUnsafeBytes { try JPEGFile(headerOf: $0).frame })
        for factors in frame.sampling { #expect(factors.horizontal == factors.vertical) }
        return frame.sampling.map(\.horizontal)
    }

    /// Smooth, with noise too fine for halved chroma in its lower bits.
    private static func photograph(_ width: Int, _ height: Int) -> Pixels {
        var samples: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                let wave = 50 * sin(Double(x) / 17) + 40 * cos(Double(y + x / 3) / 23)
                let noise = (x * 7 + y * 13) % 8
                samples.append(UInt8(110 + Int(wave) + noise))
                samples.append(UInt8(120 - Int(wave) + noise))
                samples.append(UInt8(40 + (x + y) / 3 % 180))
            }
        }
        return Pixels(width: width, height: height, samples: samples)
    }

    /// The same with strokes as of letters, 12 pixels high, in an upper part.
    private static func captioned(
        _ width: Int, _ height: Int, letters: Int, _ colours: [[UInt8]]
    ) -> Pixels {
        let ground = photograph(width, height)
        var samples = ground.samples
        for y in 4..<20 {
            for x in 8..<8 + 10 * letters {
                let isStroke = (8..<20).contains(y) && (x % 10 < 2 || x % 10 < 7 && y % 5 == 3)
                let start = (y * width + x) * 3
                samples.replaceSubrange(start..<start + 3, with: colours[isStroke ? 1 : 0])
            }
        }
        return Pixels(width: width, height: height, samples: samples)
    }

    /// The pixels with an EXIF orientation applied.
    private func turned(_ pixels: Pixels, _ orientation: Int) -> Pixels {
        var samples = pixels.samples
        creference_turn(
            pixels.samples, UInt32(pixels.width), UInt32(pixels.height), 3, Int32(orientation),
            &samples)
        let isTransposed = orientation >= 5
        return Pixels(
            width: isTransposed ? pixels.height : pixels.width,
            height: isTransposed ? pixels.width : pixels.height, samples: samples)
    }

    private func expectSameLuma(_ source: [UInt8], _ output: [UInt8], orientation: Int = 1) {
        var message = [CChar](repeating: 0, count: Int(CREFERENCE_MESSAGE_BYTES))
        let isSame = creference_has_same_coefficients(
            source, source.count, output, output.count, Int32(orientation), &message)
        let text = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        #expect(isSame, "\(String(decoding: text, as: UTF8.self))")
    }

    static let sizes = [
        (1, 1), (8, 8), (9, 17), (17, 9), (16, 16), (31, 33), (24, 40), (64, 48), (130, 67),
    ]

    /// Coarser tables halve chroma as well as pixels encoded as 4:2:0 do.
    @Test(arguments: sizes, [40, 60, 75, 85, 90])
    func halvesWithCoarserTables(size: (Int, Int), quality: Int) throws {
        let pixels = Self.photograph(size.0, size.1)
        let source = try pixels.jpeg(quality: 95, halvesChroma: false)
        #expect(try factors(source) == Self.whole)
        let recipe = Recipe(quality: quality, keepsLarger: true)
        let result = try stored(source, recipe)
        #expect(try factors(result.bytes) == Self.halved)
        expectSameLuma(source, result.bytes)
        let decoded = try Pixels(jpeg: source)
        let direct = try decoded.jpeg(quality: quality)
        let fidelity = try decoded.peakSignalToNoise(Pixels(jpeg: result.bytes))
        let reference = try decoded.peakSignalToNoise(Pixels(jpeg: direct))
        // One pixel has all of a block's error.
        let isTiny = pixels.width == 1
        #expect(
            fidelity > 28 && (isTiny || fidelity > reference - 0.5), "\(fidelity), \(reference)")
        #expect(try stored(result.bytes, recipe).isSource)
        #expect(try stored(result.bytes, Recipe(quality: 95)).isSource)
        if pixels.width >= 64 {
            let larger = try decoded.jpeg(quality: quality, halvesChroma: false)
            #expect(20 * result.bytes.count < 19 * larger.count)
        }
    }

    @Test(arguments: [95, 100])
    func keepsDataWithoutCoarserTables(quality: Int) throws {
        let source = try Self.photograph(64, 48).jpeg(quality: 95, halvesChroma: false)
        #expect(try stored(source, Recipe(quality: quality)).isSource)
        let tag = JPEGTests.inserting(JPEGTests.exif(orientation: 3), into: source)
        let turned = try stored(tag, Recipe(quality: quality))
        #expect(turned.image.orientation == 1)
        #expect(try factors(turned.bytes) == Self.whole)
    }

    /// Chroma stays whole if larger MCUs would keep the picture from being turned.
    @Test(arguments: 1...8, [(64, 48), (64, 40), (40, 64), (40, 24), (33, 48), (35, 21)])
    func turnsAsBefore(orientation: Int, size: (Int, Int)) throws {
        let picture = try Self.photograph(size.0, size.1).jpeg(quality: 95, halvesChroma: false)
        let source = JPEGTests.inserting(
            JPEGTests.exif(orientation: orientation), into: picture)
        let recipe = Recipe(quality: 75, keepsLarger: true)
        let result = try stored(source, recipe)
        func isTurned(_ side: Int) -> Bool {
            ([1, 4, 5, 6].contains(orientation) || size.0 % side == 0)
                && ([1, 2, 5, 8].contains(orientation) || size.1 % side == 0)
        }
        #expect(try imageHeader(result.bytes).orientation == (isTurned(8) ? 1 : orientation))
        #expect(
            try factors(result.bytes) == (isTurned(8) && !isTurned(16) ? Self.whole : Self.halved))
        let applied = isTurned(8) ? orientation : 1
        expectSameLuma(source, result.bytes, orientation: applied)
        let fidelity = try turned(Pixels(jpeg: picture), applied)
            .peakSignalToNoise(Pixels(jpeg: result.bytes))
        #expect(fidelity > 31, "\(fidelity)")
        #expect(try stored(result.bytes, recipe).isSource)
    }

    @Test(arguments: [Recipe.Stripping.none, .all, .safe])
    func halvesWithSegments(stripping: Recipe.Stripping) throws {
        let profile = JPEGTests.profile(space: "RGB ", count: 70000)
        let source = JPEGTests.inserting(
            JPEGFile.profileSegments(profile),
            into: try Self.photograph(64, 48).jpeg(quality: 95, halvesChroma: false))
        var recipe = Recipe(quality: 85)
        recipe.stripping = stripping
        let result = try stored(source, recipe)
        #expect(try factors(result.bytes) == Self.halved)
        let kept = try result.bytes.withUnsafeBytes { try JPEGFile(headerOf: $0).profile }
        #expect(kept == (stripping == .all ? nil : profile))
        // Data behind the image stays at its offset.
        let followed = try stored(source + [1, 2, 3], recipe)
        #expect(followed.isSource == (stripping == .none))
    }

    @Test func halvesToFitASize() throws {
        let source = try Self.photograph(130, 67).jpeg(quality: 80, halvesChroma: false)
        var recipe = Recipe(quality: 85)
        #expect(try stored(source, recipe).isSource)
        recipe.maximumStoredBytes = source.count * 3 / 4
        let result = try stored(source, recipe)
        #expect(try factors(result.bytes) == Self.halved)
        #expect(result.bytes.count <= source.count * 3 / 4)
        #expect(try stored(result.bytes, recipe).isSource)
    }

    // MARK: Kept chroma

    /// Letters in strong colours, also few in a large picture.
    @Test(
        arguments: [
            [[0, 0, 255], [255, 0, 0]], [[255, 255, 255], [255, 0, 0]],
            [[255, 255, 255], [0, 0, 255]], [[0, 0, 0], [255, 255, 0]],
            [[200, 0, 0], [255, 255, 255]],
        ], [5, 20])
    func keepsChromaOfLetters(colours: [[UInt8]], letters: Int) throws {
        for (width, height) in [(208, 24), (400, 300), (1200, 900)] {
            let pixels = Self.captioned(
                width, height, letters: width > 1000 ? 20 : letters, colours)
            let source = try pixels.jpeg(quality: 95, halvesChroma: false)
            let result = try stored(source, Recipe(quality: 85))
            #expect(!result.isSource)
            #expect(try factors(result.bytes) == Self.whole, "\(width)")
            expectSameLuma(source, result.bytes)
        }
    }

    /// Grey letters have no chroma to lose.
    @Test func halvesWithGreyLetters() throws {
        let pixels = Self.captioned(
            400, 300, letters: 20, [[250, 250, 250], [20, 20, 20]])
        let source = try pixels.jpeg(quality: 95, halvesChroma: false)
        #expect(try factors(stored(source, Recipe(quality: 85)).bytes) == Self.halved)
    }

    @Test(arguments: [(2, 1), (1, 2), (4, 1), (2, 2), (4, 2)])
    func keepsOtherSampling(horizontal: Int, vertical: Int) throws {
        let source = TranscoderInvariants.baseline(
            width: 130, height: 67, sampling: (horizontal, vertical))
        let result = try stored(source, Recipe(quality: 60))
        let frames = try [source, result.bytes].map {
            try $0.withUnsafeBytes { try JPEGFile(headerOf: $0).frame?.sampling }
        }
        #expect(frames[1]?.map(\.horizontal) == frames[0]?.map(\.horizontal))
        #expect(frames[1]?.map(\.vertical) == frames[0]?.map(\.vertical))
        #expect(!result.isSource)
    }

    /// Without JFIF, Adobe's segment says that the components are RGB.
    @Test func keepsRGB() throws {
        let picture = try Self.photograph(64, 48).jpeg(quality: 95, halvesChroma: false)
        let adobe = JPEGFile.segment(0xEE, Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, 0])
        let source = Array(picture[..<2]) + adobe + Array(picture[20...])
        let result = try stored(source, Recipe(quality: 60))
        #expect(!result.isSource)
        #expect(try factors(result.bytes) == Self.whole)
        expectSameLuma(source, result.bytes)
    }

    // MARK: Pictures of others

    @Test func halvesProgressiveSources() throws {
        let source = Samples.wholeProgressiveJPEG
        #expect(try factors(source) == Self.whole)
        for quality in [40, 85] {
            let recipe = Recipe(quality: quality, keepsLarger: true)
            let result = try stored(source, recipe)
            #expect(try factors(result.bytes) == Self.halved)
            expectSameLuma(source, result.bytes)
            let fidelity = try Pixels(jpeg: source).peakSignalToNoise(Pixels(jpeg: result.bytes))
            #expect(fidelity > 30, "\(fidelity)")
            #expect(try stored(result.bytes, recipe).isSource)
        }
    }

    private func whole(_ path: String) throws -> [UInt8] {
        let bytes = try TestData.bytes(path)
        let header = try imageHeader(bytes)
        if header.format == .jpeg {
            return try Pixels(jpeg: bytes).jpeg(quality: 95, halvesChroma: false)
        }
        let samples = try EncodingTests.raster(bytes).flatMap { [$0[0], $0[1], $0[2]] }
        return try Pixels(
            width: header.displayedSize.width, height: header.displayedSize.height,
            samples: samples
        ).jpeg(quality: 95, halvesChroma: false)
    }

    @Test(.enabled(if: TestData.isAvailable))
    func halvesPhotographs() throws {
        var count = 0
        for path in try TestData.paths(in: "photos") {
            guard try imageHeader(TestData.bytes(path)).pixels < 500_000 else { continue }
            let result = try stored(whole(path), Recipe(quality: 85))
            #expect(try factors(result.bytes) == Self.halved, "\(path)")
            count += 1
        }
        #expect(count > 15)
    }

    @Test(
        .enabled(if: TestData.isAvailable),
        arguments: [
            "fuzz-go/gopkgdoc.png", "fuzz-go/godoc.png", "fuzz-go/play.png",
            "fuzz-go/chrome-app-list.png", "pngsuite/PngSuite.png", "pngsuite/ccwn3p08.png",
            "pngsuite/tp0n2c08.png", "wuffs/bricks-nodither.png", "pillow/pil123p.png",
        ])
    func keepsChromaOfGraphics(path: String) throws {
        let result = try stored(whole("png/" + path), Recipe(quality: 85))
        #expect(try factors(result.bytes) == Self.whole)
    }
}
