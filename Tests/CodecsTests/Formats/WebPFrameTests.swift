import PrefetchModel
import Testing

@testable import Codecs

#if WebP
    /// The frames of an animated WebP.
    @Suite(.timeLimit(.minutes(5)))
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
    }
#endif
