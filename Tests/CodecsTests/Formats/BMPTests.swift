import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Accepted and rejected bitmaps, and their decoded pixels.
@Suite(.serialized, .timeLimit(.minutes(15))) struct BMPTests {
    static let folder = SourceTree.tests.appending(path: "BitmapSamples")

    /// A line of `EXPECT.tsv`, with the decision of `differing.tsv`.
    struct Sample: CustomTestStringConvertible, Sendable {
        let name: String
        let pillow: String
        let size: [Int]
        let pillowDigest: String
        /// The digest of the original picture; empty if Pillow's is correct.
        let drawnDigest: String
        /// The reason for differing from Pillow; nil if the results agree.
        let decision: String?

        var testDescription: String { name }
        var bytes: [UInt8] {
            get throws { try BMPTests.bytes(name) }
        }
        var isTaken: Bool { (decision ?? pillow) == "ok" }
        var digest: String { drawnDigest.isEmpty ? pillowDigest : drawnDigest }
    }

    static func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: folder.appending(path: name + ".bmp")))
    }

    private static func lines(_ name: String) throws -> [[String]] {
        try String(contentsOf: folder.appending(path: name), encoding: .utf8).split(separator: "\n")
            .dropFirst().map {
                $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            }
    }

    static let samples: [Sample] = {
        let decisions = Dictionary(
            uniqueKeysWithValues: ((try? lines("differing.tsv")) ?? []).map { ($0[0], $0[1]) })
        return ((try? lines("EXPECT.tsv")) ?? []).map { fields in
            Sample(
                name: fields[0], pillow: fields[1], size: fields[2...3].compactMap { Int($0) },
                pillowDigest: fields[4], drawnDigest: fields[5], decision: decisions[fields[0]])
        }
    }()

    private static let taken = samples.filter(\.isTaken)

    private static func rgba(png bytes: [UInt8]) throws -> [UInt8] {
        try ShownPixels(png: bytes).pixels.flatMap { pixel in
            (0..<4).map { UInt8(truncatingIfNeeded: pixel[$0] / 257) }
        }
    }

    // MARK: - Verdicts and pixels

    @Test func acceptsAllSamples() throws {
        #expect(BMPTests.samples.count == 75)
        #expect(BMPTests.taken.count > 40)
        let names = try FileManager.default.contentsOfDirectory(atPath: BMPTests.folder.path)
        #expect(names.count { $0.hasSuffix(".bmp") } == BMPTests.samples.count)
        for line in try BMPTests.lines("differing.tsv") {
            let sample = try #require(BMPTests.samples.first { $0.name == line[0] })
            #expect(!line[2].isEmpty)
            // The verdict or the pixels differ.
            #expect(line[1] != sample.pillow || !sample.drawnDigest.isEmpty, "\(sample.name)")
        }
    }

    @Test(arguments: samples)
    func agreesWithOtherDecoderExceptInTable(sample: Sample) throws {
        let source = try sample.bytes
        for recipe in everyRecipe {
            let error = refusal(source, recipe)
            #expect((error == nil) == sample.isTaken, "\(String(describing: error))")
            if let error {
                #expect(structureRefusal(source) == error)
                switch error {
                case .corrupt, .unsupported, .tooManyPixels: break
                default: Issue.record("\(error)")
                }
            }
        }
        guard sample.isTaken else { return }
        #expect(structureRefusal(source) == nil)
        let png = try stored(source, Recipe(encoding: .png))
        #expect(png.image.format == .png)
        #expect(shortDigest(try BMPTests.rgba(png: png.bytes)) == sample.digest)
        if sample.pillow == "ok" {
            #expect([png.image.widthInPixels, png.image.heightInPixels] == sample.size)
        }
    }

    /// The shared file's table has no pixels; these are Pillow's.
    @Test(.enabled(if: TestData.isAvailable))
    func agreesOnForeignFiles() throws {
        let png = try stored(TestData.bytes("unsupported/pal8rle.bmp"), Recipe())
        #expect(
            shortDigest(try BMPTests.rgba(png: png.bytes)) == "9f33d52c158d285928d5c27e5b59b84a")
    }

    /// The encoding of the bitmap does not affect the result.
    @Test func samePictureMakesSameFile() throws {
        let names = [
            "24-bit", "24-bit-from-the-top", "24-bit-os2", "24-bit-masks", "32-bit", "32-bit-masks",
            "gap-before-pixels", "24-bit-version-4", "lie-pixel-length",
        ]
        let files = try names.map { try stored(BMPTests.bytes($0), Recipe(encoding: .png)).bytes }
        #expect(Set(files).count == 1)
    }

    // MARK: - Results

    @Test(arguments: taken)
    func makesEveryRequestedFormat(sample: Sample) throws {
        let source = try sample.bytes
        let same = try stored(source, Recipe(quality: 40, keepsLarger: true))
        #expect(same.image.format == .png)
        #expect(same.bytes == (try stored(source, Recipe(encoding: .png)).bytes))
        let original = try stored(source, Recipe(encoding: .original))
        #expect(original.isSource && original.image.format == .bmp)
        let jpeg = try stored(source, Recipe(encoding: .jpeg, quality: 95))
        #expect(jpeg.image.format == .jpeg)
        let size = try Pixels(jpeg: jpeg.bytes)
        #expect(size.width == jpeg.image.widthInPixels)
        #expect(size.height == jpeg.image.heightInPixels)
    }

    @Test func greyPalettesAreGrey() throws {
        for name in ["1-bit-grey", "4-bit-grey", "8-bit-grey"] {
            let jpeg = try stored(BMPTests.bytes(name), Recipe(encoding: .jpeg))
            #expect(try Pixels(jpeg: jpeg.bytes).channels == 1)
        }
    }

    @Test func blendsWithBackground() throws {
        let source = try BMPTests.bytes("16-bit-version-4-alpha")
        let alpha = try BMPTests.rgba(png: stored(source, Recipe(encoding: .png)).bytes)
        #expect(alpha[3] == 0 && alpha[7] == 255)
        var recipe = Recipe(encoding: .jpeg, quality: 100)
        recipe.background = RGBColor(red: 0, green: 0, blue: 0)
        let dark = try Pixels(jpeg: stored(source, recipe).bytes)
        recipe.background = .white
        let light = try Pixels(jpeg: stored(source, recipe).bytes)
        #expect(dark[0, 0].allSatisfy { $0 < 60 } && light[0, 0].allSatisfy { $0 > 195 })
    }

    @Test func keepsProfilesExceptSRGB() throws {
        let source = try BMPTests.bytes("24-bit-profile-of-srgb")
        func profile(_ recipe: Recipe, _ source: [UInt8]) throws -> [UInt8]? {
            let png = try stored(source, recipe).bytes
            return try png.withUnsafeBytes { try PNGFile($0).profile }
        }
        var whole = Recipe(encoding: .png)
        whole.stripping = .none
        let kept = try #require(try profile(whole, source))
        #expect(source.suffix(kept.count).elementsEqual(kept))
        #expect(try profile(Recipe(encoding: .png), source) == nil)
        // The red colorant is moved, which makes another colour space.
        var other = source
        let tag = try #require(
            other.indices.dropLast(4).last { other[$0..<$0 + 4].elementsEqual("rXYZ".utf8) })
        let start = source.count - kept.count
        let place = other[(tag + 4)..<(tag + 8)].reduce(0) { $0 << 8 | Int($1) }
        other[start + place + 8 + 2] ^= 0x40
        #expect(try profile(Recipe(encoding: .png), other)?.count == kept.count)
    }

    // MARK: - Damage

    /// Bitmaps have no checksum; only missing data can be detected.
    @Test(arguments: taken)
    func refusesEveryTruncation(sample: Sample) throws {
        let source = try sample.bytes
        let whole = try BMPTests.rgba(png: stored(source, Recipe(encoding: .png)).bytes)
        var accepted = 0
        for count in 0..<source.count {
            let cut = Array(source.prefix(count))
            switch refusal(cut, Recipe(encoding: .original)) {
            case .notAnImage: #expect(count < 18)
            case .corrupt(_, isTruncated: true): #expect(count >= 18)
            case nil:
                accepted += 1
                let pixels = try BMPTests.rgba(png: stored(cut, Recipe(encoding: .png)).bytes)
                #expect(pixels == whole, "\(count) of \(source.count) bytes")
            case let error?: Issue.record("\(count) of \(source.count) bytes: \(error)")
            }
        }
        // The padding of the last row, the end of runs, and a profile after the pixels may be
        // missing. (A pair of bytes may be incomplete.)
        if sample.name != "24-bit-profile-of-srgb" { #expect(accepted <= 5) }
    }

    /// A header of 52 bytes has three masks; the alpha mask follows it.
    @Test func readsAlphaMaskAfterHeader() throws {
        func words(_ numbers: Int..., size: Int = 4) -> [UInt8] {
            numbers.flatMap { number in
                (0..<size).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
            }
        }
        let masks = words(0x0F00, 0x00F0, 0x000F, 0xF000)
        let source =
            Array("BM".utf8) + words(72, 0, 70) + words(52, 1, 1) + words(1, 16, size: 2)
            + words(6, 2, 0, 0, 0, 0) + masks + words(0x7F80, size: 2)
        #expect(
            try BMPTests.rgba(png: stored(source, Recipe(encoding: .png)).bytes)
                == [255, 136, 0, 119])
        for count in 18..<source.count {
            let error = refusal(Array(source.prefix(count)), Recipe(encoding: .png))
            guard case .corrupt(_, isTruncated: true) = error else {
                Issue.record("\(count) bytes: \(String(describing: error))")
                continue
            }
        }
    }

    /// Any verdict is acceptable, as long as decoding and the structure check agree.
    @Test(arguments: samples)
    func flippedBitsGetSameVerdictInEveryCheck(sample: Sample) throws {
        let source = try sample.bytes
        var random = SplitMix(seed: 3)
        var places = Array(0..<8 * min(source.count, 70))
        places += (0..<60).map { _ in Int(random.next() % UInt64(8 * source.count)) }
        let limits = CodecLimits(maximumPixels: 1 << 14)
        for place in places {
            var changed = source
            changed[place / 8] ^= 1 << UInt8(place % 8)
            let error = refusal(changed, Recipe(encoding: .original), limits: limits)
            #expect(structureRefusal(changed, limits: limits) == error, "bit \(place)")
            if place % 3 == 0 {
                let made = refusal(changed, Recipe(encoding: .png), limits: limits)
                #expect(made == error, "bit \(place)")
            }
        }
    }

    @Test func refusesBombByHeader() throws {
        let bomb = try BMPTests.bytes("bomb")
        #expect(
            refusal(bomb)
                == .tooManyPixels(
                    "2147483647×2147483647 pixels, more than --max-pixels (100000000)"))
        let limits = CodecLimits(maximumPixels: 1 << 62)
        let header = try imageHeader(bomb, limits: limits)
        for recipe in everyRecipe where recipe.encoding != .original {
            #expect(header.decodeMemoryBytes(for: recipe) > 1 << 60)
        }
        // No pixels are allocated if the file does not contain them.
        #expect(
            refusal(bomb, limits: limits)
                == .corrupt("the data ends before the image does", isTruncated: true))
        let declared = try BMPTests.bytes("declares-9000-by-9000")
        #expect(
            refusal(declared) == .corrupt("the data ends before the image does", isTruncated: true))
        #expect(try imageHeader(declared).decodeMemoryBytes(for: Recipe()) > 3 * 81_000_000)
    }

    @Test func judgesByBeginning() throws {
        func verdict(_ bytes: some Collection<UInt8>, _ rules: HeaderRules) -> HeaderVerdict {
            Array(bytes).withUnsafeBytes { HeaderVerdict(onBeginning: $0, under: rules) }
        }
        let source = try BMPTests.bytes("24-bit")
        let rules = HeaderRules(memory: .mebibytes(64))
        #expect(verdict(source.prefix(100), rules) == .undecided)
        #expect(verdict(source.prefix(256), rules) == .passed)
        let wide = try BMPTests.bytes("declares-9000-by-9000") + [UInt8](repeating: 0, count: 256)
        guard case .refused(.tooManyPixels) = verdict(wide.prefix(256), rules) else {
            Issue.record("taken")
            return
        }
        let huffman = try BMPTests.bytes("os2-huffman") + [UInt8](repeating: 0, count: 256)
        #expect(
            verdict(huffman.prefix(256), rules) == .refused(.unsupported("a BMP of Huffman codes")))
    }

    @Test func endsAtItsTime() throws {
        let header = try BMPTests.bytes("24-bit").prefix(54)
        let (width, height) = (2000, 1500)
        var source = Array(header) + [UInt8](repeating: 90, count: width * height * 3)
        for (place, value) in [(18, width), (22, height)] {
            for byte in 0..<4 {
                source[place + byte] = UInt8(truncatingIfNeeded: value >> (8 * byte))
            }
        }
        var limits = CodecLimits()
        #expect(refusal(source, limits: limits) == nil)
        limits.maximumTime = .zero
        let late = CodecError.limitExceeded("more processor time than --max-decode-time allows")
        #expect(refusal(source, limits: limits) == late)
    }

    @Test func severalResultsEqualSeparateRuns() throws {
        var dark = Recipe(encoding: .jpeg)
        dark.background = RGBColor(red: 0, green: 0, blue: 60)
        let recipes = [
            Recipe(), Recipe(encoding: .jpeg), dark, Recipe(encoding: .original),
            Recipe(encoding: .jpeg, quality: 50),
        ]
        for sample in BMPTests.taken {
            let source = try sample.bytes
            let together = try source.withUnsafeBytes {
                try ImageProcessor.process($0, header: header(of: $0), recipes: recipes).results
            }
            for (recipe, result) in zip(recipes, together) {
                let alone = try stored(source, recipe)
                let bytes =
                    switch try result.get().output {
                    case .source: source
                    case .encoded(let made): made.withUnsafeBytes { [UInt8]($0) }
                    }
                #expect(bytes == alone.bytes, "\(sample.name), \(recipe.canonicalText)")
            }
        }
    }
}
