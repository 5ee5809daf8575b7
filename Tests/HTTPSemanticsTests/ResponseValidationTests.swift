import HTTPSemantics
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct ResponseValidationTests {
    static let now = Timestamp(seconds: 784_111_777)
    static let date = "Sun, 06 Nov 1994 08:00:00 GMT"
    static let otherDate = "Sun, 06 Nov 1994 08:00:01 GMT"

    private func stored(_ lines: [String], request: [String] = []) -> StoredResponse {
        StoredResponse(fields: fields(lines), varyingOn: fields(request), receivedAt: Self.now)
    }

    // MARK: Storing and validating

    @Test func storesTextsUnchanged() {
        let response = stored(
            [
                "etag: W/\"a  b\"", "Last-Modified: sun, 06 nov 1994 08:00:00 gmt",
                "Cache-Control: Max-Age=1", "Cache-Control: X", "Expires: 0", "Vary: Foo",
                "Date: \(Self.date)",
            ], request: ["Foo: 1"])
        #expect(
            response
                == StoredResponse(
                    entityTag: "W/\"a  b\"", lastModified: "sun, 06 nov 1994 08:00:00 gmt",
                    cacheControl: "Max-Age=1, X", expires: "0", vary: "foo: 1",
                    date: Timestamp(seconds: 784_108_800)))
        // Without a date it is the time of reception (RFC 9110 §6.6.1).
        #expect(stored([]) == StoredResponse(date: Self.now))
        #expect(stored(["Date: x"]).date == Self.now)
    }

    @Test(arguments: [
        "\"abc\"", "W/\"abc\"", "w/\"abc\"", "\"\"", "W/\"\"", "\"a,b\"", "\"a b\"", "\"a\\b\"",
        "\"é\"", "\"*\"", "abc", "W/abc", "abc=", "\"\(String(repeating: "a", count: 8190))\"",
    ])
    func sendsEntityTagsByteForByte(tag: String) {
        let response = stored(["ETag: \(tag)"])
        #expect(
            response.conditionalFields(matchesVary: true)
                == [HeaderField(name: "If-None-Match", value: tag)])
    }

    @Test(arguments: [
        "", "*", "W/", "W/*", "\"", "\"a", "a\"", "\"a\"b\"", "\"a\", \"b\"", "a, b", "a,b",
        "\"a\u{0}\"", "\"a\u{1F}\"", "\"a\u{7F}\"", "\"a\r\nX: y\"", "\"a\u{FFFD}\"",
        "\"\(String(repeating: "a", count: 8191))\"",
    ])
    func dropsUnsendableEntityTags(tag: String) {
        let field = [HeaderField(name: "ETag", value: tag)]
        let response = StoredResponse(fields: field, varyingOn: [], receivedAt: Self.now)
        #expect(response.entityTag == nil)
        #expect(response.conditionalFields(matchesVary: true).isEmpty)
        // A stored tag like this is not sent either.
        #expect(StoredResponse(entityTag: tag).conditionalFields(matchesVary: true).isEmpty)
    }

    @Test func dropsContradictoryValidators() {
        #expect(stored(["ETag: \"a\"", "ETag: \"a\""]).entityTag == "\"a\"")
        #expect(stored(["ETag: \"a\"", "ETag: \"b\""]).entityTag == nil)
        // The same letter, composed and decomposed: different bytes.
        #expect(stored(["ETag: \"\u{E9}\"", "ETag: \"e\u{301}\""]).entityTag == nil)
        let dates = ["Last-Modified: \(Self.date)", "Last-Modified: \(Self.otherDate)"]
        #expect(stored(dates).lastModified == nil)
    }

    @Test(
        arguments: [
            (date, true), ("Sunday, 06-Nov-94 08:00:00 GMT", true),
            ("Sun Nov  6 08:00:00 1994", true), ("sun, 06 nov 1994 08:00:00 gmt", true),
            ("Sun, 06 Nov 2094 08:00:00 GMT", true), ("0", false), ("yesterday", false),
            ("", false), ("Sun, 06 Nov 1994 08:00:00 +0000", false), ("\(date)\u{0}", false),
        ] as [(String, Bool)])
    func sendsDatesByteForByte(text: String, isSent: Bool) {
        let sent = StoredResponse(lastModified: text).conditionalFields(matchesVary: true)
        #expect(sent == (isSent ? [HeaderField(name: "If-Modified-Since", value: text)] : []))
    }

    /// RFC 9111 §4.3.1; another tag may mean another representation (RFC 9110 §8.8.1).
    @Test(
        arguments: [
            (nil, nil, true, []), ("\"a\"", date, true, ["If-None-Match", "If-Modified-Since"]),
            ("\"a\"", date, false, ["If-None-Match"]), ("W/\"a\"", date, false, []),
            ("W/\"a\"", nil, true, ["If-None-Match"]), (nil, date, false, []),
            (nil, date, true, ["If-Modified-Since"]), ("*", date, true, ["If-Modified-Since"]),
        ] as [(String?, String?, Bool, [String])])
    func sendsValidatorsThatIdentifyTheResponse(
        tag: String?, modified: String?, matchesVary: Bool, names: [String]
    ) {
        let response = StoredResponse(entityTag: tag, lastModified: modified)
        #expect(response.conditionalFields(matchesVary: matchesVary).map(\.name) == names)
    }

    // MARK: 304

    @Test(
        arguments: [
            // Entity tags decide (RFC 9111 §4.3.4), compared without W/ (RFC 9110 §13.1.2)
            ("\"a\"", nil, ["ETag: \"a\""], true), ("\"a\"", nil, ["ETag: \"b\""], false),
            ("\"a\"", nil, ["ETag: \"A\""], false), ("\"a\"", nil, ["ETag: W/\"a\""], true),
            ("W/\"a\"", nil, ["ETag: \"a\""], true), ("W/\"a\"", nil, ["ETag: W/\"b\""], false),
            ("\"a\"", nil, ["ETag: \"a-gzip\""], false), ("a", nil, ["ETag: a"], true),
            ("\"\u{E9}\"", nil, ["ETag: \"e\u{301}\""], false),
            // One of several
            ("\"a\"", nil, ["ETag: \"b\"", "ETag: \"a\""], true),
            ("\"a\"", nil, ["ETag: \"b\"", "ETag: \"c\""], false),
            // The date does not matter
            ("\"a\"", date, ["ETag: \"a\"", "Last-Modified: \(otherDate)"], true),
            ("\"a\"", date, ["ETag: \"b\"", "Last-Modified: \(date)"], false),
            // Otherwise the date, as an instant
            (nil, date, ["Last-Modified: \(date)"], true),
            (nil, date, ["Last-Modified: \(otherDate)"], false),
            (nil, date, ["Last-Modified: Sunday, 06-Nov-94 08:00:00 GMT"], true),
            ("\"a\"", date, ["Last-Modified: \(date)"], true),
            ("\"a\"", date, ["Last-Modified: \(otherDate)"], false),
            (nil, date, ["ETag: \"a\"", "Last-Modified: \(date)"], true),
            (nil, date, ["ETag: \"a\"", "Last-Modified: \(otherDate)"], false),
            // A tag that the 200 did not have, and nothing else
            (nil, date, ["ETag: \"a\""], false), (nil, date, ["ETag: W/\"a\""], false),
            // No validators: it confirms the response that was asked about
            ("\"a\"", nil, [], true), (nil, date, [], true), ("\"a\"", date, [], true),
            ("\"a\"", nil, ["Last-Modified: \(date)"], true),
            (nil, date, ["Last-Modified: x"], true), ("\"a\"", nil, ["ETag: *"], true),
            // No stored validator, so nothing was asked
            (nil, nil, [], false), (nil, nil, ["ETag: \"a\""], false), ("*", nil, [], false),
            (nil, "x", ["Last-Modified: x"], false),
        ] as [(String?, String?, [String], Bool)])
    func confirmsOnlyTheMatchingResponse(
        tag: String?, modified: String?, lines: [String], isConfirmed: Bool
    ) {
        let response = StoredResponse(entityTag: tag, lastModified: modified, date: Self.now)
        #expect(response.isConfirmed(by: fields(lines)) == isConfirmed)
    }

    /// RFC 9111 §3.2: a field of the 304 replaces the stored one, others stay.
    @Test func updatesTheFieldsOfA304() {
        let old = StoredResponse(
            entityTag: "\"a\"", lastModified: Self.date, cacheControl: "max-age=60, immutable",
            expires: Self.date, vary: "foo: 1", date: Timestamp(seconds: 0),
            contentType: "image/png")
        let later = Self.now.advanced(by: .seconds(5))
        let same = old.updated(by: [], varyingOn: fields(["Foo: 1"]), receivedAt: later)
        var expected = old
        expected.date = later
        #expect(same.response == expected)
        let new = old.updated(
            by: fields([
                "ETag: W/\"a\"", "Last-Modified: \(Self.otherDate)", "cache-control: no-cache",
                "cache-control: private", "Expires: \(Self.otherDate)", "Vary: Bar",
                "Date: \(Self.otherDate)", "content-type: image/webp",
            ]), varyingOn: fields(["Foo: 1", "Bar: 2"]), receivedAt: later)
        #expect(
            new.response
                == StoredResponse(
                    entityTag: "W/\"a\"", lastModified: Self.otherDate,
                    cacheControl: "no-cache, private", expires: Self.otherDate, vary: "bar: 2",
                    date: Timestamp(seconds: 784_108_801), contentType: "image/webp"))
    }

    @Test func keepsItsValidatorWhenTheOneOfA304IsUnsendable() {
        let old = StoredResponse(entityTag: "\"a\"", lastModified: Self.date)
        let lines = ["ETag: *", "Last-Modified: a\u{FFFD}"]
        let new = old.updated(by: fields(lines), varyingOn: [], receivedAt: Self.now)
        #expect(new.response.entityTag == "\"a\"")
        #expect(new.response.lastModified == Self.date)
    }

    @Test(
        arguments: [
            // The stored lifetime starts again; Age and Date are the 304's
            ("max-age=60", nil, [], 60), ("max-age=60", nil, ["Age: 20"], 40),
            ("max-age=60", nil, ["Date: Sun, 06 Nov 1994 08:49:27 GMT"], 50),
            ("max-age=60", nil, ["Cache-Control: max-age=600"], 600),
            // The whole field is replaced (§3.2)
            ("max-age=60", nil, ["Cache-Control: public"], 7 * 86400),
            ("no-store", nil, ["Cache-Control: max-age=5"], 5),
            ("max-age=60", nil, ["Cache-Control: no-store"], nil),
            ("no-store", nil, [], nil),
            (nil, "Sun, 06 Nov 1994 08:59:37 GMT", [], 600),
            (nil, "Sun, 06 Nov 1994 08:59:37 GMT", ["Expires: 0"], 0),
            (nil, "0", ["Expires: Sun, 06 Nov 1994 08:59:37 GMT"], 600),
            ("max-age=60", nil, ["Expires: 0"], 60),
            // Heuristic by the stored Last-Modified
            (nil, nil, ["Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT"], 60),
        ] as [(String?, String?, [String], Int?)])
    func calculatesFreshnessFromBothResponses(
        cacheControl: String?, expires: String?, lines: [String], seconds: Int?
    ) {
        let old = StoredResponse(
            entityTag: "\"a\"", cacheControl: cacheControl, expires: expires,
            date: Timestamp(seconds: 0))
        let new = old.updated(by: fields(lines), varyingOn: [], receivedAt: Self.now)
        let expiry = Freshness.expiry(
            fields: new.fields, receivedAt: Self.now, transferTime: .zero,
            rules: Freshness.Rules())
        if let seconds {
            #expect(expiry == Self.now.advanced(by: .seconds(seconds)))
        } else {
            #expect(expiry == nil)
        }
    }

    @Test(
        arguments: [
            // The origin chose this response for the request, which selects it from now on
            ("foo: 1", [], "foo: 2"), ("foo: 1", ["Vary: Bar"], "bar: 3"), (nil, [], nil),
            (nil, ["Vary: Bar"], "bar: 3"), ("foo: 1", ["Vary: *"], "*"), ("*", [], "*"),
            ("*", ["Vary: Foo"], "foo: 2"), ("foo: 1", ["Vary: "], nil),
            ("bar: x\nfoo: 1", [], "bar: 3\nfoo: 2"),
            // The stored text has names only
            ("Foo, Bar", [], "bar: 3\nfoo: 2"),
        ] as [(String?, [String], String?)])
    func keepsVary(stored: String?, lines: [String], vary: String?) {
        let old = StoredResponse(entityTag: "\"a\"", cacheControl: "max-age=60", vary: stored)
        let new = old.updated(
            by: fields(lines), varyingOn: fields(["Foo: 2", "Bar: 3"]), receivedAt: Self.now)
        #expect(new.response.vary == vary)
        let expiry = Freshness.expiry(
            fields: new.fields, receivedAt: Self.now, transferTime: .zero,
            rules: Freshness.Rules())
        #expect((expiry == Freshness.alwaysStale) == (vary == "*"))
    }
}
