import PrefetchModel
import SeededRandom
import Testing

@testable import Manifests

/// Damaged lists of all formats: reading them ends, and in whatever pieces they arrive, the entries
/// are the same.
@Suite(.timeLimit(.minutes(15)))
struct ListMutationTests {
    static let samples: [(format: ManifestFormat, text: String)] = [
        (.text, "http://a.b/1 key=\"a b\" priority=3 # c\n\n# d\nhttp://a.b/2 header=A:b\n"),
        (
            .csv,
            "id,url,key\n1,http://a.b/1,\"k \"\"1\"\"\"\r\n2,http://a.b/2,\n3,\"http://a.b/3\",\n"
        ),
        (.tsv, "\"id\"\turl\n\"1\t2\"\thttp://a.b/1\n3\thttp://a.b/2\n"),
        (
            .jsonl,
            "{\"url\":\"http://a.b/1\",\"a\":[1,{\"b\":2.5e3}],\"key\":\"\\u00e9\"}\n{\"url\":\"x\"}\n"
        ),
        (.sitemap, SitemapFormatTests.sitemap),
    ]
    private static let hostile: [[UInt8]] = [
        [0], [0xFF], [0x1B], Array("\"".utf8), Array("\n".utf8), Array("\r".utf8), Array(",".utf8),
        Array("<".utf8), Array("&".utf8), Array("]]>".utf8), Array("{".utf8), Array("\\".utf8),
        Array("\u{2028}".utf8), [0xEF, 0xBB, 0xBF], Array("<!DOCTYPE a [".utf8), Array("=".utf8),
    ]

    @Test(arguments: samples)
    func piecesMakeNoDifference(sample: (format: ManifestFormat, text: String)) throws {
        let folder = try TemporaryFolder()
        for seed in 0..<400 {
            var random = SplitMix(seed: UInt64(seed))
            var bytes = Array(sample.text.utf8)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0...bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0:
                    bytes.insert(
                        contentsOf: ListMutationTests.hostile.randomElement(using: &random) ?? [],
                        at: place)
                case 1 where place < bytes.count: bytes.remove(at: place)
                default: bytes.removeSubrange(place...)
                }
            }
            let whole = try folder.read(bytes, sample.format, maximumLineBytes: 300)
            let pieces = try folder.read(
                bytes, sample.format, maximumLineBytes: 300,
                readBytes: Int.random(in: 1...40, using: &random))
            #expect(whole.entries == pieces.entries, "seed \(seed)")
            #expect(whole.error == pieces.error, "seed \(seed)")
            for entry in whole.entries {
                let isPlain = !entry.url.utf8.contains { $0 < 0x20 || $0 == 0x7F }
                #expect(isPlain, "seed \(seed)")
            }
        }
    }
}
