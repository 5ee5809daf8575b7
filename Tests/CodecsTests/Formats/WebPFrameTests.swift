import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

#if WebP
    /// The frames of an animated WebP.
    @Suite(.timeLimit(.minutes(15)))
    struct WebPFrameTests {
        /// libwebp's decoder accepts a lossy picture with a data length beyond its frame, if all
        /// rows are present. Players of animations do not.
        @Test func pictureLiesWithinFrame() throws {
            var kinds: Set<String> = []
            for sample in FormatSample.taken where sample.format == .webp {
                let whole = try sample.bytes
                for start in whole.indices
                where whole[start...].starts(with: "ANMF".utf8) && start + 32 <= whole.count {
                    // After the chunk header and the frame header.
                    let picture = start + 24
                    let kind = String(decoding: whole[picture..<picture + 4], as: UTF8.self)
                    guard kind.hasPrefix("VP8") else { continue }
                    var longer = whole
                    longer[picture + 6] ^= 0x10
                    for encoding in [Recipe.Encoding.original, .same] {
                        #expect(
                            refusal(longer, Recipe(encoding: encoding))
                                == .corrupt("a frame without a whole picture", isTruncated: false),
                            "\(sample) \(start)")
                    }
                    kinds.insert(kind)
                }
            }
            #expect(kinds == ["VP8 ", "VP8L"])
        }

        /// Chunks after a frame's picture lie within the frame too.
        @Test func chunksLieWithinFrame() throws {
            let samples = try FormatSample.taken.filter { $0.format == .webp }.map { try $0.bytes }
            let animations = samples.lazy.map(chunks).filter { $0.contains { $0.name == "ANMF" } }
            let parts = try #require(animations.first)
            let place = try #require(parts.firstIndex { $0.name == "ANMF" })
            for (length, isTaken) in [(2, true), (3, false), (200, false)] {
                let frame =
                    parts[place].bytes.dropFirst(8) + Array("JUNK".utf8)
                    + [UInt8(length), 0, 0, 0, 1, 2]
                var bytes = parts.map(\.bytes)
                bytes[place] =
                    Array("ANMF".utf8)
                    + (0..<4).map { UInt8(truncatingIfNeeded: frame.count >> (8 * $0)) } + frame
                #expect((refusal(file(bytes), Recipe(encoding: .same)) == nil) == isTaken)
            }
        }

        /// The chunks of a file, and a file of chunks.
        private func chunks(_ file: [UInt8]) -> [(name: String, bytes: [UInt8])] {
            var (chunks, offset) = ([(name: String, bytes: [UInt8])](), 12)
            while offset + 8 <= file.count {
                let length = file[offset + 4..<offset + 8].reversed().reduce(0) {
                    $0 << 8 | Int($1)
                }
                let end = min(offset + 8 + length + length % 2, file.count)
                let name = String(decoding: file[offset..<offset + 4], as: UTF8.self)
                chunks.append((name, Array(file[offset..<end])))
                offset = end
            }
            return chunks
        }

        private func file(_ chunks: [[UInt8]]) -> [UInt8] {
            let count = 4 + chunks.reduce(0) { $0 + $1.count }
            let length = (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
            return Array("RIFF".utf8) + length + Array("WEBP".utf8) + chunks.joined()
        }

        /// Other readers want one alpha chunk, directly before the picture, after the profile.
        @Test func orderIsCorrected() throws {
            var picture = AnimationTransformingTests.Picture(width: 40, height: 30)
            var random = SplitMix(seed: 5)
            for place in picture.pixels.indices {
                let grey = UInt8(3 * (place % 40))
                picture.pixels[place] = SIMD4(
                    grey, grey, UInt8(place / 40), .random(in: 0...255, using: &random))
            }
            let png = PNGFile.profileChunk(Profiles.rgb(Profiles.wideColorants))
            let source = try PNGTests.inserting(
                png, into: AnimationTransformingTests.still(picture))
            var recipe = Recipe(encoding: .webp, quality: 50)
            let whole = try stored(source, recipe).bytes
            let parts = chunks(whole)
            #expect(parts.map(\.name) == ["VP8X", "ICCP", "ALPH", "VP8 "])
            let bytes = parts.map(\.bytes)
            var damaged = bytes[2]
            for place in 12..<damaged.count { damaged[place] ^= 0x55 }
            recipe.encoding = .same
            for order in [
                [bytes[0], damaged, bytes[1], bytes[2], bytes[3]],
                [bytes[0], bytes[2], bytes[1], bytes[3]], [bytes[0], bytes[2], bytes[3], bytes[1]],
            ] {
                #expect(try stored(file(order), recipe).bytes == whole)
            }
            recipe.stripping = .none
            #expect(
                try stored(file([bytes[0], bytes[2], bytes[1], bytes[3]]), recipe).bytes == whole)
        }
    }
#endif
