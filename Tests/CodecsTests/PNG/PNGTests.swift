import PrefetchModel
import Testing

@testable import Codecs

@Suite(.serialized, .timeLimit(.minutes(15))) struct PNGTests {
    /// Inserts chunks before the image data.
    static func inserting(_ chunks: [UInt8], into source: [UInt8]) throws -> [UInt8] {
        let file = try source.withUnsafeBytes { try PNGFile($0) }
        let data = try #require(file.chunks.first { $0.type == .IDAT }).range.lowerBound
        return source[..<data] + chunks + source[data...]
    }

    static func data(of type: UInt32, in source: [UInt8]) throws -> [UInt8]? {
        let file = try source.withUnsafeBytes { try PNGFile($0) }
        return file.chunks.first { $0.type == type }.map { Array(source[$0.data]) }
    }

    static let tEXt: UInt32 = 0x7445_5874
    static let pHYs: UInt32 = 0x7048_5973

    @Test(arguments: Samples.pngs, [false, true])
    func keepsPixelsExactly(source: [UInt8], keepsLarger: Bool) throws {
        let recipe = Recipe(keepsLarger: keepsLarger)
        let result = try stored(source, recipe)
        #expect(try ShownPixels(png: result.bytes) == ShownPixels(png: source))
        #expect(try stored(result.bytes, recipe).isSource)
    }

    @Test func effortCostsTimeAndSavesBytes() throws {
        var state: UInt32 = 3
        // Smooth with a little noise, like photographs; then stripes.
        let smooth = (0..<400 * 300 * 3).map { index -> UInt8 in
            state = state &* 1_664_525 &+ 1_013_904_223
            let light: Int = index / 3 % 400 / 2 + index / 9000
            return UInt8(truncatingIfNeeded: light + Int(state >> 30))
        }
        let flat = (0..<400 * 300 * 3).map { index -> UInt8 in
            let (stripe, row): (Int, Int) = (index / 90 % 7, index / 12_000 % 5)
            return UInt8(stripe * 20 + row * 10)
        }
        for samples in [smooth, flat] {
            let jpeg = try Pixels(width: 400, height: 300, samples: samples).jpeg(quality: 100)
            let sizes = try EncodingEffort.allCases.map { effort -> Int in
                var recipe = Recipe(encoding: .png)
                recipe.effort = effort
                let result = try stored(jpeg, recipe)
                let shown = try ShownPixels(png: result.bytes).pixels
                let decoded = try Pixels(jpeg: jpeg).samples
                let shownBytes = shown.flatMap { pixel -> [UInt8] in
                    let bytes = SIMD4<UInt8>(truncatingIfNeeded: pixel / 257)
                    return [bytes.x, bytes.y, bytes.z]
                }
                #expect(shownBytes == decoded)
                #expect(try stored(result.bytes, recipe).isSource)
                return result.bytes.count
            }
            #expect(sizes[0] > sizes[1] && sizes[1] > sizes[2])
        }
    }

    /// The decoder skips chunks with invalid form or place and uses a later one.
    @Test(arguments: [false, true])
    func keepsChunkThatDecoderUses(keepsLarger: Bool) throws {
        let recipe = Recipe(keepsLarger: keepsLarger)
        func kept(_ picture: GeneratedPNG, _ type: UInt32) throws -> [UInt8]? {
            let source = try picture.bytes { x, y in
                Array(repeating: (x * 7 + y * 3) % 200, count: picture.channels)
            }
            let made = try stored(source, recipe)
            #expect(try stored(made.bytes, recipe).isSource)
            let file = try made.bytes.withUnsafeBytes { try PNGFile($0) }
            #expect(file.chunks.filter { $0.type == type }.count <= 1)
            return try Self.data(of: type, in: made.bytes)
        }
        let entries: [UInt8] = (0..<200).flatMap { index -> [UInt8] in
            [UInt8(index), 9, UInt8(255 - index)]
        }
        let palette = PNGFile.chunk(.PLTE, entries)
        let transparency = PNGFile.chunk(.tRNS, [7, 8])
        let misplaced = GeneratedPNG(
            colorType: 3, bitDepth: 8,
            chunks: PNGFile.chunk(.tRNS, [1, 2, 3]) + palette + transparency)
        #expect(try kept(misplaced, .tRNS) == [7, 8])
        let short = GeneratedPNG(
            colorType: 0, bitDepth: 8,
            chunks: PNGFile.chunk(.tRNS, [1]) + PNGFile.chunk(.tRNS, [0, 21]))
        #expect(try kept(short, .tRNS) == [0, 21])
        let gamma = GeneratedPNG(
            colorType: 2, bitDepth: 8,
            chunks: PNGFile.chunk(.gAMA, [1]) + PNGFile.chunk(.gAMA, [0, 1, 0, 0]))
        #expect(try kept(gamma, .gAMA) == nil)
        let late = GeneratedPNG(
            colorType: 3, bitDepth: 8, chunks: palette + PNGFile.chunk(.gAMA, [0, 1, 0, 0]))
        #expect(try kept(late, .gAMA) == nil)
    }

    /// libpng 1.6.39 forgets a transparent colour before a palette that suggests colours.
    @Test(arguments: [8, 16], ["same", "same,strip=none", "png", "png,flip=h,flip=h", "webp"])
    func keepsTransparencyBeforeASuggestedPalette(depth: Int, specification: String) throws {
        let recipe = try Recipe(specification: specification)
        guard recipe.encoding.format?.isMade != false else { return }
        let transparency = PNGFile.chunk(.tRNS, [0, 7, 0, 7, 0, 7])
        let palette = PNGFile.chunk(.PLTE, [1, 2, 3, 4, 5, 6])
        let shown = try [transparency + palette, palette + transparency].map { chunks in
            let source = try GeneratedPNG(colorType: 2, bitDepth: depth, chunks: chunks).bytes {
                x, y in Array(repeating: x % 2 == 0 ? 7 : (x * 5 + y * 3) % 200, count: 3)
            }
            let made = try stored(source, recipe)
            if made.image.format == .png {
                let types = try made.bytes.withUnsafeBytes { try PNGFile($0) }.chunks.map(\.type)
                if let palette = types.firstIndex(of: .PLTE) {
                    #expect(types[..<palette].contains(.tRNS) == false)
                }
            }
            return try EncodingTests.raster(made.bytes)
        }
        #expect(shown[0] == shown[1])
        #expect(shown[0].contains { $0.w == 0 } && shown[0].contains { $0.w == 255 })
    }

    /// libpng drops transparency with more entries than the palette.
    @Test(
        arguments: [1, 2, 4, 8],
        ["same", "same,strip=none", "same,strip=all", "png", "png,flip=h,flip=h", "webp,q=100"])
    func keepsTransparencyLongerThanThePalette(depth: Int, specification: String) throws {
        let recipe = try Recipe(specification: specification)
        guard recipe.encoding.format?.isMade != false else { return }
        for entries in [2, 3, 4, 16, 255, 256] where entries <= 1 << depth {
            let palette = PNGFile.chunk(.PLTE, (0..<3 * entries).map { UInt8($0 * 7 & 255) })
            func source(_ count: Int) throws -> [UInt8] {
                let alphas = (0..<count).map { UInt8($0 % 3 * 100) }
                return try GeneratedPNG(
                    colorType: 3, bitDepth: depth, chunks: palette + PNGFile.chunk(.tRNS, alphas)
                ).bytes { x, y in [(x + y) % entries] }
            }
            let wanted = try stored(source(entries), recipe)
            for count in [entries + 1, 256, 257, 300] where count > entries {
                let made = try stored(source(count), recipe)
                #expect(made.bytes == wanted.bytes, "\(count) for \(entries)")
                #expect(try EncodingTests.raster(made.bytes).contains { $0.w == 0 })
                #expect(structureRefusal(try source(count)) == nil)
            }
        }
    }

    @Test func usesFirstUndamagedOrientation() throws {
        let plain = try stored(Samples.colourPNG).bytes
        func orientation(_ chunks: [[UInt8]]) throws -> Int {
            try imageHeader(Self.inserting(Array(chunks.joined()), into: plain)).orientation
        }
        func exif(_ orientation: Int, isDamaged: Bool = false) -> [UInt8] {
            var chunk = PNGFile.chunk(.eXIf, ExifOrientation.minimalTIFF(orientation))
            if isDamaged { chunk[chunk.count - 1] ^= 1 }
            return chunk
        }
        #expect(try orientation([exif(6)]) == 6)
        #expect(try orientation([exif(6, isDamaged: true)]) == 1)
        #expect(try orientation([exif(3), exif(6)]) == 3)
        #expect(try orientation([exif(3, isDamaged: true), exif(6)]) == 6)
    }

    enum Chroma: String, CaseIterable {
        case photograph, flat, icon, line

        /// Whether chroma subsampling by two in both directions is sufficient.
        var isHalved: Bool { self == .photograph }

        func png() throws -> [UInt8] {
            var picture = GeneratedPNG(colorType: 2, bitDepth: 8)
            if self == .line { picture.height = 1 }
            return try picture.bytes { x, y in
                switch self {
                case .photograph: [90 + x + (x * 7 + y * 5) % 5, 80 + y + (x * 3 + y) % 7, 70 + x]
                case .flat: x / 10 % 2 == 0 ? [255, 255, 255] : [200, 0, 0]
                case .icon, .line:
                    [(x * 97 + y * 31) & 255, (x * 57 + y * 71) & 255, (x ^ y) * 40 & 255]
                }
            }
        }
    }

    @Test(arguments: Chroma.allCases)
    func choosesChromaSubsamplingByPicture(chroma: Chroma) throws {
        let jpeg = try stored(chroma.png(), Recipe(encoding: .jpeg)).bytes
        let luma = try jpeg.withUnsafeBytes { try JPEGFile(headerOf: $0).frame?.sampling.first }
        #expect(luma?.horizontal == (chroma.isHalved ? 2 : 1))
        #expect(luma?.vertical == (chroma.isHalved ? 2 : 1))
    }

    @Test(arguments: Samples.pngs, [false, true])
    func dropsMetadata(source: [UInt8], keepsLarger: Bool) throws {
        let chunks =
            PNGFile.chunk(Self.tEXt, Array("Comment\0SECRET".utf8))
            + PNGFile.chunk(Self.pHYs, [0, 0, 1, 0, 0, 0, 1, 0, 1])
            + PNGFile.chunk(.eXIf, Array(JPEGTests.exif(orientation: 1).dropFirst(10)))
        let result = try stored(
            Self.inserting(chunks, into: source), Recipe(keepsLarger: keepsLarger))
        #expect(!JPEGTests.contains(result.bytes, "SECRET"))
        #expect(try Self.data(of: Self.pHYs, in: result.bytes) == nil)
        #expect(try Self.data(of: .eXIf, in: result.bytes) == nil)
        if !keepsLarger { #expect(result.bytes == (try stored(source)).bytes) }
    }

    @Test(arguments: [false, true])
    func keepsChunksThatAffectAppearance(keepsLarger: Bool) throws {
        let kept: [(UInt32, [UInt8])] = [
            (.gAMA, [0, 0, 0xB1, 0x8F]), (.cICP, [9, 16, 0, 1]), (.sBIT, [5, 6, 5]),
        ]
        let chunks = kept.flatMap { PNGFile.chunk($0.0, $0.1) }
        let recipe = Recipe(keepsLarger: keepsLarger)
        let result = try stored(Self.inserting(chunks, into: Samples.colourPNG), recipe)
        for (type, data) in kept { #expect(try Self.data(of: type, in: result.bytes) == data) }
        #expect(try stored(result.bytes, recipe).isSource)
    }

    @Test(arguments: 2...8, [false, true])
    func appliesOrientationToPixels(orientation: Int, keepsLarger: Bool) throws {
        let exif = Array(JPEGTests.exif(orientation: orientation).dropFirst(10))
        let source = try Self.inserting(PNGFile.chunk(.eXIf, exif), into: Samples.colourPNG)
        let result = try stored(source, Recipe(keepsLarger: keepsLarger))
        #expect(try imageHeader(result.bytes).orientation == 1)
        #expect(result.image.widthInPixels == (orientation < 5 ? 12 : 11))
        #expect(!JPEGTests.contains(result.bytes, "SECRET"))
        let jpeg = try stored(source, Recipe(encoding: .jpeg))
        #expect(jpeg.image.widthInPixels == (orientation < 5 ? 12 : 11))
    }

    @Test(arguments: [false, true])
    func keepsValidProfileOnly(keepsLarger: Bool) throws {
        let profile = JPEGTests.profile(space: "RGB ", count: 3144)
        let recipe = Recipe(keepsLarger: keepsLarger)
        let chunk = PNGFile.profileChunk(profile)
        let result = try stored(Self.inserting(chunk, into: Samples.colourPNG), recipe)
        #expect(try Self.data(of: .iCCP, in: result.bytes) != nil)
        let broken = PNGFile.profileChunk(Array(profile.dropLast()))
        let other = try stored(Self.inserting(broken, into: Samples.colourPNG), recipe)
        #expect(try Self.data(of: .iCCP, in: other.bytes) == nil)
    }

    @Test func refusesDamagedTransparency() throws {
        var source = Samples.palettePNG
        let file = try source.withUnsafeBytes { try PNGFile($0) }
        let chunk = try #require(file.chunks.first { $0.type == .tRNS })
        source[chunk.data.lowerBound] ^= 1
        #expect(refusal(source) == .corrupt("tRNS: CRC error", isTruncated: false))
    }

    /// Valid chunks around a zlib stream that is damaged or longer than the image.
    @Test func tellsDamagedImageDataFromSurplus() throws {
        let source = Samples.colourPNG
        let file = try source.withUnsafeBytes { try PNGFile($0) }
        let chunk = try #require(file.chunks.first { $0.type == .IDAT })
        func with(_ change: (inout [UInt8]) -> Void) -> [UInt8] {
            var data = Array(source[chunk.data])
            change(&data)
            return source[..<chunk.range.lowerBound] + PNGFile.chunk(.IDAT, data)
                + source[chunk.range.upperBound...]
        }
        #expect(
            refusal(with { $0[$0.count - 1] ^= 1 })
                == .corrupt("IDAT: incorrect data check", isTruncated: false))
        let surplus = try stored(with { $0 += [1, 2, 3] })
        #expect(try PackedRows(png: surplus.bytes) == PackedRows(png: source))
    }

    @Test func refusesApplesVariant() throws {
        let apple =
            Samples.colourPNG[..<8] + PNGFile.chunk(0x4367_4249, [0x50, 0, 0x20, 2])
            + Samples.colourPNG[8...]
        guard case .unsupported = refusal(Array(apple)) else {
            Issue.record("accepted")
            return
        }
    }

    @Test(arguments: Samples.pngs)
    func convertsToJPEGWithinTolerance(source: [UInt8]) throws {
        let result = try stored(source, Recipe(encoding: .jpeg, quality: 95))
        #expect(result.image.format == .jpeg)
        let pixels = try Pixels(jpeg: result.bytes)
        let rows = try PackedRows(png: source, isOpaque: true)
        #expect(pixels.channels == (rows.colorType == 0 ? 1 : 3))
        #expect(pixels.samples.count == rows.samples.count)
        #expect(try stored(result.bytes, Recipe(encoding: .jpeg, quality: 95)).isSource)
    }

    @Test(
        .enabled(if: TestData.isAvailable),
        arguments: try TestData.isAvailable
            ? TestData.expectations(in: "png/pngsuite")
                + TestData.expectations(in: "png/pngsuite-corrupt") : [])
    func agreesWithTwoOtherDecoders(expectation: TestData.Expectation) throws {
        let source = try TestData.bytes(expectation.path)
        let error = refusal(source)
        if expectation.isAcceptedByBoth {
            #expect(error == nil)
        } else if expectation.isRefusedByBoth {
            #expect(error != nil)
        }
        guard error == nil else { return }
        for keepsLarger in [false, true] {
            let recipe = Recipe(keepsLarger: keepsLarger)
            let result = try stored(source, recipe)
            let rows = try PackedRows(png: result.bytes)
            #expect(try ShownPixels(png: result.bytes) == ShownPixels(png: source))
            #expect(try stored(result.bytes, recipe).isSource)
            let rgba = rows.rgba(
                palette: try Self.data(of: .PLTE, in: result.bytes) ?? [],
                transparency: try Self.data(of: .tRNS, in: result.bytes) ?? [])
            if let rgba, !expectation.rgbaDigest.isEmpty {
                #expect(shortDigest(rgba) == expectation.rgbaDigest)
            }
        }
        for encoding in [Recipe.Encoding.jpeg, .original, .png] {
            #expect(refusal(source, Recipe(encoding: encoding)) == nil)
        }
    }
}
