import CColour
import CodecFuzzing
import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Results of pictures that are not sRGB.
@Suite(.timeLimit(.minutes(15))) struct ColourHandlingTests {
    /// A picture with a profile, and what Little CMS makes of it.
    struct Sample: CustomTestStringConvertible {
        let name: String

        var testDescription: String { name }
        var bytes: [UInt8] { get throws { try Sample.bytes(name) } }
        var wanted: ShownPixels {
            get throws { try ShownPixels(png: Sample.bytes("\(name).srgb.png")) }
        }

        static func bytes(_ name: String) throws -> [UInt8] {
            let path = FormatSample.folder.appending(path: "colours/\(name)")
            return [UInt8](try Data(contentsOf: path))
        }
    }

    static let samples = [
        "inks.jpg", "p3.jpg", "p3.png", "p3-alpha.png", "p3-palette.png", "adobe.png", "table.png",
        "grey.png", "grey-alpha.png", "grey.jpg",
    ].map(Sample.init)

    /// The pixels of a stored image, whatever its format.
    private static func shown(_ image: [UInt8]) throws -> ShownPixels {
        var recipe = Recipe(encoding: .png)
        recipe.stripping = .none
        let made = try stored(image, recipe)
        return try ShownPixels(png: made.bytes)
    }

    /// The largest difference, of 255.
    private static func difference(_ one: ShownPixels, _ other: ShownPixels) -> Int {
        zip(one.pixels, other.pixels).map { one, other in
            (0..<4).map { abs(Int(one[$0]) - Int(other[$0])) }.max() ?? 0
        }.max().map { ($0 + 128) / 257 } ?? .max
    }

    static func colours(_ source: [UInt8]) throws -> SourceColours {
        try source.withUnsafeBytes { bytes in
            let header = try header(of: bytes)
            let codec = try #require(header.format.codec)
            return try codec.open(bytes, header, CodecLimits()).colours
        }
    }

    // MARK: Profiles

    @Test(arguments: samples)
    func convertsAsLittleCMS(sample: Sample) throws {
        let made = try stored(sample.bytes, Recipe(.all, encoding: .png).withSize)
        #expect(made.image.colour == .converted)
        let (shown, wanted) = try (ShownPixels(png: made.bytes), sample.wanted)
        #expect(shown.width == wanted.width && shown.pixels.count == wanted.pixels.count)
        #expect(Self.difference(shown, wanted) <= 2)
        #expect(try Self.colours(made.bytes) == .undeclared)
        // Without steps it is the same picture.
        let plain = try stored(sample.bytes, Recipe(.all, encoding: .png))
        if sample.name.hasSuffix(".jpg") { #expect(try ShownPixels(png: plain.bytes) == shown) }
    }

    @Test(
        arguments: samples.filter { !$0.name.hasPrefix("inks") }, ["jpeg", "webp", "avif", "png"])
    func keepsProfilesThatTheFormatHolds(sample: Sample, format: String) throws {
        guard CodecLibraries.decodes(try #require(ImageFormat(rawValue: format))) else { return }
        var recipe = try Recipe(specification: "\(format),flip=h")
        recipe.quality = 100
        let made = try stored(sample.bytes, recipe)
        let isGrey = sample.name.hasPrefix("grey")
        if isGrey && format == "webp" {
            #expect(made.image.colour == .converted)
            #expect(try Self.colours(made.bytes) == .undeclared)
            // Colours that alpha hides are not kept by the encoder.
            guard sample.name != "grey-alpha.png" else { return }
            var plain = try Recipe(specification: "png,flip=h")
            plain.stripping = .all
            let wanted = try ShownPixels(png: stored(sample.bytes, plain).bytes)
            #expect(try Self.difference(Self.shown(made.bytes), wanted) <= 4)
        } else {
            #expect(made.image.colour == .kept)
            #expect(try Self.colours(made.bytes) == Self.colours(sample.bytes))
        }
    }

    /// As LittleCMS and browsers show it: no format holds grey pixels with such a profile.
    @Test func profileOfColoursAppliesToGreyJPEG() throws {
        let profile = try #require(try Self.profile(of: Sample.bytes("adobe.png")))
        let grey = Samples.greyJPEG
        let source = grey[..<2] + JPEGFile.profileSegments(profile) + grey[2...]
        let shown = try ShownPixels(png: stored(grey, Recipe(encoding: .png)).bytes)
        let colours = try GeneratedPNG(
            width: shown.width, height: shown.pixels.count / shown.width, colorType: 2, bitDepth: 8
        ).bytes { x, y in
            Array(repeating: Int(shown.pixels[y * shown.width + x].x >> 8), count: 3)
        }
        let described = try PNGTests.inserting(PNGFile.profileChunk(profile), into: colours)
        let recipe = Recipe(.all, encoding: .png).withSize
        let wanted = try ShownPixels(png: stored(described, recipe).bytes)
        #expect(Self.difference(shown, wanted) > 2)
        for specification in ["png", "png,flip=h,flip=h", "jpeg,q=100,flip=h,flip=h", "webp,q=100"]
        {
            let recipe = try Recipe(specification: specification)
            guard recipe.encoding.format?.isMade == true else { continue }
            let made = try stored(Array(source), recipe)
            #expect(made.image.colour == .converted)
            #expect(try Self.colours(made.bytes) == .undeclared)
            let most = recipe.encoding == .png ? 0 : 4
            #expect(try Self.difference(Self.shown(made.bytes), wanted) <= most)
        }
        let kept = try stored(Array(source), Recipe(quality: 100))
        #expect(try kept.image.colour == .kept && Self.colours(kept.bytes) == .profile(profile))
    }

    /// The same of PNGs of every grey kind.
    @Test(
        arguments: [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (4, 8), (4, 16)], [false, true])
    func profileOfColoursAppliesToGreyPNG(kind: (Int, Int), hasKey: Bool) throws {
        let (colorType, depth) = kind
        guard colorType == 0 || !hasKey else { return }
        let profile = try #require(try Self.profile(of: Sample.bytes("adobe.png")))
        let most = 1 << depth - 1
        let wideDepth = max(depth, 8)
        let wideMost = 1 << wideDepth - 1
        func key(_ samples: Int) -> [UInt8] {
            let value = samples == 1 ? most : wideMost
            let bytes = [UInt8(value >> 8), UInt8(value & 255)]
            return hasKey
                ? PNGFile.chunk(.tRNS, Array((0..<samples).map { _ in bytes }.joined())) : []
        }
        func picture(_ colorType: Int, _ depth: Int) throws -> [UInt8] {
            let chunks = PNGFile.profileChunk(profile) + key(colorType & 2 == 0 ? 1 : 3)
            return try GeneratedPNG(
                width: 20, height: 10, colorType: colorType, bitDepth: depth, chunks: chunks
            ).bytes { x, y in
                let scale = (1 << depth - 1) / most
                let grey = (x * most / 19) * scale
                let alpha = (most - y * most / 20) * scale
                return Array(repeating: grey, count: colorType & 2 == 0 ? 1 : 3)
                    + (colorType & 4 == 0 ? [] : [alpha])
            }
        }
        let source = try picture(colorType, depth)
        let wanted = try stored(
            picture(colorType | 2, wideDepth), Recipe(.all, encoding: .png).withSize)
        #expect(wanted.image.colour == .converted)
        for specification in ["png,flip=h,flip=h", "png,strip=all,flip=h,flip=h", "jpeg", "webp"] {
            let recipe = try Recipe(specification: specification)
            guard recipe.encoding.format?.isMade == true else { continue }
            let made = try stored(source, recipe)
            #expect(made.image.colour == .converted)
            #expect(try Self.colours(made.bytes) == .undeclared)
            guard recipe.encoding == .png else { continue }
            let shown = try ShownPixels(png: made.bytes)
            #expect(try Self.difference(shown, ShownPixels(png: wanted.bytes)) <= 1)
        }
        // The same samples keep the chunk.
        for specification in ["same", "png", "same,strip=none", "png,strip=none"] {
            let kept = try stored(source, Recipe(specification: specification))
            #expect(try kept.image.colour == .kept && Self.colours(kept.bytes) == .profile(profile))
            #expect(try warning(source, Recipe(specification: specification)) == nil)
        }
    }

    /// Steps add colours of sRGB. Black and white are the same in every space.
    @Test(arguments: ["p3.png", "p3.jpg", "adobe.png", "grey.png"])
    func addedColoursAreOfSRGB(name: String) throws {
        let source = try Sample.bytes(name)
        for steps in ["border=2,#ff0000", "200x200~#ff0000", "tint=#ff0000ff"] {
            let made = try stored(source, Recipe(specification: "png,\(steps)"))
            #expect(made.image.colour == .converted)
            #expect(try Self.colours(made.bytes) == .undeclared)
            #expect(try ShownPixels(png: made.bytes).pixels[0] == SIMD4(65535, 0, 0, 65535))
        }
        for steps in ["border=2,#fff", "200x200~#00000000", "tint=#00000080", "circle"] {
            let made = try stored(source, Recipe(specification: "png,\(steps)"))
            #expect(made.image.colour == .kept)
            #expect(try Self.colours(made.bytes) == Self.colours(source))
        }
    }

    /// Linear light in 8 bits would show steps.
    @Test func deepLinearLightBecomesSRGBInBytes() throws {
        let linear = PNGFile.profileChunk(Profiles.grey(.power(1)))
        let gamma = PNGFile.profileChunk(Profiles.grey(.power(1.8)))
        let deep = Samples.deepGreyPNG
        func colour(_ chunk: [UInt8], _ specification: String) throws -> ColourTreatment? {
            let source = try PNGTests.inserting(chunk, into: deep)
            return try stored(source, Recipe(specification: specification)).image.colour
        }
        for specification in ["jpeg", "png,flip=h", "avif", "jpeg,flip=h"] {
            #expect(try colour(linear, specification) == .converted)
            #expect(try colour(gamma, specification) == .kept)
        }
        #expect(try colour(linear, "png") == .kept)
    }

    @Test func inksBecomeColoursInEverySize() throws {
        let sample = Sample(name: "inks.jpg")
        let wanted = try sample.wanted
        for specification in ["png", "png,24x18!", "png,flip=h,flip=h"] {
            let made = try stored(sample.bytes, Recipe(specification: specification))
            #expect(try Self.difference(ShownPixels(png: made.bytes), wanted) <= 2)
            #expect(made.image.colour == .converted)
        }
        // Coefficients keep inks and profile.
        let same = try stored(sample.bytes, Recipe(quality: 40))
        #expect(same.image.colour == .kept)
        #expect(try Self.colours(same.bytes) == Self.colours(sample.bytes))
    }

    /// The formula of docs/formats.md.
    @Test func inksWithoutProfileAreConvertedByTheFormula() throws {
        let source = try Sample(name: "inks.jpg").bytes
        let profile = try #require(try Self.profile(of: source))
        let segments = JPEGFile.profileSegments(profile)
        let start = try #require(source.indices.first { source[$0...].starts(with: segments) })
        let plain = Array(source[..<start] + source[(start + segments.count)...])
        #expect(try Self.colours(plain) == .inks(profile: nil))
        // A broken profile is ignored: the table lies beyond the end.
        var broken = source
        broken.replaceSubrange(start + 18 + 128 + 20..<start + 18 + 128 + 24, with: [1, 0, 0, 0])
        let pictures = try [plain, broken].map {
            try stored($0, Recipe(encoding: .png))
        }
        #expect(pictures[0].bytes == pictures[1].bytes)
        #expect(pictures[0].image.colour == .converted)
        #expect(
            try Self.difference(
                ShownPixels(png: pictures[0].bytes), Sample(name: "inks.jpg").wanted) > 20)
    }

    static func profile(of source: [UInt8]) throws -> [UInt8]? {
        switch try colours(source) {
        case .inks(let profile): profile
        case .profile(let profile): profile
        default: nil
        }
    }

    @Test func brokenProfilesAreTakenForSRGB() throws {
        // Whole, for the right pixels, and without any tag.
        let empty = Profiles.profile(space: "RGB ", tags: [])
        let source = JPEGTests.inserting(
            JPEGFile.profileSegments(empty), into: Samples.baselineJPEG)
        let recipe = Recipe(.all, encoding: .png)
        let (made, plain) = try (stored(source, recipe), stored(Samples.baselineJPEG, recipe))
        #expect(made.bytes == plain.bytes)
        #expect(made.image.colour == .assumedSRGB && plain.image.colour == .assumedSRGB)
    }

    @Test func sRGBIsKept() throws {
        let source = JPEGTests.inserting(
            JPEGFile.profileSegments(Profiles.rgb()), into: Samples.baselineJPEG)
        for stripping in Recipe.Stripping.allCases {
            let made = try stored(source, Recipe(stripping, encoding: .png))
            #expect(made.image.colour == .kept)
            #expect(
                try ShownPixels(png: made.bytes)
                    == ShownPixels(png: stored(Samples.baselineJPEG, Recipe(encoding: .png)).bytes))
        }
    }

    /// Recipes of one source that need other colours share a decoding, not a conversion.
    @Test(arguments: samples)
    func resultsDoNotDependOnOthers(sample: Sample) throws {
        let source = try sample.bytes
        var recipes = try ["png", "webp", "jpeg", "webp,12x12", "png,12x12", "jpeg,12x12", "auto"]
            .filter { CodecLibraries.decodes(.webp) || !$0.hasPrefix("webp") }
            .map { try Recipe(specification: $0) }
        recipes += recipes.map {
            var all = $0
            all.stripping = .all
            return all
        }
        let entry = try source.withUnsafeBytes { bytes in
            try ImageProcessor.process(bytes, header: header(of: bytes), recipes: recipes)
        }
        for (recipe, result) in zip(recipes, entry.results) {
            let alone = try stored(source, recipe)
            let together = try result.get()
            guard case .encoded(let bytes) = together.output else {
                #expect(alone.isSource)
                continue
            }
            #expect(bytes.withUnsafeBytes { [UInt8]($0) } == alone.bytes, "\(recipe)")
            #expect(together.colour == alone.image.colour)
        }
    }

    @Test func transformsAreSharedAndForgotten() throws {
        let profiles = (0..<20).map {
            Profiles.rgb(Profiles.wideColorants, .power(1.2 + Double($0) / 16))
        }
        let first = try #require(try ColourTransforms.transform(from: profiles[0], CCOLOUR_RGB))
        #expect(try ColourTransforms.transform(from: profiles[0], CCOLOUR_RGB) === first)
        for profile in profiles { #expect(try ColourTransforms.isUsable(profile)) }
        let again = try #require(try ColourTransforms.transform(from: profiles[0], CCOLOUR_RGB))
        #expect(again !== first)
    }

    /// Changed bytes of good profiles never fail a picture, nor do two threads disagree.
    @Test func arbitraryProfilesFailNoPicture() throws {
        var random = SplitMix(seed: 32)
        let profiles = try Self.samples.compactMap { try Self.profile(of: $0.bytes) }
        #expect(profiles.count == Self.samples.count)
        for round in 0..<300 {
            var profile = profiles[round % profiles.count]
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                // Mostly the header, the tags and the beginnings of their data.
                let most = Bool.random(using: &random) ? 400 : profile.count
                let place = Int.random(in: 0..<min(most, profile.count), using: &random)
                profile[place] = UInt8.random(in: 0...255, using: &random)
            }
            try ProfileInvariants.check(profile)
        }
    }

    // MARK: PNG

    private static func number(_ value: Double) -> [UInt8] {
        let value = Int((value * 100_000).rounded())
        return (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    private static func gamma(_ value: Double) -> [UInt8] { PNGFile.chunk(.gAMA, number(value)) }

    private static let p3 = PNGFile.chunk(
        .cHRM, [0.3127, 0.329, 0.68, 0.32, 0.265, 0.69, 0.15, 0.06].flatMap(number))
    private static let srgb = PNGFile.chunk(
        .cHRM, [0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06].flatMap(number))

    private static func points(_ bytes: [UInt8]) -> [UInt8] { PNGFile.chunk(.cICP, bytes) }

    /// As in Chromium, the next description counts.
    @Test(arguments: [[2, 13, 0, 1], [1, 2, 0, 1], [2, 2, 0, 1], [2, 16, 0, 1], [9, 2, 0, 0]])
    func ignoresUnspecifiedCodePoints(points: [UInt8]) throws {
        let profile = try #require(try Self.profile(of: Sample.bytes("adobe.png")))
        for description in [
            [], PNGFile.profileChunk(profile), PNGFile.chunk(.sRGB, [0]), Self.gamma(1),
            Self.gamma(0.5) + Self.p3,
        ] {
            let plain = try PNGTests.inserting(description, into: Samples.colourPNG)
            let source = try PNGTests.inserting(
                Self.points(points) + description, into: Samples.colourPNG)
            #expect(try Self.colours(source) == Self.colours(plain))
            let recipe = try Recipe(specification: "png,flip=h")
            #expect(try stored(source, recipe).bytes == stored(plain, recipe).bytes)
        }
    }

    @Test(arguments: [
        ("gamma 1", gamma(1), 1.0, false), ("gamma 1/2.2", gamma(0.45455), 1 / 0.45455, false),
        ("P3 and gamma", gamma(0.5) + p3, 2, true), ("P3", p3, nil, true),
        ("cICP", points([12, 13, 0, 1]) + gamma(1), nil, true),
        ("cICP over sRGB", points([12, 13, 0, 1]) + PNGFile.chunk(.sRGB, [0]), nil, true),
    ])
    func convertsSpacesOfPNGs(
        name: String, chunks: [UInt8], exponent: Double?, isWide: Bool
    ) throws {
        for (colorType, bitDepth) in [
            (0, 8), (0, 4), (0, 16), (4, 8), (2, 8), (2, 16), (6, 8), (6, 16),
        ] {
            let most = 1 << bitDepth - 1
            let generated = GeneratedPNG(
                width: 20, height: 10, colorType: colorType, bitDepth: bitDepth, chunks: chunks)
            func samples(_ x: Int, _ y: Int) -> [Int] {
                [x * most / 19, y * most / 9, (x + y) * most / 28, (19 - x) * most / 19]
            }
            let count = [1, 1, 3, 1, 2, 2, 4][colorType]
            let source = try generated.bytes { x, y in
                let all = samples(x, y)
                return count == 2 ? [all[0], all[3]] : Array(all.prefix(count))
            }
            // A step that changes nothing.
            let made = try stored(source, Recipe(specification: "png,flip=h,flip=h"))
            #expect(made.image.colour == .converted)
            #expect(try Self.colours(made.bytes) == .undeclared)
            let shown = try ShownPixels(png: made.bytes)
            let matrix =
                isWide && count > 2
                ? [
                    [1.2249, -0.2249, 0], [-0.0420, 1.0420, 0], [-0.0196, -0.0786, 1.0983],
                ] : [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
            for y in 0..<10 {
                for x in 0..<20 {
                    let all = samples(x, y).map { Double($0) / Double(most) }
                    let light = (0..<3).map { channel -> Double in
                        let value = all[count < 3 ? 0 : channel]
                        if let exponent { return pow(value, exponent) }
                        return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
                    }
                    let pixel = shown.pixel(x, y)
                    for channel in 0..<3 {
                        let sum = zip(matrix[channel], light).map { $0 * $1 }.reduce(0, +)
                        let value = min(max(sum, 0), 1)
                        let wanted =
                            value <= 0.0031308 ? 12.92 * value : 1.055 * pow(value, 1 / 2.4) - 0.055
                        let difference = abs(Double(pixel[channel]) / 257 - wanted * 255)
                        if difference > 1.1 {
                            Issue.record(
                                "\(name), \(colorType)/\(bitDepth) at \(x), \(y): \(pixel)")
                            return
                        }
                    }
                    if count % 2 == 0 {
                        #expect(abs(Double(pixel.w) / 257 - all[3] * 255) <= 0.6)
                    }
                }
            }
        }
    }

    /// Palettes are converted entry by entry; a transparent colour stays transparent.
    @Test func convertsPalettesAndKeys() throws {
        let source = try PNGTests.inserting([], into: Samples.palettePNG)
        let header = try source.withUnsafeBytes { try PNGFile($0) }
        let palette = try #require(header.chunks.first { $0.type == .PLTE }).range.lowerBound
        let linear = Array(source[..<palette] + Self.gamma(1) + source[palette...])
        let recipe = try Recipe(specification: "png,flip=h,flip=h")
        let (made, plain) = try (stored(linear, recipe), stored(source, recipe))
        let (shown, flat) = try (ShownPixels(png: made.bytes), ShownPixels(png: plain.bytes))
        #expect(shown.pixels.map(\.w) == flat.pixels.map(\.w))
        for (one, other) in zip(shown.pixels, flat.pixels) {
            for channel in 0..<3 {
                let light = Double(other[channel]) / 65535
                let wanted =
                    light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
                #expect(abs(Double(one[channel]) / 257 - wanted * 255) <= 1)
            }
        }
    }

    @Test func theFirstOfThePNGSpacesApplies() throws {
        func colours(_ chunks: [UInt8]) throws -> SourceColours {
            try Self.colours(PNGTests.inserting(chunks, into: Samples.colourPNG))
        }
        let sRGB = PNGFile.chunk(.sRGB, [0])
        let wide = Profiles.rgb(Profiles.wideColorants)
        let profile = PNGFile.profileChunk(wide)
        #expect(try colours([]) == .undeclared)
        #expect(try colours(sRGB + Self.gamma(0.45455) + Self.p3) == .sRGB(profile: nil))
        #expect(try colours(Self.srgb) == .sRGB(profile: nil))
        #expect(try colours(profile + Self.gamma(1)) == .profile(wide))
        #expect(try colours(Self.points([1, 13, 0, 1]) + profile) == .sRGB(profile: nil))
        // No colour model has these: the next one applies.
        #expect(try colours(Self.points([12, 13, 5, 1]) + sRGB) == .sRGB(profile: nil))
        // Repeated, out of range, or white outside its triangle.
        #expect(try colours(Self.gamma(1) + Self.gamma(0.5)) == .undeclared)
        #expect(try colours(Self.gamma(0.00001)) == .undeclared)
        let black = [0.3127, 0.329, 0.3127, 0.329, 0.3127, 0.329, 0.3127, 0.329].flatMap(
            Self.number)
        #expect(try colours(PNGFile.chunk(.cHRM, black)) == .undeclared)
        #expect(try colours(PNGFile.chunk(.cHRM, [UInt8](repeating: 0, count: 32))) == .undeclared)
    }

    // MARK: Shared files

    @Test(.enabled(if: TestData.isAvailable))
    func sharedCases() throws {
        let arc = "cases/ArcTriomphe-cHRM-red-green-swap"
        let wanted = try Self.shown(TestData.bytes("\(arc)-reference.png"))
        let made = try stored(
            TestData.bytes("\(arc).png"), Recipe(specification: "png,flip=h,flip=h"))
        #expect(try Self.difference(ShownPixels(png: made.bytes), wanted) <= 2)
        let inks = try TestData.bytes(
            "cases/warning-embedded-color-profile-invalid-ignored-cmyk.jpg")
        #expect(try stored(inks, Recipe(encoding: .png)).image.colour == .converted)
    }
}

extension Recipe {
    /// The recipe with steps that change nothing, for a result of pixels.
    fileprivate var withSize: Recipe {
        var recipe = self
        recipe.transformations = [.flip(.horizontal), .flip(.horizontal)]
        return recipe
    }
}
