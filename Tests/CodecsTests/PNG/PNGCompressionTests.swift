import CPNG
import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Our compressor and filters, read back by libpng.
@Suite(.serialized, .timeLimit(.minutes(15))) struct PNGCompressionTests {
    enum Bytes: String, CaseIterable {
        /// Incompressible: stored blocks.
        case noise
        case zeros
        /// Two symbols of very different frequency, then others: several blocks.
        case skewed
        case changing
        /// Matches up to the window size and slightly beyond.
        case far
        /// More matches than fit into a block.
        case manyMatches
        /// Fibonacci frequencies, which lead to codes above the maximum length.
        case fibonacci

        func make(_ count: Int) -> [UInt8] {
            var numbers = SplitMix(seed: 11)
            func random(_ range: ClosedRange<Int>) -> UInt8 {
                UInt8(Int.random(in: range, using: &numbers))
            }
            switch self {
            case .noise: return (0..<count).map { _ in random(0...255) }
            case .zeros: return [UInt8](repeating: 0, count: count)
            case .skewed: return (0..<count).map { _ in random(0...255) == 0 ? random(1...255) : 7 }
            case .changing:
                return (0..<count).map { random(0...($0 / 20_000 % 2 == 0 ? 3 : 200)) }
            case .far:
                let part = (0..<32_765).map { _ in random(0...255) }
                return (0..<count).map { index in
                    part[(index + index / 40_000) % part.count]
                }
            case .manyMatches:
                let words = (0..<64).map { _ in (0..<9).map { _ in random(0...255) } }
                var bytes: [UInt8] = []
                while bytes.count < count {
                    bytes += words[Int(random(0...63))] + [random(0...255)]
                }
                return Array(bytes[..<count])
            case .fibonacci:
                var bytes: [UInt8] = []
                var (last, next) = (1, 1)
                for value in 0..<28 where bytes.count < count {
                    bytes += Array(repeating: UInt8(value), count: next)
                    (last, next) = (next, last + next)
                }
                bytes = Array(bytes.suffix(count))
                return bytes.shuffled(using: &numbers)
                    + [UInt8](repeating: 27, count: count - bytes.count)
            }
        }
    }

    static func image(_ bytes: [UInt8], width: Int) throws -> cpng_image {
        let height = bytes.count / width
        return try GeneratedPNG(width: width, height: height, colorType: 0, bitDepth: 8).rows {
            [Int(bytes[$1 * width + $0])]
        }
    }

    static let filters = [
        CPNG_FILTER_NONE, CPNG_FILTER_SUB, CPNG_FILTER_UP, CPNG_FILTER_AVERAGE, CPNG_FILTER_PAETH,
        CPNG_FILTER_SUMS, CPNG_FILTER_PAIRS,
    ]

    @Test(arguments: Bytes.allCases, [1, 2, 7, 8, 9, 300, 65_535, 65_536, 700_000])
    func photographsReadBackEqual(bytes: Bytes, count: Int) throws {
        let samples = bytes.make(count)
        // One row, so that the samples dominate the compressed data.
        for width in [count, 1] where width == count || count < 10_000 {
            var image = try Self.image(samples, width: width)
            defer { cpng_image_free(&image) }
            for depth: Int32 in [1, 16] {
                let strategy = cpng_strategy(
                    filter: CPNG_FILTER_NONE, compressor: CPNG_PHOTOGRAPH, level: depth)
                let made = try #require(try encoded(&image, strategy: strategy))
                #expect(try PackedRows(png: made).samples == samples)
                // Stored blocks are the worst case.
                #expect(made.count <= count + count / width + count / 4096 + 120)
                // It fits exactly or not at all.
                #expect(try encoded(&image, strategy: strategy, maximum: made.count) == nil)
                #expect(try encoded(&image, strategy: strategy, maximum: made.count + 40) == made)
            }
        }
    }

    @Test(arguments: filters, [0, 2, 4, 6])
    func everyFilterReadsBackEqual(filter: cpng_filter, colorType: Int) throws {
        let picture = GeneratedPNG(width: 33, height: 21, colorType: colorType, bitDepth: 8)
        var numbers = SplitMix(seed: 3)
        var rows = try picture.rows { x, y in
            (0..<picture.channels).map {
                (x * $0 + y + Int.random(in: 0...9, using: &numbers)) & 255
            }
        }
        defer { cpng_image_free(&rows) }
        let plain = rows.packed
        for compressor in [CPNG_LIBDEFLATE, CPNG_PHOTOGRAPH] {
            let strategy = cpng_strategy(filter: filter, compressor: compressor, level: 6)
            let made = try #require(try encoded(&rows, strategy: strategy))
            #expect(try PackedRows(png: made).samples == plain)
            // A trial predicts the size of the image data.
            #expect(cpng_trial(&rows, strategy) == made.count - 57)
        }
    }

    /// libdeflate compresses large images in pieces, which must form one stream. Pieces end at any
    /// bit, some with stored blocks, some with a single block.
    @Test(arguments: [Int32(1), 3, 7, 9, 10])
    func largeImagesReadBackEqual(level: Int32) throws {
        var numbers = SplitMix(seed: UInt64(level))
        let (width, height) = (4096, 4400)
        let count = width * height
        let samples = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            // Noise, noisy gradients and single colours, in parts of any length.
            while filled < count {
                let end = min(filled + Int(numbers.next() % (1 << 20)), count)
                let mask = [0, 0, 1, 7, 255][Int(numbers.next() % 5)] as UInt64
                for place in filled..<end {
                    buffer[place] = UInt8(
                        truncatingIfNeeded: UInt64(place >> 12) &+ numbers.next() & mask)
                }
                filled = end
            }
        }
        let memory = try #require(calloc(count + height, 1))
        var image = cpng_image_of(
            memory.assumingMemoryBound(to: UInt8.self), UInt32(width), UInt32(height), 1, nil)
        defer { cpng_image_free(&image) }
        try samples.withUnsafeBytes { samples in
            let start = try #require(samples.baseAddress)
            for y in 0..<height {
                (memory + y * (width + 1) + 1).copyMemory(
                    from: start + y * width, byteCount: width)
            }
        }
        let strategy = cpng_strategy(
            filter: CPNG_FILTER_NONE, compressor: CPNG_LIBDEFLATE, level: level)
        let made = try #require(try encoded(&image, strategy: strategy))
        #expect(try PackedRows(png: made).samples == samples)
        #expect(structureRefusal(made) == nil)
        #expect(try encoded(&image, strategy: strategy, maximum: made.count / 2) == nil)
        #expect(try encoded(&image, strategy: strategy, maximum: made.count) == nil)
        #expect(try encoded(&image, strategy: strategy, maximum: made.count + 40) == made)
    }

    /// On noise around a gradient, where nearly every other filter choice is larger.
    @Test func photographsAreSmallerThanWithLibdeflate() throws {
        var numbers = SplitMix(seed: 5)
        var rows = try GeneratedPNG(width: 400, height: 300, colorType: 2, bitDepth: 8).rows {
            x, y in
            let light = x / 3 + y / 3
            return (0..<3).map { _ in light + Int.random(in: 0...5, using: &numbers) }
        }
        defer { cpng_image_free(&rows) }
        func size(_ compressor: cpng_compressor, _ level: Int32) -> Int {
            cpng_trial(
                &rows, cpng_strategy(filter: CPNG_FILTER_SUMS, compressor: compressor, level: level)
            )
        }
        #expect(size(CPNG_PHOTOGRAPH, 16) < size(CPNG_LIBDEFLATE, 6))
    }

    /// Compared in sum, since a single photograph may favour the fast filter.
    @Test(.enabled(if: TestData.isAvailable))
    func photographsGrowSmallerWithEffort() throws {
        var sizes = [0, 0]
        for path in try TestData.paths(in: "photos") where path.hasSuffix(".png") {
            let source = try TestData.bytes(path)
            let shown = try PackedRows(png: source)
            for (index, effort) in [EncodingEffort.fast, .balanced].enumerated() {
                let made = try stored(source, Recipe(keepsLarger: true), effort: effort)
                #expect(try PackedRows(png: made.bytes) == shown)
                #expect(try stored(made.bytes, effort: effort).isSource)
                sizes[index] += made.bytes.count
            }
        }
        #expect(sizes[1] > 0 && sizes[1] < sizes[0])
    }
}
