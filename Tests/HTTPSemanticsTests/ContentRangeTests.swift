import HTTPSemantics
import Testing

@Suite(.timeLimit(.minutes(15)))
struct ContentRangeTests {
    @Test(
        arguments: [
            ("bytes 100-199/1000", 100..<200, 1000), ("bytes 100-199/*", 100..<200, nil),
            ("bytes 0-0/1", 0..<1, 1), ("bytes 0-999/1000", 0..<1000, 1000),
            ("BYTES 1-2/3", 1..<3, 3), ("bytes 001-002/0003", 1..<3, 3),
            ("bytes */1000", nil, 1000), ("bytes */0", nil, 0),
            (
                "bytes 0-9223372036854775805/9223372036854775806", 0..<9_223_372_036_854_775_806,
                9_223_372_036_854_775_806
            ),
        ] as [(String, Range<Int>?, Int?)])
    func readsPartAndTotal(text: String, part: Range<Int>?, total: Int?) throws {
        let range = try #require(ContentRange(text))
        #expect(range.part == part)
        #expect(range.total == total)
    }

    @Test(arguments: [
        "", "bytes", "bytes ", "bytes 100-199", "bytes 100-199/", "bytes /1000", "bytes -/1000",
        "bytes 100-/1000", "bytes -199/1000", "bytes */*", "bytes *", "bytes 199-100/1000",
        "bytes 100-1000/1000", "bytes 0-0/0", "bytes 100-199/100", "bytes=100-199/1000",
        "bytes: 100-199/1000", "100-199/1000", "items 100-199/1000", "byte 100-199/1000",
        "bytes  100-199/1000", "bytes\t100-199/1000", " bytes 100-199/1000",
        "bytes 100-199/1000 ", "bytes 100 - 199/1000", "bytes 100-199 / 1000",
        "bytes 100-199/1000/1000", "bytes 100-150-199/1000", "bytes +1-2/3", "bytes 1-+2/3",
        "bytes -1-2/3", "bytes 1--2/3", "bytes 0x1-2/3", "bytes 1-2/3, 3-4/5", "bytes 1-2/3;",
        "bytes ١-٢/٣", "bytes 1-2/1e3",
        // Beyond 63 bits; the end of the first needs one more than its last position
        "bytes 0-9223372036854775807/*", "bytes 0-9223372036854775808/*",
        "bytes 0-1/9223372036854775808", "bytes 18446744073709551616-18446744073709551617/*",
        "bytes */18446744073709551617", "bytes 0-\(String(repeating: "9", count: 10_000))/*",
    ])
    func rejectsOtherText(text: String) {
        #expect(ContentRange(text) == nil)
    }
}
