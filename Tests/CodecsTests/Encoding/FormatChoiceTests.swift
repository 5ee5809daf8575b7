import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// The format choice of `auto`, and its quality scale.
@Suite(.timeLimit(.minutes(15)))
struct FormatChoiceTests {
    private static func smallest(
        of formats: Set<EncodedImageFormat>, quality: Int = 80
    ) -> Recipe {
        var recipe = Recipe(encoding: .auto, quality: quality)
        recipe.allowedFormats = formats
        return recipe
    }

    private static let made = Set(EncodedImageFormat.allCases.filter(\.isMade))

    @Test(arguments: [40, 75, 90])
    func photographsAreSmallerThanJPEGAtSameSimilarity(quality: Int) throws {
        let source = try EncodingTests.photograph(width: 320, height: 240)
        let jpeg = try stored(source, Recipe(encoding: .jpeg, quality: quality))
        let made = try stored(
            source, FormatChoiceTests.smallest(of: FormatChoiceTests.made, quality: quality))
        #expect(made.bytes.count <= jpeg.bytes.count)
        // Two quality steps.
        let worse = try stored(source, Recipe(encoding: .jpeg, quality: quality - 5))
        #expect(
            try EncodingTests.similarity(made.bytes, source)
                > EncodingTests.similarity(worse.bytes, source))
        #expect(
            try stored(
                source, FormatChoiceTests.smallest(of: FormatChoiceTests.made, quality: quality)
            ).bytes == made.bytes)
    }

    /// A WebP or AVIF of high quality is smallest in its own format, too.
    @Test(arguments: [Recipe.Encoding.webp, .avif])
    func encodesKeptFormatsToo(encoding: Recipe.Encoding) throws {
        guard let format = encoding.format, format.isMade else { return }
        let photograph = try EncodingTests.photograph(width: 320, height: 240)
        let source = try stored(photograph, Recipe(encoding: encoding, quality: 98)).bytes
        let own = try stored(source, FormatChoiceTests.smallest(of: [format], quality: 60))
        #expect(own.image.format.rawValue == format.rawValue)
        #expect(2 * own.bytes.count < source.count)
        let jpeg = try stored(source, FormatChoiceTests.smallest(of: [.jpeg], quality: 60))
        let both = try stored(source, FormatChoiceTests.smallest(of: [.jpeg, format], quality: 60))
        #expect(both.bytes.count == min(own.bytes.count, jpeg.bytes.count))
    }

    @Test func neverLargerThanSource() throws {
        var sources = [try EncodingTests.graphic(), try EncodingTests.photograph(channels: 4)]
        for quality in [20, 60, 95] {
            sources.append(
                try stored(
                    EncodingTests.photograph(), Recipe(encoding: .jpeg, quality: quality)
                ).bytes)
        }
        if EncodedImageFormat.webp.isMade {
            sources.append(
                try stored(
                    EncodingTests.photograph(), Recipe(encoding: .webp, quality: 30)
                ).bytes)
        }
        for source in sources {
            for quality in [50, 85, 100] {
                let recipe = FormatChoiceTests.smallest(
                    of: FormatChoiceTests.made, quality: quality)
                #expect(try stored(source, recipe).bytes.count <= source.count)
            }
        }
    }

    /// The recipe's text omits the maximum size, so it must not affect the bytes.
    @Test func ignoresMaximumSize() throws {
        let photograph = try EncodingTests.photograph(width: 320, height: 240)
        for source in [
            photograph, try stored(photograph, Recipe(encoding: .jpeg, quality: 95)).bytes,
        ] {
            let recipe = FormatChoiceTests.smallest(of: [.jpeg, .png])
            var limited = recipe
            limited.maximumStoredBytes = 1000
            #expect(limited.canonicalText == recipe.canonicalText)
            #expect(try stored(source, limited).bytes == stored(source, recipe).bytes)
        }
    }

    @Test(.enabled(if: EncodedImageFormat.webp.isMade))
    func refusesSizesThatNoFormatHolds() throws {
        let source = try GeneratedPNG(
            width: 16384, height: 2, colorType: 2, bitDepth: 8
        ).bytes { x, y in [x % 256, y, 9] }
        let refused = CodecError.unsupported(
            "none of --allow-formats holds a picture of 16384×2 pixels")
        #expect(throws: refused) { try stored(source, FormatChoiceTests.smallest(of: [.webp])) }
        let made = try stored(source, FormatChoiceTests.smallest(of: [.webp, .png]))
        #expect(made.image.format == .png)
    }

    @Test func makesOnlyAllowedFormats() throws {
        let sources = [
            try EncodingTests.photograph(), try EncodingTests.graphic(),
            try EncodingTests.photograph(channels: 4),
            try stored(EncodingTests.photograph(), Recipe(encoding: .jpeg)).bytes,
        ]
        for source in sources {
            for format in FormatChoiceTests.made {
                let image = try stored(source, FormatChoiceTests.smallest(of: [format])).image
                #expect(image.format.rawValue == format.rawValue)
            }
        }
    }

    /// JPEG has no alpha channel, and no background is requested.
    @Test func keepsTransparency() throws {
        let source = try EncodingTests.photograph(channels: 4)
        let made = try stored(source, FormatChoiceTests.smallest(of: [.jpeg, .png]))
        #expect(made.image.format == .png)
        #expect(try EncodingTests.raster(made.bytes) == EncodingTests.raster(source))
        guard EncodedImageFormat.webp.isMade else { return }
        let webp = try stored(source, FormatChoiceTests.smallest(of: [.jpeg, .png, .webp]))
        #expect(
            try EncodingTests.raster(webp.bytes).map(\.w)
                == EncodingTests.raster(source).map(\.w))
        #expect(webp.image.format != .jpeg && webp.bytes.count < made.bytes.count)
    }

    @Test func keepsPixelsOfGraphics() throws {
        let source = try EncodingTests.graphic()
        let made = try stored(source, Recipe(encoding: .auto, quality: 60))
        #expect(try EncodingTests.raster(made.bytes) == EncodingTests.raster(source))
    }

    /// Gradients have few equal neighbours, like photographs.
    @Test(
        arguments: [(80, 60), (640, 400)],
        [
            { x, y in [x % 256, y % 256, (x + y) / 5 % 256] }, { x, y in [x * 255 / 640, 90, 40] },
            { x, y in [128, 128, 128, (x + y) / 4 % 255 + 1] },
        ] as [@Sendable (Int, Int) -> [Int]])
    func gradientsAreLossless(
        size: (width: Int, height: Int), colour: @Sendable (Int, Int) -> [Int]
    ) throws {
        let channels = colour(0, 0).count
        let source = try GeneratedPNG(
            width: size.width, height: size.height, colorType: channels == 3 ? 2 : 6, bitDepth: 8
        ).bytes(colour)
        let png = try stored(source, Recipe(encoding: .png))
        if EncodedImageFormat.webp.isMade {
            let webP = try stored(source, Recipe(encoding: .webp))
            #expect(try EncodingTests.raster(webP.bytes) == EncodingTests.raster(source))
            #expect(webP.bytes.count < png.bytes.count)
        }
        let smallest = try stored(source, FormatChoiceTests.smallest(of: [.jpeg, .png]))
        #expect(smallest.bytes.count <= png.bytes.count)
    }

    /// Small pictures are tried in every coding. Their entropy is high, but they repeat.
    @Test(
        .enabled(if: EncodedImageFormat.webp.isMade),
        arguments: [
            // Tiles of noise, narrower than the picture.
            { x, y in
                (0..<3).map {
                    ((x % 37 * 7919 + y % 50 * 104_729 + $0) &* 2_654_435_761) >> 13 & 255
                }
            },
            { x, y in [x ^ y & 255, x * 3 & 255 ^ y & 255, x & y & 255] },
            // Ordered dithers of a gradient: black and white, and 64 colours.
            { x, y in
                Array(repeating: x > [8, 136, 200, 72][x % 2 + y % 2 * 2] ? 255 : 0, count: 3)
            },
            { x, y in
                [x, y, (x + y) / 2].map { ($0 + [0, 32, 48, 16][x % 2 + y % 2 * 2]) / 64 * 63 }
            },
            // Lines of letters, five by seven pixels.
            { x, y in
                let letter = (x / 6 * 31 + y / 10 * 17) % 26
                let isInk =
                    x % 6 < 5 && y % 10 < 7 && (letter * 977 + 1) >> (x % 6 + y % 10) & 1 == 1
                return isInk ? [200, 30, 30] : [250, 248, 240]
            },
        ] as [@Sendable (Int, Int) -> [Int]])
    func smallPatternsAreLossless(colour: @Sendable (Int, Int) -> [Int]) throws {
        for (width, height) in [(60, 60), (255, 255), (390, 256)] {
            let source = try GeneratedPNG(width: width, height: height, colorType: 2, bitDepth: 8)
                .bytes { x, y in colour(x, y).map { min($0, 255) } }
            let webP = try stored(source, Recipe(encoding: .webp))
            #expect(try EncodingTests.raster(webP.bytes) == EncodingTests.raster(source))
            let smallest = try stored(source, FormatChoiceTests.smallest(of: [.png, .webp]))
            #expect(smallest.bytes.count <= webP.bytes.count)
        }
    }

    /// A photograph stays lossy, unless some of it has colours that 4:2:0 cannot show.
    @Test(.enabled(if: EncodedImageFormat.webp.isMade))
    func oneWrongCornerIsLossless() throws {
        for corner in [0, 16, 40] {
            var random = SplitMix(seed: 6)
            let source = try GeneratedPNG(width: 320, height: 240, colorType: 2, bitDepth: 8)
                .bytes { x, y in
                    let noise = Int(random.next() & 31)
                    guard x >= corner || y >= corner else {
                        return (x + y) % 2 == 0 ? [255, 0, 0] : [0, 0, 255]
                    }
                    return [x / 2 + noise, 100 + noise, y / 2 + noise]
                }
            let made = try stored(source, Recipe(encoding: .webp))
            let isExact = try EncodingTests.raster(made.bytes) == EncodingTests.raster(source)
            #expect(isExact == (corner > 0), "\(corner)")
        }
    }

    @Test func keepsAnimations() throws {
        for sample in FormatSample.taken {
            let source = try sample.bytes
            guard try imageHeader(source).isAnimated else { continue }
            let same = try stored(source)
            let made = try stored(source, Recipe(encoding: .auto))
            #expect(made.bytes == same.bytes && made.image.format == sample.format)
        }
    }

    @Test func severalRecipesGiveSameResultsAsAlone() throws {
        let source = try EncodingTests.photograph()
        var recipes = [Recipe(encoding: .auto), Recipe(encoding: .jpeg), Recipe(encoding: .png)]
        recipes += EncodingTests.formats.compactMap {
            Recipe.Encoding(rawValue: $0.rawValue).map { Recipe(encoding: $0) }
        }
        recipes.append(try Recipe(specification: "auto,64x64"))
        for source in [source, try stored(source, Recipe(encoding: .jpeg)).bytes] {
            let alone = try recipes.map { try stored(source, $0).bytes }
            let together = try source.withUnsafeBytes { bytes in
                try ImageProcessor.process(bytes, header: header(of: bytes), recipes: recipes)
                    .results.map { result in
                        switch try result.get().output {
                        case .source: source
                        case .encoded(let made): made.withUnsafeBytes { [UInt8]($0) }
                        }
                    }
            }
            #expect(alone == together)
        }
    }

    // MARK: - The scale

    @Test func curvesAreMonotonic() {
        for quality in 2...100 {
            #expect(
                QualityCurve.libwebp.value(at: quality)
                    > QualityCurve.libwebp.value(at: quality - 1))
            #expect(
                QualityCurve.aom.value(at: quality)
                    <= QualityCurve.aom.value(at: quality - 1))
        }
        #expect(
            QualityCurve.libwebp.value(at: 1) == 0 && QualityCurve.libwebp.value(at: 100) == 100)
        #expect(QualityCurve.aom.value(at: 1) == 63)
        #expect(QualityCurve.aom.value(at: 100) == 0)
    }

    /// Pictures with a larger or smaller loss per quality step than usual.
    @Test(arguments: [50, 80, 92], [0.6, 1, 1.7])
    func searchReachesReference(wanted: Int, offset: Double) {
        for reference in [0.95, 0.97, 0.985] {
            searchMeets(reference, wanted, offset)
        }
    }

    private func searchMeets(_ reference: Double, _ wanted: Int, _ offset: Double) {
        var search = QualityScale.Search(for: wanted, where: reference)
        var tried: [Int] = []
        while let quality = search.next, tried.count < 6 {
            tried.append(quality)
            let lost = (1 - reference) * offset * exp(-0.05 * Double(quality - wanted))
            search.add(1 - lost, of: quality)
        }
        #expect(Set(tried).count == tried.count && tried.first == wanted)
        #expect(search.isLastGood, "\(tried)")
        let needed = Double(wanted) + log(offset) / 0.05
        #expect(abs(Double(tried.last ?? 0) - needed) < 6 || tried.last == 100, "\(tried)")
    }

    @Test func searchStopsAtLosslessResult() {
        var search = QualityScale.Search(for: 80, where: 0.98)
        search.add(1, of: 80)
        #expect(search.next == nil && search.isLastGood)
    }

    // MARK: - Similarity

    /// Compares with the definition, window by window, in floating point.
    @Test(arguments: [(8, 8), (9, 8), (31, 20), (3, 5), (64, 17)], [1, 2, 3, 4])
    func similarityMatchesItsDefinition(size: (Int, Int), channels: Int) throws {
        let one = try EncodingTests.photograph(width: size.0, height: size.1, channels: channels)
        var random = SplitMix(seed: 11)
        let pixels = try EncodingTests.raster(one)
        let changed = pixels.map { pixel in
            var pixel = pixel
            for index in 0..<3 {
                pixel[index] = UInt8(
                    clamping: Int(pixel[index]) + Int(random.next() % 31) - 15)
            }
            return pixel
        }
        let other = try GeneratedPNG(
            width: size.0, height: size.1, colorType: 6, bitDepth: 8
        ).bytes { x, y in
            let pixel = changed[y * size.0 + x]
            return [Int(pixel.x), Int(pixel.y), Int(pixel.z), Int(pixel.w)]
        }
        let expected = FormatChoiceTests.similarity(pixels, changed, width: size.0, height: size.1)
        #expect(abs(try EncodingTests.similarity(one, other) - expected) < 1e-9)
        #expect(try EncodingTests.similarity(one, one) == 1)
    }

    private static func similarity(
        _ one: [SIMD4<UInt8>], _ other: [SIMD4<UInt8>], width: Int, height: Int
    ) -> Double {
        func side(_ length: Int) -> Int { max(8, (length + 3) / 4 * 4) }
        func plane(_ pixels: [SIMD4<UInt8>], _ weights: [Double], _ base: Double) -> [[Double]] {
            (0..<side(height)).map { y in
                (0..<side(width)).map { x in
                    let pixel = pixels[min(y, height - 1) * width + min(x, width - 1)]
                    var sum = base
                    for (index, weight) in weights.enumerated() {
                        let laid = (Double(pixel[index]) * Double(pixel.w) / 255 + 0.499).rounded(
                            .down)
                        sum += weight * laid
                    }
                    return (sum / 256).rounded(.down)
                }
            }
        }
        let kinds: [(weights: [Double], base: Double, share: Double)] = [
            ([77, 150, 29], 128, 6), ([-43, -85, 128], 128 * 256 + 127, 1),
            ([128, -107, -21], 128 * 256 + 127, 1),
        ]
        var total = 0.0
        for kind in kinds {
            let (a, b) = (
                plane(one, kind.weights, kind.base), plane(other, kind.weights, kind.base)
            )
            var (sum, count) = (0.0, 0.0)
            for top in stride(from: 0, through: side(height) - 8, by: 4) {
                for left in stride(from: 0, through: side(width) - 8, by: 4) {
                    var (x, y): ([Double], [Double]) = ([], [])
                    for row in top..<top + 8 {
                        x += a[row][left..<left + 8]
                        y += b[row][left..<left + 8]
                    }
                    let (meanX, meanY) = (x.reduce(0, +) / 64, y.reduce(0, +) / 64)
                    let varianceX = x.map { $0 * $0 }.reduce(0, +) / 64 - meanX * meanX
                    let varianceY = y.map { $0 * $0 }.reduce(0, +) / 64 - meanY * meanY
                    let both = zip(x, y).map(*).reduce(0, +) / 64 - meanX * meanY
                    let (c1, c2) = (2.55 * 2.55, 7.65 * 7.65)
                    sum +=
                        (2 * meanX * meanY + c1) * (2 * both + c2)
                        / ((meanX * meanX + meanY * meanY + c1) * (varianceX + varianceY + c2))
                    count += 1
                }
            }
            total += kind.share * sum / count
        }
        return total / 8
    }
}
