import Codecs
import PrefetchModel
import SeededRandom
import TestSupport
import Testing

@testable import Decoding

/// Messages between this process and workers.
@Suite(.timeLimit(.minutes(5)))
struct WireTests {
    private static let recipes: [Recipe] = {
        var thumbnail = Recipe(encoding: .webp)
        thumbnail.transformations = [.resize(.fit(width: 30, height: 30)), .rotate(.quarter)]
        return [Recipe(encoding: .auto), thumbnail, Recipe(encoding: .original)]
    }()

    @Test func rulesArriveAsTheyWere() throws {
        var rules = HeaderRules(
            limits: CodecLimits(maximumPixels: 12_345, maximumTime: .milliseconds(1500)),
            recipes: WireTests.recipes, check: .structure, others: .skip, memory: .mebibytes(77),
            memoryWithFile: .mebibytes(99))
        rules.wanted.minimumWidth = 7
        rules.wanted.maximumAspect = 1.75
        rules.wanted.minimumBytes = ByteCount(321)
        var writer = WireWriter()
        writer.put(DecodingRules(header: rules, makesPlaceholders: true))
        var reader = WireReader(writer.bytes)
        let read = try reader.rules()
        #expect(read.header == rules)
        #expect(read.makesPlaceholders)
        #expect(reader.isAtEnd)
    }

    private static let errors: [CodecError] = [
        .notAnImage("a"), .unsupported("b"), .leftOut(.otherFormat, "c"), .tooManyPixels("d"),
        .limitExceeded("e"), .corrupt("f", isTruncated: false), .corrupt("g", isTruncated: true),
        .outOfMemory("h"), .encodingFailed("i"), .cancelled,
    ]

    @Test(arguments: errors)
    func errorsArriveAsTheyWere(error: CodecError) throws {
        var writer = WireWriter()
        writer.put(error)
        var reader = WireReader(writer.bytes)
        #expect(try reader.codecError() == error)
    }

    /// Any bytes are refused or read as values in their ranges.
    @Test func changedResultsAreRefusedOrInRange() throws {
        let image = try Fixtures.file("baseline.jpg")
        let rules = DecodingRules(
            header: HeaderRules(recipes: WireTests.recipes, memory: .mebibytes(64)),
            makesPlaceholders: true)
        let entry = try image.withUnsafeBytes { bytes in
            try rules.perform(.new(WireTests.recipes), on: bytes, cancellation: nil) { _ in true }
        }
        var writer = WireWriter()
        var output: [UInt8] = []
        writer.put(entry) { image in
            defer { image.withUnsafeBytes { output += $0 } }
            return output.count
        }
        func read(_ bytes: [UInt8]) throws(CodecError) -> ProcessedEntry {
            var reader = WireReader(bytes)
            return try image.span.withUnsafeBytes { source throws(CodecError) in
                try reader.entry(
                    for: .new(WireTests.recipes), of: WorkerImage(bytes: source)
                ) {
                    offset, count throws(CodecError) in
                    guard (0...output.count).contains(offset),
                        (0...(output.count - offset)).contains(count),
                        let copy = output[offset..<(offset + count)].withUnsafeBytes({
                            ImageBytes(copying: $0)
                        })
                    else { throw .nonsense }
                    return copy
                }
            }
        }
        #expect(try read(writer.bytes).results.count == 3)
        for length in 0..<writer.bytes.count {
            #expect(throws: CodecError.nonsense) { try read(Array(writer.bytes[..<length])) }
        }
        var random = SplitMix(seed: 64)
        let extremes: [Int] = [0, 1, -1, .max, .min, 1 << 31, 1 << 32, 4096, output.count]
        var (accepted, refused) = (0, 0)
        for round in 0..<20_000 {
            var bytes = writer.bytes
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                if Bool.random(using: &random) {
                    bytes[Int.random(in: bytes.indices, using: &random)] =
                        UInt8.random(in: .min ... .max, using: &random)
                } else {
                    let place = Int.random(in: 0...(bytes.count - 8), using: &random)
                    let number = extremes[Int.random(in: extremes.indices, using: &random)]
                    withUnsafeBytes(of: number.littleEndian) {
                        bytes.replaceSubrange(place..<(place + 8), with: $0)
                    }
                }
            }
            do {
                let entry = try read(bytes)
                let sides = [entry.source.widthInPixels, entry.source.heightInPixels]
                #expect(sides.allSatisfy { (0...Int(Int32.max)).contains($0) }, "round \(round)")
                #expect(
                    entry.decodeDuration >= .zero && entry.decodeDuration <= WireReader.mostTime,
                    "round \(round)")
                for case .success(let image) in entry.results {
                    #expect((1...8).contains(image.orientation), "round \(round)")
                }
                accepted += 1
            } catch {
                #expect(error == .nonsense, "round \(round)")
                refused += 1
            }
        }
        #expect(accepted > 1000 && refused > 1000, "\(accepted) accepted, \(refused) refused")
    }
}
