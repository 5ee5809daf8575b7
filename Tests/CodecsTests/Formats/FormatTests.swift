import CodecFuzzing
import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Properties of every format other than JPEG and PNG: accepted and rejected files, and stored
/// results.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: !FormatSample.formats.isEmpty))
struct FormatTests {
    private static func verdict(_ error: CodecError?) -> String {
        switch error {
        case nil: "ok"
        case .corrupt: "corrupt"
        case .unsupported: "unsupported"
        case .tooManyPixels, .limitExceeded: "too-many-pixels"
        case .notAnImage: "not-an-image"
        case let error?: "\(error)"
        }
    }

    private static func rgba(png bytes: [UInt8]) throws -> [UInt8] {
        try ShownPixels(png: bytes).pixels.flatMap { pixel in
            (0..<4).map { UInt8(truncatingIfNeeded: pixel[$0] >> 8) }
        }
    }

    /// The encodings of this build, which its package traits decide.
    private static let encodings = Recipe.Encoding.allCases.filter { $0.format?.isMade != false }

    /// Keeps the pixels exactly; for an animation, of its first frame.
    private static let exact: Recipe = {
        var recipe = Recipe(encoding: .png)
        recipe.stripping = .none
        recipe.animation = .first
        recipe.effort = .fast
        return recipe
    }()

    @Test(arguments: FormatSample.formats)
    func acceptsAllSamples(format: ImageFormat) throws {
        let samples = FormatSample.all.filter { $0.format == format }
        let folder = FormatSample.folder.appending(path: format.rawValue)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.count { $0.hasSuffix("." + format.fileExtension) } == samples.count)
        #expect(samples.count(where: \.isTaken) > 12 && samples.count { !$0.isTaken } > 6)
        for sample in samples where Set(sample.verdicts).count > 1 {
            #expect(sample.decision != nil, "\(sample.name)")
        }
        for line in FormatSample.lines(format, "differing.tsv") {
            let sample = try #require(samples.first { $0.name == line[0] })
            #expect(!line[2].isEmpty)
            let both = sample.verdicts.map { $0 == "error" ? "corrupt" : "ok" }
            #expect(Set(both + [line[1]]).count > 1 || sample.isDrawn, "\(sample.name)")
        }
    }

    @Test(arguments: FormatSample.all)
    func agreesWithOtherDecodersExceptInTable(sample: FormatSample) throws {
        let source = try sample.bytes
        for encoding in FormatTests.encodings {
            let error = refusal(source, Recipe(encoding: encoding))
            #expect(
                FormatTests.verdict(error) == sample.verdict,
                "\(encoding): \(String(describing: error))")
        }
        guard sample.isTaken else { return }
        #expect(structureRefusal(source) == nil)
        var recipe = FormatTests.exact
        let orientation = try imageHeader(source).orientation
        if orientation > 1 { recipe.stripping = .safe }
        var png = try stored(source, recipe)
        if orientation > 1 {
            // The other decoders apply no orientation. Each but a quarter turn undoes itself.
            let back = ExifOrientation.minimalTIFF([6: 8, 8: 6][orientation] ?? orientation)
            png = try stored(
                PNGTests.inserting(PNGFile.chunk(.eXIf, back), into: png.bytes),
                Recipe(keepsLarger: true))
            #expect(png.image.orientation == 1)
        }
        #expect(png.image.format == .png)
        // The large sample has one colour, and would be slow to compare.
        if let digest = sample.digest, try imageHeader(source).pixels < 1 << 17 {
            #expect(shortDigest(try FormatTests.rgba(png: png.bytes)) == digest)
        }
        if let size = sample.size, !sample.isDrawn {
            #expect([png.image.widthInPixels, png.image.heightInPixels] == size)
        }
    }

    @Test(arguments: FormatSample.taken)
    func makesEveryRequestedFormat(sample: FormatSample) throws {
        let source = try sample.bytes
        let header = try imageHeader(source)
        let original = try stored(source, Recipe(encoding: .original))
        #expect(original.isSource && original.image.format == sample.format)
        let own: ImageFormat = sample.format == .icon ? .png : sample.format
        let same = try stored(source)
        #expect(same.image.format == own)
        #expect(try stored(source, Recipe(encoding: .jpeg)).image.format == .jpeg)
        var first = Recipe(encoding: .jpeg)
        first.animation = .first
        #expect(try stored(source, first).image.format == .jpeg)
        first.encoding = .same
        let frame: ImageFormat = sample.format == .gif ? .png : own
        #expect(try stored(source, first).image.format == (header.isAnimated ? frame : own))
        first.animation = .refuse
        #expect((refusal(source, first) != nil) == header.isAnimated)
    }

    @Test(arguments: FormatSample.all.filter { ($0.size ?? [0, 0])[0] <= 300 })
    func holdsTheInvariantsOfAllFormats(sample: FormatSample) throws {
        try sample.bytes.withUnsafeBytes { source in
            let limits = CodecLimits(maximumPixels: 1 << 20)
            guard let invariants = try CodecInvariants(source, limits: limits) else { return }
            for recipe in Recipe.samples { try invariants.check(recipe) }
            try invariants.checkTogether(Recipe.samples)
        }
    }

    // MARK: - Damage

    @Test(arguments: FormatSample.small)
    func refusesEveryTruncation(sample: FormatSample) throws {
        let source = try sample.bytes
        let whole = try FormatTests.rgba(png: stored(source, FormatTests.exact).bytes)
        var accepted = 0
        for count in 0..<source.count {
            let cut = Array(source.prefix(count))
            switch refusal(cut, Recipe(encoding: .original)) {
            case .notAnImage: #expect(count < 32)
            case .corrupt: break
            case nil:
                // Missing bytes that no pixel needs are another matter.
                if try warning(cut)?.lacksEnd != true { accepted += 1 }
                let pixels = try FormatTests.rgba(png: stored(cut, FormatTests.exact).bytes)
                #expect(pixels == whole, "\(count) of \(source.count) bytes")
            case let error?: Issue.record("\(count) of \(source.count) bytes: \(error)")
            }
        }
        // Data after the picture, and the final bytes of the file.
        if sample.name != "trailing-bytes" { #expect(accepted <= 2, "\(accepted)") }
    }

    /// Without a length, a cut file is an interrupted transfer and not a damaged image.
    @Test(
        .enabled(if: CodecLibraries.decodes(.avif)),
        arguments: ["lossy", "alpha", "metadata", "12-bit-alpha", "sequence"], [false, true])
    func cutAVIFIsTruncated(name: String, isOpenEnded: Bool) throws {
        var source = try FormatSample.named(name, .avif)
        if isOpenEnded {
            guard let data = HandmadeContainer.lastBox("mdat", of: source) else { return }
            source.replaceSubrange(data..<data + 4, with: [0, 0, 0, 0])
        }
        for count in 1..<source.count {
            let cut = Array(source.prefix(count))
            for error in [refusal(cut, Recipe(encoding: .original)), structureRefusal(cut)] {
                switch error {
                case .notAnImage: #expect(cut.withUnsafeBytes { mayBecomeImage($0) }, "\(count)")
                case .corrupt(_, isTruncated: true): break
                default:
                    Issue.record("\(count) of \(source.count) bytes: \(error as Any)")
                }
            }
        }
    }

    /// Any verdict is acceptable, as long as storing and converting the bytes agree.
    @Test(arguments: FormatSample.small)
    func flippedBitsGetSameVerdictInEveryCheck(sample: FormatSample) throws {
        let source = try sample.bytes
        var random = SplitMix(seed: 3)
        var places = Array(0..<8 * min(source.count, 24))
        places += (0..<120).map { _ in Int(random.next() % UInt64(8 * source.count)) }
        let limits = CodecLimits(maximumPixels: 1 << 14)
        for place in places {
            var changed = source
            changed[place / 8] ^= 1 << UInt8(place % 8)
            let error = refusal(changed, Recipe(encoding: .original), limits: limits)
            if error == nil { #expect(structureRefusal(changed, limits: limits) == nil) }
            if place % 3 == 0 {
                var recipe = FormatTests.exact
                recipe.stripping = .safe
                let made = refusal(changed, recipe, limits: limits)
                // Colours that are kept but not converted.
                if case .unsupported = made, sample.format == .avif { continue }
                #expect(made == error, "bit \(place)")
            }
        }
    }

    // MARK: - Limits

    @Test(arguments: FormatSample.taken)
    func refusesMorePixelsThanAllowed(sample: FormatSample) throws {
        let source = try sample.bytes
        let pixels = try imageHeader(source).pixels
        guard pixels > 1 else { return }
        guard case .tooManyPixels = refusal(source, limits: CodecLimits(maximumPixels: pixels - 1))
        else {
            Issue.record("taken")
            return
        }
    }

    @Test(arguments: FormatSample.formats)
    func endsAtItsTime(format: ImageFormat) throws {
        let sample = try #require(
            FormatSample.taken.filter { $0.format == format }.max {
                ($0.size ?? [0, 0])[0] < ($1.size ?? [0, 0])[0]
            })
        var limits = CodecLimits()
        limits.maximumTime = .zero
        let late = CodecError.limitExceeded("more processor time than --max-decode-time allows")
        for encoding in FormatTests.encodings {
            #expect(
                refusal(try sample.bytes, Recipe(encoding: encoding), limits: limits) == late,
                "\(sample.name): \(encoding)")
        }
    }

    /// No beginning of an accepted file is rejected. No file that is rejected for its size is read
    /// to its end.
    @Test(arguments: FormatSample.all)
    func judgesByBeginning(sample: FormatSample) throws {
        let source = try sample.bytes
        let rules = HeaderRules(recipes: [Recipe(encoding: .original)], memory: .mebibytes(192))
        let counts = stride(from: 0, through: source.count, by: max(1, source.count / 300))
        for count in counts {
            let verdict = Array(source.prefix(count)).withUnsafeBytes {
                HeaderVerdict(onBeginning: $0, totalBytes: source.count, under: rules)
            }
            if case .refused(let error) = verdict {
                #expect(!sample.isTaken, "\(count) of \(source.count) bytes: \(error)")
            }
        }
    }

    @Test(arguments: FormatSample.formats)
    func memoryIsKnownFromTheHeader(format: ImageFormat) throws {
        let sample = try #require(FormatSample.taken.first { $0.format == format })
        let header = try imageHeader(try sample.bytes)
        for encoding in FormatTests.encodings where encoding != .original {
            let need = header.decodeMemoryBytes(for: Recipe(encoding: encoding))
            #expect(need >= header.decodeMemoryBytes(for: Recipe(encoding: .original)))
        }
    }

    /// The shared data contains no icons.
    @Test(.enabled(if: TestData.isAvailable && FormatSample.formats != [.icon]))
    func acceptsForeignFiles() throws {
        var count = 0
        for path in try TestData.paths(in: "unsupported") {
            let source = try TestData.bytes(path)
            let format = source.withUnsafeBytes { sniffed($0) }
            guard let format, FormatSample.formats.contains(format) else { continue }
            count += 1
            for encoding in FormatTests.encodings {
                #expect(refusal(source, Recipe(encoding: encoding)) == nil, "\(path)")
            }
        }
        #expect(count > 0)
    }

    /// Colours that nothing describes must not be stored as sRGB pixels, in any size.
    @Test(.enabled(if: CodecLibraries.decodes(.avif)))
    func refusesPixelsOfUndescribedColours() throws {
        var source = try #require(
            FormatSample.all.first { $0.format == .avif && $0.name == "lossy" }
        ).bytes
        let mark = Array("nclx".utf8)
        let place = try #require(
            source.indices.first { source[$0...].starts(with: mark) })
        // BT.2020 and a reserved curve (ITU-T H.273).
        source.replaceSubrange(place + 4..<place + 8, with: [0, 9, 0, 19])
        for specification in ["png", "jpeg", "webp", "auto", "8x8", "jpeg,8x8", "png,rotate=90"] {
            guard case .unsupported? = refusal(source, try Recipe(specification: specification))
            else {
                Issue.record("\(specification) is made")
                continue
            }
        }
        for specification in ["same", "original", "9000x9000"] {
            #expect(refusal(source, try Recipe(specification: specification)) == nil)
        }
    }
}
