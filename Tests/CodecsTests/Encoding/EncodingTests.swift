import CodecFuzzing
import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Encoding in WebP and AVIF.
@Suite(.timeLimit(.minutes(15)))
struct EncodingTests {
    /// The formats that this build encodes.
    static let formats: [EncodedImageFormat] = [.webp, .avif].filter(\.isMade)

    /// A smooth picture with some noise, like a photograph.
    static func photograph(width: Int = 160, height: Int = 120, channels: Int = 3) throws -> [UInt8]
    {
        var random = SplitMix(seed: 5)
        return try GeneratedPNG(
            width: width, height: height, colorType: [0, 0, 4, 2, 6][channels], bitDepth: 8
        ).bytes { x, y in
            let noise = Int(random.next() & 7)
            let wave = 110 + Int(50 * sin(Double(x) / 17) + 40 * cos(Double(y + x / 3) / 23))
            let colours = [wave + noise, 225 - wave + noise, 40 + (x + y) / 3 % 180 + noise]
            let alpha = [255, 128, 0, 200][(x / 16 + y / 16) % 4]
            switch channels {
            case 1: return [colours[0]]
            case 2: return [colours[0], alpha]
            case 3: return colours
            default: return colours + [alpha]
            }
        }
    }

    /// A picture of four colours and lines.
    static func graphic(width: Int = 200, height: Int = 150) throws -> [UInt8] {
        let colours = [[255, 255, 255], [20, 60, 160], [230, 40, 30], [0, 0, 0]]
        return try GeneratedPNG(width: width, height: height, colorType: 2, bitDepth: 8).bytes {
            x, y in
            if (x + 2 * y) % 29 == 0 { return colours[3] }
            return colours[(x / 50 + y / 40) % 3]
        }
    }

    static func raster(_ bytes: [UInt8]) throws -> [SIMD4<UInt8>] {
        var recipe = Recipe(encoding: .png)
        recipe.stripping = .all
        recipe.effort = .fast
        return try ShownPixels(png: stored(bytes, recipe).bytes).pixels.map { pixel in
            SIMD4(truncatingIfNeeded: pixel &>> 8)
        }
    }

    static func similarity(_ one: [UInt8], _ other: [UInt8]) throws -> Double {
        func raster<Result>(
            _ bytes: [UInt8], _ body: (borrowing Raster) throws -> Result
        ) throws -> Result {
            try bytes.withUnsafeBytes { bytes in
                let header = try header(of: bytes)
                let codec = try #require(header.format.codec)
                let source = try codec.open(bytes, header, CodecLimits())
                var raster = try source.raster(
                    at: .full, Interruption(CodecLimits(), nil)
                ).encodable(Interruption(CodecLimits(), nil))
                try raster.turn(Interruption(CodecLimits(), nil))
                return try body(raster)
            }
        }
        return try raster(one) { one in
            try raster(other) { try one.similarity(to: $0, Interruption(CodecLimits(), nil)) }
        }
    }

    // MARK: - Encoded results

    @Test(arguments: formats, [1, 2, 3, 4])
    func looksLikeItsSource(format: EncodedImageFormat, channels: Int) throws {
        let source = try EncodingTests.photograph(channels: channels)
        var sizes: [Int] = []
        var last = 0.0
        for quality in [30, 60, 85, 97] {
            let encoding = try #require(Recipe.Encoding(rawValue: format.rawValue))
            let made = try stored(source, Recipe(encoding: encoding, quality: quality))
            #expect(made.image.format.rawValue == format.rawValue)
            #expect(made.image.widthInPixels == 160 && made.image.heightInPixels == 120)
            #expect(
                try stored(source, Recipe(encoding: encoding, quality: quality)).bytes == made.bytes
            )
            let similarity = try EncodingTests.similarity(made.bytes, source)
            #expect(similarity > last, "quality \(quality)")
            last = similarity
            sizes.append(made.bytes.count)
            // Alpha is lossless.
            let (before, after) = (
                try EncodingTests.raster(source), try EncodingTests.raster(made.bytes)
            )
            #expect(before.map(\.w) == after.map(\.w))
        }
        #expect(sizes == sizes.sorted() && last > 0.97)
    }

    /// A photograph, since libavif's speeds make no such promise for the noise of the others.
    @Test(arguments: formats)
    func moreEffortMakesFilesSmallerOrCloser(format: EncodedImageFormat) throws {
        let photograph = SourceTree.root.appending(path: "samples/images/landscape.png")
        let source = [UInt8](try Data(contentsOf: photograph))
        var recipe = Recipe(encoding: try #require(.init(rawValue: format.rawValue)), quality: 70)
        var files: [EncodingEffort: [UInt8]] = [:]
        for effort in EncodingEffort.allCases {
            recipe.effort = effort
            files[effort] = try stored(source, recipe).bytes
        }
        let fast = try #require(files[.fast])
        let small = try #require(files[.small])
        if Double(small.count) >= 1.02 * Double(fast.count) {
            let similarities = try [fast, small].map { try EncodingTests.similarity($0, source) }
            #expect(similarities[0] < similarities[1], "\(fast.count) \(small.count)")
        }
        #expect(Set(files.values.map(\.count)).count > 1)
    }

    @Test(.enabled(if: EncodedImageFormat.webp.isMade))
    func writesFlatPicturesLosslessAsWebP() throws {
        let source = try EncodingTests.graphic()
        let made = try stored(source, Recipe(encoding: .webp))
        #expect(try EncodingTests.raster(made.bytes) == EncodingTests.raster(source))
        #expect(made.bytes.count < source.count)
    }

    @Test(arguments: formats)
    func reducesQualityToFitSize(format: EncodedImageFormat) throws {
        let source = try EncodingTests.photograph(width: 300, height: 200)
        var recipe = Recipe(encoding: try #require(.init(rawValue: format.rawValue)))
        let whole = try stored(source, recipe).bytes.count
        let most = whole * 3 / 4
        recipe.maximumStoredBytes = most
        let fitting = try stored(source, recipe).bytes.count
        #expect(fitting <= most && fitting > most / 2)
        recipe.maximumStoredBytes = 100
        #expect(try stored(source, recipe).bytes.count > 100)
    }

    /// A re-encoding that is not smaller is replaced by the source.
    @Test(arguments: formats)
    func isNoLargerThanSourceOfSameFormat(format: EncodedImageFormat) throws {
        let encoding = try #require(Recipe.Encoding(rawValue: format.rawValue))
        let source = try stored(
            EncodingTests.photograph(), Recipe(encoding: encoding, quality: 40)
        ).bytes
        #expect(try stored(source, Recipe(encoding: encoding, quality: 90)).isSource)
        let larger = try stored(
            source, Recipe(encoding: encoding, quality: 90, keepsLarger: true))
        #expect(larger.bytes.count > source.count)
        let smaller = try stored(source, Recipe(encoding: encoding, quality: 10))
        #expect(smaller.bytes.count < source.count)
    }

    // MARK: - Metadata

    @Test(arguments: formats, [Recipe.Stripping.safe, .all, .none])
    func keepsProfiles(format: EncodedImageFormat, stripping: Recipe.Stripping) throws {
        let profile = Profiles.rgb(Profiles.wideColorants)
        let png = try GeneratedPNG(
            colorType: 2, bitDepth: 8, chunks: PNGFile.profileChunk(profile)
        ).bytes { x, y in [x * 6, y * 8, 100] }
        var recipe = Recipe(encoding: try #require(.init(rawValue: format.rawValue)))
        recipe.stripping = stripping
        let made = try stored(png, recipe).bytes
        let found: SourceColours = try made.withUnsafeBytes { bytes in
            let header = try header(of: bytes)
            let codec = try #require(header.format.codec)
            return try codec.open(bytes, header, CodecLimits()).colours
        }
        if stripping == .all {
            // An AVIF without a profile has code points.
            #expect(found == (format == .avif ? .sRGB(profile: nil) : .undeclared))
        } else {
            #expect(found == .profile(profile))
        }
    }

    @Test(arguments: formats, 1...8)
    func appliesOrientation(format: EncodedImageFormat, orientation: Int) throws {
        let png = try GeneratedPNG(
            width: 48, height: 32, colorType: 2, bitDepth: 8,
            chunks: PNGFile.chunk(.eXIf, ExifOrientation.minimalTIFF(orientation))
        ).bytes { x, y in x < 24 ? (y < 16 ? [250, 0, 0] : [0, 250, 0]) : [0, 0, 250] }
        let upright = try stored(png).bytes
        for stripping in [Recipe.Stripping.safe, .none] {
            var recipe = Recipe(
                encoding: try #require(.init(rawValue: format.rawValue)), quality: 95)
            recipe.stripping = stripping
            let made = try stored(png, recipe)
            let shown = try stored(made.bytes, Recipe(encoding: .png)).bytes
            #expect(try EncodingTests.similarity(shown, upright) > 0.9)
            // The PNG is rewritten from its own rows.
            let isTagged = stripping == .none && format == .png
            #expect(try imageHeader(made.bytes).orientation == (isTagged ? orientation : 1))
        }
    }

    // MARK: - Limits

    @Test func refusesSidesOverLimit() throws {
        let wide = try GeneratedPNG(width: 16384, height: 1, colorType: 0, bitDepth: 8).bytes {
            x, _ in [x % 251]
        }
        if EncodedImageFormat.webp.isMade {
            let error = refusal(wide, Recipe(encoding: .webp))
            #expect(error == .unsupported("a WebP has at most 16383 pixels a side"))
            let resized = try Recipe(specification: "webp,16000x1!")
            #expect(refusal(wide, resized) == nil)
            var smallest = Recipe(encoding: .auto)
            smallest.allowedFormats = [.webp, .jpeg]
            #expect(try stored(wide, smallest).image.format == .jpeg)
            smallest.allowedFormats = [.webp]
            guard case .unsupported? = refusal(wide, smallest) else {
                Issue.record("made")
                return
            }
        }
        if EncodedImageFormat.avif.isMade {
            #expect(refusal(wide, Recipe(encoding: .avif)) == nil)
        }
    }

    /// Pictures too large for AVIF readers are not encoded, neither alone nor among several
    /// recipes.
    @Test(.enabled(if: EncodedImageFormat.avif.isMade), arguments: [32769, 65536])
    func refusesAVIFSidesThatReadersRefuse(side: Int) throws {
        func source(_ width: Int, _ height: Int) throws -> [UInt8] {
            try GeneratedPNG(width: width, height: height, colorType: 0, bitDepth: 8)
                .bytes { x, y in [(x * 7 + y * 7) % 251] }
        }
        #expect(try stored(source(32768, 1), Recipe(encoding: .avif)).image.format == .avif)
        for (width, height) in [(side, 1), (1, side)] {
            let long = try source(width, height)
            #expect(
                refusal(long, Recipe(encoding: .avif))
                    == .unsupported("an AVIF has at most 32768 pixels a side"))
            var smallest = Recipe(encoding: .auto)
            smallest.allowedFormats = [.avif]
            #expect(
                refusal(long, smallest)
                    == .unsupported(
                        "none of --allow-formats holds a picture of \(width)×\(height) pixels"))
            smallest.allowedFormats = [.avif, .png]
            #expect(try stored(long, smallest).image.format == .png)
        }
    }

    @Test(arguments: formats)
    func encodesOnePixel(format: EncodedImageFormat) throws {
        for (width, height) in [(1, 1), (1, 40), (40, 1), (7, 3)] {
            let source = try EncodingTests.photograph(width: width, height: height, channels: 4)
            let encoding = try #require(Recipe.Encoding(rawValue: format.rawValue))
            let made = try stored(source, Recipe(encoding: encoding))
            #expect(made.image.widthInPixels == width && made.image.heightInPixels == height)
            #expect(try stored(source, Recipe(encoding: .auto)).image.widthInPixels == width)
        }
    }

    @Test(.enabled(if: formats.isEmpty))
    func refusesFormatsLeftOutOfBuild() throws {
        let source = try EncodingTests.photograph()
        for encoding in [Recipe.Encoding.webp, .avif] {
            guard case .unsupported? = refusal(source, Recipe(encoding: encoding)) else {
                Issue.record("\(encoding) is made")
                continue
            }
        }
        #expect(try stored(source, Recipe(encoding: .auto)).image.format != .webp)
    }

    /// Thumbnails keep their format, except for GIF.
    @Test(arguments: FormatSample.taken.filter { ($0.size ?? [0])[0] >= 16 })
    func thumbnailsStayInTheirFormat(sample: FormatSample) throws {
        let source = try sample.bytes
        let header = try imageHeader(source)
        guard max(header.widthInPixels, header.heightInPixels) < 2000 else { return }
        let recipe = try Recipe(specification: "8x8,animated=first")
        // AVIF colours that are not converted.
        if case .unsupported? = refusal(source, recipe) { return }
        let thumb = try stored(source, recipe)
        switch sample.format {
        case .webp, .avif: #expect(thumb.image.format == sample.format)
        default: #expect(thumb.image.format == .png)
        }
    }

    /// aom 3.6.0 states other tiles than it writes for one side of each limit.
    @Test(arguments: [(1024, 9000), (1050, 9000), (1050, 8704), (2100, 8740)])
    func largeAVIFsDecode(width: Int, height: Int) throws {
        guard let encoder = EncodedImageFormat.avif.encoder else { return }
        var recipe = Recipe(encoding: .avif)
        recipe.effort = .fast
        let interruption = Interruption(CodecLimits(), nil)
        let raster = try Raster(
            width: width, height: height, channels: 3, isClear: true, interruption)
        let made = try encoder.encode(raster, .none, recipe, interruption)
        try made.withUnsafeBytes { (bytes) throws in
            let header = try header(of: bytes)
            let source = try #require(header.format.codec).open(bytes, header, CodecLimits())
            let shown = try source.raster(at: .full, interruption)
            #expect(shown.widthInPixels == width && shown.heightInPixels == height)
        }
    }

    /// AV1 has at most 65536 pixels a side, which recipes are checked for before.
    @Test func refusalsOfEncodersAreInOurWords() throws {
        guard let encoder = EncodedImageFormat.avif.encoder else { return }
        let picture = GeneratedPNG(width: 70_000, height: 1, colorType: 2, bitDepth: 8)
        let result = Result { () throws(CodecError) in
            guard let rows = try? picture.rows({ x, _ in [x & 255, 0, 0] }) else {
                throw .outOfMemory("no rows")
            }
            return try encoder.encode(
                Raster(owning: rows), .none, Recipe(encoding: .avif),
                Interruption(CodecLimits(), nil)
            ).count
        }
        // Newer versions of libavif check the sides before aom does.
        let texts = ["aom does not encode the colours", "libavif does not write the file"]
        #expect(texts.map { .failure(.encodingFailed($0)) }.contains(result), "\(result)")
    }
}
