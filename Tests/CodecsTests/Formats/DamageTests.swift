import Codecs
import PrefetchModel
import Testing

/// Truncated or damaged data is never stored, whatever the recipe.
@Suite(.serialized, .timeLimit(.minutes(15))) struct DamageTests {
    @Test(arguments: everyRecipe, Samples.jpegs + Samples.pngs)
    func refusesEveryTruncation(recipe: Recipe, source: [UInt8]) {
        #expect(refusal(source, recipe) == nil)
        // A PNG may lack its end chunk, and the two checksums before it.
        let end = source.starts(with: Samples.colourPNG[..<8]) ? source.count - 20 : source.count
        for length in 0..<end {
            let error = refusal(Array(source.prefix(length)), recipe)
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
            // The checksum of the end chunk has no effect.
            let isEnd = offset + 12 + length == source.count
            for position in offset + 4..<offset + (isEnd ? 8 : 12 + length) {
                var damaged = source
                damaged[position] ^= 0x41
                #expect(refusal(damaged) != nil, "byte \(position)")
            }
            offset += 12 + length
        }
    }

    @Test func dropsBytesAfterTheEnd() throws {
        for source in Samples.jpegs + Samples.pngs {
            let plain = try stored(source)
            let result = try stored(source + Array("trailing".utf8))
            #expect(result.bytes == plain.bytes)
            #expect(!result.isSource)
        }
    }

    @Test func acceptsZeroPaddingBeforeTheEndMarker() {
        let body = Samples.baselineJPEG.dropLast(2)
        #expect(refusal(body + [UInt8](repeating: 0, count: 40) + [0xFF, 0xD9]) == nil)
    }

    @Test func refusesAProgressiveImageWithoutItsLastComponents() throws {
        // The first scan holds the DC values of all components; without it the image is incomplete.
        let source = Samples.progressiveJPEG
        let scans = source.markers(0xDA)
        let first = try #require(scans.first)
        let second = try #require(scans.dropFirst().first)
        var withoutFirst = Array(source[..<first]) + source[second...]
        #expect(refusal(withoutFirst) != nil)
        withoutFirst = Array(source[..<first]) + [0xFF, 0xD9]
        #expect(refusal(withoutFirst) != nil)
    }
}
