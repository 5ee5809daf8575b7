import HTTPSemantics
import PrefetchModel
import Testing

/// The decisions that the public suite (github.com/http-tests/cache-tests) requires of a private
/// cache. Cases have the suite's identifiers, required and optimal ones. The suite itself runs
/// against the built command.
@Suite(.timeLimit(.minutes(15)))
struct PublicSuiteTests {
    enum Use {
        case reused
        case askedFor
        case validated
        case notStored
    }

    struct Case: CustomTestStringConvertible {
        let name: String
        /// `{n}` is the date n seconds after the origin's clock.
        let lines: [String]
        let use: Use
        let secondsUntilUse: Double
        var testDescription: String { name }

        init(_ name: String, _ lines: [String], _ use: Use, after secondsUntilUse: Double = 3) {
            self.name = name
            self.lines = lines
            self.use = use
            self.secondsUntilUse = secondsUntilUse
        }
    }

    static let cases = [
        Case("freshness-max-age-stale", ["Cache-Control: max-age=2", "Date: {0}"], .askedFor),
        Case("freshness-max-age-max-minus-1", ["Cache-Control: max-age=2147483647"], .reused),
        Case("freshness-max-age-max-plus-1", ["Cache-Control: max-age=2147483649"], .reused),
        Case(
            "freshness-max-age-age", ["Date: {0}", "Cache-Control: max-age=3600", "Age: 7200"],
            .askedFor),
        Case(
            "freshness-max-age-expires",
            ["Cache-Control: max-age=3600", "Expires: {-7200}", "Date: {0}"], .reused),
        Case(
            "freshness-max-age-0-expires",
            ["Expires: {3600}", "Cache-Control: max-age=0", "Date: {0}"], .askedFor),
        Case("freshness-max-age-case-insenstive", ["Cache-Control: MaX-aGe=3600"], .reused),
        Case(
            "freshness-max-age-ignore-quoted-rev",
            ["Cache-Control: max-age=1, extension=\"max-age=3600\""], .askedFor),
        Case("freshness-max-age-single-quoted", ["Cache-Control: max-age='3600'"], .askedFor),
        Case("age-parse-nonnumeric", ["Cache-Control: max-age=3600", "Age: abc"], .reused),
        Case("age-parse-float", ["Cache-Control: max-age=3600", "Age: 7200.0"], .reused),
        Case("age-parse-large", ["Cache-Control: max-age=3600", "Age: 2147483648"], .askedFor),
        Case("age-parse-suffix", ["Cache-Control: max-age=3600", "Age: 7200, 0"], .askedFor),
        Case(
            "age-parse-suffix-twoline", ["Cache-Control: max-age=3600", "Age: 7200", "Age: 0"],
            .askedFor),
        Case("age-parse-dup-0", ["Cache-Control: max-age=3600", "Age: 0, 0"], .reused),
        Case(
            "age-parse-dup-old", ["Cache-Control: max-age=10000", "Age: 3600", "Age: 3600"],
            .reused),
        Case("freshness-expires-future", ["Expires: {2592000}", "Date: {0}"], .reused),
        Case("freshness-expires-present", ["Expires: {0}", "Date: {0}"], .askedFor, after: 0.1),
        Case("freshness-expires-invalid", ["Expires: 0", "Date: {0}"], .askedFor),
        Case(
            "freshness-expires-age-slow-date", ["Date: {-10}", "Expires: {10}", "Age: 25"],
            .askedFor, after: 0.1),
        Case("freshness-expires-32bit", ["Expires: Tue, 19 Jan 2038 14:14:08 GMT"], .reused),
        Case("freshness-expires-rfc850", ["Expires: Thursday, 18-Aug-50 02:01:18 GMT"], .reused),
        Case(
            "freshness-expires-wrong-case-weekday", ["Expires: THU, 18 Aug 2050 02:01:18 GMT"],
            .reused),
        Case(
            "freshness-expires-wrong-case-tz", ["Expires: Thu, 18 Aug 2050 02:01:18 gMT"], .reused),
        Case(
            "freshness-expires-invalid-aest", ["Expires: Thu, 18 Aug 2050 02:01:18 AEST"], .askedFor
        ),
        Case(
            "freshness-expires-invalid-no-comma", ["Expires: Thu 18 Aug 2050 02:01:18 GMT"],
            .askedFor),
        Case(
            "freshness-expires-invalid-date-dashes", ["Expires: Thu, 18-Aug-2050 02:01:18 GMT"],
            .askedFor, after: 0.1),
        Case(
            "freshness-expires-invalid-1-digit-hour", ["Expires: Thu, 18 Aug 2050 2:01:18 GMT"],
            .askedFor, after: 0.1),
        Case("cc-resp-no-store", ["Cache-Control: no-store"], .notStored),
        Case(
            "cc-resp-no-store-fresh",
            ["Cache-Control: max-age=10000, no-store", "Expires: {10000}", "Date: {0}"],
            .notStored),
        Case(
            "cc-resp-no-store-old-max-age",
            ["Cache-Control: max-age=10000", "Expires: {10000}", "Date: {0}"], .reused, after: 6),
        Case(
            "cc-resp-no-cache-case-insensitive",
            ["Cache-Control: max-age=10000, No-CaChE", "Expires: {10000}", "Date: {0}"],
            .askedFor, after: 0.1),
        Case(
            "cc-resp-no-cache-revalidate-fresh",
            [
                "Cache-Control: max-age=10000, no-cache", "Expires: {10000}", "Date: {0}",
                "ETag: \"abcd\"",
            ], .validated, after: 0.1),
        Case(
            "cc-resp-must-revalidate-stale, second step",
            ["Cache-Control: max-age=2, must-revalidate", "ETag: \"abcd\""], .reused, after: 0.1),
        Case(
            "cc-resp-must-revalidate-stale, third step",
            ["Cache-Control: max-age=2, must-revalidate", "ETag: \"abcd\""], .validated),
        Case(
            "stale-while-revalidate",
            ["Cache-Control: max-age=1, stale-while-revalidate=3600", "ETag: \"abc\""], .reused),
        Case(
            "heuristic-200-cached", ["Last-Modified: {-86400}", "Date: {0}"], .reused, after: 0.1),
        Case("status-200-fresh", ["Cache-Control: max-age=100000", "Date: {0}"], .reused),
        Case(
            "conditional-etag-strong-generate",
            ["Cache-Control: max-age=2", "Date: {0}", "ETag: \"abcdef\""], .validated),
        Case("other-age-gen", ["Cache-Control: max-age=100000", "Date: {0}"], .reused),
        Case("other-age-update-expires", ["Expires: {2592000}", "Date: {0}", "Age: 30"], .reused),
        Case("other-date-update", ["Cache-Control: max-age=100000", "Date: {0}"], .reused),
        Case("query-args-same", ["Cache-Control: max-age=100000", "Date: {0}"], .reused),
    ]

    /// At both ends of the second, which the origin's dates do not resolve.
    @Test(arguments: cases, [0, 999])
    func decidesAsTheSuiteExpects(of test: Case, milliseconds: Int64) {
        let originTime = Timestamp(seconds: 1_795_219_200)
        let received = originTime.advanced(by: .milliseconds(milliseconds))
        var lines = test.lines.map { line -> String in
            guard let open = line.firstIndex(of: "{"),
                let seconds = Int64(
                    line[open...].dropFirst().dropLast())
            else { return line }
            return line[..<open] + originTime.advanced(by: .seconds(seconds)).httpDate
        }
        if !lines.contains(where: { $0.hasPrefix("Date:") }) {
            lines.append("Date: \(originTime.httpDate)")
        }
        let response = fields(lines)
        let expiry = Freshness.expiry(
            fields: response, receivedAt: received, transferTime: .milliseconds(2),
            rules: Freshness.Rules())
        guard let expiry else {
            #expect(test.use == .notStored)
            return
        }
        let isFresh = Freshness.isFresh(
            validatedAt: received, expiresAt: expiry,
            at: received.advanced(by: .seconds(test.secondsUntilUse)), rules: Freshness.Rules())
        #expect(test.use != .notStored)
        #expect(isFresh == (test.use == .reused))
        if test.use == .validated {
            let stored = StoredResponse(fields: response, varyingOn: [], receivedAt: received)
            let sent = stored.conditionalFields(matchesVary: true)
            #expect(sent.first("if-none-match") == response.first("etag"))
            #expect(stored.isConfirmed(by: fields(["Date: \(originTime.httpDate)"])))
        }
    }
}
