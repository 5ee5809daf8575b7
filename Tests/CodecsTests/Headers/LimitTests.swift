import PrefetchModel
import Testing

@testable import Codecs

@Suite(.serialized, .timeLimit(.minutes(15))) struct LimitTests {
    @Test(arguments: Samples.jpegs + Samples.pngs)
    func refusesMorePixelsThanAllowed(source: [UInt8]) throws {
        let pixels = try imageHeader(source).pixels
        #expect(refusal(source, limits: CodecLimits(maximumPixels: pixels)) == nil)
        guard case .tooManyPixels = refusal(source, limits: CodecLimits(maximumPixels: pixels - 1))
        else {
            Issue.record("accepted")
            return
        }
    }

    @Test(arguments: everyRecipe)
    func refusesAScanBomb(recipe: Recipe) {
        #expect(refusal(HandmadeJPEG.emptyScans(100), recipe) == nil)
        #expect(
            refusal(HandmadeJPEG.emptyScans(101), recipe)
                == .limitExceeded("more scans than allowed"))
    }

    @Test func refusesScansOverLimit() {
        var limits = CodecLimits()
        let scans = Samples.progressiveJPEG.markers(0xDA).count
        limits.maximumScans = scans
        #expect(refusal(Samples.progressiveJPEG, limits: limits) == nil)
        limits.maximumScans = scans - 1
        #expect(
            refusal(Samples.progressiveJPEG, limits: limits)
                == .limitExceeded("more scans than allowed"))
    }

    private static let late = CodecError.limitExceeded(
        "more processor time than --max-decode-time allows")

    @Test(arguments: everyRecipe)
    func refusesWorkOverTimeLimit(recipe: Recipe) throws {
        let side = 512
        let samples = (0..<side * side * 3).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let jpeg = try Pixels(width: side, height: side, samples: samples).jpeg(quality: 95)
        let png = try stored(jpeg, Recipe(encoding: .png)).bytes
        var limits = CodecLimits()
        for source in [jpeg, png] {
            #expect(refusal(source, recipe, limits: limits) == nil)
        }
        limits.maximumTime = .zero
        for source in [jpeg, png] {
            #expect(refusal(source, recipe, limits: limits) == Self.late)
        }
    }

    /// Many empty scans over many blocks: 3 MB that occupy a core for seconds.
    @Test func endsAtItsTime() throws {
        let whole = HandmadeJPEG.emptyScans(100, side: 4096)
        var limits = CodecLimits()
        limits.maximumTime = .milliseconds(50)
        let begin = ThreadClock.now
        #expect(refusal(whole, limits: limits) == Self.late)
        #expect(ThreadClock.now - begin < .milliseconds(400))
        #expect(refusal(whole) == nil)
        #expect(ThreadClock.now - begin > .milliseconds(100))
    }

    @Test func estimatesMemoryFromTheHeader() throws {
        let header = try imageHeader(Samples.baselineJPEG)
        let coefficients = 2 * (32 * 32 + 2 * 16 * 16)
        #expect(header.decodeMemoryBytes(for: Recipe()) >= coefficients + header.pixels)
        #expect(
            header.decodeMemoryBytes(for: Recipe(encoding: .original))
                < header.decodeMemoryBytes(for: Recipe()))
    }

    /// Every factor of an estimate is controlled by a file or a flag.
    @Test(arguments: Recipe.Encoding.allCases, EncodingEffort.allCases)
    func uncountableSizeExceedsEveryBudget(encoding: Recipe.Encoding, effort: EncodingEffort) throws
    {
        let most = 0x7FFF_FFFF
        for stripping in [Recipe.Stripping.none, .safe] {
            var recipe = Recipe(encoding: encoding, quality: 95, keepsLarger: true)
            recipe.effort = effort
            recipe.stripping = stripping
            recipe.maximumStoredBytes = .max
            for (bitDepth, colorType) in [(8, 2), (16, 6), (1, 0)] as [(UInt8, UInt8)] {
                var source = Samples.colourPNG
                source.replaceSubrange(
                    16..<24,
                    with: AnimationTests.bytes(UInt32(most)) + AnimationTests.bytes(UInt32(most)))
                source[24] = bitDepth
                source[25] = colorType
                for isTurned in [false, true] {
                    let turn = PNGFile.chunk(.eXIf, ExifOrientation.minimalTIFF(6))
                    var file = source
                    if isTurned { file.insert(contentsOf: turn, at: 33) }
                    let header = try imageHeader(
                        file, limits: CodecLimits(maximumPixels: 1 << 62))
                    #expect(header.pixels == most * most)
                    let need = header.decodeMemoryBytes(for: recipe)
                    #expect(encoding == .original ? need >= most : need > 1 << 60)
                    #expect(header.structureMemoryBytes(within: .max) >= most / 8)
                }
            }
        }
    }

    /// Camera images fit the default decoding share of `--memory`; an AVIF of their own size
    /// takes more.
    @Test(arguments: Recipe.Encoding.allCases, [ImageFormat.jpeg, .png])
    func fits24Megapixels(encoding: Recipe.Encoding, format: ImageFormat) throws {
        for isProgressive in [false, true] {
            let header = ImageHeader(
                format: format, widthInPixels: 6000, heightInPixels: 4000, bitDepth: 8,
                isProgressiveOrInterlaced: isProgressive, orientation: 1, channels: 3,
                memory: DecoderMemory(coefficientBytes: format == .jpeg ? 24_000_000 * 3 : 0),
                sourceBytes: 12_000_000)
            var resized = Recipe(encoding: encoding)
            resized.transformations = try Recipe.steps(in: "resize=1920")
            let takesMore = encoding == .avif || encoding == .auto
            for recipe in takesMore ? [resized] : [resized, Recipe(encoding: encoding)] {
                #expect(
                    ImageProcessor.memoryNeed(of: header, for: [recipe], within: 192 << 20)
                        <= 192 << 20)
            }
        }
    }

    @Test(arguments: EncodingEffort.allCases)
    func estimatesLineByPixels(effort: EncodingEffort) {
        var recipe = Recipe()
        recipe.effort = effort
        for (width, height) in [(65_500, 1), (1, 65_500)] {
            let header = ImageHeader(
                format: .png, widthInPixels: width, heightInPixels: height, bitDepth: 8,
                isProgressiveOrInterlaced: false, orientation: 6, channels: 4,
                sourceBytes: 262_000)
            #expect(header.decodeMemoryBytes(for: recipe) < 20 << 20)
        }
    }

    @Test(.enabled(if: TestData.isAvailable))
    func refusesBombsQuickly() throws {
        let clock = ContinuousClock()
        for path in try TestData.paths(in: "bombs") {
            let source = try TestData.bytes(path)
            let elapsed = clock.measure { _ = refusal(source) }
            #expect(elapsed < .seconds(5), "\(path)")
        }
        guard case .tooManyPixels = refusal(try TestData.bytes("bombs/lottapixel.jpg")) else {
            Issue.record("lottapixel.jpg is not refused for its pixels")
            return
        }
    }

    @Test(.enabled(if: TestData.isAvailable))
    func refusesUnsupportedFormatsByName() throws {
        let known = FormatSample.formats.map { "." + $0.fileExtension } + [".bmp"]
        for path in try TestData.paths(in: "unsupported")
        where !known.contains(where: path.hasSuffix) {
            switch refusal(try TestData.bytes(path)) {
            case .unsupported, .notAnImage: break
            case let other: Issue.record("\(path): \(other as Any)")
            }
        }
    }
}
