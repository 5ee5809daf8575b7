import CodecFuzzing
import PrefetchModel
import Testing

@testable import Codecs

/// Files with faults that lose no pixel: stored, with a warning.
@Suite(.serialized, .timeLimit(.minutes(15))) struct WarningTests {
    private func png(_ source: [UInt8]) throws -> [UInt8] {
        try stored(source, Recipe(encoding: .png)).bytes
    }

    private static func little(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    // MARK: - JPEG

    /// A baseline file that is large enough for our own decoder.
    private static func largeJPEG() throws -> [UInt8] {
        let bitmap = bitmap(
            width: 160, height: 160, depth: 24,
            pixels: (0..<160 * 160 * 3).map { UInt8(truncatingIfNeeded: $0 / 3 * $0 % 251) })
        return try stored(bitmap, Recipe(encoding: .jpeg, quality: 90)).bytes
    }

    private static func foreign(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(1 + $0 * 37 % 251) }
    }

    @Test(arguments: [1, 2, 7, 8, 9, 15], [85, 30])
    func dropsForeignBytesBeforeTheEndMarkerOfAJPEG(count: Int, quality: Int) throws {
        for source in Samples.jpegs + [Samples.restartsJPEG, try WarningTests.largeJPEG()] {
            for tail in [[0xFF, 0xD9], [0xFF, 0, 0xFF, 0xFF, 0xD9]] as [[UInt8]] {
                let faulty = Array(source.dropLast(2)) + WarningTests.foreign(count) + tail
                #expect(structureRefusal(faulty) == nil)
                for recipe in everyRecipe {
                    #expect(refusal(faulty, recipe) == nil)
                    // libjpeg reads up to seven bytes ahead and does not mention them.
                    if count > 7 { #expect(try warning(faulty, recipe) != nil) }
                }
                #expect(try png(faulty) == png(source))
                let same = Recipe(encoding: .same, quality: quality)
                let made = try stored(faulty, same)
                // A small file is kept where coarser steps would make it larger.
                guard quality == 85 else { continue }
                #expect(try png(made.bytes) == png(stored(source, same).bytes))
                guard count > 7 else { continue }
                #expect(!made.isSource)
                #expect(try warning(made.bytes) == nil)
                #expect(made.bytes.suffix(2) == [0xFF, 0xD9])
                let original = try stored(faulty, Recipe(encoding: .original))
                #expect(original.isSource)
            }
        }
    }

    /// Misread codes leave that many bytes. libjpeg may read seven of them ahead, unmentioned.
    @Test(arguments: [26, 40]) func refusesManyForeignBytes(count: Int) throws {
        for source in [try #require(Samples.jpegs.first), try WarningTests.largeJPEG()] {
            let start = Array(source.dropLast(2))
            for recipe in everyRecipe {
                let faulty = start + WarningTests.foreign(count) + [0xFF, 0xD9]
                #expect(refusal(faulty, recipe) != nil)
                let filled = start + [UInt8](repeating: 0, count: 1000) + [0xFF, 0xD9]
                #expect(refusal(filled, recipe) == nil)
            }
        }
    }

    /// Our own decoder knows where the last block ends. libjpeg reads 4:4:4 that is requantised.
    @Test(arguments: 1...8) func warnsOfFewForeignBytes(count: Int) throws {
        let source = try Pixels(jpeg: WarningTests.largeJPEG()).jpeg(quality: 90)
        let faulty = Array(source.dropLast(2)) + WarningTests.foreign(count) + [0xFF, 0xD9]
        for recipe in [Recipe(quality: 60), Recipe(encoding: .png)] {
            #expect(try warning(faulty, recipe) != nil)
            #expect(try warning(source, recipe) == nil)
        }
    }

    /// The places of markers behind entropy-coded data: restarts, further scans and their tables.
    private static func innerMarkers(_ source: [UInt8]) -> [Int] {
        let first = source.markers(0xDA).first ?? 0
        return source.indices.dropLast().filter { place in
            guard place > first, source[place] == 0xFF else { return false }
            // Markers that follow a segment have no data before them.
            let isBehindSegment = source.indices.contains { start in
                start > first && start < place && source[start] == 0xFF
                    && [0xC4, 0xDD, 0xDB].contains(source[start + 1])
                    && start + 2 + Int(source[start + 2]) << 8 + Int(source[start + 3]) == place
            }
            return !isBehindSegment
                && ((0xD0...0xD7).contains(source[place + 1])
                    || [0xDA, 0xC4].contains(source[place + 1]))
        }
    }

    @Test(arguments: [1, 2, 7, 8, 9, 18], [Samples.restartsJPEG, Samples.progressiveJPEG])
    func dropsForeignBytesBeforeAMarkerInsideAJPEG(count: Int, source: [UInt8]) throws {
        let places = WarningTests.innerMarkers(source)
        #expect(places.count > 3)
        for place in places {
            var faulty = source
            faulty.insert(contentsOf: WarningTests.foreign(count), at: place)
            #expect(structureRefusal(faulty) == nil)
            for recipe in everyRecipe {
                #expect(refusal(faulty, recipe) == nil, "\(place)")
                // libjpeg reads up to seven bytes ahead and does not mention them.
                if count > 7 { #expect(try warning(faulty, recipe) != nil, "\(place)") }
            }
            #expect(try png(faulty) == png(source))
            guard count > 7 else { continue }
            let made = try stored(faulty, Recipe(encoding: .same))
            #expect(try warning(made.bytes) == nil)
            #expect(try png(made.bytes) == png(stored(source, Recipe(encoding: .same)).bytes))
            var many = source
            many.insert(contentsOf: WarningTests.foreign(26), at: place)
            for recipe in everyRecipe { #expect(refusal(many, recipe) != nil, "\(place)") }
        }
    }

    /// An arithmetic decoder may take them for data, and browsers do not show such files.
    @Test func refusesForeignBytesInArithmeticCoding() {
        #expect(refusal(Samples.arithmeticJPEG) == nil)
        let faulty =
            Array(Samples.arithmeticJPEG.dropLast(2)) + WarningTests.foreign(40) + [0xFF, 0xD9]
        for recipe in everyRecipe { #expect(refusal(faulty, recipe) != nil) }
    }

    @Test func refusesForeignBytesInPlaceOfBlocks() {
        for source in Samples.jpegs {
            let cut = Array(source.dropLast(40)) + [0xFF, 0xD9]
            for recipe in everyRecipe { #expect(refusal(cut, recipe) != nil) }
        }
    }

    /// At the end of each scan a progressive picture is whole, and some details are missing.
    @Test func warnsOfProgressiveJPEGsWithoutTheirLastScans() throws {
        let source = Samples.progressiveJPEG
        let scans = source.markers(0xDA)
        // A scan ends where its successor's tables begin.
        let ends = zip(scans, scans.dropFirst()).map { scan, next in
            source.markers(0xC4).first { (scan..<next).contains($0) } ?? next
        }
        var taken = 0
        for end in ends {
            let faulty = source[..<end] + [0xFF, 0xD9]
            guard refusal(Array(faulty)) == nil else { continue }
            taken += 1
            #expect(structureRefusal(Array(faulty)) == nil)
            for recipe in everyRecipe {
                let text = try warning(Array(faulty), recipe)?.text
                #expect(text?.hasPrefix("the last scans of a progressive JPEG are missing") == true)
            }
        }
        #expect(taken == ends.count)
        for recipe in everyRecipe { #expect(try warning(source, recipe) == nil) }
    }

    // MARK: - GIF

    @Test(
        .enabled(if: CodecLibraries.decodes(.gif)),
        arguments: ["plain", "animation", "comments", "interlaced", "transparent"])
    func addsTheMissingTrailerOfAGIF(name: String) throws {
        let source = try FormatSample.named(name, .gif)
        #expect(source.last == 0x3B)
        let faulty = Array(source.dropLast())
        #expect(structureRefusal(faulty) == nil)
        for recipe in everyRecipe {
            let found = try #require(try warning(faulty, recipe))
            #expect(found.lacksEnd)
            #expect(try warning(source, recipe)?.lacksEnd != true)
        }
        #expect(try png(faulty) == png(source))
        for stripping in [Recipe.Stripping.none, .safe, .all] {
            var recipe = Recipe()
            recipe.stripping = stripping
            #expect(try stored(faulty, recipe).bytes == stored(source, recipe).bytes)
        }
        #expect(try stored(faulty, Recipe(encoding: .original)).bytes == faulty)
        // One byte less ends inside a block.
        #expect(refusal(Array(faulty.dropLast())) == .cutImage)
        // A control block announces a frame.
        let announcing = faulty + [0x21, 0xF9, 4, 0, 0, 0, 0, 0]
        for recipe in everyRecipe { #expect(refusal(announcing, recipe) != nil) }
    }

    @Test func containersOfGIFAgree() throws {
        let source = try FormatSample.file("plain", .gif)
        let faulty = Array(source.dropLast())
        func warning(_ bytes: [UInt8]) throws -> ImageWarning? {
            try bytes.withUnsafeBytes { bytes in
                let interruption = Interruption(CodecLimits(), nil)
                return try GIFContainer.check(bytes, memoryBytes: 0, interruption)
            }
        }
        #expect(try warning(source) == nil)
        #expect(try warning(faulty)?.lacksEnd == true)
        #expect(throws: CodecError.self) { try warning(Array(faulty.dropLast())) }
        #expect(throws: CodecError.self) {
            try warning(faulty + [0x21, 0xF9, 4, 0, 0, 0, 0, 0])
        }
    }

    // MARK: - TIFF

    /// One row of a pixel, little-endian, its directory last.
    private static let tiff: [UInt8] = {
        func entry(_ tag: Int, _ value: Int) -> [UInt8] {
            little(tag, 2) + little(3, 2) + little(1, 4) + little(value, 4)
        }
        let entries = [(256, 1), (257, 1), (273, 8), (279, 1)].flatMap(entry)
        let head = Array("II*\0".utf8) + little(10, 4) + [7, 0]
        return head + little(4, 2) + entries + little(0, 4)
    }()

    @Test(arguments: 1...4) func storesATIFFWithoutItsLastPointer(missing: Int) throws {
        func warning(_ bytes: [UInt8]) throws(CodecError) -> ImageWarning? {
            let result = bytes.withUnsafeBytes { bytes in
                Result { () throws(CodecError) in
                    let interruption = Interruption(CodecLimits(), nil)
                    return try TIFFContainer.check(bytes, memoryBytes: 0, interruption)
                }
            }
            return try result.get()
        }
        #expect(try warning(WarningTests.tiff) == nil)
        let faulty = Array(WarningTests.tiff.dropLast(missing))
        #expect(try warning(faulty)?.lacksEnd == true)
        let short = Array(WarningTests.tiff.dropLast(5))
        #expect(throws: CodecError.self) { try warning(short) }
        // The rest of a pointer to another directory.
        let pointing = Array(WarningTests.tiff.dropLast(4)) + [1, 0, 0]
        #expect(throws: CodecError.self) { try warning(pointing) }
    }

    // MARK: - Icons

    /// A picture of an icon; `alpha` is that of each pixel of 32 bits.
    private static func picture(
        _ side: Int, depth: Int, alpha: UInt8 = 200, seed: Int = 0
    ) -> [UInt8] {
        let count = depth <= 8 ? 1 << depth : 0
        let palette = (0..<count).flatMap { index -> [UInt8] in [UInt8(index * 37 & 255), 9, 77, 0]
        }
        let stride = (side * depth + 31) / 32 * 4
        var pixels = (0..<stride * side).map { UInt8(truncatingIfNeeded: $0 * 41 + seed) }
        if depth == 32 {
            for each in Swift.stride(from: 3, to: pixels.count, by: 4) { pixels[each] = alpha }
        }
        let mask = (0..<(side + 31) / 32 * 4 * side).map { UInt8(truncatingIfNeeded: $0 * 29) }
        var header = little(40, 4) + little(side, 4) + little(2 * side, 4)
        header += little(1, 2) + little(depth, 2) + little(0, 24)
        return header + palette + pixels + mask
    }

    /// An icon of pictures, with the lengths that the directory states.
    private static func icon(_ pictures: [[UInt8]], lengths: [Int]? = nil, type: Int = 1) -> [UInt8]
    {
        var offset = 6 + 16 * pictures.count
        var directory: [UInt8] = []
        for (index, picture) in pictures.enumerated() {
            directory += [UInt8](repeating: 0, count: 8)
            directory += little(lengths?[index] ?? picture.count, 4) + little(offset, 4)
            offset += picture.count
        }
        let head = little(0, 2) + little(type, 2) + little(pictures.count, 2)
        return head + directory + pictures.joined()
    }

    @Test(arguments: [1, 4, 8, 24, 32], [1, 3, 20])
    func needsNoMaskBesideAlpha(depth: Int, missing: Int) throws {
        let whole = WarningTests.picture(20, depth: depth)
        let cut = Array(whole.dropLast(missing))
        // The directory states the length that is there, or the whole one.
        for lengths in [nil, [whole.count]] {
            let source = WarningTests.icon([cut], lengths: lengths)
            for recipe in everyRecipe { #expect((refusal(source, recipe) == nil) == (depth == 32)) }
            #expect((structureRefusal(source) == nil) == (depth == 32))
            guard depth == 32 else { continue }
            #expect(try warning(source)?.lacksEnd == (lengths != nil))
            #expect(try png(source) == png(WarningTests.icon([whole])))
        }
        // With another picture behind it instead of a mask.
        let another = WarningTests.picture(8, depth: 32)
        let source = WarningTests.icon([cut, another])
        #expect((refusal(source) == nil) == (depth == 32))
        #expect(try warning(WarningTests.icon([whole, another])) == nil)
    }

    /// Such a picture is shown by its mask.
    @Test func needsTheMaskWithoutAlpha() throws {
        let whole = WarningTests.picture(20, depth: 32, alpha: 0)
        #expect(try warning(WarningTests.icon([whole])) == nil)
        for recipe in everyRecipe {
            #expect(refusal(WarningTests.icon([Array(whole.dropLast(9))]), recipe) != nil)
        }
        #expect(structureRefusal(WarningTests.icon([Array(whole.dropLast(9))])) != nil)
    }

    @Test(arguments: [1, 4, 8, 24, 32], [0, 8, 24, 100, 1 << 20])
    func decodesPicturesByTheirOwnLength(depth: Int, length: Int) throws {
        let picture = WarningTests.picture(20, depth: depth)
        let another = WarningTests.picture(8, depth: 24)
        for type in [1, 2] {
            let source = WarningTests.icon([picture], lengths: [length], type: type)
            let found = try #require(try warning(source))
            #expect(found.lacksEnd == (length > source.count))
            #expect(structureRefusal(source) == nil)
            #expect(try png(source) == png(WarningTests.icon([picture], type: type)))
            let two = WarningTests.icon(
                [picture, another], lengths: [length, another.count], type: type)
            #expect(try png(two) == png(source))
        }
        // Pixels are missing.
        let cut = WarningTests.icon([picture.dropLast(20 * 4 + 5)], lengths: [length])
        guard case .corrupt(_, isTruncated: true)? = refusal(cut) else {
            Issue.record("\(refusal(cut) as Any)")
            return
        }
    }

    @Test(arguments: [0, 8, 24, 60, 1 << 20])
    func decodesAPNGByItsOwnLength(length: Int) throws {
        let source = WarningTests.icon([Samples.colourPNG], lengths: [length])
        #expect(try warning(source) != nil)
        #expect(try png(source) == png(WarningTests.icon([Samples.colourPNG])))
    }

    @Test func takesTheFirstOfEqualPictures() throws {
        let pictures = (0..<3).map { WarningTests.picture(20, depth: 24, seed: 60 * $0) }
        for first in 0..<3 {
            let order = [pictures[first], pictures[(first + 1) % 3], pictures[(first + 2) % 3]]
            let alone = try png(WarningTests.icon([pictures[first]]))
            #expect(try png(WarningTests.icon(order)) == alone)
            // More colours or more pixels come first.
            let smaller = WarningTests.picture(19, depth: 32)
            let poorer = WarningTests.picture(20, depth: 8)
            #expect(try png(WarningTests.icon([poorer, smaller] + order)) == alone)
        }
    }

    /// The rows of picture and mask begin at the top.
    @Test(arguments: [1, 4, 8, 24, 32]) func decodesAnIconOfNegativeHeight(depth: Int) throws {
        let side = 20
        let picture = WarningTests.picture(side, depth: depth, alpha: depth == 32 ? 0 : 200)
        let palette = depth <= 8 ? 4 << depth : 0
        var turned = Array(picture[..<8]) + WarningTests.little(-2 * side, 4)
        turned += picture[12..<40 + palette]
        var start = 40 + palette
        for stride in [(side * depth + 31) / 32 * 4, (side + 31) / 32 * 4] {
            for row in (0..<side).reversed() {
                turned += picture[start + row * stride..<start + (row + 1) * stride]
            }
            start += stride * side
        }
        let source = WarningTests.icon([turned])
        let plain = WarningTests.icon([picture])
        for recipe in everyRecipe {
            #expect(refusal(source, recipe) == nil)
            #expect(try warning(source, recipe)?.lacksEnd == false)
            #expect(try warning(plain, recipe) == nil)
        }
        #expect(structureRefusal(source) == nil)
        #expect(try png(source) == png(plain))
    }

    // MARK: - BMP

    /// Above 8 bits, a count of colours neither moves the pixels nor says anything about them.
    @Test(arguments: [16, 24, 32], [0, 1, 256, 16_777_216, 0xFFFF_FFFF])
    func ignoresTheCountOfColours(depth: Int, count: Int) throws {
        let pixels = (0..<(6 * depth + 31) / 32 * 4 * 3).map { UInt8($0 * 7 & 0xFF) }
        let plain = WarningTests.bitmap(width: 6, height: 3, depth: depth, pixels: pixels)
        let source = WarningTests.bitmap(
            width: 6, height: 3, depth: depth, colours: count, pixels: pixels)
        for recipe in everyRecipe { #expect(try warning(source, recipe) == nil) }
        #expect(structureRefusal(source) == nil)
        #expect(try png(source) == png(plain))
        // Nor where the header does not state the place of the pixels, as in icons.
        var unplaced = source
        unplaced.replaceSubrange(10..<14, with: [0, 0, 0, 0])
        #expect(try png(unplaced) == png(plain))
        // A stated place is right, behind a palette or not.
        var placed = source
        placed.replaceSubrange(10..<14, with: WarningTests.little(54 + 24, 4))
        placed.insert(contentsOf: [UInt8](repeating: 9, count: 24), at: 54)
        #expect(try png(placed) == png(plain))
    }

    private static func bitmap(
        width: Int, height: Int, depth: Int, method: Int = 0, masks: [Int] = [], colours: Int = 0,
        palette: [UInt8] = [], pixels: [UInt8]
    ) -> [UInt8] {
        let tables = masks.flatMap { little($0, 4) } + palette
        var head = Array("BM".utf8) + little(0, 8) + little(54 + tables.count, 4)
        head += little(40, 4) + little(width, 4) + little(height, 4) + little(1, 2)
        head += little(depth, 2) + little(method, 4) + little(0, 12) + little(colours, 4)
        return head + little(0, 4) + tables + pixels
    }

    private static func runs(_ depth: Int, _ data: [UInt8]) -> [UInt8] {
        let palette = (0..<1 << depth).flatMap { index -> [UInt8] in
            [UInt8(index), UInt8(255 - index), 7, 0]
        }
        return bitmap(
            width: 6, height: 3, depth: depth, method: depth == 8 ? 1 : 2, palette: palette,
            pixels: data)
    }

    /// Six pixels of one index in 8 bits, of two indices in 4.
    @Test(arguments: [4, 8]) func clipsRunsAtTheEndOfTheirRow(depth: Int) throws {
        let rest: [UInt8] = [0, 0, 6, 5, 0, 0, 6, 6, 0, 1]
        let source = WarningTests.runs(depth, [6, 3] + rest)
        #expect(try warning(source) == nil)
        let literal: [UInt8] = depth == 8 ? [0, 4, 3, 3, 3, 3] : [0, 4, 0x03, 0x03]
        let faulty = [[7, 3], [255, 3], [6, 3, 255, 9], [4, 3] + literal, [6, 3] + literal]
        for data in faulty as [[UInt8]] {
            let source = WarningTests.runs(depth, data + rest)
            for recipe in everyRecipe { #expect(try warning(source, recipe) != nil) }
            #expect(structureRefusal(source) == nil)
            #expect(try png(source) == png(WarningTests.runs(depth, [6, 3] + rest)))
        }
        // Behind the last row there is nothing to clip.
        #expect(
            refusal(WarningTests.runs(depth, [6, 3] + rest.dropLast(2) + [0, 0, 1, 1, 0, 1])) != nil
        )
    }

    @Test(arguments: [4, 8]) func refusesRunsThatAreCutShort(depth: Int) throws {
        let whole: [UInt8] = [6, 3, 0, 0, 6, 5, 0, 0, 6, 6, 0, 1]
        let pixels = try png(WarningTests.runs(depth, whole))
        for count in 0..<whole.count {
            let cut = WarningTests.runs(depth, Array(whole.prefix(count)))
            // All pixels are there before the last mark.
            #expect((refusal(cut) == nil) == (count >= 10), "\(count)")
            if count >= 10 {
                #expect(try warning(cut) != nil)
                #expect(try png(cut) == pixels)
            }
        }
        // The end before the last row's pixels.
        for count in stride(from: 0, to: 10, by: 2) {
            let early = WarningTests.runs(depth, Array(whole.prefix(count)) + [0, 1])
            for recipe in everyRecipe { #expect(refusal(early, recipe) != nil, "\(count)") }
            #expect(structureRefusal(early) != nil)
        }
    }

    @Test(arguments: [1, 4, 8]) func refusesPixelsWithoutAColour(depth: Int) throws {
        for colours in [2, 10, 200] where colours <= 1 << depth {
            let palette = (0..<colours).flatMap { index -> [UInt8] in [UInt8(index), 0, 0, 0] }
            func source(_ index: Int, method: Int = 0) -> [UInt8] {
                let pixels = UInt8(index << (8 - depth))
                return WarningTests.bitmap(
                    width: 1, height: 1, depth: depth, method: method, colours: colours,
                    palette: palette,
                    pixels: method == 0 ? [pixels, 0, 0, 0] : [1, pixels, 0, 1])
            }
            #expect(refusal(source(colours - 1)) == nil)
            guard colours < 1 << depth else { continue }
            for method in depth == 1 ? [0] : [0, depth == 8 ? 1 : 2] {
                #expect(refusal(source(colours - 1, method: method)) == nil)
                for recipe in everyRecipe {
                    #expect(refusal(source(colours, method: method), recipe) != nil)
                }
                #expect(structureRefusal(source(colours, method: method)) != nil)
            }
        }
    }

    @Test func refusesMasksBeyondThePixelOrThatOverlap() {
        func source(_ masks: [Int], depth: Int = 16) -> [UInt8] {
            WarningTests.bitmap(
                width: 1, height: 1, depth: depth, method: 3, masks: masks, pixels: [1, 2, 3, 4])
        }
        #expect(refusal(source([0xF800, 0x7E0, 0x1F])) == nil)
        #expect(refusal(source([0xFF0000, 0xFF00, 0xFF], depth: 32)) == nil)
        for masks in [
            [0x1F800, 0x7E0, 0x1F], [0x1F0000, 0x7E0, 0x1F], [0xF800, 0xFE0, 0x3F],
            [0xF800, 0xF800, 0x1F],
        ] {
            for recipe in everyRecipe { #expect(refusal(source(masks), recipe) != nil, "\(masks)") }
        }
    }
}
