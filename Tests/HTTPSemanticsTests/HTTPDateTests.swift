import HTTPSemantics
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct HTTPDateTests {
    /// 2026-11-21 00:00:00 UTC.
    static let now = Timestamp(seconds: 1_795_219_200)

    @Test(
        arguments: [
            // The three forms of RFC 9110 §5.6.7, one instant
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            // Case-insensitive (RFC 9111 §4.2)
            ("sUN, 06 nOV 1994 08:49:37 gmt", 784_111_777),
            ("SUNDAY, 06-NOV-94 08:49:37 GMT", 784_111_777),
            ("SUN NOV  6 08:49:37 1994", 784_111_777),
            // Day names of the other length, and of another day
            ("Sun, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sunday, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sun Nov 06 08:49:37 1994", 784_111_777),
            // Ends of the ranges
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
            ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
            // A leap second is the one after it
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
        ] as [(String, Int64)])
    func readsTheThreeForms(text: String, seconds: Int64) {
        #expect(HTTPDate.parse(text, relativeTo: Self.now) == Timestamp(seconds: seconds))
    }

    @Test(arguments: [
        "", "0", "-1", "now", "Sun", "Sun,", "Sun, 06 Nov 1994 08:49:37",
        // Other zones (RFC 9111 §4.2)
        "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 06 Nov 1994 08:49:37 GMT+1",
        // Numbers out of range or of another length
        "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 Nov 12025 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 2023 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 32 Dec 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
        // Names, separators, white space
        "Sux, 06 Nov 1994 08:49:37 GMT", "Sun, 06 November 1994 08:49:37 GMT",
        "Sun 06 Nov 1994 08:49:37 GMT", "Sun, 06  Nov 1994 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT", "Sun, 06-Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "06 Nov 1994",
        " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 06 Nov 1994 08:49:37 GMT, x", "\"Sun, 06 Nov 1994 08:49:37 GMT\"",
        "Sun, ٠٦ Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z", "784111777",
        String(repeating: "Sun, ", count: 20_000),
    ])
    func rejectsOtherText(text: String) {
        #expect(HTTPDate.parse(text, relativeTo: Self.now) == nil)
    }

    /// At most 50 years ahead, else the most recent year with these digits (RFC 9110 §5.6.7).
    @Test(
        arguments: [
            ("26", "2026-11-21T00:00:00Z", "2026"),
            ("76", "2026-11-21T00:00:00Z", "2076"), ("76", "2026-11-20T23:59:59Z", "1976"),
            ("77", "2026-11-21T00:00:00Z", "1977"), ("94", "2026-11-21T00:00:00Z", "1994"),
            ("00", "2026-11-21T00:00:00Z", "2000"), ("50", "2026-11-21T00:00:00Z", "2050"),
            ("10", "2080-01-01T00:00:00Z", "2110"), ("99", "2000-01-01T00:00:00Z", "1999"),
            ("00", "1999-12-31T23:59:59Z", "2000"), ("69", "1970-01-01T00:00:00Z", "1969"),
        ] as [(String, String, String)])
    func readsTwoDigitYearsInTheNearestCentury(
        digits: String, now: String, year: String
    ) throws {
        let parts = now.split { "-T:Z".contains($0) }
        let months = ["01": "Jan", "11": "Nov", "12": "Dec"]
        let month = try #require(months[String(parts[1])])
        let current = try #require(
            HTTPDate.parse(
                "Sun, \(parts[2]) \(month) \(parts[0]) \(parts[3]):\(parts[4]):\(parts[5]) GMT",
                relativeTo: Self.now))
        #expect(current.description == now)
        let date = HTTPDate.parse("Sunday, 21-Nov-\(digits) 00:00:00 GMT", relativeTo: current)
        #expect(date?.description == "\(year)-11-21T00:00:00Z")
    }

    @Test(arguments: [Timestamp.distantPast, .distantFuture, Timestamp(seconds: 0)])
    func readsTwoDigitYearsAtAnyTime(now: Timestamp) {
        #expect(HTTPDate.parse("Sunday, 28-Feb-94 00:00:00 GMT", relativeTo: now) != nil)
    }

    @Test func checksLeapDaysInTheChosenYear() {
        // 2000 was a leap year; in 1950 the year 00 is 2000, in 1940 it is 1900, which was not.
        let text = "Tuesday, 29-Feb-00 00:00:00 GMT"
        #expect(HTTPDate.parse(text, relativeTo: Timestamp(seconds: -500_000_000)) != nil)
        #expect(HTTPDate.parse(text, relativeTo: Timestamp(seconds: -946_771_200)) == nil)
    }
}
