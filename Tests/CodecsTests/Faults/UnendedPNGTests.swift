import CodecFuzzing
import PrefetchModel
import Testing

@testable import Codecs

/// PNGs with all pixels but without an end, of the file or of the image data: stored, with a
/// warning.
@Suite(.serialized, .timeLimit(.minutes(15))) struct UnendedPNGTests {
    /// A kind of pixels.
    struct Kind: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var width = 96
        var height = 64
        var depth: UInt8 = 8
        var colorType: UInt8 = 0
        var isInterlaced = false

        /// The bytes of each row, of each pass.
        private var rowBytes: [Int] {
            let channels = colorType == 2 ? 3 : 1
            func bytes(_ columns: Int) -> Int { (columns * channels * Int(depth) + 7) / 8 }
            guard isInterlaced else { return Array(repeating: bytes(width), count: height) }
            // The origins and steps of Adam7's passes (PNG section 8.1).
            let passes = [
                (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
                (0, 1, 1, 2),
            ]
            return passes.flatMap { x, y, right, down -> [Int] in
                let columns = (width - x + right - 1) / right
                return Array(repeating: bytes(columns), count: (height - y + down - 1) / down)
            }
        }

        var rows: [UInt8] {
            rowBytes.enumerated().flatMap { y, count in
                [0] + (0..<count).map { UInt8(truncatingIfNeeded: $0 * 3 + y * 5) }
            }
        }

        /// A file with this image data, in chunks of `pieces` bytes, without its end chunk.
        func start(_ data: [UInt8], pieces: Int = .max) -> [UInt8] {
            let header =
                AnimationTests.bytes(UInt32(width)) + AnimationTests.bytes(UInt32(height))
                + [depth, colorType, 0, 0, isInterlaced ? 1 : 0]
            var file = Array(Samples.colourPNG[..<8]) + PNGFile.chunk(.IHDR, header)
            for start in stride(from: 0, to: data.count, by: min(pieces, data.count)) {
                file += PNGFile.chunk(.IDAT, Array(data[start...].prefix(pieces)))
            }
            return file
        }
    }

    private static let end = PNGFile.chunk(.IEND, [])

    static let kinds = [
        Kind(testDescription: "grey"), Kind(testDescription: "colour", colorType: 2),
        Kind(testDescription: "interlaced", depth: 1, isInterlaced: true),
        Kind(testDescription: "colour, interlaced", colorType: 2, isInterlaced: true),
    ]

    /// A stored block (RFC 1951, 3.2.4).
    private static func block(
        _ data: ArraySlice<UInt8>, isLast: Bool, length: Int? = nil
    ) -> [UInt8] {
        let length = length ?? data.count
        let (low, high) = (UInt8(length & 0xFF), UInt8(length >> 8))
        return [isLast ? 1 : 0, low, high, ~low, ~high] + data
    }

    /// Image data that gives all rows, and has no right end.
    static func unended(_ rows: [UInt8]) -> [(name: String, data: [UInt8])] {
        let whole = AnimationTests.deflated(rows)
        var stored: [UInt8] = [0x78, 0x01]
        var left = rows[...]
        while left.count > 60_000 {
            stored += block(left.prefix(60_000), isLast: false)
            left = left.dropFirst(60_000)
        }
        let sum = whole.suffix(4)
        return (0...3).map { ("\($0) bytes of the checksum", Array(whole.dropLast(4 - $0))) } + [
            ("the last block unmarked", stored + block(left, isLast: false)),
            ("the last block unmarked, checksum", stored + block(left, isLast: false) + sum),
            ("the last block too long", stored + block(left, isLast: true, length: 65535)),
            (
                "the last block too long, checksum",
                stored + block(left, isLast: true, length: 65535) + sum
            ),
            ("more rows than there are", AnimationTests.deflated(rows + rows.prefix(200))),
        ]
    }

    /// The pixels as a new file, also where the source's own data is smaller.
    private func png(_ source: [UInt8]) throws -> [UInt8] {
        var recipe = Recipe(encoding: .png)
        recipe.keepsLarger = true
        recipe.stripping = .all
        return try stored(source, recipe).bytes
    }

    private func expect(
        _ faulty: [UInt8], showsAs whole: [UInt8], lacksEnd: Bool, warns: Bool = true,
        _ text: String
    ) throws {
        #expect(structureRefusal(faulty) == nil, "\(text)")
        for recipe in everyRecipe {
            #expect(refusal(faulty, recipe) == nil, "\(text)")
            let found = try warning(faulty, recipe)
            #expect(found != nil || !warns, "\(text)")
            #expect(found?.lacksEnd ?? false == lacksEnd, "\(text)")
        }
        #expect(try png(faulty) == png(whole), "\(text)")
        // The new file has no fault.
        for stripping in [Recipe.Stripping.none, .safe, .all] {
            var recipe = Recipe()
            recipe.stripping = stripping
            let made = try stored(faulty, recipe)
            #expect(!made.isSource || !warns, "\(text)")
            #expect(try warning(made.bytes) == nil, "\(text)")
            #expect(try png(made.bytes) == png(whole), "\(text)")
        }
        let original = try stored(faulty, Recipe(encoding: .original))
        #expect(original.isSource)
    }

    @Test(arguments: kinds) func storesImageDataWithoutItsEnd(kind: Kind) throws {
        let rows = kind.rows
        let whole = kind.start(AnimationTests.deflated(rows)) + Self.end
        #expect(try warning(whole) == nil)
        for (name, data) in Self.unended(rows) {
            // A library may accept a part of a checksum, and surplus, without a word.
            let isAccepted =
                name.hasPrefix("more") || name.contains("of the checksum") && !name.hasPrefix("0")
            let mayBeSilent = isAccepted && kind.isInterlaced
            for pieces in [Int.max, 4001] {
                try expect(
                    kind.start(data, pieces: pieces) + Self.end, showsAs: whole, lacksEnd: false,
                    warns: !mayBeSilent, name)
            }
        }
    }

    @Test(arguments: kinds.prefix(3)) func refusesImageDataWithoutAllRows(kind: Kind) {
        let rows = kind.rows
        for (name, data) in Self.unended(Array(rows.dropLast())) where !name.hasPrefix("more") {
            // The checksum would be a part of the block.
            guard !name.hasSuffix("checksum") else { continue }
            let start = kind.start(data)
            let cut = [1, 4, 6].map { Array(start.dropLast($0)) }
            for file in [start + Self.end, start] + cut {
                #expect(structureRefusal(file) != nil, "\(name)")
                for recipe in everyRecipe { #expect(refusal(file, recipe) != nil, "\(name)") }
            }
        }
        // A wrong checksum shows damage.
        var data = AnimationTests.deflated(rows)
        data[data.count - 1] ^= 1
        #expect(refusal(kind.start(data) + Self.end) != nil)
        #expect(structureRefusal(kind.start(data) + Self.end) != nil)
        for missing in 1...4 {
            let cut = Array(kind.start(data).dropLast(missing))
            #expect(refusal(cut) != nil && structureRefusal(cut) != nil)
        }
    }

    /// The file ends inside its last chunk of image data.
    @Test(arguments: kinds) func storesACutChunkOfImageData(kind: Kind) throws {
        let data = AnimationTests.deflated(kind.rows)
        let whole = kind.start(data) + Self.end
        for pieces in [Int.max, 4001] {
            // The chunk's checksum, then that of the data.
            for missing in 1...8 {
                let cut = Array(kind.start(data, pieces: pieces).dropLast(missing))
                try expect(cut, showsAs: whole, lacksEnd: true, "\(missing)")
            }
        }
    }

    @Test(arguments: Samples.pngs + [AnimationTests.Animation().file])
    func storesAnEndChunkWithAWrongChecksum(source: [UInt8]) throws {
        let faulty = source.dropLast(4) + [1, 2, 3, 4]
        try expect(Array(faulty), showsAs: source, lacksEnd: false, "")
        try expect(Array(faulty) + [0, 0], showsAs: source, lacksEnd: false, "trailing bytes")
    }

    @Test(arguments: Samples.pngs) func storesAFileWithoutItsEndChunk(source: [UInt8]) throws {
        let text = PNGFile.chunk(0x7445_5874, Array("Title\0nothing".utf8))
        // From 13 on, checksums of the image data are missing.
        for missing in 1...20 {
            try expect(
                Array(source.dropLast(missing)), showsAs: source, lacksEnd: true, "\(missing)")
        }
        // Other chunks behind the image data have no pixels either.
        for count in [1, 4, 8, 15, text.count] {
            let faulty = source.dropLast(12) + text.prefix(count)
            try expect(Array(faulty), showsAs: source, lacksEnd: true, "\(count) of a text")
        }
        for missing in [40, 60] {
            let cut = Array(source.dropLast(missing))
            for recipe in everyRecipe {
                guard case .corrupt(_, isTruncated: true)? = refusal(cut, recipe) else {
                    Issue.record("\(missing): \(refusal(cut, recipe) as Any)")
                    continue
                }
            }
            #expect(structureRefusal(cut) != nil)
        }
    }

    /// Its frames stand behind the static image.
    @Test func refusesAnAnimationWithoutAllFrames() throws {
        let source = AnimationTests.Animation().file
        let whole = Array(source.dropLast(12))
        for recipe in everyRecipe {
            #expect(try warning(whole, recipe)?.lacksEnd == true)
        }
        for count in stride(from: 60, to: whole.count, by: 7) {
            let cut = Array(source.prefix(count))
            for recipe in everyRecipe { #expect(refusal(cut, recipe) != nil, "\(count)") }
            #expect(structureRefusal(cut) != nil, "\(count)")
        }
    }

    @Test func warnsOfAPictureInAnIcon() throws {
        let kind = Self.kinds[1]
        let rows = kind.rows
        let data = try #require(Self.unended(rows).first).data
        func icon(_ picture: [UInt8]) -> [UInt8] {
            let length = (0..<4).map { UInt8(truncatingIfNeeded: picture.count >> (8 * $0)) }
            return [0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 32, 0] + length + [22, 0, 0, 0] + picture
        }
        let faulty = icon(kind.start(data) + Self.end)
        let whole = icon(kind.start(AnimationTests.deflated(rows)) + Self.end)
        #expect(try warning(faulty) != nil)
        #expect(try png(faulty) == png(whole))
    }
}
