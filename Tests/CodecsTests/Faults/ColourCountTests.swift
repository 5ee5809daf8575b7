import CodecFuzzing
import PrefetchModel
import Testing

@testable import Codecs

/// Bitmaps of up to 8 bits with a wrong count of colours, as files and in icons.
@Suite(.timeLimit(.minutes(15))) struct ColourCountTests {
    private static let counts = [
        0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 300, 1000, 65_536, 1 << 24, 0xFFFF_FFFF,
    ]

    private static func little(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// Two rows with a pixel of each index below `indices`, and the colours of all, black from
    /// `black` on.
    private struct Bitmap {
        let depth: Int
        var counted = 0
        var entries: Int
        var indices: Int
        var black = Int.max
        /// The offset of the pixels that the header states: right if nil.
        var offset: Int?
        var gap = 0

        init(depth: Int) {
            self.depth = depth
            entries = 1 << depth
            indices = 1 << depth
        }

        private func dib(height: Int) -> [UInt8] {
            var header = little(40, 4) + little(1 << depth, 4) + little(height, 4)
            header += little(1, 2) + little(depth, 2) + little(0, 16) + little(counted, 4)
            header += little(0, 4)
            let palette = (0..<entries).flatMap { index -> [UInt8] in
                index >= black ? [0, 0, 0, 0] : [UInt8(index), 200, UInt8(255 - index), 0]
            }
            return header + palette + [UInt8](repeating: 0, count: gap)
        }

        private var pixels: [UInt8] {
            var row = [UInt8](repeating: 0, count: ((1 << depth) * depth + 31) / 32 * 4)
            for x in 0..<1 << depth {
                let index = UInt8(x % indices)
                row[x * depth / 8] |= index << UInt8(8 - depth - x * depth % 8)
            }
            return row + row
        }

        var file: [UInt8] {
            let start = dib(height: 2)
            let head = Array("BM".utf8) + little(0, 8) + little(offset ?? 14 + start.count, 4)
            return head + start + pixels
        }

        var icon: [UInt8] {
            let mask = [UInt8](repeating: 0, count: ((1 << depth) + 31) / 32 * 4 * 2)
            let picture = dib(height: 4) + pixels + mask
            let directory = little(0, 8) + little(picture.count, 4) + little(22, 4)
            return [0, 0, 1, 0, 1, 0] + directory + picture
        }
    }

    private func expect(
        _ source: [UInt8], showsAs whole: [UInt8], warns: Bool = false, _ text: String
    ) throws {
        #expect(structureRefusal(source) == nil, "\(text)")
        for recipe in everyRecipe {
            #expect(try (warning(source, recipe) != nil) == warns, "\(text)")
        }
        let png = Recipe(encoding: .png)
        #expect(try stored(source, png).bytes == stored(whole, png).bytes, "\(text)")
    }

    /// The count may be anything where the header states the place of the pixels.
    @Test(arguments: [1, 4, 8], counts) func readsColoursBeforeThePixels(
        depth: Int, count: Int
    ) throws {
        var bitmap = Bitmap(depth: depth)
        bitmap.counted = count
        let isSmall = count > 0 && count < 1 << depth
        var shown = Bitmap(depth: depth)
        if isSmall { shown.black = count }
        for gap in [0, 20, 4096] {
            bitmap.gap = gap
            try expect(bitmap.file, showsAs: shown.file, warns: isSmall, "gap \(gap)")
        }
    }

    /// Without that place, the pixels follow as many colours as the count and the depth allow.
    @Test(arguments: [1, 4, 8], counts) func readsColoursByTheCount(depth: Int, count: Int) throws {
        var bitmap = Bitmap(depth: depth)
        bitmap.counted = count
        if count > 0 { bitmap.entries = min(count, bitmap.entries) }
        bitmap.indices = bitmap.entries
        var shown = Bitmap(depth: depth)
        shown.indices = bitmap.indices
        for offset in [0, 14, 54] {
            bitmap.offset = offset
            try expect(bitmap.file, showsAs: shown.file, "offset \(offset)")
        }
        try expect(bitmap.icon, showsAs: shown.icon, "icon")
    }

    @Test(arguments: [1, 4, 8], counts) func refusesColoursThatAreNotThere(
        depth: Int, count: Int
    ) throws {
        var bitmap = Bitmap(depth: depth)
        bitmap.counted = count
        bitmap.entries -= 1
        #expect(structureRefusal(bitmap.file) != nil)
        for recipe in everyRecipe { #expect(refusal(bitmap.file, recipe) != nil) }
        bitmap.indices = bitmap.entries
        #expect(refusal(bitmap.file) == nil)
    }

    /// Pillow, browsers and ImageMagick show them.
    @Test(arguments: [4, 8]) func readsRunsFromTheTop(depth: Int) throws {
        func file(_ height: Int, _ rows: [[UInt8]]) -> [UInt8] {
            let palette = (0..<1 << depth).flatMap { index -> [UInt8] in [UInt8(index), 9, 99, 0] }
            let endOfRow: [UInt8] = [0, 0]
            var file = Array("BM".utf8) + Self.little(0, 8) + Self.little(54 + palette.count, 4)
            file += Self.little(40, 4) + Self.little(6, 4) + Self.little(height, 4)
            file += Self.little(1, 2) + Self.little(depth, 2) + Self.little(depth == 8 ? 1 : 2, 4)
            file += Self.little(0, 20) + palette
            return file + Array(rows.joined(separator: endOfRow)) + [0, 1]
        }
        let literal: [UInt8] = depth == 8 ? [0, 3, 1, 2, 3, 0] : [0, 3, 0x12, 0x30]
        let rows: [[UInt8]] = [[6, 3], [3, 5] + literal, [2, 4, 0, 2, 3, 0, 1, 7], [6, 1]]
        try expect(file(-4, rows), showsAs: file(4, rows.reversed()), warns: true, "")
        for count in 1...3 {
            let cut = file(-4, Array(rows.prefix(count)))
            #expect(refusal(cut) != nil && structureRefusal(cut) != nil)
        }
    }
}
