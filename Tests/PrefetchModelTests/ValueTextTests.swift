import Foundation
import SeededRandom
import Testing

@testable import PrefetchModel

@Suite(.timeLimit(.minutes(15)))
struct ValueTextTests {
    @Test(arguments: [
        (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1029, "1.00 KiB"),
        (1536, "1.50 KiB"), (10_234, "9.99 KiB"), (10_240, "10.0 KiB"), (83_184, "81.2 KiB"),
        (102_348, "99.9 KiB"), (102_400, "100 KiB"), (1_048_063, "1023 KiB"),
        (1_048_064, "1.00 MiB"), (1_048_576, "1.00 MiB"), (5 << 30, "5.00 GiB"),
        (Int.max, "8.00 EiB"),
    ])
    func byteCountHasThreeDigits(bytes: Int, text: String) {
        #expect(ByteCount(bytes).description == text)
    }

    @Test(
        arguments: [1, 786_432, 786_433, 3 << 20, 232_783_872, 5 << 30, 1 << 52],
        [0, 1 << 20, 64 << 20])
    func suggestsSmallestSufficientMemory(need: Int, bodyBytes: Int) throws {
        let text = try #require(
            MemoryShares.text(ofMemoryForPixels: need, beside: bodyBytes))
        let memory = try #require(ByteCount(quantity: text))
        func suffices(_ memory: ByteCount) -> Bool {
            MemoryShares.pixels(of: memory).bytes >= need && memory.bytes - bodyBytes >= need
        }
        #expect(suffices(memory) && !suffices(ByteCount(memory.bytes - (1 << 20))))
    }

    @Test func suggestsNoMemoryForImpossibleSizes() {
        #expect(MemoryShares.text(ofMemoryForPixels: .max, beside: 0) == nil)
        #expect(MemoryShares.text(ofMemoryForPixels: .max, beside: 1) == nil)
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (999, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"), (-1000, "1969-12-31T23:59:59Z"),
            (-1001, "1969-12-31T23:59:58Z"), (951_782_400_000, "2000-02-29T00:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (2_147_483_648_000, "2038-01-19T03:14:08Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59Z"),
            (253_402_300_800_000, "9999-12-31T23:59:59Z"), (Int64.max, "9999-12-31T23:59:59Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00Z"),
            (-62_167_219_200_001, "0000-01-01T00:00:00Z"), (Int64.min, "0000-01-01T00:00:00Z"),
        ] as [(Int64, String)])
    func timestampIsRFC3339(milliseconds: Int64, text: String) {
        #expect(Timestamp(milliseconds: milliseconds).description == text)
    }

    @Test func timestampAgreesWithFoundation() {
        let formatter = ISO8601DateFormatter()
        var generator = SplitMix(seed: 7)
        for _ in 0..<2000 {
            // Foundation's calendar is Julian before 1582.
            let seconds = Int64.random(in: -12_000_000_000...253_402_300_799, using: &generator)
            let expected = formatter.string(from: Date(timeIntervalSince1970: Double(seconds)))
            #expect(Timestamp(seconds: seconds).description == expected, "\(seconds)")
        }
    }

    @Test func timestampSaturates() {
        #expect(Timestamp(seconds: .max) == .distantFuture)
        #expect(Timestamp(seconds: .min) == .distantPast)
        #expect(Timestamp.distantFuture.advanced(by: .seconds(1)) == .distantFuture)
        #expect(Timestamp.distantPast.advanced(by: .seconds(-1)) == .distantPast)
        #expect(
            Timestamp(milliseconds: 5).advanced(by: .seconds(Int64.max)) == .distantFuture)
        #expect(
            Timestamp.distantPast.timeSince(.distantFuture) == .milliseconds(Int64.min))
        #expect(
            Timestamp(milliseconds: 1500).timeSince(Timestamp(seconds: 1)) == .milliseconds(500))
        #expect(Duration.milliseconds(-1500).wholeMilliseconds == -1500)
        #expect(Duration.milliseconds(1500).secondsValue == 1.5)
    }

    @Test func digestRoundTrips() throws {
        var generator = SplitMix(seed: 11)
        for _ in 0..<200 {
            let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let digest = try #require(bytes.withUnsafeBytes { ContentDigest(bytes: $0) })
            #expect(digest.bytes == bytes)
            #expect(digest.description == bytes.map { String(format: "%02x", $0) }.joined())
            #expect(ContentDigest(hexadecimal: digest.description) == digest)
            #expect(ContentDigest(hexadecimal: digest.description.uppercased()) == digest)
        }
    }

    @Test func digestRejectsOtherLengthsAndDigits() {
        for count in [0, 31, 33] {
            let bytes = [UInt8](repeating: 0, count: count)
            #expect(bytes.withUnsafeBytes { ContentDigest(bytes: $0) } == nil)
        }
        #expect(ContentDigest(hexadecimal: String(repeating: "0", count: 63)) == nil)
        #expect(ContentDigest(hexadecimal: String(repeating: "0", count: 63) + "g") == nil)
        #expect(ContentDigest(hexadecimal: String(repeating: "0", count: 62) + "é") == nil)
    }

    @Test(arguments: [
        (Recipe(), "same;q=85;strip=safe"),
        (Recipe(encoding: .jpeg, quality: 1), "jpeg;q=1;strip=safe"),
        (Recipe(encoding: .png, quality: 9, keepsLarger: true), "png;strip=safe;larger"),
        (Recipe(encoding: .same, quality: 100, keepsLarger: true), "same;q=100;strip=safe;larger"),
        (Recipe(encoding: .original, keepsLarger: true), "original"),
    ])
    func recipeTextIsCanonical(recipe: Recipe, text: String) {
        #expect(recipe.canonicalText == text)
    }

    @Test func storedImageNamesItsFile() throws {
        let digest = try #require(ContentDigest(hexadecimal: String(repeating: "ab", count: 32)))
        let image = StoredImage(
            digest: digest, format: .jpeg, widthInPixels: 1, heightInPixels: 1, size: ByteCount(1))
        #expect(image.relativePath == "content/ab/\(String(repeating: "ab", count: 32)).jpg")
    }

    @Test func countersCountFailuresByReasonOnce() {
        var counters = RunCounters()
        counters.count(.failed, reason: .dns)
        counters.count(.duplicate, reason: .dns, times: 3)
        counters.count(.fresh, times: 2)
        #expect(counters.entriesDone == 6)
        #expect(counters[.dns] == 1)
        #expect(counters[.duplicate] == 3)
    }

    @Test(
        arguments: [
            ("90%", 900_000, "90%"), ("12.50%", 125_000, "12.5%"), ("100%", 1_000_000, "100%"),
            ("0.00001%", 1, "0.0001%"), ("0%", nil, ""), ("101%", nil, ""), ("0.9", nil, ""),
        ] as [(String, Int64?, String)])
    func parsesSharesAsPercentages(text: String, millionths: Int64?, printed: String) {
        let share = Share(percentage: text)
        #expect(share?.millionths == millionths)
        #expect(share.map(\.description) ?? "" == printed)
    }
}
