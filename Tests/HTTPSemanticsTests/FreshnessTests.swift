import HTTPSemantics
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct FreshnessTests {
    /// Sunday, 06 November 1994 08:49:37 GMT, the example of RFC 9110 §5.6.7.
    static let now = Timestamp(seconds: 784_111_777)
    static let week = 7 * 86400

    /// The lifetime since the reception; nil for an uncacheable response.
    private func lifetime(
        _ lines: [String], date: String? = now.httpDate, at received: Timestamp = now,
        transferTime: Duration = .zero, rules: Freshness.Rules = Freshness.Rules()
    ) -> Duration? {
        Freshness.expiry(
            fields: fields((date.map { ["Date: \($0)"] } ?? []) + lines), receivedAt: received,
            transferTime: transferTime, rules: rules
        )?.timeSince(received)
    }

    private func expiry(_ lines: [String], rules: Freshness.Rules) -> Timestamp? {
        Freshness.expiry(
            fields: fields(lines), receivedAt: Self.now, transferTime: .zero, rules: rules)
    }

    // MARK: Redirects

    @Test(
        arguments: [
            ([], 86400), (["Cache-Control: max-age=3600"], 3600),
            (["Cache-Control: no-store"], nil),
            (["Cache-Control: no-store, max-age=60"], nil), (["Cache-Control: no-cache"], nil),
            (["Cache-Control: max-age=0"], 0), (["Cache-Control: max-age=x"], 0),
            (["Cache-Control: max-age=31536000, immutable"], 31_536_000),
            (["Cache-Control: immutable"], 86400), (["Cache-Control: s-maxage=60"], 86400),
            (["Cache-Control: max-age=60", "Age: 50"], 10),
            (["Expires: Sun, 06 Nov 1994 08:59:37 GMT"], 600), (["Expires: 0"], 0),
            (["Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT"], 60),
            (["Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT"], 86400),
            (["Vary: Accept-Encoding"], 86400), (["Vary: accept-encoding", "Vary: Accept"], nil),
            (["Vary: *"], nil), (["Vary: Cookie", "Cache-Control: max-age=60"], nil),
        ] as [([String], Int?)])
    func lifetimeOfPermanentRedirects(lines: [String], seconds: Int?) {
        let until = Freshness.expiry(
            ofRedirect: fields(["Date: \(Self.now.httpDate)"] + lines), receivedAt: Self.now,
            transferTime: .zero)
        #expect(
            until == seconds.map { Self.now.advanced(by: .seconds($0)) } ?? Freshness.alwaysStale)
    }

    // MARK: Lifetime

    @Test(
        arguments: [
            // The first of the list in §4.2.1
            (["Cache-Control: max-age=3600"], 3600),
            (["cache-control: public, MAX-AGE=\"60\""], 60),
            (["Cache-Control: max-age=60", "Expires: Sun, 06 Nov 1994 09:49:37 GMT"], 60),
            (["Cache-Control: max-age=60", "Expires: 0"], 60),
            (["Cache-Control: max-age=60", "Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT"], 60),
            (["Cache-Control: max-age=0", "Expires: Sun, 06 Nov 1994 09:49:37 GMT"], 0),
            // A private cache (§5.2.2.7, §5.2.2.8, §5.2.2.10); others' fields
            (["Cache-Control: s-maxage=60, max-age=10"], 10),
            (["Cache-Control: s-maxage=60"], week),
            (["Cache-Control: private, proxy-revalidate, max-age=10"], 10),
            (["CDN-Cache-Control: max-age=1", "Surrogate-Control: max-age=1"], week),
            // Pragma means nothing in a response (§5.4)
            (["Cache-Control: max-age=60", "Pragma: no-cache"], 60), (["Pragma: no-cache"], week),
            // Invalid freshness information means stale (§4.2.1), beside any other
            (["Cache-Control: max-age=x"], 0), (["Cache-Control: max-age=60, max-age=x"], 0),
            (["Cache-Control: max-age=-1", "Expires: Sun, 06 Nov 1994 09:49:37 GMT"], 0),
            // Duplicates (§4.2.1)
            (["Cache-Control: max-age=60", "Cache-Control: max-age=30"], 30),
            (["Cache-Control: max-age=30", "Cache-Control: max-age=60"], 30),
            // Longer than any cache (§1.2.2)
            (["Cache-Control: max-age=99999999999999999999"], 1 << 31),
            // §5.3
            (["Expires: Sun, 06 Nov 1994 08:59:37 GMT"], 600),
            (["Expires: Sunday, 06-Nov-94 08:59:37 gmt"], 600),
            (["Expires: Sun, 06 Nov 1994 08:49:37 GMT"], 0),
            (["Expires: 0"], 0), (["Expires: -1"], 0), (["Expires: "], 0), (["Expires: x"], 0),
            (["Expires: Sun, 06 Nov 19940 08:59:37 GMT"], 0),
            (["Expires: Sun, 06 Nov 1994 08:39:37 GMT"], -600),
            (["Expires: 0", "Last-Modified: Sun, 06 Nov 1984 08:39:37 GMT"], 0),
            // Several of one value are one; different ones are stale (§4.2.1)
            (
                [
                    "Expires: Sun, 06 Nov 1994 08:59:37 GMT",
                    "Expires: Sun, 06 Nov 1994 08:59:37 GMT",
                ], 600
            ),
            (
                [
                    "Expires: Sun, 06 Nov 1994 08:59:37 GMT",
                    "Expires: Sun, 06 Nov 1994 08:59:38 GMT",
                ], 0
            ),
            (["Expires: Sun, 06 Nov 1994 08:59:37 GMT", "Expires: 0"], 0),
            // A tenth of the time since the last change, at most the default (§4.2.2)
            (["Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT"], 60),
            (["Last-Modified: Sun, 06 Nov 1994 08:49:27 GMT"], 1),
            (["Last-Modified: Sun, 28 Aug 1994 08:49:37 GMT"], week),
            (["Last-Modified: Sun, 28 Aug 1994 08:49:47 GMT"], week - 1),
            (["Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT"], week),
            (["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"], 0),
            (["Last-Modified: Sun, 06 Nov 2094 08:49:37 GMT"], 0),
            // The origin names no lifetime
            ([], week), (["Last-Modified: yesterday"], week), (["ETag: \"a\""], week),
            // RFC 8246: no lifetime of its own, but not a tenth of a young age either
            (
                [
                    "Cache-Control: immutable",
                    "Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT",
                ], week
            ),
            (["Cache-Control: immutable, max-age=60"], 60),
            (["Cache-Control: immutable", "Expires: 0"], 0),
            // RFC 5861 §3, unless forbidden (RFC 9111 §4.2.4); only after an explicit lifetime
            (["Cache-Control: max-age=60, stale-while-revalidate=30"], 90),
            (["Cache-Control: max-age=60, stale-while-revalidate=30, must-revalidate"], 60),
            (["Cache-Control: max-age=60, stale-while-revalidate=x"], 60),
            (["Cache-Control: max-age=x, stale-while-revalidate=30"], 0),
            (
                [
                    "Cache-Control: stale-while-revalidate=30",
                    "Expires: Sun, 06 Nov 1994 08:59:37 GMT",
                ], 630
            ),
            (["Cache-Control: stale-while-revalidate=30", "Expires: 0"], 0),
            (["Cache-Control: stale-while-revalidate=30"], week),
            (["Cache-Control: stale-if-error=30, max-age=60"], 60),
            (["Cache-Control: must-revalidate, max-age=60"], 60),
            // Fields that are never handed on (§5.2.2.4); fields that the request varies on
            (["Cache-Control: no-cache=\"set-cookie\", max-age=60"], 60),
            (["Vary: Accept", "Cache-Control: max-age=60"], 60),
        ] as [([String], Int)])
    func lifetimeFollowsTheFields(lines: [String], seconds: Int) {
        #expect(lifetime(lines) == .seconds(seconds))
    }

    @Test(arguments: [
        "No-Store, max-age=60", "max-age=60, no-store", "no-store, no-cache", "no-store, immutable",
    ])
    func neverStoresForbiddenResponses(value: String) {
        #expect(lifetime(["Cache-Control: \(value)"]) == nil)
        #expect(
            lifetime(["Cache-Control: \(value)"], rules: Freshness.Rules(minimum: .seconds(9)))
                == nil)
    }

    @Test(arguments: [
        ["Cache-Control: no-cache, max-age=60"], ["Cache-Control: max-age=60", "Vary: *"],
        ["Vary: Accept, *"], ["Vary: Accept", "vary: *"], ["Vary: not a name"],
        ["Cache-Control: no-cache, immutable, stale-while-revalidate=60"],
    ])
    func recognisesValidationAtEachUse(lines: [String]) {
        #expect(expiry(lines, rules: Freshness.Rules()) == Freshness.alwaysStale)
        // No floor lifts it (§5.2.2.4, §4.1).
        let rules = Freshness.Rules(minimum: .seconds(3600), maximum: .seconds(7200))
        #expect(expiry(lines, rules: rules) == Freshness.alwaysStale)
    }

    // MARK: Age (§4.2.3)

    @Test(
        arguments: [
            ("0", 0), ("20", 20), ("60", 60), ("7200", 7200), ("0020", 20),
            ("2147483648", 1 << 31), ("99999999999999999999", 1 << 31),
            // The first member of a list; ignored when it is no number (§5.1)
            ("7200, 0", 7200), ("0, 7200", 0), ("0, 0", 0), (", 20", 20), ("20,", 20),
            ("x", 0), ("", 0), ("-20", 0), ("20.0", 0), ("20;a=1", 0), ("\"20\"", 0),
            ("x, 20", 0), ("2 0", 0),
        ] as [(String, Int)])
    func subtractsTheAge(age: String, seconds: Int) {
        #expect(
            lifetime(["Cache-Control: max-age=2147483648", "Age: \(age)"])
                == .seconds((1 << 31) - seconds))
    }

    @Test func takesTheFirstOfSeveralAges() {
        let maxAge = "Cache-Control: max-age=3600"
        #expect(lifetime([maxAge, "Age: 7200", "Age: 0"]) == .seconds(-3600))
        #expect(lifetime([maxAge, "Age: 0", "Age: 7200"]) == .seconds(3600))
        #expect(lifetime([maxAge, "Age: x", "Age: 7200"]) == .seconds(3600))
    }

    @Test(
        arguments: [
            // The greater of apparent age and corrected age value
            (0, 0, 0, 0), (10, 0, 0, 10), (0, 10, 0, 10), (0, 0, 10, 10), (10, 10, 0, 10),
            (10, 5, 5, 10), (10, 5, 6, 11), (11, 5, 5, 11), (12, 5, 6, 12),
            // A clock behind the origin's (no negative age)
            (-3600, 0, 0, 0), (-3600, 5, 5, 10),
            // A negative transfer time counts as zero
            (0, 5, -10, 5),
        ] as [(Int, Int, Int, Int)])
    func takesTheGreaterOfApparentAndCorrectedAge(
        apparent: Int, ageField: Int, transfer: Int, age: Int
    ) {
        let result = lifetime(
            ["Cache-Control: max-age=86400", "Age: \(ageField)"],
            at: Self.now.advanced(by: .seconds(apparent)), transferTime: .seconds(transfer))
        #expect(result == .seconds(86400 - age))
    }

    /// As if it had been sent at its reception (RFC 9110 §6.6.1).
    @Test(arguments: [nil, "", "0", "yesterday", "Sun, 06 Nov 1994 08:49:37 CET"] as [String?])
    func usesTheReceptionWithoutADate(date: String?) {
        #expect(lifetime(["Cache-Control: max-age=60"], date: date) == .seconds(60))
        #expect(
            lifetime(["Expires: Sun, 06 Nov 1994 08:59:37 GMT"], date: date) == .seconds(600))
        #expect(
            lifetime(["Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT"], date: date)
                == .seconds(60))
    }

    @Test func measuresLifetimesByTheOriginsClock() {
        // Its clock is a year off: Expires − Date is right, whatever our clock says (§4.2.1).
        let year: Int64 = 365 * 86400
        let behind = Self.now.advanced(by: .seconds(-year))
        let ahead = Self.now.advanced(by: .seconds(year))
        let lines = { (date: Timestamp) in
            ["Expires: \(date.advanced(by: .seconds(600)).httpDate)"]
        }
        #expect(lifetime(lines(ahead), date: ahead.httpDate) == .seconds(600))
        // A past Date means an old response (§4.2.3), never a wrong clock.
        #expect(lifetime(lines(behind), date: behind.httpDate) == .seconds(600 - year))
        // The first of several dates counts.
        #expect(
            lifetime(
                ["Date: \(behind.httpDate)", "Cache-Control: max-age=60"]) == .seconds(60))
    }

    @Test func toleratesExtremeTimes() {
        let lines = [
            ["Cache-Control: max-age=99999999999", "Age: 99999999999"],
            ["Expires: Fri, 31 Dec 9999 23:59:59 GMT"], ["Expires: Sat, 01 Jan 0000 00:00:00 GMT"],
            ["Last-Modified: Sat, 01 Jan 0000 00:00:00 GMT"], [],
        ]
        let extremes = [Duration.seconds(Int64.max), .seconds(Int64.min), .zero]
        for received in [Timestamp.distantPast, .distantFuture, Timestamp(seconds: 0)] {
            for lines in lines {
                for extreme in extremes {
                    for rules in [
                        Freshness.Rules(), Freshness.Rules(forced: extreme),
                        Freshness.Rules(minimum: extreme), Freshness.Rules(maximum: extreme),
                        Freshness.Rules(defaultLifetime: extreme, ahead: extreme),
                    ] {
                        #expect(
                            lifetime(
                                lines, at: received, transferTime: extreme, rules: rules) != nil)
                        _ = Freshness.isFresh(
                            validatedAt: received, expiresAt: .distantFuture, at: .distantPast,
                            rules: rules)
                    }
                }
            }
        }
        let forEver = Freshness.Rules(forced: .seconds(Int64.max))
        #expect(expiry([], rules: forEver) == .distantFuture)
    }

    // MARK: Rules

    @Test(
        arguments: [
            // Forced: regardless of the origin, and without its age
            (["Cache-Control: max-age=60", "Age: 30"], 100, nil, nil, 100),
            (["Cache-Control: no-store"], 100, nil, nil, 100),
            (["Cache-Control: no-cache"], 100, nil, nil, 100), (["Vary: *"], 100, nil, nil, 100),
            (["Cache-Control: max-age=60"], 100, 200, 300, 100),
            (["Cache-Control: max-age=60"], 0, nil, nil, 0),
            (["Cache-Control: max-age=60"], -5, nil, nil, 0),
            // Floor and ceiling: since the validation, regardless of the age
            (["Cache-Control: max-age=60"], nil, 59, 61, 60),
            (["Cache-Control: max-age=60"], nil, 61, nil, 61),
            (["Cache-Control: max-age=60"], nil, nil, 59, 59),
            (["Cache-Control: max-age=60", "Age: 30"], nil, 40, nil, 40),
            (["Cache-Control: max-age=60", "Age: 30"], nil, nil, 40, 30),
            (["Cache-Control: max-age=60, stale-while-revalidate=600"], nil, nil, 100, 100),
            (["Cache-Control: max-age=0"], nil, 60, nil, 60), (["Expires: 0"], nil, 60, nil, 60),
            (["Cache-Control: max-age=x"], nil, 60, nil, 60),
            (["Cache-Control: max-age=60, must-revalidate"], nil, 100, nil, 100),
            ([], nil, nil, 60, 60),
            // Contradiction: the ceiling
            (["Cache-Control: max-age=60"], nil, 100, 50, 50),
        ] as [([String], Int?, Int?, Int?, Int)])
    func appliesTheRulesWhenStoring(
        lines: [String], forced: Int?, minimum: Int?, maximum: Int?, seconds: Int
    ) {
        // A response that expires soon is stored unchanged; --ahead counts at the look-up.
        let rules = Freshness.Rules(
            forced: forced.map { .seconds($0) }, minimum: minimum.map { .seconds($0) },
            maximum: maximum.map { .seconds($0) }, ahead: .seconds(1000))
        #expect(lifetime(lines, rules: rules) == .seconds(seconds))
    }

    @Test func capsHeuristicLifetimesAtTheDefault() {
        let rules = Freshness.Rules(defaultLifetime: .seconds(50))
        #expect(lifetime([], rules: rules) == .seconds(50))
        #expect(
            lifetime(["Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT"], rules: rules)
                == .seconds(50))
        #expect(
            lifetime(["Last-Modified: Sun, 06 Nov 1994 08:41:17 GMT"], rules: rules)
                == .seconds(50))
        #expect(
            lifetime(["Last-Modified: Sun, 06 Nov 1994 08:41:27 GMT"], rules: rules)
                == .seconds(49))
        // Explicit ones are not capped.
        #expect(lifetime(["Cache-Control: max-age=60"], rules: rules) == .seconds(60))
    }

    @Test func distinguishesExpiryIn1970FromValidationAtEachUse() throws {
        // Both are common; a floor extends the one and not the other.
        let epoch = ["Date: \(Self.now.httpDate)", "Expires: Thu, 01 Jan 1970 00:00:00 GMT"]
        let expiresAt = try #require(expiry(epoch, rules: Freshness.Rules()))
        #expect(expiresAt > Freshness.alwaysStale)
        let rules = Freshness.Rules(minimum: .seconds(60))
        #expect(
            Freshness.isFresh(
                validatedAt: Self.now, expiresAt: expiresAt, at: Self.now, rules: rules))
        #expect(
            !Freshness.isFresh(
                validatedAt: Self.now, expiresAt: Freshness.alwaysStale, at: Self.now,
                rules: rules))
        let past = ["Expires: Wed, 31 Dec 1969 00:00:00 GMT"]
        #expect(try #require(expiry(past, rules: rules)) > Freshness.alwaysStale)
    }

    // MARK: Look-up

    @Test(
        arguments: [
            // Validated at 0, expires at 100 (milliseconds): both sides of each boundary
            (nil, nil, nil, 0, 100, 99, true), (nil, nil, nil, 0, 100, 100, false),
            (nil, nil, nil, 0, 100, 101, false), (nil, nil, nil, 0, 100, -1, true),
            (50, nil, nil, 0, 100, 49, true), (50, nil, nil, 0, 100, 50, false),
            (200, nil, nil, 0, 100, 199, true), (200, nil, nil, 0, 100, 200, false),
            (nil, 200, nil, 0, 100, 199, true), (nil, 200, nil, 0, 100, 200, false),
            (nil, 50, nil, 0, 100, 99, true), (nil, nil, 50, 0, 100, 49, true),
            (nil, nil, 50, 0, 100, 50, false), (nil, nil, 200, 0, 100, 100, false),
            (nil, 200, 50, 0, 100, 49, true), (nil, 200, 50, 0, 100, 50, false),
            (nil, nil, nil, 10, 100, 89, true), (nil, nil, nil, 10, 100, 90, false),
            (200, nil, nil, 10, 100, 189, true), (200, nil, nil, 10, 100, 190, false),
            (nil, 200, nil, 10, 100, 189, true), (nil, 200, nil, 10, 100, 190, false),
            (nil, nil, nil, 1000, 100, 0, false), (nil, nil, nil, -10, 100, 100, false),
            (-5, nil, nil, 0, 100, 0, false), (nil, nil, -5, 0, 100, 0, false),
        ] as [(Int?, Int?, Int?, Int, Int, Int, Bool)])
    func appliesTheRulesAtLookup(
        forced: Int?, minimum: Int?, maximum: Int?, ahead: Int, expiresIn: Int, at: Int,
        isFresh: Bool
    ) {
        let rules = Freshness.Rules(
            forced: forced.map { .milliseconds($0) }, minimum: minimum.map { .milliseconds($0) },
            maximum: maximum.map { .milliseconds($0) }, ahead: .milliseconds(ahead))
        let expiresAt = Self.now.advanced(by: .milliseconds(expiresIn))
        let time = Self.now.advanced(by: .milliseconds(at))
        #expect(
            Freshness.isFresh(
                validatedAt: Self.now, expiresAt: expiresAt, at: time, rules: rules) == isFresh)
        // Reports show the expiry, not the earlier time of the request.
        let expiry = Freshness.expiry(
            validatedAt: Self.now, expiresAt: expiresAt, rules: rules)
        #expect((time.advanced(by: .milliseconds(max(0, ahead))) < expiry) == isFresh)
    }

    @Test func validatesAtEachUseUnlessForced() {
        let isFresh = { (rules: Freshness.Rules, now: Timestamp) in
            Freshness.isFresh(
                validatedAt: now, expiresAt: Freshness.alwaysStale, at: now, rules: rules)
        }
        #expect(!isFresh(Freshness.Rules(), Self.now))
        #expect(!isFresh(Freshness.Rules(minimum: .seconds(60), maximum: .seconds(60)), Self.now))
        #expect(isFresh(Freshness.Rules(forced: .seconds(60)), Self.now))
        // A clock before 1970 does not matter either.
        #expect(!isFresh(Freshness.Rules(), Timestamp(seconds: -1)))
        let rules = Freshness.Rules(minimum: .seconds(60), ahead: .seconds(5))
        #expect(
            Freshness.expiry(
                validatedAt: Self.now, expiresAt: Freshness.alwaysStale, rules: rules)
                == Freshness.alwaysStale)
    }

    @Test(
        arguments: [
            (0, true), (3600, true), (3900, true), (-86400, true), (86400, false),
            (10 * 365 * 86400, false),
        ] as [(Int64, Bool)])
    func distrustsRowsFromTheFuture(seconds: Int64, isFresh: Bool) {
        let validatedAt = Self.now.advanced(by: .seconds(seconds))
        for forced in [nil, Duration.seconds(Int64.max)] {
            let rules = Freshness.Rules(forced: forced)
            #expect(
                Freshness.isFresh(
                    validatedAt: validatedAt, expiresAt: .distantFuture, at: Self.now,
                    rules: rules) == isFresh)
        }
    }

    @Test func distrustsARowOneMillisecondBeyondTheTolerance() {
        let limit = Self.now.advanced(by: .seconds(3900))
        let isFresh = { (validatedAt: Timestamp) in
            Freshness.isFresh(
                validatedAt: validatedAt, expiresAt: .distantFuture, at: Self.now,
                rules: Freshness.Rules())
        }
        #expect(isFresh(limit))
        #expect(!isFresh(limit.advanced(by: .milliseconds(1))))
    }
}
