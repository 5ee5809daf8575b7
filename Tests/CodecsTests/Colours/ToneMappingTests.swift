import CodecFuzzing
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Pictures of a high dynamic range, PQ and HLG.
@Suite(.timeLimit(.minutes(15)))
struct ToneMappingTests {
    /// Colours as Chromium 156 shows them on a screen of sRGB. Each is a pixel of a PNG with cICP,
    /// and with cLLI, or mDCV for 10,000 cd/m², if the peak is not 1,000.
    private struct ShownColour {
        let primaries: Int
        let transfer: Int
        let peak: Double
        /// Red, green and blue from 0 to 65,535.
        let samples: [Int]
        /// The same from 0 to 255.
        let shown: [Int]
    }

    private static let shownColours = Result {
        let table = SourceTree.tests.appending(path: "CodecsTests/Colours/tone-mapping.tsv")
        return try String(contentsOf: table, encoding: .utf8).split(separator: "\n").dropFirst()
            .map { line -> ShownColour in
                let fields = line.split(separator: "\t").compactMap { Int($0) }
                return ShownColour(
                    primaries: fields[0], transfer: fields[1], peak: Double(fields[2]),
                    samples: Array(fields[3...5]), shown: Array(fields[6...8]))
            }
    }

    @Test(arguments: [
        (9, 16, 1000.0), (9, 18, 1000), (1, 16, 1000), (12, 18, 1000), (9, 16, 203),
        (9, 16, 400), (9, 18, 400), (9, 16, 4000), (9, 18, 4000), (9, 16, 10_000),
    ])
    func looksAsInChromium(primaries: Int, transfer: Int, peak: Double) throws {
        let colours = try ToneMappingTests.shownColours.get().filter {
            $0.primaries == primaries && $0.transfer == transfer && $0.peak == peak
        }
        #expect(colours.count == 64)
        for bitDepth in [8, 16] {
            let steps = bitDepth == 8 ? 257 : 1
            let made = try ColourTests.converted(
                colours.map { $0.samples.map { $0 / steps } }, bitDepth: bitDepth, primaries,
                transfer, peak: peak)
            let differences = zip(made.joined(), colours.flatMap(\.shown)).map { made, shown in
                abs(Double(made * steps) / 257 - Double(shown))
            }
            // Chromium clips some saturated colours otherwise, and interpolates the operator's
            // curve, by up to 10 from the curve itself for the highest peaks.
            let mean = differences.reduce(0, +) / Double(differences.count)
            #expect(mean < 1, "\(bitDepth) bits")
            if peak == 1000, bitDepth == 16 {
                #expect(differences.allSatisfy { $0 <= 5 }, "\(differences.max() ?? 0)")
            }
        }
    }

    /// Brighter light is never shown darker, black is black, and the peak is white.
    @Test(arguments: [16, 18], [100.0, 203, 204, 400, 1000, 4000, 10_000, 429_496])
    func greyIsMonotonic(transfer: Int, peak: Double) throws {
        let greys = stride(from: 0, through: 65_535, by: 15).map { [$0, $0, $0] }
        let made = try ColourTests.converted(greys, bitDepth: 16, 9, transfer, peak: peak)
        #expect(made.allSatisfy { Set($0).count == 1 })
        let levels = made.map { $0[0] }
        #expect(zip(levels, levels.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(levels.first == 0)
        if peak <= (transfer == 16 ? 10_000 : 1000) { #expect(levels.last == 65_535) }
    }

    private static func picture(_ format: String, _ transfer: Int) throws -> [UInt8] {
        switch format {
        case "PNG", "indexed PNG", "grey PNG":
            try PNGTests.inserting(
                PNGFile.chunk(.cICP, [9, UInt8(transfer), 0, 1]),
                into: format == "PNG"
                    ? Samples.colourPNG
                    : format == "grey PNG" ? Samples.deepGreyPNG : Samples.palettePNG)
        default: try ColourTests.sample(format, 9, transfer)
        }
    }

    /// Nil for colours that are no space.
    private static func curve(of source: [UInt8]) throws -> RGBSpace.Curve? {
        guard case .space(let space) = try ColourHandlingTests.colours(source) else { return nil }
        return space.curve
    }

    private static var formats: [String] {
        ["PNG", "indexed PNG", "grey PNG"]
            + (CodecLibraries.decodes(.avif) ? ["lossless", "10-bit", "12-bit-alpha"] : [])
    }

    /// Every result of new pixels is mapped; kept data has its light.
    @Test(arguments: formats, [16, 18])
    func everyResultIsMappedOrKept(format: String, transfer: Int) throws {
        let source = try ToneMappingTests.picture(format, transfer)
        for specification in ["webp", "jpeg", "png,4x4", "4x4", "auto,4x4", "webp,8x8"] {
            let recipe = try Recipe(specification: specification)
            #expect(try stored(source, recipe).image.colour == .toneMapped, "\(specification)")
        }
        for specification in ["same", "auto"] {
            var recipe = try Recipe(specification: specification)
            recipe.allowedFormats.formUnion([.avif, .png])
            let made = try stored(source, recipe)
            #expect(made.image.colour == .kept, "\(specification)")
            if format.hasSuffix("PNG") {
                #expect(
                    try PNGTests.data(of: .cICP, in: made.bytes) == [9, UInt8(transfer), 0, 1])
            } else {
                #expect(made.bytes == source, "\(specification)")
            }
        }
    }

    /// A PNG without its description would look like another picture; an AVIF keeps it.
    @Test(arguments: formats, ["same", "png", "auto"])
    func strippedPicturesAreMapped(format: String, specification: String) throws {
        let source = try ToneMappingTests.picture(format, 16)
        var recipe = try Recipe(specification: specification)
        recipe.stripping = .all
        let isKept = !format.hasSuffix("PNG") && specification == "same"
        #expect(try stored(source, recipe).image.colour == (isKept ? .kept : .toneMapped))
    }

    /// The peak is that of the content, else that of the screen, else 1,000 cd/m².
    @Test(
        arguments: [
            ([], 1000.0), ([("cLLI", 400.0)], 400), ([("mDCV", 600)], 600),
            ([("mDCV", 600), ("cLLI", 400)], 400), ([("mDCV", 600), ("cLLI", 0)], 600),
            ([("mDCV", 0)], 1000),
        ] as [([(String, Double)], Double)])
    func peakOfPNG(stated: [(String, Double)], peak: Double) throws {
        let chunks = stated.flatMap { name, light in
            let value = UInt32(light * 10_000).bigEndianBytes
            return name == "cLLI"
                ? PNGFile.chunk(.cLLI, value + [0, 0, 0, 0])
                : PNGFile.chunk(.mDCV, [UInt8](repeating: 1, count: 16) + value + [0, 0, 0, 0])
        }
        let source = try PNGTests.inserting(
            PNGFile.chunk(.cICP, [9, 16, 0, 1]) + chunks, into: Samples.colourPNG)
        #expect(try ToneMappingTests.curve(of: source) == .pq(peak: peak))
    }

    /// The box `pixi`, which the decoder does not need, becomes `clli`.
    @Test(.enabled(if: CodecLibraries.decodes(.avif)), arguments: [(400, 400.0), (0, 1000)])
    func peakOfAVIF(stated: Int, peak: Double) throws {
        var source = try ColourTests.sample("10-bit", 9, 18)
        let mark = Array("pixi".utf8)
        let place = try #require(source.indices.first { source[$0...].starts(with: mark) })
        let light = [UInt8(stated >> 8), UInt8(stated & 255), 0, 0]
        source.replaceSubrange(place..<place + 8, with: Array("clli".utf8) + light)
        #expect(try ToneMappingTests.curve(of: source) == .hlg(peak: peak))
        #expect(try stored(source, Recipe(encoding: .png)).image.colour == .toneMapped)
    }

    #if AVIF
        /// The box `clli` describes the samples of the track that is shown.
        @Test(
            .enabled(if: CodecLibraries.decodes(.avif)), arguments: [(400, 400.0), (0, 1000)],
            [false, true])
        func peakOfSequence(stated: (Int, Double), isNamedByAnotherTrack: Bool) throws {
            let light = HandmadeContainer.box(
                "clli", [UInt8(stated.0 >> 8), UInt8(stated.0 & 255), 0, 0])
            let entry: [StaticString] = ["moov", "trak", "mdia", "minf", "stbl", "stsd", "av01"]
            var source = try AVIFParts.sequence(adding: light, in: entry)
            for place in source.indices where source[place...].starts(with: "nclx".utf8) {
                source.replaceSubrange(place + 4..<place + 8, with: [0, 9, 0, 16])
            }
            if isNamedByAnotherTrack {
                let place = try #require(
                    source.indices.first { source[$0...].starts(with: "pict".utf8) && $0 > 500 })
                source.replaceSubrange(place..<place + 4, with: "auxv".utf8)
            }
            #expect(
                try ToneMappingTests.curve(of: source)
                    == .pq(peak: isNamedByAnotherTrack ? 1000 : stated.1))
        }
    #endif
}
