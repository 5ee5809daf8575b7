import HTTPSemantics
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(5)))
struct FreshnessTests {
    /// Sunday, 06 November 1994 08:49:37 GMT, the example of RFC 9110 §5.6.7.
    static let now = Timestamp(seconds: 784_111_777)
    static let date = HeaderField(name: "Date", value: "Sun, 06 Nov 1994 08:49:37 GMT")

    private func lifetime(
        _ fields: [(String, String)], hasDate: Bool = true, delay: Duration = .zero
    ) -> Duration? {
        let all =
            (hasDate ? [Self.date] : [])
            + fields.map { HeaderField(name: $0.0, value: $0.1) }
        let received = Self.now.advanced(by: delay)
        switch Freshness.verdict(
            fields: all, requestedAt: Self.now, receivedAt: received, rules: Freshness.Rules())
        {
        case .uncacheable: return nil
        case .expires(let time): return time.timeSince(received)
        }
    }

    @Test(
        arguments: [
            // §5.2.2.1, and the first of the list in §4.2.1
            ([("Cache-Control", "max-age=3600")], 3600),
            ([("cache-control", "public, MAX-AGE=\"60\"")], 60),
            ([("Cache-Control", "max-age=60"), ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")], 60),
            // Ours is a private cache: s-maxage is not for us (§5.2.2.10)
            ([("Cache-Control", "s-maxage=60, max-age=10")], 10),
            // Several fields are one list; the stricter of two (§4.2.1)
            ([("Cache-Control", "max-age=60"), ("Cache-Control", "max-age=30")], 30),
            // Not a number: stale (§4.2.1)
            ([("Cache-Control", "max-age=x")], 0),
            ([("Cache-Control", "max-age=-1")], 0),
            ([("Cache-Control", "max-age=")], 0),
            // Beyond 31 bits: as long as can be, not an overflow (§1.2.2)
            ([("Cache-Control", "max-age=99999999999999999999")], 1 << 31),
            // §5.3
            ([("Expires", "Sun, 06 Nov 1994 08:59:37 GMT")], 600),
            ([("Expires", "0")], 0),
            ([("Expires", "Sun, 06 Nov 1994 08:39:37 GMT")], 0),
            // Quoted commas separate nothing
            ([("Cache-Control", "private=\"a, max-age=5\", max-age=60")], 60),
            // Heuristic: a tenth of the time since the last change (§4.2.2)
            ([("Last-Modified", "Sun, 06 Nov 1994 08:39:37 GMT")], 60),
            ([("Last-Modified", "Mon, 06 Nov 1984 08:39:37 GMT")], 7 * 86400),
            // The origin says nothing
            ([], 7 * 86400),
            ([("Last-Modified", "yesterday")], 7 * 86400),
            // Must be validated at each use (§5.2.2.4); `Vary: *` matches nothing (§4.1)
            ([("Cache-Control", "no-cache, max-age=60")], 0),
            ([("Vary", "*"), ("Cache-Control", "max-age=60")], 0),
            // §4.2.3
            ([("Cache-Control", "max-age=60"), ("Age", "20")], 40),
            ([("Cache-Control", "max-age=60"), ("Age", "x")], 60),
        ] as [([(String, String)], Int)])
    func lifetimeFollowsTheFields(fields: [(String, String)], seconds: Int) {
        #expect(lifetime(fields) == .seconds(seconds))
    }

    @Test func neverStoresWhatTheOriginForbids() {
        #expect(lifetime([("Cache-Control", "No-Store, max-age=60")]) == nil)
    }

    @Test func countsTheTransferAsAge() {
        // From the reception on, less the delay and the age (§4.2.3).
        #expect(
            lifetime([("Cache-Control", "max-age=60"), ("Age", "5")], delay: .seconds(10))
                == .seconds(45))
    }

    @Test func countsTheDateOfTheOriginAsAge() {
        // Ten seconds on the way, by the origin's clock (§4.2.3, apparent_age).
        #expect(lifetime([("Cache-Control", "max-age=60")], delay: .seconds(10)) == .seconds(50))
        #expect(
            lifetime([("Cache-Control", "max-age=60")], hasDate: false, delay: .zero)
                == .seconds(60))
    }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ])
    func readsTheThreeFormsOfDates(text: String) {
        #expect(HTTPDate.parse(text) == Self.now)
    }

    @Test(arguments: [
        "", "0", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 Nov 1994 25:49:37 GMT", "06 Nov 1994", "Sun, 06 Nov 1994 08:49:37 GMT, x",
    ])
    func refusesOtherDates(text: String) {
        #expect(HTTPDate.parse(text) == nil)
    }
}
