import Foundation
import Testing

/// Compares ThumbHashes with the reference implementation's (see `thumbhash-vectors.py`).
@Suite(.timeLimit(.minutes(15))) struct ThumbHashTests {
    private struct Vector {
        let kind: String
        let width: Int
        let height: Int
        let hasAlpha: Bool
        let seed: Int
        let hash: [UInt8]

        init(_ line: Substring) throws {
            let fields = line.split(separator: "\t").map(String.init)
            try #require(fields.count == 6)
            kind = fields[0]
            width = try #require(Int(fields[1]))
            height = try #require(Int(fields[2]))
            hasAlpha = fields[3] == "alpha"
            seed = try #require(Int(fields[4]))
            let digits = Array(fields[5].utf8)
            hash = stride(from: 0, to: digits.count, by: 2).compactMap {
                UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
            }
        }

        /// The pixels that the script generates.
        var pixels: [UInt8] {
            var bytes: [UInt8] = []
            var state = seed
            for y in 0..<height {
                for x in 0..<width {
                    switch kind {
                    case "noise":
                        for _ in 0..<4 {
                            state = (state &* 1_103_515_245 &+ 12345) & 0x7FFF_FFFF
                            bytes.append(UInt8(truncatingIfNeeded: state >> 16))
                        }
                    case "slope":
                        bytes += [
                            x * 255 / width + 40 * seed, y * 255 / height,
                            3 * (x + y) + 70 * seed, 5 * x * y + seed,
                        ].map { UInt8(truncatingIfNeeded: $0) }
                    default:
                        let light = UInt8(
                            truncatingIfNeeded: x * 200 / width + y * 50 / height + seed)
                        bytes += [light, light, light, 255]
                    }
                }
            }
            if !hasAlpha {
                for place in stride(from: 3, to: bytes.count, by: 4) { bytes[place] = 255 }
            }
            return bytes
        }
    }

    private func vectors() throws -> [Vector] {
        let file = SourceTree.tests.appending(
            path: "CodecsTests/Placeholders/ThumbHashVectors.tsv")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(Vector.init)
    }

    private func hash(_ pixels: [UInt8], _ width: Int, _ height: Int) -> [UInt8] {
        smallPlaceholder(pixels, width, height).hash
    }

    /// A cosine of exactly 0 lies between two 4-bit values, and the reference then rounds its own
    /// noise.
    @Test func hashesMatchReferenceExceptTies() throws {
        let vectors = try vectors()
        #expect(vectors.count == 160)
        var same = 0
        for vector in vectors {
            let made = HashFields(hash(vector.pixels, vector.width, vector.height))
            let expected = HashFields(vector.hash)
            let name =
                "\(vector.kind) \(vector.width)×\(vector.height) \(vector.seed): \(made), \(expected)"
            #expect(try #require(made.distance(to: expected), "\(name)") <= 1, "\(name)")
            if made.bytes == expected.bytes { same += 1 }
            // Noise of more than a few pixels has no ties.
            if vector.kind == "noise", min(vector.width, vector.height) >= 8 {
                #expect(made.bytes == expected.bytes, "\(name)")
            }
        }
        #expect(same >= 60)
    }

    @Test func flatPictureHasOnlyItsColour() {
        for (colour, alpha) in [([200, 10, 90], 255), ([1, 2, 3], 128), ([0, 0, 0], 0)] {
            let pixel = (colour + [alpha]).map { UInt8($0) }
            let made = hash([[UInt8]](repeating: pixel, count: 30 * 20).flatMap(\.self), 30, 20)
            #expect(made.dropFirst(alpha == 255 ? 5 : 6).allSatisfy { $0 == 0 })
            #expect(HashFields(made).hasAlpha == (alpha < 255))
        }
    }

    // MARK: Colours

    private func colour(_ pixels: [[Int]]) -> [UInt8]? {
        smallPlaceholder(pixels.flatMap { $0.map { UInt8($0) } }, pixels.count, 1).colour
    }

    @Test func dominantColourIsOfMostPixels() {
        let (red, blue) = ([250, 10, 10, 255], [10, 10, 250, 255])
        #expect(colour([red, red, red, blue, blue]) == [250, 10, 10])
        #expect(colour([red, blue, blue]) == [10, 10, 250])
        // Shades on either side of a multiple of 16 are one colour.
        #expect(colour([[127, 127, 127, 255], [128, 128, 128, 255], red]) == [128, 128, 128])
    }

    @Test func transparentPixelsCountLess() {
        let (red, blue) = ([250, 10, 10, 50], [10, 10, 250, 255])
        #expect(colour([red, red, red, blue]) == [10, 10, 250])
        #expect(colour([[250, 10, 10, 0]]) == nil)
    }
}
