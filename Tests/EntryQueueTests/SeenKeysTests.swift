import Hashing
import Testing

@testable import EntryQueue

@Suite(.timeLimit(.minutes(15)))
struct SeenKeysTests {
    @Test func findsExactlyTheAddedKeys() {
        var random = SystemRandomNumberGenerator()
        var keys = SeenKeys(using: &random)
        let hasher = SHA256Hasher()
        #expect(keys.isEmpty)
        for number in 0..<200_000 {
            keys.append(KeyFingerprint("http://h/\(number)", hasher: hasher))
        }
        #expect(keys.count == 200_000)
        for number in 0..<200_000 {
            #expect(keys[KeyFingerprint("http://h/\(number)", hasher: hasher)] == number)
        }
        for number in 200_000..<300_000 {
            #expect(keys[KeyFingerprint("http://h/\(number)", hasher: hasher)] == nil)
        }
    }
}
