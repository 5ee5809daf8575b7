import PrefetchModel
import Testing

@testable import Codecs

/// Companions of pictures: kept with the file's own bytes, or dropped with a warning.
@Suite(.serialized, .timeLimit(.minutes(15))) struct CompanionTests {
    private static let dropped = "dropped the signed provenance manifest"

    /// One recipe for each kind of result.
    private static let recipes: [Recipe] = {
        let made = EncodedImageFormat.allCases.filter(\.isMade)
        var recipes = [Recipe.Encoding.same, .auto, .original].map { Recipe(encoding: $0) }
        recipes += made.compactMap { Recipe.Encoding(rawValue: $0.rawValue) }.map {
            Recipe(encoding: $0)
        }
        var coarse = Recipe(quality: 30)
        coarse.effort = .fast
        var small = Recipe()
        small.maximumStoredBytes = 1500
        var first = Recipe()
        first.animation = .first
        var resized = Recipe()
        resized.transformations = [.resize(.fit(width: 16, height: 16))]
        return recipes + [coarse, Recipe(keepsLarger: true), small, first, resized]
    }()

    /// Whether the recipe can make its result without changing the pixels.
    private func mayKeepPixels(_ sample: CompanionSample, _ recipe: Recipe) -> Bool {
        guard recipe.transformations.isEmpty else { return false }
        if sample.isAnimated, recipe.animation == .first { return false }
        if sample.isLossy, recipe.maximumStoredBytes ?? .max < sample.bytes.count { return false }
        switch recipe.encoding {
        case .same: return true
        case .auto:
            let own = EncodedImageFormat(rawValue: sample.format.rawValue)
            return !sample.isAnimated && own.map(recipe.allowedFormats.contains) ?? false
                || sample.isAnimated
        default: return recipe.encoding.rawValue == sample.format.rawValue
        }
    }

    @Test(arguments: Recipe.Stripping.allCases)
    func manifestStaysWithItsBytesOnly(stripping: Recipe.Stripping) throws {
        for sample in try CompanionSample.signed() {
            for recipe in Self.recipes {
                var recipe = recipe
                recipe.stripping = stripping
                let name = "\(sample.name): \(recipe.canonicalText)"
                let result = try stored(sample.bytes, recipe)
                let text = try warning(sample.bytes, recipe)?.text
                if recipe.encoding == .original
                    || stripping == .none && mayKeepPixels(sample, recipe)
                {
                    #expect(result.isSource, "\(name)")
                    #expect(text == nil, "\(name)")
                } else if result.isSource {
                    // An animation may stay as a whole in place of another format.
                    #expect(stripping == .none && sample.isAnimated && text == nil, "\(name)")
                } else {
                    #expect(!JPEGTests.contains(result.bytes, CompanionSample.author), "\(name)")
                    #expect(!JPEGTests.contains(result.bytes, "jumb"), "\(name)")
                    #expect(text?.contains(Self.dropped) == true, "\(name): \(text ?? "none")")
                    #expect(try warning(result.bytes, recipe)?.text.contains("manifest") != true)
                }
                #expect(
                    try warning(sample.plain, recipe)?.text.contains("manifest") != true, "\(name)")
            }
        }
    }

    @Test func severalResultsOfASignedFileHaveOneWarning() throws {
        let sample = try CompanionSample.signed()[0]
        var kept = Recipe()
        kept.stripping = .none
        let recipes = [Recipe(encoding: .original), kept, Recipe(), Recipe(encoding: .png)]
        try sample.bytes.withUnsafeBytes { bytes in
            let entry = try ImageProcessor.process(
                bytes, header: header(of: bytes), recipes: recipes)
            #expect(entry.warning?.text.hasPrefix(Self.dropped) == true)
            #expect(entry.warning?.text.contains("; ") == false)
            for (index, result) in entry.results.enumerated() {
                let isSource = if case .source = try result.get().output { true } else { false }
                #expect(isSource == (index < 2))
            }
        }
    }

    /// Broken parts do not break a signature.
    @Test func signedFileKeepsMalformedMetadata() throws {
        guard CodecLibraries.decodes(.gif) else { return }
        let malformed: [UInt8] = [0x21, 0x01, 1, 0, 0]
        for sample in try CompanionSample.signed() where sample.format == .gif {
            let source = CompanionSample.gif(sample.bytes, with: malformed)
            #expect(try stored(source, Recipe(.none)).isSource)
            #expect(try warning(source, Recipe(.none)) == nil)
            #expect(try !stored(source, Recipe(.safe)).isSource)
        }
    }

    // MARK: - AVIF

    #if AVIF
        @Test func privateBoxesOfAVIFGiveWayInPlace() throws {
            func hidden(_ name: String) -> [UInt8] {
                CompanionSample.box(name, Array("0123456789ABCDEF secret".utf8))
            }
            let track = CompanionSample.box(
                "trak", hidden("udta") + CompanionSample.box("mdia", [7]))
            let source =
                CompanionSample.box("ftyp", Array("avif\0\0\0\0avif".utf8))
                + CompanionSample.box("meta", [0, 0, 0, 0] + hidden("uuid"))
                + CompanionSample.box("moov", track + hidden("udta") + hidden("uuid"))
                + hidden("uuid") + CompanionSample.box("mdat", [1, 2, 3])
            for tail in [[], hidden("mpvd"), hidden("uuid") + hidden("jumb")] as [[UInt8]] {
                let made = try (source + tail).withUnsafeBytes { bytes in
                    let replacements = try HEIFMetadata(bytes).replacements.sorted {
                        $0.range.lowerBound < $1.range.lowerBound
                    }
                    return [ImagePiece](
                        source: 0..<bytes.count, without: replacements.map(\.range)
                    ) { replacements[$0].bytes }.bytes(of: bytes)
                }
                #expect(made.count == source.count)
                #expect(!JPEGTests.contains(made, "secret"))
                for (index, byte) in made.enumerated() where byte != source[index] {
                    #expect(byte == 0 || "free".utf8.contains(byte))
                }
                #expect(made.suffix(11) == source.suffix(11))
            }
        }
    #endif

    @Test func videoOfAnAVIFIsDropped() throws {
        guard EncodedImageFormat.avif.isMade else { return }
        let plain = try FormatSample.file("lossless", .avif)
        let source = plain + CompanionSample.box("mpvd", Self.video)
        #expect(try stored(source, Recipe(.safe)).bytes == stored(plain, Recipe(.safe)).bytes)
        #expect(try stored(source, Recipe(.none)).isSource)
        #expect(try warning(source, Recipe(.none)) == nil)
        for recipe in [Recipe(.safe), Recipe(.all), Recipe(.none, encoding: .png)] {
            #expect(try warning(source, recipe)?.text == "dropped the video of a motion photo")
        }
    }

    // MARK: - Behind a JPEG

    private static let video =
        CompanionSample.box("ftyp", Array("mp42\0\0\0\0mp42isom".utf8))
        + CompanionSample.box("mdat", [UInt8](repeating: 5, count: 300))

    private static func xmp(_ text: String) -> [UInt8] {
        JPEGFile.segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0<x>\(text)</x>".utf8))
    }

    private static let gain = xmp("http://ns.adobe.com/hdr-gain-map/1.0/")
    private static let index = JPEGFile.segment(0xE2, Array("MPF\0MM\0*".utf8))

    private struct Tail: CustomStringConvertible {
        let description: String
        /// The picture's own.
        var segments: [UInt8] = []
        let tail: [UInt8]
        var losses: Set<Companion> = []
    }

    private static let tails: [Tail] = {
        let small = Samples.greyJPEG
        let isoSegment = JPEGFile.segment(0xE2, Array("urn:iso:std:iso:ts:21496:-1\0".utf8))
        let apple = xmp("urn:com:apple:photo:2020:aux:hdrgainmap")
        func with(_ segment: [UInt8]) -> [UInt8] { JPEGTests.inserting(segment, into: small) }
        let marker = Array("0123MotionPhoto_Data".utf8)
        return [
            Tail(description: "Ultra HDR", segments: gain, tail: small, losses: [.gainMap]),
            Tail(description: "ISO", segments: isoSegment, tail: small, losses: [.gainMap]),
            Tail(
                description: "Adobe, in the map alone", segments: index, tail: with(gain),
                losses: [.gainMap]),
            Tail(description: "Apple", segments: index, tail: with(apple), losses: [.gainMap]),
            Tail(
                description: "the second picture", segments: index, tail: small + with(gain),
                losses: [.gainMap]),
            Tail(description: "motion photo", tail: video, losses: [.video]),
            Tail(description: "Samsung", tail: marker + video, losses: [.video]),
            Tail(
                description: "both", segments: gain, tail: small + video,
                losses: [.gainMap, .video]),
            Tail(description: "no tail", segments: gain + index, tail: []),
            Tail(description: "preview", segments: index, tail: small),
            Tail(description: "zeros", segments: gain, tail: [0, 0, 0, 0]),
            Tail(description: "words", tail: Array("ftyp, says the tail".utf8)),
            Tail(description: "too long a head", tail: Array("zzzzftypmp42".utf8)),
        ]
    }()

    @Test(arguments: tails.indices, Recipe.Stripping.allCases)
    func picturesAndVideosBehindAJPEGAreDroppedWithAWarning(
        index: Int, stripping: Recipe.Stripping
    ) throws {
        let tail = Self.tails[index]
        for sample in Samples.jpegs {
            let source = JPEGTests.inserting(tail.segments, into: sample) + tail.tail
            for encoding in [Recipe.Encoding.same, .jpeg, .png, .auto, .original] {
                let recipe = Recipe(stripping, encoding: encoding)
                let result = try stored(source, recipe)
                let texts = (try warning(source, recipe)?.text ?? "").split(separator: "; ")
                let losses = result.isSource ? [] : tail.losses
                #expect(
                    Set(texts.map { String($0) }) == Set(losses.map(\.loss.text)),
                    "\(tail), \(recipe.canonicalText): \(texts)")
            }
            if !tail.tail.isEmpty, stripping == .none {
                #expect(try stored(source, Recipe(.none, quality: 30)).isSource)
            }
        }
    }
}
