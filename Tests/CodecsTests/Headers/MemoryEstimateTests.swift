import CAllocations
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Compares the estimates with the memory that is allocated, with and without memory to spare.
///
/// A header does not tell how much detail a picture has. So each member of the table is made of
/// several contents: none of them may take more than its estimate, and the largest one not much
/// less.
@Suite(
    .serialized, .timeLimit(.minutes(30)),
    .enabled(if: !TestData.hasSanitizer, "sanitizers allocate on their own"))
struct MemoryEstimateTests {
    /// The whole table takes far longer than a sample of it.
    private static let isWhole =
        ProcessInfo.processInfo.environment["PREFETCH_WHOLE_TABLES"] != nil

    private static let mostShare = 1.6
    /// Tables and buffers that do not grow with the picture.
    private static let fixedBytes = 6 << 20

    struct Member: CustomTestStringConvertible {
        let source: PictureSource
        let recipe: String

        var testDescription: String { "\(source) to \(recipe)" }
    }

    private static let steps = [
        "", ",1920", ",320", ",1600x1200!", ",crop=2000x2000", ",rotate=90", ",1920,rotate=33",
        ",1920,round=90", ",1920,border=100,#ff000080", ",1920,blur=5",
    ]
    private static let formats = ["jpeg", "png", "webp", "avif", "auto"]

    private static let members: [Member] = {
        guard !isWhole else {
            let sources = PictureSource.all(megapixels: [12, 24, 48])
            return sources.flatMap { source in
                formats.flatMap { format in
                    steps.map { Member(source: source, recipe: format + $0) }
                }
            }
        }
        let photograph = PictureSource(format: .jpeg, megapixels: 12)
        let graphics = PictureSource(format: .png, megapixels: 4, hasAlpha: true)
        var members = formats.map { Member(source: photograph, recipe: $0 + ",1920") }
        for steps in [",320", ",crop=2000x2000", ",rotate=90", ",1920,rotate=33", ",1920,blur=5"] {
            members.append(Member(source: photograph, recipe: "jpeg" + steps))
        }
        for recipe in ["png", "webp,1920"] {
            members.append(Member(source: graphics, recipe: recipe))
        }
        let grey = PictureSource(format: .jpeg, megapixels: 12, isGrey: true)
        for recipe in ["webp,1920", "avif,1920", "auto,1920"] {
            members.append(Member(source: grey, recipe: recipe))
        }
        let whole = PictureSource(format: .jpeg, megapixels: 4, hasWholeChroma: true)
        for recipe in ["jpeg", "jpeg,1920"] {
            members.append(Member(source: whole, recipe: recipe))
        }
        for source in PictureSource.all(megapixels: [2]) {
            for recipe in ["webp", "original"] {
                members.append(Member(source: source, recipe: recipe))
            }
        }
        return members
    }()

    @Test(arguments: members)
    func coversAllocations(_ member: Member) throws {
        let recipe = try Recipe(specification: member.recipe)
        for isShort in [false, true] {
            var (mostNeed, mostTaken) = (0, 0)
            for content in PictureSource.Content.allCases {
                let (need, taken) = try measure(
                    member.source.bytes(of: content), recipe, isShort: isShort)
                #expect(taken <= need, "\(content), short of memory: \(isShort)")
                (mostNeed, mostTaken) = (max(mostNeed, need), max(mostTaken, taken))
            }
            let most = Int(Self.mostShare * Double(mostTaken)) + Self.fixedBytes
            #expect(
                mostNeed <= most,
                "\(mostNeed >> 10) for \(mostTaken >> 10) KiB, short of memory: \(isShort)")
        }
    }

    /// The estimate and the most bytes allocated at once, without memory to spare if `isShort`.
    private func measure(
        _ source: [UInt8], _ recipe: Recipe, isShort: Bool
    ) throws -> (need: Int, taken: Int) {
        try source.withUnsafeBytes { bytes in
            let header = try header(of: bytes)
            let need = ImageProcessor.memoryNeed(
                of: header, for: [recipe], within: isShort ? 0 : .max)
            callocations_begin()
            let made = try ImageProcessor.process(
                bytes, header: header, recipes: [recipe],
                limits: CodecLimits(maximumTime: .seconds(600)),
                memoryBytes: isShort ? need : .max)
            let taken = callocations_end()
            _ = try made.results[0].get()
            return (need, taken)
        }
    }

    /// Libraries that are loaded on first use, and their tables.
    init() throws {
        for format in Self.formats {
            _ = try stored(Samples.colourPNG, Recipe(specification: format))
        }
    }
}
