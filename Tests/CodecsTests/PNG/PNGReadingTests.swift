import CPNG
import CodecFuzzing
import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Reading image data at once gives the same pixels and verdicts as libpng.
@Suite(.serialized, .timeLimit(.minutes(15))) struct PNGReadingTests {
    /// A PNG made of rows with given filter types.
    struct File {
        var width = 5
        var height = 4
        var colorType = 2
        var bitDepth = 8
        var isInterlaced = false
        /// Complete chunks.
        var before: [UInt8] = []
        var behind: [UInt8] = PNGFile.chunk(.IEND, [])

        var channels: Int { [1, 1, 3, 1, 2, 2, 4][colorType] }
        var stride: Int { (width * channels * bitDepth + 7) / 8 + 1 }

        /// Random bytes with a filter type before each row; nil uses all types in turn.
        func rows(filter: UInt8? = nil, seed: UInt64 = 3) -> [UInt8] {
            var numbers = SplitMix(seed: seed)
            var rows = (0..<stride * height).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }
            for y in 0..<height { rows[y * stride] = filter ?? UInt8((y + 1) % 5) }
            return rows
        }

        /// The file, with the data of each image data chunk.
        func bytes(_ parts: [[UInt8]]) -> [UInt8] {
            let header =
                AnimationTests.bytes(UInt32(width)) + AnimationTests.bytes(UInt32(height))
                + [UInt8(bitDepth), UInt8(colorType), 0, 0, isInterlaced ? 1 : 0]
            let palette =
                colorType == 3
                ? PNGFile.chunk(.PLTE, (0..<3 << bitDepth).map { UInt8($0 * 37 & 255) }) : []
            return Samples.colourPNG[..<8] + PNGFile.chunk(.IHDR, header) + palette + before
                + parts.flatMap { PNGFile.chunk(.IDAT, $0) } + behind
        }

        func bytes(of rows: [UInt8]) -> [UInt8] { bytes([AnimationTests.deflated(rows)]) }
    }

    private func way(_ source: [UInt8]) throws -> PNGReading.Way {
        try source.withUnsafeBytes { try PNGReading.check($0) }
    }

    static let kinds = [
        (0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8),
        (4, 8), (4, 16), (6, 8), (6, 16),
    ]

    /// A transparency chunk for a colour type; empty if the type has alpha.
    private static func transparency(_ colorType: Int) -> [UInt8] {
        switch colorType {
        case 0: PNGFile.chunk(.tRNS, [0, 1])
        case 2: PNGFile.chunk(.tRNS, [0, 1, 0, 2, 0, 3])
        case 3: PNGFile.chunk(.tRNS, [7, 200])
        default: []
        }
    }

    private static func limits(wholeBytes: UInt64) -> cpng_limits {
        cpng_limits(
            maximum_pixels: 1 << 20, maximum_warnings: 9, maximum_whole_bytes: wholeBytes,
            interruption: nil, lacks_end: false, unended: cpng_form())
    }

    // MARK: Valid images

    @Test(arguments: kinds)
    func everyFilterInEveryWidth(colorType: Int, bitDepth: Int) throws {
        for width in 1...40 {
            for filter in [nil, 0, 1, 2, 3, 4] as [UInt8?] {
                for before in [[], Self.transparency(colorType)] {
                    let file = File(
                        width: width, height: 7, colorType: colorType, bitDepth: bitDepth,
                        before: before)
                    let rows = file.rows(filter: filter, seed: UInt64(width))
                    #expect(try way(file.bytes(of: rows)) == .whole, "\(width), \(filter ?? 9)")
                }
            }
        }
    }

    /// The portable code and this machine's vector code agree.
    @Test(arguments: kinds)
    func everyProcessorPathGivesSameRows(colorType: Int, bitDepth: Int) {
        for width in 1...40 {
            let file = File(width: width, height: 12, colorType: colorType, bitDepth: bitDepth)
            let results = [true, false].map { isPortable in
                var rows = file.rows(seed: UInt64(width))
                return rows.withUnsafeMutableBufferPointer { bytes in
                    var image = cpng_image()
                    image.rows = bytes.baseAddress
                    image.width = UInt32(width)
                    image.height = UInt32(file.height)
                    image.bit_depth = Int32(bitDepth)
                    image.color_type = Int32(colorType)
                    image.row_bytes = file.stride - 1
                    image.filter_distance = Int32(max(file.channels * bitDepth / 8, 1))
                    #expect(cpng_unfilter(&image, isPortable) == CCODEC_OK)
                    return Array(bytes)
                }
            }
            #expect(results[0] == results[1], "\(width)")
            #expect(results[0] != file.rows(seed: UInt64(width)))
        }
    }

    @Test(arguments: kinds)
    func acceptsDataSplitAnywhere(colorType: Int, bitDepth: Int) throws {
        let file = File(width: 4, height: 3, colorType: colorType, bitDepth: bitDepth)
        let stream = AnimationTests.deflated(file.rows())
        for cut in 0...stream.count {
            let parts = [Array(stream[..<cut]), Array(stream[cut...])]
            #expect(try way(file.bytes(parts)) == .whole, "\(cut)")
            #expect(try way(file.bytes([[], parts[0], [], parts[1], []])) == .whole, "\(cut)")
        }
        #expect(try way(file.bytes(stream.map { [$0] })) == .whole)
    }

    /// Chunks after the image data are judged alike in both ways.
    @Test func leavesOtherFilesToLibrary() throws {
        let file = File()
        let text = PNGFile.chunk(PNGTests.tEXt, Array("Comment\0text".utf8))
        let end = PNGFile.chunk(.IEND, [])
        func damaged(_ chunk: [UInt8]) -> [UInt8] { chunk.dropLast() + [(chunk.last ?? 0) ^ 1] }
        let taken: [[UInt8]] = [
            text + end, damaged(text) + end, PNGFile.chunk(.gAMA, [0, 0, 0, 9]) + end,
            Self.transparency(2) + end, PNGFile.chunk(.fdAT, [0, 0, 0, 0, 1]) + end,
            PNGFile.chunk(.PLTE, [1, 2, 3]) + end, PNGFile.chunk(.IEND, [1, 2]),
            PNGFile.chunk(0x4142_4344, []) + end, PNGFile.chunk(0x7072_6966, []) + end,
            end + [1, 2, 3],
            end + PNGFile.chunk(.IDAT, [1]), damaged(end),
        ]
        let refused: [[UInt8]] = [
            [], Array(end.dropLast()), Array(text.dropLast(3)),
            PNGFile.chunk(0x4142_4330, []) + end, [0xFF, 0xFF, 0xFF, 0xFF] + end,
            [0, 0, 0, 9] + Array("tEXt".utf8), Array(end.prefix(7)),
        ]
        for (behind, expected) in taken.map({ ($0, PNGReading.Way.whole) })
            + refused.map({ ($0, .refused) })
        {
            var file = file
            file.behind = behind
            #expect(try way(file.bytes(of: file.rows())) == expected, "\(behind)")
        }
    }

    // MARK: Images read by libpng

    @Test(arguments: kinds)
    func leavesInterlacingToLibrary(colorType: Int, bitDepth: Int) throws {
        let file = File(
            width: 1, height: 1, colorType: colorType, bitDepth: bitDepth, isInterlaced: true)
        #expect(try way(file.bytes(of: file.rows(filter: 0))) == .byRows)
    }

    /// A stream that declares a window smaller than its distances.
    @Test(arguments: 0...8)
    func agreesWithLibraryOnWindows(exponent: Int) throws {
        let file = File(width: 3000, height: 2, colorType: 0)
        let row = file.rows(filter: 0).prefix(3001)
        var stream = AnimationTests.deflated(Array(row + row))
        stream[0] = UInt8(exponent << 4 | 8)
        let remainder = Int(stream[0]) * 256 % 31
        stream[1] = UInt8((31 - remainder) % 31)
        let window: Int = 1 << (8 + exponent)
        let expected: PNGReading.Way =
            exponent > 7 || window <= 3000 ? .refused : window < 6002 ? .byRows : .whole
        #expect(try way(file.bytes([stream])) == expected)
        #expect(try way(file.bytes(stream.map { [$0] })) == expected)
    }

    @Test func leavesUnusualStreamsToLibrary() throws {
        let file = File(width: 21, height: 9)
        let rows = file.rows()
        let stream = AnimationTests.deflated(rows)
        var wrongSum = stream
        wrongSum[stream.count - 2] ^= 8
        var wrongFilter = rows
        wrongFilter[file.stride * 4] = 5
        let taken: [(String, [[UInt8]])] = [
            ("bytes behind the stream", [stream + [1, 2]]),
            ("a chunk behind the stream", [stream, [3]]),
            ("another stream", [stream + stream]),
            ("a row too many", [AnimationTests.deflated(rows + [0])]),
        ]
        let refused: [(String, [[UInt8]])] = [
            ("nothing", []), ("no bytes", [[]]), ("no checksum", [stream.dropLast(4)]),
            ("half a checksum", [stream.dropLast(2)]), ("a wrong checksum", [wrongSum]),
            ("half a stream", [Array(stream.prefix(stream.count / 2))]),
            ("a row too few", [AnimationTests.deflated(rows.dropLast(file.stride))]),
            ("a byte too few", [AnimationTests.deflated(rows.dropLast())]),
            ("an unknown filter", [AnimationTests.deflated(wrongFilter)]),
            ("noise", [rows]),
        ]
        for (name, parts) in taken { #expect(try way(file.bytes(parts)) == .byRows, "\(name)") }
        for (name, parts) in refused { #expect(try way(file.bytes(parts)) == .refused, "\(name)") }
        var two = file
        two.behind = PNGFile.chunk(PNGTests.tEXt, []) + PNGFile.chunk(.IDAT, [1]) + file.behind
        #expect(try way(two.bytes(of: rows)) == .byRows)
        two.behind = PNGFile.chunk(.IDAT, [1]).prefix(9) + []
        #expect(try way(two.bytes(of: rows)) == .refused)
        var damaged = file.bytes(of: rows)
        damaged[damaged.count - 14] ^= 1
        #expect(try way(damaged) == .refused)
    }

    /// libdeflate cannot be interrupted, so larger images are read row by row.
    @Test func readsLargeDataByRows() throws {
        // Rows of 8 KiB, so that 5,120 of them are 40 MiB.
        for (height, expected) in [(5120, PNGReading.Way.whole), (5121, .byRows)] {
            let file = File(width: 8191, height: height, colorType: 0)
            let rows = [UInt8](repeating: 0, count: file.stride * height)
            let source = file.bytes(of: rows)
            let found = try source.withUnsafeBytes {
                try PNGReading.check($0, maximumPixels: 1 << 26)
            }
            #expect(found == expected)
        }
        // Stored blocks.
        for (height, expected) in [(2000, PNGReading.Way.whole), (2200, .byRows)] {
            let file = File(width: 3999, height: height, colorType: 0)
            let source = file.bytes(of: file.rows(filter: 0))
            #expect(source.count > 8_000_000)
            let found = try source.withUnsafeBytes {
                try PNGReading.check($0, maximumPixels: 1 << 26)
            }
            #expect(found == expected)
        }
    }

    /// Rows and joined chunks count.
    @Test func respectsMemoryReservation() throws {
        let file = File(width: 100, height: 80)
        let stream = AnimationTests.deflated(file.rows())
        for parts in [[stream], [Array(stream[..<50]), Array(stream[50...])]] {
            let source = file.bytes(parts)
            let need = file.stride * file.height + (parts.count > 1 ? stream.count : 0)
            for (bytes, isWhole) in [(need, true), (need - 1, false)] {
                var limits = Self.limits(wholeBytes: UInt64(bytes))
                var image = cpng_image()
                var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
                #expect(cpng_verify(source, source.count, &limits, &image, &message) == CCODEC_OK)
                #expect(image.is_whole == isWhole)
                #expect(image.rows == nil)
            }
        }
    }

    /// libpng sees no metadata, and holds no image data. So its limits, which versions apply to
    /// different chunks, do not matter.
    @Test(arguments: kinds)
    func acceptsChunksOfAnyLength(colorType: Int, bitDepth: Int) throws {
        // Empty stored blocks (RFC 1951 section 3.2.4), five bytes each, before the others.
        let empty = (0..<50_000).map { $0 % 5 > 2 ? 0xFF as UInt8 : 0 }
        var file = File(colorType: colorType, bitDepth: bitDepth)
        let stream = AnimationTests.deflated(file.rows())
        let long = Array(stream[..<2]) + empty + Array(stream[2...])
        #expect(try way(file.bytes([long])) == .whole)
        #expect(try way(file.bytes([Array(long[..<9]), Array(long[9...])])) == .whole)
        let metadata = [UInt8](repeating: 0x20, count: 9 << 20)
        for type in [PNGTests.tEXt, .iCCP, .eXIf, .cICP, 0x6361_4258] as [UInt32] {
            file.before = PNGFile.chunk(type, metadata)
            file.behind = PNGFile.chunk(type, metadata) + PNGFile.chunk(.IEND, [])
            #expect(try way(file.bytes([stream])) == .whole, "\(PNGFile.name(type))")
        }
    }

    // MARK: Damage

    /// Versions of libpng differ in each of these.
    @Test func judgesPalettesBeforeLibrary() throws {
        let one = PNGFile.chunk(.PLTE, [1, 2, 3])
        let file = File()
        let data = PNGFile.chunk(.IDAT, AnimationTests.deflated(file.rows())) + file.behind
        let files: [(chunks: [UInt8], rest: [UInt8], text: String)] = [
            (one, data, ""), (PNGFile.chunk(.PLTE, [1, 2]), data, ""),
            (PNGFile.chunk(.PLTE, []), data, "PLTE: no colours"),
            (one + one, data, "PLTE: out of place"),
            (one, Array(one.prefix(9)), "PLTE: out of place"),
            (one, [0, 0, 0, 3] + Array("PL?E".utf8), "invalid chunk type"),
        ]
        for transparency in [[], Self.transparency(2)] {
            for (chunks, rest, text) in files {
                var source = Array(file.bytes([]).dropLast(file.behind.count))
                for part in [transparency, chunks, rest] { source += part }
                var limits = Self.limits(wholeBytes: 1 << 20)
                var image = cpng_image()
                var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
                let status = cpng_verify(source, source.count, &limits, &image, &message)
                let told = String(
                    decoding: message.prefix { $0 != 0 }.map { UInt8($0) }, as: UTF8.self)
                #expect(status == (text.isEmpty ? CCODEC_OK : CCODEC_CORRUPT), "\(text)")
                #expect(told == text)
            }
        }
    }

    @Test(arguments: Samples.pngs)
    func agreesWithLibraryOnTruncations(source: [UInt8]) throws {
        for length in 0..<source.count {
            #expect(try way(Array(source.prefix(length))) == .refused, "\(length)")
        }
    }

    @Test(arguments: Samples.pngs, [0x01, 0x10, 0x20, 0x80] as [UInt8])
    func agreesWithLibraryOnChangedBytes(source: [UInt8], bits: UInt8) throws {
        var damaged = source
        for position in source.indices {
            damaged[position] ^= bits
            _ = try way(damaged)
            damaged[position] ^= bits
        }
    }

    /// The chunk checksum is valid, so that only the stream is wrong.
    @Test(arguments: kinds)
    func agreesWithLibraryOnChangedStreams(colorType: Int, bitDepth: Int) throws {
        let file = File(width: 3, height: 4, colorType: colorType, bitDepth: bitDepth)
        let stream = AnimationTests.deflated(file.rows())
        var ways: Set<PNGReading.Way> = []
        for position in stream.indices {
            for bit in 0..<8 {
                var damaged = stream
                damaged[position] ^= 1 << UInt8(bit)
                ways.insert(try way(file.bytes([damaged])))
            }
        }
        #expect(ways.contains(.refused))
    }

    @Test(arguments: 0..<20)
    func agreesWithLibraryOnChangedImages(seed: Int) throws {
        var random = SplitMix(seed: UInt64(seed))
        var ways: [PNGReading.Way: Int] = [:]
        for source in Samples.pngs {
            for _ in 0..<50 {
                var bytes = SplitMix(seed: random.next())
                var mutation = PNGMutation(seed: random.next()) { data, maximum in
                    bytes.change(&data, maximumBytes: maximum)
                }
                let changed = source.withUnsafeBytes {
                    mutation.mutated($0, maximumBytes: 1 << 16)
                }
                guard let changed else { continue }
                do {
                    ways[try way(changed), default: 0] += 1
                } catch {
                    let text = Data(changed).base64EncodedString()
                    Issue.record("seed \(seed): \(error); the image: \(text)")
                }
            }
        }
        #expect(ways.count == 3, "\(ways)")
    }

    @Test(.enabled(if: TestData.isAvailable, "the shared data is not there"))
    func agreesWithLibraryOnSharedImages() throws {
        var ways: [PNGReading.Way: Int] = [:]
        for expectation in try TestData.expectations(in: "") where expectation.magic == "png" {
            let source = try TestData.bytes(expectation.path)
            do {
                let way = try source.withUnsafeBytes {
                    try PNGReading.check($0, maximumPixels: CodecLimits().maximumPixels)
                }
                ways[way, default: 0] += 1
            } catch {
                Issue.record("\(expectation.path): \(error)")
            }
        }
        #expect(ways[.whole, default: 0] > 200, "\(ways)")
        #expect(ways[.byRows, default: 0] > 20, "\(ways)")
    }
}
