import CPNG
import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Lossless reduction of colour type and depth.
@Suite(.serialized, .timeLimit(.minutes(15))) struct PNGReductionTests {
    /// The content of pixels, relative to the largest sample.
    enum Content: String, CaseIterable {
        case noise, gradient, grey, greyNoise, opaque, fewColors, fewGreys, twoGreys, oneColor
        case eightBit, transparent, partlyTransparent, regular

        /// The colour samples and alpha, each 0 to 255, and the lower byte of a 16-bit sample.
        func pixel(_ x: Int, _ y: Int) -> (color: [Int], alpha: Int, low: Int?) {
            var numbers = SplitMix(seed: UInt64(x * 7919 + y))
            let noise = (0..<4).map { _ in Int.random(in: 0...255, using: &numbers) }
            let low = noise[0] ^ noise[2]
            switch self {
            case .noise: return (Array(noise[0..<3]), noise[3], low)
            case .gradient: return ([x * 3, y * 5, x + y], 255 - x, low)
            case .grey: return (Array(repeating: noise[0] / 4, count: 3), noise[1], low)
            case .greyNoise: return (Array(repeating: noise[0], count: 3), 255, low)
            case .opaque: return (Array(noise[0..<3]), 255, low)
            case .fewColors:
                return ([noise[0] / 26 * 20, 7, noise[1] / 86 * 80], noise[2] > 15 ? 255 : 99, nil)
            case .fewGreys: return (Array(repeating: noise[0] / 20, count: 3), 255, nil)
            case .twoGreys:
                return (Array(repeating: (x ^ y) & 4 == 0 ? 0 : 255, count: 3), 255, nil)
            case .oneColor: return ([3, 99, 200], 255, nil)
            case .eightBit: return (Array(noise[0..<3]), noise[3], nil)
            // The same grey with and without transparency, so that no colour key is possible.
            case .partlyTransparent:
                let alpha = noise[0] == 20 && noise[1] < 128 ? 0 : 255
                return (Array(repeating: noise[0], count: 3), alpha, nil)
            case .regular: return ([x + y, x + y, x + y], x % 3 * 90, low)
            case .transparent:
                return (Array(repeating: noise[0], count: 3), noise[0] == 20 ? 0 : 255, nil)
            }
        }
    }

    static let kinds = [
        (0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8),
        (4, 8), (4, 16), (6, 8), (6, 16),
    ]

    /// A picture of one of PNG's kinds; grey uses red, and a palette index its high bits.
    static func source(_ kind: (Int, Int), _ content: Content, chunks: [UInt8] = []) throws
        -> [UInt8]
    {
        let (type, depth) = kind
        var picture = GeneratedPNG(colorType: type, bitDepth: depth, chunks: chunks)
        if type == 3 {
            let entries = (0..<1 << depth).flatMap { index -> [UInt8] in
                let value = UInt8(index * 255 / (1 << depth - 1))
                return content == .fewColors ? [value, 7, 255 - value] : [value, value, value]
            }
            picture.chunks += PNGFile.chunk(.PLTE, entries)
            picture.chunks += PNGFile.chunk(
                .tRNS, Array(repeating: 255, count: 1 << depth - 1) + [9])
        }
        return try picture.bytes { x, y in
            let (color, alpha, low) = content.pixel(x, y)
            var samples = type & 2 == 0 || type == 3 ? [color[0]] : color
            if type & 4 != 0 { samples.append(alpha) }
            return samples.map { sample in
                if depth < 16 { return sample >> (8 - depth) }
                // Full alpha stays full.
                return sample << 8 | (sample == 255 || sample == 0 ? sample : low ?? sample)
            }
        }
    }

    @Test(arguments: kinds, Content.allCases)
    func everyKindKeepsItsPixelsWithEachEffort(kind: (Int, Int), content: Content) throws {
        let source = try Self.source(kind, content)
        let shown = try ShownPixels(png: source)
        for effort in EncodingEffort.allCases {
            for keepsLarger in [false, true] {
                let recipe = Recipe(keepsLarger: keepsLarger)
                let result = try stored(source, recipe, effort: effort)
                #expect(try ShownPixels(png: result.bytes) == shown)
                if !keepsLarger { #expect(result.bytes.count <= source.count) }
                #expect(try stored(result.bytes, recipe, effort: effort).isSource)
            }
        }
    }

    struct Case: CustomStringConvertible {
        let kind: (Int, Int)
        let content: Content
        let expected: (Int, Int)
        var description: String { "\(kind) \(content) to \(expected)" }
    }

    static let cases = [
        Case(kind: (6, 8), content: .opaque, expected: (2, 8)),
        Case(kind: (6, 16), content: .opaque, expected: (2, 16)),
        Case(kind: (6, 8), content: .noise, expected: (6, 8)),
        Case(kind: (6, 16), content: .noise, expected: (6, 16)),
        Case(kind: (6, 16), content: .eightBit, expected: (6, 8)),
        Case(kind: (2, 16), content: .eightBit, expected: (2, 8)),
        Case(kind: (6, 16), content: .grey, expected: (4, 16)),
        Case(kind: (6, 8), content: .greyNoise, expected: (0, 8)),
        Case(kind: (2, 8), content: .greyNoise, expected: (0, 8)),
        Case(kind: (2, 16), content: .greyNoise, expected: (0, 16)),
        Case(kind: (4, 8), content: .greyNoise, expected: (0, 8)),
        Case(kind: (6, 8), content: .fewColors, expected: (3, 8)),
        Case(kind: (6, 16), content: .fewColors, expected: (3, 8)),
        Case(kind: (2, 8), content: .fewGreys, expected: (3, 4)),
        Case(kind: (0, 8), content: .fewGreys, expected: (3, 4)),
        Case(kind: (6, 16), content: .twoGreys, expected: (0, 1)),
        Case(kind: (0, 8), content: .twoGreys, expected: (0, 1)),
        Case(kind: (3, 8), content: .twoGreys, expected: (3, 1)),
        Case(kind: (3, 8), content: .greyNoise, expected: (3, 8)),
        Case(kind: (6, 8), content: .oneColor, expected: (3, 1)),
        Case(kind: (6, 8), content: .transparent, expected: (0, 8)),
        Case(kind: (4, 16), content: .transparent, expected: (0, 8)),
        Case(kind: (6, 8), content: .partlyTransparent, expected: (4, 8)),
    ]

    /// The depth and type of the stored file, without a size trial.
    static func reduced(_ source: [UInt8]) throws -> (colorType: Int, bitDepth: Int) {
        let result = try stored(source, Recipe(keepsLarger: true))
        let file = try result.bytes.withUnsafeBytes { try PNGFile($0) }
        return (file.colorType, file.bitDepth)
    }

    @Test(arguments: cases)
    func choosesTheSmallestKind(_ test: Case) throws {
        let made = try Self.reduced(Self.source(test.kind, test.content))
        #expect(made == test.expected)
    }

    // MARK: - Transparent colours

    @Test(arguments: [(0, 16), (2, 16), (0, 8), (2, 8)], [true, false])
    func aTransparentColorStaysTransparent(kind: (Int, Int), isGrey: Bool) throws {
        // The colour of the column x = 20, so it is present in the picture.
        let key = isGrey ? [120, 120, 120] : [120, 7, 240]
        let samples = kind.0 == 0 ? [key[0]] : key
        let data = samples.flatMap { sample -> [UInt8] in
            [UInt8(kind.1 == 16 ? sample : 0), UInt8(sample)]
        }
        let picture = GeneratedPNG(
            colorType: kind.0, bitDepth: kind.1, chunks: PNGFile.chunk(.tRNS, data))
        let source = try picture.bytes { x, y in
            let color = isGrey ? [x * 6, x * 6, x * 6] : [x * 6, 7, 2 * x * 6]
            let samples = kind.0 == 0 ? [color[0]] : color.map { min($0, 255) }
            return kind.1 == 16 ? samples.map { $0 * 257 } : samples
        }
        let shown = try ShownPixels(png: source)
        #expect(shown.pixels.contains { $0.w == 0 })
        for effort in EncodingEffort.allCases {
            let result = try stored(source, Recipe(keepsLarger: true), effort: effort)
            #expect(try ShownPixels(png: result.bytes) == shown)
        }
    }

    /// Bits beyond the depth are ignored (PNG section 11.3.1.1).
    @Test(arguments: [(0, 2), (0, 4), (0, 8), (2, 8)], [true, false])
    func aTransparentColorWithHighBitsStaysTransparent(kind: (Int, Int), isGrey: Bool) throws {
        let most = 1 << kind.1 - 1
        let key = (0..<(kind.0 == 0 ? 1 : 3)).map { isGrey || kind.0 == 0 ? most : most - $0 }
        let picture = GeneratedPNG(
            colorType: kind.0, bitDepth: kind.1,
            chunks: PNGFile.chunk(.tRNS, key.flatMap { [0xA5, UInt8($0 | 0xF0 & ~most)] }))
        let source = try picture.bytes { x, y in
            x % 4 == 0 ? key : key.map { _ in (x + y) & most }
        }
        let shown = try ShownPixels(png: source)
        #expect(shown.pixels.filter { $0.w == 0 }.count >= 300)
        for effort in EncodingEffort.allCases {
            for keepsLarger in [false, true] {
                let recipe = Recipe(keepsLarger: keepsLarger)
                let made = try stored(source, recipe, effort: effort)
                #expect(try ShownPixels(png: made.bytes) == shown)
                #expect(try stored(made.bytes, recipe, effort: effort).isSource)
            }
        }
    }

    /// 0x7801 is not an 8-bit colour: without its low byte, every 0x7878 pixel would become
    /// transparent.
    @Test func unusedTransparentColorIsDropped() throws {
        for type in [0, 2] {
            let data: [UInt8] = type == 0 ? [0x78, 1] : [0x78, 1, 0x78, 1, 0x78, 1]
            let picture = GeneratedPNG(
                colorType: type, bitDepth: 16, chunks: PNGFile.chunk(.tRNS, data))
            let source = try picture.bytes { x, y in
                Array(repeating: (x * 6 & 255) * 257, count: type == 0 ? 1 : 3)
            }
            let result = try stored(source)
            #expect(try ShownPixels(png: result.bytes) == ShownPixels(png: source))
            #expect(try PNGTests.data(of: .tRNS, in: result.bytes) == nil)
        }
    }

    // MARK: - Obstacles

    @Test(arguments: [
        (UInt32.cICP, [UInt8(9), 16, 0, 1]), (.mDCV, [UInt8](repeating: 1, count: 24)),
        (.cLLI, [UInt8](repeating: 1, count: 8)),
    ])
    func codePointsKeepGreyAsColor(type: UInt32, data: [UInt8]) throws {
        let chunk = PNGFile.chunk(type, data)
        let made = try stored(
            Self.source((6, 8), .greyNoise, chunks: chunk), Recipe(keepsLarger: true))
        let file = try made.bytes.withUnsafeBytes { try PNGFile($0) }
        #expect(file.colorType & 2 != 0)
        #expect(try PNGTests.data(of: type, in: made.bytes) == data)
    }

    @Test(arguments: [("RGB ", 6), ("RGB ", 2), ("GRAY", 0), ("GRAY", 4)])
    func profileKeepsColorAndGreyApart(space: String, type: Int) throws {
        let chunk = PNGFile.profileChunk(JPEGTests.profile(space: space, count: 400))
        for content in Content.allCases {
            let source = try Self.source((type, 8), content, chunks: chunk)
            let made = try stored(source, Recipe(keepsLarger: true))
            let file = try made.bytes.withUnsafeBytes { try PNGFile($0) }
            #expect(file.colorType & 2 == type & 2)
            #expect(try PNGTests.data(of: .iCCP, in: made.bytes) != nil)
        }
    }

    /// Chunks that prevent the reduction; the command has already dropped or kept the others.
    @Test(arguments: [
        (UInt32(0x624B_4744), true), (0x6849_5354, true), (0x7A7A_7A5A, true), (0x7A7A_7A7A, false),
    ])
    func pixelDependentChunksPreventReduction(type: UInt32, prevents: Bool) throws {
        let chunk = PNGFile.chunk(type, [0, 1])
        var rows = try GeneratedPNG(colorType: 2, bitDepth: 8).rows { _, _ in [1, 1, 1] }
        defer { cpng_image_free(&rows) }
        let made = try #require(
            try PNGEncoding(
                effort: .balanced, changesKind: true, interruption: Interruption(CodecLimits(), nil)
            ).encoded(
                &rows, chunks: chunk, maximumBytes: .max / 4)
        )
        let bytes = made.withUnsafeBytes { [UInt8]($0) }
        let file = try bytes.withUnsafeBytes { try PNGFile($0) }
        #expect(file.colorType == (prevents ? 2 : 3))
        #expect(try PNGTests.data(of: type, in: bytes) == [0, 1])
    }

    @Test func indexOutsidePalettePreventsReduction() throws {
        let chunks = PNGFile.chunk(.PLTE, [1, 2, 3, 4, 5, 6])
        var rows = try GeneratedPNG(colorType: 3, bitDepth: 8).rows { x, _ in [x % 3] }
        defer { cpng_image_free(&rows) }
        let made = try #require(
            try PNGEncoding(
                effort: .balanced, changesKind: true, interruption: Interruption(CodecLimits(), nil)
            ).encoded(
                &rows, chunks: chunks, maximumBytes: .max / 4))
        let bytes = made.withUnsafeBytes { [UInt8]($0) }
        #expect(try PNGTests.data(of: .PLTE, in: bytes) == [1, 2, 3, 4, 5, 6])
        #expect(try PackedRows(png: bytes).samples.prefix(4) == [0, 1, 2, 0])
    }

    // MARK: - Dependent chunks

    @Test(arguments: [
        ((6, 8), Content.opaque, [UInt8(5), 6, 7, 8], [UInt8(5), 6, 7]),
        ((6, 16), .eightBit, [12, 3, 16, 1], [8, 3, 8, 1]),
        ((2, 8), .greyNoise, [5, 6, 4], [6]),
        ((4, 8), .grey, [5, 8], [5, 8]),
        ((0, 8), .fewGreys, [5], [5, 5, 5]),
        ((0, 8), .twoGreys, [5], [1]),
        ((6, 8), .fewColors, [5, 6, 7, 3], [5, 6, 7]),
    ])
    func significantBitsFollowTheKind(
        kind: (Int, Int), content: Content, bits: [UInt8], expected: [UInt8]
    ) throws {
        let source = try Self.source(kind, content, chunks: PNGFile.chunk(.sBIT, bits))
        let made = try stored(source, Recipe(keepsLarger: true))
        #expect(try PNGTests.data(of: .sBIT, in: made.bytes) == expected)
    }

    @Test func paletteLosesUnusedAndDuplicateEntries() throws {
        var entries: [UInt8] = []
        for index in 0..<200 { entries += [UInt8(index % 50), 9, UInt8(index % 50)] }
        let chunks =
            PNGFile.chunk(.PLTE, entries)
            + PNGFile.chunk(.tRNS, Array(repeating: 255, count: 200))
        let source = try GeneratedPNG(colorType: 3, bitDepth: 8, chunks: chunks).bytes { x, y in
            [(x + y) % 30 + 50 * (x % 4)]
        }
        let made = try stored(source)
        let palette = try PNGTests.data(of: .PLTE, in: made.bytes)
        #expect(palette == Array(entries[..<90]))
        #expect(try PNGTests.data(of: .tRNS, in: made.bytes) == nil)
        #expect(try ShownPixels(png: made.bytes) == ShownPixels(png: source))
    }

    @Test func newPaletteStartsWithTransparentEntries() throws {
        let made = try stored(try Self.source((6, 8), .fewColors), Recipe(keepsLarger: true))
        let transparency = try #require(try PNGTests.data(of: .tRNS, in: made.bytes))
        #expect(transparency.allSatisfy { $0 == 99 })
    }

    @Test func keepsColorsUnderFullTransparency() throws {
        let picture = GeneratedPNG(colorType: 6, bitDepth: 8)
        let source = try picture.bytes { x, y in [x / 8, y / 8, 5, x < 20 ? 0 : 255] }
        let made = try stored(source)
        #expect(try ShownPixels(png: made.bytes) == ShownPixels(png: source))
        #expect(made.bytes.count < source.count)
    }

    // MARK: - Sizes

    static func withoutReduction(_ source: [UInt8], effort: EncodingEffort) throws -> Int {
        var limits = cpng_limits(
            maximum_pixels: 1 << 28, maximum_warnings: 100, maximum_whole_bytes: .max,
            interruption: nil, lacks_end: false, unended: cpng_form())
        var rows = cpng_image()
        var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
        try #require(
            cpng_decode(source, source.count, &limits, &rows, nil, &message) == CCODEC_OK)
        defer { cpng_image_free(&rows) }
        let chunks = try source.withUnsafeBytes {
            try PNGFile($0).metadata(
                hasTransparency: rows.has_transparency, stripping: .safe, isUpright: false
            )
            .leading.bytes(of: $0)
        }
        let encoding = PNGEncoding(
            effort: effort, changesKind: false, interruption: Interruption(CodecLimits(), nil))
        let made = try #require(
            try encoding.encoded(&rows, chunks: chunks, maximumBytes: .max / 4))
        return made.count
    }

    @Test(arguments: kinds, Content.allCases)
    func neverLargerThanUnreduced(kind: (Int, Int), content: Content) throws {
        let source = try Self.source(kind, content)
        for effort in EncodingEffort.allCases {
            let made = try stored(source, Recipe(keepsLarger: true), effort: effort)
            #expect(made.bytes.count <= (try Self.withoutReduction(source, effort: effort)))
        }
    }

    @Test(
        .enabled(if: TestData.isAvailable),
        arguments: try TestData.isAvailable
            ? [
                "pngsuite", "pillow", "wuffs", "libgd", "libpng-testpngs", "deep-colour",
                "bugfixes",
            ]
            .flatMap { try TestData.expectations(in: "png/\($0)") }
            .filter { $0.isAcceptedByBoth } : [])
    func realPicturesKeepTheirPixelsAndShrink(expectation: TestData.Expectation) throws {
        let source = try TestData.bytes(expectation.path)
        // Rotated pixels are a different picture (OrientationTests).
        guard refusal(source) == nil, try imageHeader(source).orientation == 1 else { return }
        let shown = try ShownPixels(png: source)
        // The slow effort only on small pictures, which are the majority.
        let efforts: [EncodingEffort] =
            shown.pixels.count > 20_000 ? [.fast, .balanced] : EncodingEffort.allCases
        for effort in efforts {
            let recipe = Recipe(keepsLarger: true)
            let made = try stored(source, recipe, effort: effort)
            #expect(try ShownPixels(png: made.bytes) == shown)
            #expect(made.bytes.count <= (try Self.withoutReduction(source, effort: effort)))
            #expect(try stored(made.bytes, recipe, effort: effort).isSource)
            let small = try stored(source, effort: effort)
            #expect(try ShownPixels(png: small.bytes) == shown)
            #expect(small.bytes.count <= source.count)
            #expect(try stored(small.bytes, effort: effort).isSource)
        }
    }
}
