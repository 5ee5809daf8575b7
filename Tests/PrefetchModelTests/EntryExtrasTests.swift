import Testing

@testable import PrefetchModel

@Suite(.timeLimit(.minutes(15)))
struct EntryExtrasTests {
    @Test(
        arguments: [
            ("0", .zero), ("0.0004s", .zero), ("0.0005s", .milliseconds(1)),
            ("1ms", .milliseconds(1)),
            ("90", .seconds(90)), (".5", .milliseconds(500)), ("5.", .seconds(5)),
            ("1.5m", .seconds(90)), ("2h", .seconds(7200)), ("7d", .seconds(604_800)),
            ("36500d", .seconds(3_153_600_000)), ("3153600000", .seconds(3_153_600_000)),
        ] as [(String, Duration)])
    func parsesDurations(text: String, expected: Duration) {
        #expect(Duration(quantity: text) == expected)
    }

    @Test(arguments: [
        "", ".", "s", "-1", "+1", " 1", "1 ", "1 s", "1S", "1w", "1e3", "0x1", "inf", "nan",
        "1.2.3", "1,5", "٣", "5\u{301}s", "36500.01d", "3153600001",
        String(repeating: "9", count: 400),
    ])
    func rejectsInvalidDurations(text: String) {
        #expect(Duration(quantity: text) == nil)
    }

    @Test(
        arguments: [
            (.zero, "0s"), (.microseconds(999), "0s"), (.milliseconds(1), "1ms"),
            (.milliseconds(1500), "1500ms"), (.seconds(1), "1s"), (.seconds(90), "90s"),
            (.seconds(120), "2m"), (.seconds(3600), "1h"), (.seconds(5400), "90m"),
            (.seconds(86_400), "1d"), (.seconds(604_800), "7d"), (.seconds(90_000), "25h"),
        ] as [(Duration, String)])
    func formatsDurations(duration: Duration, text: String) {
        #expect(duration.quantityDescription == text)
        if duration >= .milliseconds(1) { #expect(Duration(quantity: text) == duration) }
    }

    @Test(
        arguments: [
            (0, "0"), (1, "1"), (1023, "1023"), (1024, "1KiB"), (1025, "1025"), (1 << 20, "1MiB"),
            (1_500_000, "1500000"), (20 << 30, "20GiB"), (3 << 40, "3072GiB"), (.max, "\(Int.max)"),
        ] as [(Int, String)])
    func formatsSizes(bytes: Int, text: String) {
        #expect(ByteCount(bytes).quantityDescription == text)
        // Values that a Double holds exactly round-trip.
        if bytes < 1 << 53 { #expect(ByteCount(quantity: text) == ByteCount(bytes)) }
    }

    @Test(
        arguments: [
            ("", length), ("n", nil), (String(repeating: "n", count: 255), nil),
            (String(repeating: "n", count: 256), length),
            (String(repeating: "é", count: 127), nil),
            (String(repeating: "é", count: 128), length),
            ("a\u{0}", control), ("\u{1F}", control), ("a b=c", nil),
            ("~", nil), ("\u{7F}", control), ("\u{80}", control),
            ("\u{9F}", control), ("\u{A0}", nil), ("a\r\n", control), ("a\nb", control),
            ("a\tb", control), ("a\u{1B}b", control), ("a\u{9B}b", control),
            ("prefetch", nil), ("prefetch.", reserved), ("prefetch.a", reserved),
            ("prefetch.\u{301}", reserved), ("Prefetch.a", nil), ("a.prefetch.", nil),
        ] as [(String, String?)])
    func validatesAttributeNames(name: String, expected: String?) {
        func message(_ body: () throws(UserError) -> Void) -> String? {
            do throws(UserError) {
                try body()
                return nil
            } catch {
                return error.message
            }
        }
        #expect(
            message { () throws(UserError) in try EntryAttribute.checkName(name) } == expected)
        #expect(
            message { () throws(UserError) in _ = try EntryAttribute(name: name, value: []) }
                == expected)
    }

    private static let length = "an attribute's name is not 1 to 255 bytes long"
    private static let control = "an attribute's name has a control character"
    private static let reserved =
        "an attribute's name begins with 'prefetch.', which is reserved"

    @Test func limitsAttributeValues() throws {
        let value = [UInt8](repeating: 0, count: 65536)
        #expect(try EntryAttribute(name: "a", value: value).value == value)
        #expect(
            throws: UserError(.usage, "an attribute's value is longer than 65536 bytes")
        ) {
            _ = try EntryAttribute(name: "a", value: value + [0])
        }
    }

    @Test func recordRoundTripsItsFields() {
        let text = 2_000_000_000..<2_000_000_070
        let key = 2_000_000_070..<2_147_483_647
        for (problem, extras) in [(-1, -1), (0, -1), (-1, 0), (7, -1), (-1, 2_147_483_647)] {
            let record = EntryBatch.Record(
                line: 1 << 40, url: text, key: key, priority: .low, problem: problem,
                extras: extras)
            #expect(record.line == 1 << 40)
            #expect(record.url == text)
            #expect(record.key == key)
            #expect(record.priority == .low)
            #expect(record.problem == problem)
            #expect(record.extras == extras)
        }
    }

    @Test func recordTakes32Bytes() {
        #expect(MemoryLayout<EntryBatch.Record>.stride == 32)
    }
}
