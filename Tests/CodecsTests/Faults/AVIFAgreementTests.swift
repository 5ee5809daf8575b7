import CodecFuzzing
import PrefetchModel
import Testing

@testable import Codecs

#if AVIF
    /// AVIFs that versions of libavif read in different ways. The tests run with the oldest and the
    /// newest one, and want the same of both.
    @Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: CodecLibraries.decodes(.avif)))
    struct AVIFAgreementTests {
        private let png = Recipe(encoding: .png)

        // MARK: Turns and apertures

        private static let transformed = FormatSample.taken.filter {
            $0.format == .avif && ($0.name.hasPrefix("turned") || $0.name == "aperture")
        }

        /// From 1.2 on, libavif and so browsers refuse the file, which libheif shows.
        @Test(arguments: transformed)
        func transformsNeedNoMark(sample: FormatSample) throws {
            let marked = try sample.bytes
            var source = marked
            let places = try marked.withUnsafeBytes { bytes in
                let meta = try #require(try Box.first("meta", of: bytes))
                let properties = try #require(
                    try Box.first("iprp", of: bytes, in: meta.payload.dropFirst(4)))
                let associations = ItemAssociations(of: properties, in: bytes)
                // libavif writes size, depth, configuration and colours before.
                return associations.entries.flatMap(associations.properties)
                    .filter { $0.index > 3 }.map { $0.place }
            }
            for place in places { source[place] &= 0x7F }
            #expect(source != marked)
            let (one, other) = (try imageHeader(source), try imageHeader(marked))
            #expect(one.orientation == other.orientation)
            #expect(one.displayedSize == other.displayedSize)
            #expect(try stored(source, png).bytes == stored(marked, png).bytes)
            #expect(structureRefusal(source) == nil)
            // Kept data gets the mark, for browsers.
            for stripping in Recipe.Stripping.allCases {
                var recipe = Recipe(quality: 100)
                recipe.stripping = stripping
                #expect(try stored(source, recipe).bytes == stored(marked, recipe).bytes)
            }
        }

        /// Without chroma, libavif before 1.0 calls odd sizes invalid.
        @Test(arguments: [(3, 5, 5, 7), (0, 0, 1, 1), (1, 2, 3, 4)])
        func oddAperturesOfGreyAreApplied(x: Int, y: Int, width: Int, height: Int) throws {
            var parts = try AVIFParts("grey")
            let whole = try ShownPixels(png: stored(parts.bytes, png).bytes)
            let header = try imageHeader(parts.bytes)
            let (full, rows) = (header.widthInPixels, header.heightInPixels)
            let numbers = [width, 1, height, 1, 2 * x + width - full, 2, 2 * y + height - rows, 2]
            parts.add(
                property: "clap", numbers.flatMap { UInt32(truncatingIfNeeded: $0).bigEndianBytes },
                isEssential: true)
            let cut = try ShownPixels(png: stored(parts.bytes, png).bytes)
            let wanted = (y..<y + height).flatMap { row in
                whole.pixels[row * full + x..<row * full + x + width]
            }
            #expect(cut.pixels == wanted)
        }

        // MARK: Places

        struct Places: CustomTestStringConvertible, Sendable {
            let form: AVIFParts.Form

            var testDescription: String { "\(form)" }

            /// An offset of 0 bytes is possible where each item has one extent, at its base.
            static let all: [Places] = (0...2).flatMap { version in
                [0, 4, 8].flatMap { base in
                    (version == 0 ? [0] : [0, 4, 8]).flatMap { index in
                        (base == 0 ? [4, 8] : [0, 4, 8]).flatMap { offset in
                            [4, 8].map { length in
                                Places(
                                    form: AVIFParts.Form(
                                        version: version, offset: offset, length: length,
                                        base: base, index: index))
                            }
                        }
                    }
                }
            }
        }

        @Test(arguments: Places.all, ["lossy", "grid", "alpha"])
        func everyFormOfPlacesIsRead(places: Places, name: String) throws {
            var parts = try AVIFParts(name)
            let plain = parts.bytes
            parts.form = places.form
            let source = parts.bytes
            #expect(try stored(source, png).bytes == stored(plain, png).bytes)
            #expect(structureRefusal(source) == nil)
            let quality = try imageHeader(source).lossyQuality
            #expect(try quality == imageHeader(plain).lossyQuality)
        }

        /// libavif before 1.1 reads them, other readers do not.
        @Test(arguments: [
            AVIFParts.Form(offset: 2), AVIFParts.Form(length: 2), AVIFParts.Form(base: 2),
            AVIFParts.Form(version: 0, offset: 2), AVIFParts.Form(version: 2, index: 1),
        ])
        func otherLengthsOfNumbersAreRefused(form: AVIFParts.Form) throws {
            var parts = try AVIFParts("lossy")
            parts.form = form
            for recipe in everyRecipe {
                guard case .corrupt(_, isTruncated: false)? = refusal(parts.bytes, recipe) else {
                    Issue.record("\(String(describing: refusal(parts.bytes, recipe)))")
                    continue
                }
            }
        }

        // MARK: Frames

        /// The first one is shown.
        @Test(arguments: ["lossy", "grid", "alpha"])
        func secondFramesOfAnItemAreIgnored(name: String) throws {
            let plain = try AVIFParts(name)
            for index in plain.parts.indices where plain.parts[index].extents[0].count > 8 {
                var parts = plain
                parts.parts[index].extents += plain.parts[index].extents
                let source = parts.bytes
                #expect(refusal(source) == nil)
                #expect(try stored(source, png).bytes == stored(plain.bytes, png).bytes)
            }
        }
    }
#endif
