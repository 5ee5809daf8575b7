import CodecFuzzing
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Files stored without decoding are complete.
@Suite(.serialized, .timeLimit(.minutes(15))) struct StructureTests {
    @Test(arguments: Samples.jpegs + Samples.pngs)
    func refusesEveryTruncation(source: [UInt8]) {
        #expect(structureRefusal(source) == nil)
        // A PNG may lack its end chunk, and the checksums before it.
        let end = source.starts(with: Samples.colourPNG[..<8]) ? source.count - 20 : source.count
        for length in 0..<end {
            let error = structureRefusal(Array(source.prefix(length)))
            switch error {
            case .corrupt(_, let isTruncated): #expect(isTruncated, "\(length): \(error as Any)")
            case .notAnImage: #expect(length < 8)
            default: Issue.record("\(length) of \(source.count) bytes: \(error as Any)")
            }
        }
    }

    @Test(arguments: Samples.pngs)
    func refusesEveryFlippedByteOfACriticalChunk(source: [UInt8]) {
        var offset = 8
        while offset + 12 <= source.count {
            let length = source[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
            let isAncillary = source[offset + 4] & 0x20 != 0
            let isTransparency = Array(source[offset + 4..<offset + 8]) == Array("tRNS".utf8)
            if !isAncillary || isTransparency {
                // The checksum of the end chunk has no effect.
                let isEnd = offset + 12 + length == source.count
                for position in offset + 4..<offset + (isEnd ? 8 : 12 + length) {
                    // Changing bit 5 of a type's first byte would make another, harmless chunk.
                    var damaged = source
                    damaged[position] ^= 0x41
                    #expect(structureRefusal(damaged) != nil, "byte \(position)")
                }
            }
            offset += 12 + length
        }
    }

    /// Guarantees that `--check` can change between runs.
    @Test(arguments: Samples.jpegs + Samples.pngs)
    func acceptsEveryDecodableFile(source: [UInt8]) {
        for position in source.indices {
            for bit in [0x01, 0x10, 0x20, 0x80] as [UInt8] {
                var damaged = source
                damaged[position] ^= bit
                guard refusal(damaged, Recipe(encoding: .original)) == nil else { continue }
                #expect(structureRefusal(damaged) == nil, "byte \(position), bit \(bit)")
            }
        }
    }

    @Test func ignoresBytesAfterTheEnd() {
        for source in Samples.jpegs + Samples.pngs {
            #expect(structureRefusal(source + Array("trailing".utf8)) == nil)
        }
    }

    @Test func agreesWithDecoderOnHeader() throws {
        for source in Samples.jpegs + Samples.pngs {
            let decoded = try stored(source, Recipe(encoding: .original)).image
            let checked = try source.withUnsafeBytes {
                try checkedStructure(of: $0, header: header(of: $0))
            }
            #expect(checked.format == decoded.format)
            #expect(checked.widthInPixels == decoded.widthInPixels)
            #expect(checked.heightInPixels == decoded.heightInPixels)
            guard case .source = checked.output else {
                Issue.record("made something")
                continue
            }
        }
    }

    // MARK: JPEG

    @Test func refusesAProgressiveImageWithoutItsFirstScan() throws {
        let source = Samples.progressiveJPEG
        let scans = source.markers(0xDA)
        let first = try #require(scans.first)
        let second = try #require(scans.dropFirst().first)
        #expect(structureRefusal(Array(source[..<first] + source[second...])) != nil)
        #expect(structureRefusal(Array(source[..<first]) + [0xFF, 0xD9]) != nil)
        #expect(structureRefusal(Array(source[..<second]) + [0xFF, 0xD9]) == nil)
    }

    @Test func refusesScanOfUnknownComponents() throws {
        let source = Samples.baselineJPEG
        let scan = try #require(source.markers(0xDA).first)
        var other = source
        other[scan + 5] = 77
        #expect(
            structureRefusal(other)
                == .corrupt("a scan of a component that is not there", isTruncated: false))
        let length = Int(source[scan + 2]) << 8 | Int(source[scan + 3])
        let empty = Array(source[..<(scan + 2 + length)]) + [0xFF, 0xD9]
        #expect(structureRefusal(empty) == .corrupt("a scan without data", isTruncated: false))
    }

    @Test func refusesASecondFrame() throws {
        let source = Samples.progressiveJPEG
        let frame = try #require(source.markers(0xC2).first)
        let length = Int(source[frame + 2]) << 8 | Int(source[frame + 3])
        let end = source.count - 2
        let doubled = source[..<end] + source[frame..<frame + 2 + length] + source[end...]
        #expect(structureRefusal(Array(doubled)) == .corrupt("two frames", isTruncated: false))
    }

    @Test func refusesScansOverLimit() {
        var limits = CodecLimits()
        let scans = Samples.progressiveJPEG.markers(0xDA).count
        limits.maximumScans = scans
        #expect(structureRefusal(Samples.progressiveJPEG, limits: limits) == nil)
        limits.maximumScans = scans - 1
        #expect(
            structureRefusal(Samples.progressiveJPEG, limits: limits)
                == .limitExceeded("more scans than allowed"))
    }

    // MARK: PNG

    private func chunks(_ source: [UInt8]) -> [(type: String, bytes: ArraySlice<UInt8>)] {
        var result: [(type: String, bytes: ArraySlice<UInt8>)] = []
        var offset = 8
        while offset + 12 <= source.count {
            let length = source[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
            let type = String(decoding: source[offset + 4..<offset + 8], as: UTF8.self)
            result.append((type, source[offset..<offset + 12 + length]))
            offset += 12 + length
        }
        return result
    }

    @Test(arguments: ["IDAT", "PLTE"])
    func refusesAPaletteImageWithout(type: String) {
        let source = Samples.palettePNG
        let rest = chunks(source).filter { $0.type != type }.flatMap(\.bytes)
        #expect(structureRefusal(Array(source[..<8]) + rest) != nil)
    }

    @Test func refusesPalettesAsTheDecoderDoes() throws {
        for source in [Samples.palettePNG, Samples.colourPNG, Samples.deepGreyPNG] {
            let parts = chunks(source).filter { $0.type != "PLTE" && $0.type != "tRNS" }
            for count in [0, 1, 2, 3, 47, 48, 49, 768, 769, 771] {
                let palette = PNGFile.chunk(.PLTE, [UInt8](repeating: 9, count: count))
                let file =
                    Array(source[..<8]) + Array(parts[0].bytes) + palette
                    + parts[1...].flatMap(\.bytes)
                #expect(
                    (structureRefusal(file) == nil)
                        == (refusal(file, Recipe(encoding: .original)) == nil), "\(count) bytes")
            }
        }
    }

    /// If the first sequence of image data holds all rows, the second is ignored, as in a browser.
    /// Otherwise the decoder finds the error.
    @Test func leavesImageDataInTwoPlacesToTheDecoder() throws {
        let source = Samples.colourPNG
        let all = chunks(source)
        let data = try #require(all.first { $0.type == "IDAT" }).bytes
        for middle in [[], PNGFile.chunk(0x7445_5874, [])] {
            let joined =
                Array(source[..<8])
                + all.flatMap { chunk -> [UInt8] in
                    let bytes = Array(chunk.bytes)
                    return chunk.type == "IDAT" ? bytes + middle + data : bytes
                }
            #expect(structureRefusal(joined) == nil)
            #expect(refusal(joined) == nil)
        }
    }

    // MARK: Image data

    /// Rows of one colour with their filter types, optionally interlaced.
    private func rows(_ width: Int, _ height: Int, channels: Int, interlaced: Bool) -> [UInt8] {
        func rows(_ columns: Int, _ rows: Int) -> [UInt8] {
            guard columns > 0 else { return [] }
            let samples = [UInt8](repeating: 7, count: columns * channels)
            return (0..<rows).flatMap { row -> [UInt8] in [UInt8(row % 5)] + samples }
        }
        guard interlaced else { return rows(width, height) }
        // The origins and steps of Adam7's passes (PNG section 8.1).
        let passes = [
            (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
            (0, 1, 1, 2),
        ]
        return passes.flatMap { x, y, right, down in
            rows((width - x + right - 1) / right, (height - y + down - 1) / down)
        }
    }

    /// A PNG with this image data, in chunks of `pieces` bytes.
    private func png(
        _ data: [UInt8], _ width: Int, _ height: Int, colorType: UInt8 = 2,
        interlaced: Bool = false, pieces: Int = .max
    ) -> [UInt8] {
        let header =
            AnimationTests.bytes(UInt32(width)) + AnimationTests.bytes(UInt32(height))
            + [8, colorType, 0, 0, interlaced ? 1 : 0]
        var file = Array(Samples.colourPNG[..<8]) + PNGFile.chunk(.IHDR, header)
        for start in stride(from: 0, to: max(data.count, 1), by: min(pieces, data.count + 1)) {
            file += PNGFile.chunk(.IDAT, Array(data[start...].prefix(pieces)))
        }
        return file + PNGFile.chunk(.IEND, [])
    }

    @Test(arguments: [(1, 1), (2, 1), (1, 5), (3, 2), (8, 8), (21, 19), (5000, 3)], [false, true])
    func requiresExactlyAllRows(size: (Int, Int), interlaced: Bool) {
        let (width, height) = size
        for (colorType, channels) in [(0, 1), (2, 3), (6, 4)] as [(UInt8, Int)] {
            let whole = rows(width, height, channels: channels, interlaced: interlaced)
            for pieces in [Int.max, 1, 7] {
                func file(_ rows: [UInt8]) -> [UInt8] {
                    png(
                        AnimationTests.deflated(rows), width, height, colorType: colorType,
                        interlaced: interlaced, pieces: pieces)
                }
                #expect(structureRefusal(file(whole)) == nil)
                #expect(refusal(file(whole), Recipe(encoding: .original)) == nil)
                #expect(structureRefusal(file(Array(whole.dropLast()))) != nil)
                #expect(structureRefusal(file(Array(whole.prefix(whole.count / 2)))) != nil)
                // The decoder accepts surplus data.
                #expect(structureRefusal(file(whole + [0])) == nil)
                #expect(refusal(file(whole + [0]), Recipe(encoding: .original)) == nil)
            }
        }
    }

    /// The decoder limits a stream to its declared window.
    @Test(arguments: 0..<8)
    func refusesDistancesOverWindow(exponent: Int) {
        let width = 3000
        var numbers = SplitMix(seed: 5)
        let row = [0] + (0..<width).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }
        var stream = AnimationTests.deflated(row + row)
        // RFC 1950 section 2.2: the window's exponent, and check bits that make both a multiple of
        // 31.
        stream[0] = UInt8(exponent << 4 | 8)
        let remainder = Int(stream[0]) * 256 % 31
        stream[1] = UInt8((31 - remainder) % 31)
        for pieces in [Int.max, 100] {
            let file = png(stream, width, 2, colorType: 0, pieces: pieces)
            let isTaken = refusal(file, Recipe(encoding: .original)) == nil
            #expect(isTaken == (1 << (8 + exponent) > width))
            #expect((structureRefusal(file) == nil) == isTaken)
        }
    }

    @Test func refusesInvalidImageData() {
        let (width, height) = (64, 48)
        let whole = rows(width, height, channels: 3, interlaced: false)
        let stream = AnimationTests.deflated(whole)
        var numbers = SplitMix(seed: 11)
        let noise = (0..<stream.count).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }
        var wrongSum = stream
        wrongSum[stream.count - 1] ^= 1
        var wrongFilter = whole
        wrongFilter[(width * 3 + 1) * 40] = 5
        let bad: [(String, [UInt8])] = [
            ("noise", noise), ("nothing", []),
            ("half a stream", Array(stream.prefix(stream.count / 2))),
            ("a wrong checksum", wrongSum),
            ("an unknown filter", AnimationTests.deflated(wrongFilter)),
            ("half the rows", AnimationTests.deflated(Array(whole.prefix(whole.count / 2)))),
        ]
        for (name, data) in bad {
            for pieces in [Int.max, 10] {
                let file = png(data, width, height, pieces: pieces)
                #expect(structureRefusal(file) != nil, "\(name)")
                #expect(refusal(file, Recipe(encoding: .original)) != nil, "\(name)")
            }
        }
        #expect(structureRefusal(png(stream, width, height)) == nil)
    }

    @Test func refusesFramesWithoutAllRows() {
        var animation = AnimationTests.Animation()
        #expect(structureRefusal(animation.file) == nil)
        animation.missingRows = 1
        let error = structureRefusal(animation.file)
        #expect(error == refusal(animation.file, Recipe(encoding: .original)))
        #expect(error != nil)
    }

    /// A file of 100 bytes may claim 2⁶² pixels.
    @Test(arguments: [(0x7FFF_FFFF, 0x7FFF_FFFF), (0x7FFF_FFFF, 1), (1, 0x7FFF_FFFF)])
    func refusesAHeaderWithoutItsPixels(size: (Int, Int)) throws {
        for interlaced in [false, true] {
            let source = png(
                AnimationTests.deflated([0, 0, 0, 0]), size.0, size.1, colorType: 6,
                interlaced: interlaced)
            guard case .tooManyPixels = structureRefusal(source) else {
                Issue.record("not refused for its pixels")
                return
            }
            var limits = CodecLimits(maximumPixels: 1 << 62)
            limits.maximumTime = .seconds(600)
            let header = try imageHeader(source, limits: limits)
            // The working memory is some rows, whatever the height.
            #expect(header.structureMemoryBytes(within: .max) >= 8 * size.0)
            if size.0 == 1 {
                #expect(header.structureMemoryBytes(within: .max) < 8 << 20)
                #expect(
                    structureRefusal(source, limits: limits)
                        == .corrupt("Not enough image data", isTruncated: false))
            }
        }
    }

    // MARK: Third-party files

    @Test(.enabled(if: TestData.isAvailable, "the shared data is not there"))
    func acceptsEveryDecodableSharedImage() throws {
        var accepted = 0
        for folder in ["jpeg/reftest", "png/pngsuite", "png/pngsuite-corrupt"] {
            for expectation in try TestData.expectations(in: folder) {
                let source = try TestData.bytes(expectation.path)
                guard refusal(source, Recipe(encoding: .original)) == nil else { continue }
                accepted += 1
                #expect(structureRefusal(source) == nil, "\(expectation.path)")
            }
        }
        #expect(accepted > 80)
    }
}
