import CodecFuzzing
import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Checks the invariants on files found by a fuzzer and on mutated samples.
@Suite(.serialized, .timeLimit(.minutes(15))) struct InvariantTests {
    private static let regressions = SourceTree.tests.appending(path: "FuzzRegressions")

    private static func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: regressions.path).sorted()
    }

    private func check(_ source: [UInt8], _ recipes: [Recipe]) throws {
        try source.withUnsafeBytes { source in
            try ContainerInvariants.check(source)
            guard let invariants = try CodecInvariants(source, limits: CodecLimits()) else {
                return
            }
            try invariants.checkReferenceIsTaken()
            for recipe in recipes { try invariants.check(recipe) }
            try invariants.checkTogether(recipes + [Recipe(quality: 45)])
        }
    }

    /// Each file once violated an invariant; its name describes the file.
    @Test(arguments: try names())
    func holdForFuzzRegressions(name: String) throws {
        let source = try Data(contentsOf: InvariantTests.regressions.appending(path: name))
        try check([UInt8](source), Recipe.samples)
    }

    /// Each exception has a file, so none outlives its reason.
    @Test func exceptionsAreNeeded() throws {
        let source = Samples.colourPNG
        let data = source.withUnsafeBytes { bytes in
            (try? PNGFile(bytes))?.chunks.first { $0.type == .IDAT }?.data
        }
        let range = try #require(data)
        let unended =
            source[..<(range.lowerBound - 8)]
            + PNGFile.chunk(.IDAT, Array(source[range].dropLast(4)))
            + source[(range.upperBound + 4)...]
        let reserved = InvariantTests.regressions.appending(path: "reserved-codes-without-end.png")
        let files = [
            "reserved codes": [UInt8](try Data(contentsOf: reserved)),
            "no end chunk": Array(source.dropLast(12)),
            "no end of the image data": Array(unended),
        ]
        #expect(Set(files.keys) == Set(CodecInvariants.exceptions.map(\.name)))
        for (name, file) in files {
            try file.withUnsafeBytes { bytes in
                let invariants = try CodecInvariants(bytes, limits: CodecLimits())
                #expect(invariants?.exception?.name == name)
            }
            try check(file, Recipe.samples)
        }
    }

    @Test(arguments: HandmadeContainer.all)
    func holdForContainers(file: HandmadeContainer) throws {
        for seed in 0..<200 as Range<UInt64> {
            var random = SplitMix(seed: seed)
            var bytes = file.bytes
            if seed > 0 { random.change(&bytes, maximumBytes: 1 << 12) }
            do {
                let isOne = try bytes.withUnsafeBytes { try ContainerInvariants.check($0) }
                // Without its codec, an icon has no container.
                if seed == 0 { #expect(isOne == (file.format != .icon)) }
            } catch {
                let text = Data(bytes).base64EncodedString()
                Issue.record("seed \(seed): \(error); the file: \(text)")
            }
        }
    }

    @Test(arguments: Samples.jpegs + Samples.pngs)
    func holdForEveryRecipe(source: [UInt8]) throws {
        try check(source, Recipe.samples)
    }

    @Test(arguments: BMPTests.samples.enumerated().filter { $0.offset % 3 == 0 }.map(\.element))
    func holdForBitmaps(sample: BMPTests.Sample) throws {
        try check(try sample.bytes, Recipe.samples)
    }

    @Test(arguments: 0..<40)
    func holdForChangedImages(seed: Int) throws {
        var random = SplitMix(seed: UInt64(seed))
        for source in Samples.jpegs + Samples.pngs {
            for _ in 0..<10 {
                let changed = InvariantTests.changed(source, &random)
                let recipe = changed.withUnsafeBytes {
                    Recipe(hashing: $0, encodings: Recipe.Encoding.allCases)
                }
                do {
                    try check(changed, [recipe])
                } catch {
                    let text = Data(changed).base64EncodedString()
                    Issue.record("seed \(seed): \(error); the image: \(text)")
                }
            }
        }
    }

    private static func changed(_ source: [UInt8], _ random: inout SplitMix) -> [UInt8] {
        var bytes = SplitMix(seed: random.next())
        var mutation = PNGMutation(seed: random.next()) { data, maximum in
            bytes.change(&data, maximumBytes: maximum)
        }
        let changed = source.withUnsafeBytes { mutation.mutated($0, maximumBytes: 1 << 16) }
        if let changed { return changed }
        var result = source
        random.change(&result, maximumBytes: 1 << 16)
        return result
    }

    /// Otherwise the fuzzer would waste time on immediately rejected files.
    @Test(arguments: Samples.pngs)
    func changedPNGsAreOftenAccepted(source: [UInt8]) {
        var random = SplitMix(seed: 1)
        let changed = (0..<200).map { _ in InvariantTests.changed(source, &random) }
        #expect(Set(changed).count > 150)
        let taken = changed.filter { refusal($0, Recipe(encoding: .original)) == nil }
        #expect(taken.count > 40, "\(taken.count) of 200")
    }
}
