import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// `same` of the lossy formats that may keep their data.
@Suite(.timeLimit(.minutes(15)))
struct SameQualityTests {
    private static let formats = [Recipe.Encoding.webp, .avif].filter { $0.format?.isMade == true }

    private static func header(_ source: [UInt8]) throws -> ImageHeader {
        try source.withUnsafeBytes { try Codecs.header(of: $0) }
    }

    /// The quantiser tells the quality of a file, as far as a lower quality is a coarser one.
    @Test(arguments: formats)
    func readsQualityFromQuantiser(encoding: Recipe.Encoding) throws {
        for (width, height, channels) in [(320, 240, 3), (161, 97, 4), (5000, 80, 3)] {
            let photograph = try EncodingTests.photograph(
                width: width, height: height, channels: channels)
            for quality in [20, 40, 60, 75, 85, 90, 95] {
                let source = try stored(photograph, Recipe(encoding: encoding, quality: quality))
                let read = try #require(try SameQualityTests.header(source.bytes).lossyQuality)
                #expect(abs(read - Double(quality)) <= ImageHeader.qualityTolerance, "\(quality)")
            }
        }
    }

    /// A second run changes nothing, whatever the first one has made.
    @Test(arguments: formats)
    func keepsWhatIsNoFiner(encoding: Recipe.Encoding) throws {
        for channels in [1, 3, 4] {
            let photograph = try EncodingTests.photograph(
                width: 320, height: 240, channels: channels)
            for quality in [30, 60, 85, 95] {
                let source = try stored(photograph, Recipe(encoding: encoding, quality: quality))
                for higher in [quality, min(quality + 10, 100)] {
                    for recipe in [
                        Recipe(quality: higher), Recipe(encoding: encoding, quality: higher),
                    ] {
                        let same = try stored(source.bytes, recipe)
                        #expect(same.bytes == source.bytes)
                        // No attempt was made.
                        let header = try SameQualityTests.header(source.bytes)
                        #expect(try header.keepsData(for: recipe, #require(header.codec).same))
                    }
                }
            }
        }
    }

    @Test(arguments: formats)
    func encodesFinerSourcesAgain(encoding: Recipe.Encoding) throws {
        for channels in [1, 3, 4] {
            let photograph = try EncodingTests.photograph(
                width: 320, height: 240, channels: channels)
            let source = try stored(photograph, Recipe(encoding: encoding, quality: 97)).bytes
            let same = try stored(source, Recipe(quality: 60))
            let direct = try stored(photograph, Recipe(encoding: encoding, quality: 60))
            #expect(same.image.format.rawValue == encoding.rawValue)
            #expect(5 * same.bytes.count < 6 * direct.bytes.count)
            #expect(same.bytes.count < source.count)
            #expect(
                try EncodingTests.similarity(same.bytes, photograph)
                    > EncodingTests.similarity(direct.bytes, photograph) - 0.02)
            #expect(try stored(same.bytes, Recipe(quality: 60)).bytes == same.bytes)
        }
    }

    @Test(arguments: formats)
    func fitsStoredSize(encoding: Recipe.Encoding) throws {
        let photograph = try EncodingTests.photograph(width: 320, height: 240)
        let source = try stored(photograph, Recipe(encoding: encoding, quality: 80)).bytes
        var recipe = Recipe(quality: 85)
        recipe.maximumStoredBytes = source.count * 2 / 3
        #expect(try stored(source, recipe).bytes.count <= source.count * 2 / 3)
        recipe.maximumStoredBytes = source.count
        #expect(try stored(source, recipe).bytes == source)
    }

    @Test func keepsLosslessWebP() throws {
        guard EncodedImageFormat.webp.isMade else { return }
        let graphic = try EncodingTests.graphic()
        let source = try stored(graphic, Recipe(encoding: .webp)).bytes
        #expect(try SameQualityTests.header(source).lossyQuality == nil)
        var recipe = Recipe(quality: 20)
        recipe.maximumStoredBytes = 1
        #expect(try stored(source, recipe).bytes == source)
        #expect(try EncodingTests.raster(source) == EncodingTests.raster(graphic))
    }

    /// A picture that is too large to be encoded within the memory is stored, not refused.
    @Test(arguments: formats)
    func keepsDataWhereMemoryIsShort(encoding: Recipe.Encoding) throws {
        let photograph = try EncodingTests.photograph(width: 640, height: 480)
        let source = try stored(photograph, Recipe(encoding: encoding, quality: 97)).bytes
        let header = try SameQualityTests.header(source)
        var recipe = Recipe(quality: 60)
        recipe.maximumStoredBytes = 1
        func need(_ budget: Int, _ recipes: [Recipe]) -> Int {
            ImageProcessor.memoryNeed(of: header, for: recipes, within: budget)
        }
        for recipes in [[recipe], [recipe, Recipe(encoding: .original)]] {
            let whole = need(.max, recipes)
            let least = need(0, recipes)
            #expect(3 * least < 2 * whole)
            for (budget, isKept) in [(whole, false), (least, true)] {
                let reserved = need(budget, recipes)
                #expect(reserved <= budget)
                let entry = try source.withUnsafeBytes { bytes in
                    try ImageProcessor.process(
                        bytes, header: header, recipes: recipes, memoryBytes: reserved)
                }
                let image = try entry.results[0].get()
                if case .source = image.output {
                    #expect(isKept)
                } else {
                    #expect(!isKept)
                }
            }
        }
    }

    /// Metadata that a new encoding would lose is not lost for a few bytes.
    @Test func keepsMetadataThatNoEncoderWrites() throws {
        guard EncodedImageFormat.webp.isMade else { return }
        let photograph = try EncodingTests.photograph(width: 320, height: 240)
        let plain = try stored(photograph, Recipe(encoding: .webp, quality: 97)).bytes
        var source = Array("RIFF\0\0\0\0WEBPVP8X".utf8) + [10, 0, 0, 0, 4, 0, 0, 0]
        source += [63, 1, 0, 239, 0, 0] + plain[12...] + Array("ABCD".utf8) + [2, 0, 0, 0, 60, 62]
        for byte in 0..<4 {
            source[4 + byte] = UInt8(truncatingIfNeeded: (source.count - 8) >> (8 * byte))
        }
        var recipe = Recipe(quality: 60)
        recipe.stripping = .none
        #expect(try stored(source, recipe).bytes == source)
        recipe.stripping = .safe
        #expect(try 2 * stored(source, recipe).bytes.count < source.count)
    }

    /// The first frame of an animation is encoded, whatever metadata its file has.
    @Test func firstFrameIsNotReplacedByItsAnimation() throws {
        guard EncodedImageFormat.webp.isMade else { return }
        var source = try FormatSample.named("animation", .webp)
        source += Array("XMP ".utf8) + [2, 0, 0, 0, 60, 62]
        for byte in 0..<4 {
            source[4 + byte] = UInt8(truncatingIfNeeded: (source.count - 8) >> (8 * byte))
        }
        #expect(try SameQualityTests.header(source).isAnimated)
        var recipe = Recipe()
        recipe.animation = .first
        recipe.stripping = .none
        #expect(try !SameQualityTests.header(stored(source, recipe).bytes).isAnimated)
        recipe.animation = .keep
        #expect(try stored(source, recipe).bytes == source)
    }

    /// The headers of any bytes are read within them.
    @Test func readsDamagedHeaders() throws {
        var random = SplitMix(seed: 32)
        for encoding in SameQualityTests.formats {
            let photograph = try EncodingTests.photograph()
            let source = try stored(photograph, Recipe(encoding: encoding, quality: 97)).bytes
            for _ in 0..<2_000 {
                var damaged = source
                for _ in 0..<3 {
                    damaged[Int(random.next() % UInt64(min(damaged.count, 500)))] =
                        UInt8(truncatingIfNeeded: random.next())
                }
                let count = Int(random.next() % UInt64(damaged.count))
                for bytes in [damaged, Array(damaged.prefix(count))] {
                    guard let header = try? SameQualityTests.header(bytes),
                        let quality = header.lossyQuality
                    else { continue }
                    #expect((1...100).contains(quality))
                }
            }
        }
    }
}
