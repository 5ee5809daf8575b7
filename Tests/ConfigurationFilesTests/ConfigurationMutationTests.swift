import PrefetchModel
import SeededRandom
import Testing

@testable import ConfigurationFiles

/// Damaged files: reading them ends, finds no key that isn't known, and never more in a project's
/// file than in a trusted one.
@Suite(.timeLimit(.minutes(15)))
struct ConfigurationMutationTests {
    private static let samples = [
        """
        # comment
        jobs = 1_000
        header = ["A: b", 'C: d']
        proxy = \"\"\"
        multi\\
        line\"\"\"
        max-aspect = 2.5e1
        [profile.nightly]
        jobs = "auto"
        deny-private = true
        """,
        """
        linear = false
        prune.unlisted-for = "30d"
        variant.small = { resize = "64x64", linear = true }
        [variant."big-1"]
        spec = "\\u0077ebp,q=60"
        [list.'shop']
        file = ["a.csv", "b.csv"]
        format = "csv"
        [host."*.a.b"]
        header = ["A: b"]
        [[other]]
        date = 1979-05-27T07:32:00Z
        """,
    ]
    private static let hostile: [[UInt8]] = [
        [0], [0xFF], [0x1B], Array("\"".utf8), Array("'".utf8), Array("\"\"\"".utf8),
        Array("\n".utf8), Array("\r".utf8), Array("=".utf8), Array("[".utf8), Array("]".utf8),
        Array("[[".utf8), Array("{".utf8), Array("}".utf8), Array(".".utf8), Array("\\".utf8),
        Array("\\u0000".utf8), Array("#".utf8), Array("\u{2028}".utf8), [0xEF, 0xBB, 0xBF],
        Array("proxy='x'\n".utf8), Array("\n[prune]\n".utf8), Array("0x".utf8), Array("nan".utf8),
    ]

    @Test(arguments: samples)
    func readingEnds(sample: String) {
        for seed in 0..<4_000 {
            var random = SplitMix(seed: UInt64(seed))
            var bytes = Array(sample.utf8)
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let place = Int.random(in: 0...bytes.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0, 1:
                    bytes.insert(
                        contentsOf: ConfigurationMutationTests.hostile.randomElement(using: &random)
                            ?? [],
                        at: place)
                case 2 where place < bytes.count: bytes.remove(at: place)
                default: bytes.removeSubrange(place..<min(bytes.count, place + 9))
                }
            }
            let trusted = ConfigurationFile(
                bytes, path: "c", keys: .sample, isForeign: false)
            let foreign = ConfigurationFile(bytes, path: "c", keys: .sample, isForeign: true)
            #expect(Set(foreign.settings).isSubset(of: trusted.settings), "seed \(seed)")
            #expect(foreign.problems.count >= trusted.problems.count, "seed \(seed)")
            let lines = bytes.count { $0 == 0x0A } + 1
            for file in [trusted, foreign] {
                #expect(file.settings.allSatisfy(isSound), "seed \(seed)")
                #expect(
                    file.problems.allSatisfy { (1...lines).contains($0.origin.line) },
                    "seed \(seed): \(file.problems)")
            }
            #expect(
                !foreign.settings.contains { ["proxy", "deny-private"].contains($0.key) },
                "seed \(seed)")
            _ = EffectiveSettings(files: [foreign, trusted], profile: "nightly")
        }
    }

    /// Whether a setting has a known key and a printable value.
    private func isSound(_ setting: ConfigurationSetting) -> Bool {
        let keys = ConfigurationKeys.sample
        let known = [keys.flags, keys.variant, keys.prune, keys.list, keys.host].joined().map(
            \.name)
        return known.contains(setting.key)
            && setting.value.texts.allSatisfy { text in
                !text.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
            }
    }
}
