import HTTPSemantics
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct RetryAfterTests {
    private static let now = HTTPDateTests.now
    private static let longest: Int64 = 1 << 31

    private func delay(_ lines: [String], at now: Timestamp = now) -> Duration? {
        RetryAfter.delay(of: fields(lines), receivedAt: now)
    }

    @Test(
        arguments: [
            ("0", 0), ("1", 1), ("120", 120), ("007", 7),
            // Saturates
            ("999999999", 999_999_999), ("999999999.5", 1_000_000_000),
            ("9223372036854775808", longest), ("9999999999", longest),
            (String(repeating: "9", count: 10_000), longest),
            // Joined by a proxy
            ("5, 30, 7", 30), ("5,", 5), ("2, 2", 2),
            // Fractions
            ("2.0", 2), ("2.5", 3), ("2.000001", 3), ("0.1", 1), ("5.5, 2", 6),
            // Parameters
            ("2;w=60", 2), ("2 ; w=60, 3;w=1", 3), ("2.5;w=60", 3),
            // No number of seconds
            ("", nil), ("-1", nil), ("+1", nil), ("1 2", nil), ("1s", nil),
            ("0x10", nil), ("soon", nil), ("٣", nil), ("5, soon", nil), ("\"5\"", nil), (",", nil),
            ("inf", nil), ("Sun, 06", nil), ("1.", nil), (".5", nil),
            ("1.5.5", nil), (";w=60", nil),
        ] as [(String, Int64?)])
    func readsSeconds(text: String, seconds: Int64?) {
        #expect(delay(["Retry-After: \(text)"]) == seconds.map { .seconds($0) })
    }

    @Test(arguments: ["", "000", "000000", "000000000", ".0", "000.00"])
    func readsLargeNumbersAsTimes(zeros: String) {
        let date = Timestamp(seconds: 1_795_000_000)
        for (ahead, seconds) in [(90, 90), (-90, 0), (3_000_000_000, Self.longest)]
            as [(Int64, Int64)]
        {
            let line = "Retry-After: \(1_795_000_000 + ahead)\(zeros)"
            #expect(delay([line], at: date) == .seconds(seconds), "\(line)")
        }
        for fraction in [".5", "001", "000001", "000000001", "000.1"] {
            let line = "Retry-After: 1795000090\(fraction)"
            #expect(delay([line], at: date) == .seconds(91), "\(line)")
        }
    }

    @Test func readsRateLimitsWithoutRetryAfter() {
        let date = Timestamp(seconds: 1_795_000_000)
        #expect(delay(["RateLimit-Reset: 7"], at: date) == .seconds(7))
        #expect(delay(["X-RateLimit-Reset: 1795000030"], at: date) == .seconds(30))
        #expect(delay(["RateLimit-Reset: 7", "X-RateLimit-Reset: 30"], at: date) == .seconds(7))
        #expect(delay(["Retry-After: 5", "RateLimit-Reset: 7"], at: date) == .seconds(5))
        #expect(delay(["Retry-After: soon", "RateLimit-Reset: 7"], at: date) == .seconds(7))
        let fields = ["X-RateLimit-Reset: 30", "X-RateLimit-Remaining: "]
        // The quota of another limit.
        #expect(delay([fields[0], fields[1] + "4999"], at: date) == .seconds(30))
        #expect(delay([fields[0], fields[1] + "0"], at: date) == .seconds(30))
    }

    @Test(
        arguments: [(0, 0), (1, 1), (90, 90), (-1, 0), (-86400, 0), (3650 * 86400, 315_360_000)]
            as [(Int64, Int64)])
    func measuresDatesByTheOriginsClock(ahead: Int64, seconds: Int64) {
        // Our clock does not matter.
        for now in [Self.now, Timestamp(seconds: 0), Timestamp(seconds: 4_000_000_000)] {
            let date = Self.now
            let later = date.advanced(by: .seconds(ahead))
            let lines = ["Date: \(date.httpDate)", "Retry-After: \(later.httpDate)"]
            #expect(delay(lines, at: now) == .seconds(seconds))
        }
    }

    @Test(arguments: [
        [], ["Date: yesterday"], ["Date:"],
        ["Date: Sun, 06 Nov 1994 08:49:37 GMT", "Date: Mon, 07 Nov 1994 08:49:37 GMT"],
    ])
    func measuresDatesByOurClockWithoutAValidDate(lines: [String]) {
        let later = Self.now.advanced(by: .seconds(30)).httpDate
        #expect(delay(lines + ["Retry-After: \(later)"]) == .seconds(30))
    }

    @Test func saturatesDistantDates() {
        let lines = ["Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"]
        for now in [Timestamp.distantPast, Timestamp(seconds: 0), Self.now] {
            #expect(delay(lines, at: now) == .seconds(Self.longest))
        }
        #expect(delay(lines, at: .distantFuture) == .zero)
    }

    @Test func readsObsoleteDateForms() {
        let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT"
        for text in ["Sunday, 06-Nov-94 08:50:37 GMT", "Sun Nov  6 08:50:37 1994"] {
            #expect(delay([date, "Retry-After: \(text)"]) == .seconds(60), "\(text)")
        }
    }

    @Test func takesTheLongestOfSeveral() {
        let inTwoMinutes = Self.now.advanced(by: .seconds(120)).httpDate
        #expect(delay(["Retry-After: 5", "retry-after: 60"]) == .seconds(60))
        #expect(delay(["RETRY-AFTER: 60", "Retry-After: 5"]) == .seconds(60))
        #expect(delay(["Retry-After: 60", "Retry-After: \(inTwoMinutes)"]) == .seconds(120))
        #expect(delay(["Retry-After: soon", "Retry-After: 3"]) == .seconds(3))
    }

    @Test func isNilWithoutTheField() {
        #expect(delay([]) == nil)
        #expect(delay(["Retry: 5", "X-Retry-After: 5"]) == nil)
    }
}
