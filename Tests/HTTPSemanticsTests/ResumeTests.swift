import HTTPSemantics
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct ResumeTests {
    private static let now = HTTPDateTests.now
    private static let date = "Date: \(now.httpDate)"
    private static let tag = PartialValidator.entityTag("\"a\"")

    private static func modified(_ secondsAgo: Int64) -> String {
        now.advanced(by: .seconds(-secondsAgo)).httpDate
    }

    // MARK: Validators

    @Test(
        arguments: [
            // Strong tags
            (["ETag: \"a\""], tag), (["etag: \"a\"", "ETag: \"a\""], tag),
            (["ETag: \"\""], .entityTag("\"\"")), (["ETag: \"W/a\""], .entityTag("\"W/a\"")),
            (["ETag: \"é,b\""], .entityTag("\"é,b\"")),
            (["ETag: \"a\"", date, "Last-Modified: \(modified(3600))"], tag),
            // Weak, malformed, duplicate, lost bytes: no date replaces such a tag
            (["ETag: W/\"a\""], nil), (["ETag: w/\"a\""], nil), (["ETag: a"], nil),
            (["ETag: *"], nil), (["ETag: "], nil), (["ETag: \"a"], nil), (["ETag: \"a\"b\""], nil),
            (["ETag: \""], nil), (["ETag: \"a b\""], nil), (["ETag: \"a\", \"b\""], nil),
            (["ETag: \"a\"", "ETag: \"b\""], nil), (["ETag: \"\u{FFFD}\""], nil),
            (["ETag: \"\(String(repeating: "a", count: 9000))\""], nil),
            (["ETag: W/\"a\"", date, "Last-Modified: \(modified(3600))"], nil),
            (["ETag: a", date, "Last-Modified: \(modified(3600))"], nil),
            // Dates
            ([date, "Last-Modified: \(modified(3600))"], .lastModified(modified(3600))),
            ([date, "Last-Modified: \(modified(60))"], .lastModified(modified(60))),
            (
                [date, "Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT"],
                .lastModified("Sunday, 06-Nov-94 08:49:37 GMT")
            ),
            ([date, "Last-Modified: \(modified(59))"], nil),
            ([date, "Last-Modified: \(modified(0))"], nil),
            ([date, "Last-Modified: \(modified(-3600))"], nil),
            ([date, "Last-Modified: then"], nil), ([date, "Last-Modified: 0"], nil),
            (["Last-Modified: \(modified(3600))"], nil),
            (["Date: now", "Last-Modified: \(modified(3600))"], nil),
            (
                [
                    date, "Last-Modified: \(modified(3600))",
                    "Last-Modified: \(modified(7200))",
                ], nil
            ),
            ([], nil), ([date], nil),
        ] as [([String], PartialValidator?)])
    func resumesOnlyWithAStrongValidator(lines: [String], validator: PartialValidator?) {
        #expect(PartialValidator(fields: fields(lines), receivedAt: Self.now) == validator)
    }

    @Test func requestsTheRestWithIfRange() {
        #expect(
            Self.tag.rangeFields(from: 1_048_577)
                == fields(["Range: bytes=1048577-", "If-Range: \"a\""]))
        #expect(
            PartialValidator.lastModified("Sun, 06 Nov 1994 08:49:37 GMT").rangeFields(from: 0)
                == fields(["Range: bytes=0-", "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"]))
    }

    // MARK: Decisions

    private func decision(
        _ lines: [String], status: Int = 206, validator: PartialValidator = tag,
        knownTotal: Int? = 1000
    ) -> ResumeDecision {
        ResumeDecision.of(
            status: status, fields: fields(lines), offset: 100, validator: validator,
            knownTotal: knownTotal)
    }

    @Test(
        arguments: [
            ("bytes 100-999/1000", 1000, 1000), ("bytes 100-999/1000", nil, 1000),
            ("bytes 100-999/*", 1000, 1000), ("bytes 100-999/*", nil, nil),
            ("BYTES 100-100/101", 101, 101),
        ] as [(String, Int?, Int?)])
    func appendsTheRest(range: String, knownTotal: Int?, total: Int?) {
        let lines = ["Content-Range: \(range)", "ETag: \"a\""]
        #expect(decision(lines, knownTotal: knownTotal) == .append(total: total))
    }

    @Test(arguments: [
        ["Content-Type: image/png"], ["Content-Length: 900"], ["Content-Encoding: identity"],
        ["Content-Range: bytes 100-999/1000"], ["ETag: \"a\""],
        ["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"],
    ])
    func appendsWithMatchingFields(more: [String]) {
        let lines = ["Content-Range: bytes 100-999/1000", "ETag: \"a\""]
        #expect(decision(lines + more) == .append(total: 1000))
    }

    @Test(
        arguments: [
            // Its ends, and the length of the whole
            ("bytes 99-999/1000", "begins at 99"), ("bytes 101-999/1000", "begins at 101"),
            ("bytes 0-999/1000", "begins at 0"), ("bytes 100-1000/1001", "1001 bytes now"),
            ("bytes 100-998/999", "999 bytes now"), ("bytes 100-998/1000", "ends at 999"),
            ("bytes 100-998/*", "ends at 999"), ("bytes 100-1000/*", "ends at 1001"),
            ("items 100-999/1000", "not a range of bytes"),
            ("bytes */1000", "not a range of bytes"), ("100-999/1000", "not a range of bytes"),
            ("", "not a range of bytes"),
        ] as [(String, String)])
    func refusesAnotherPart(range: String, reason: String) {
        expectRefusal(decision(["Content-Range: \(range)", "ETag: \"a\""]), reason)
    }

    @Test(
        arguments: [
            (["Content-Type: multipart/byteranges; boundary=x"], "several parts"),
            (["content-type: MULTIPART/ByteRanges"], "several parts"),
            (["Content-Encoding: gzip"], "encoded: gzip"),
            (["Content-Encoding: identity, br"], "encoded"),
            (["Content-Range: bytes 200-999/1000"], "several Content-Range"),
            (["Content-Length: 899"], "length"), (["Content-Length: 1000"], "length"),
            (["Content-Length: x"], "length"), (["ETag: \"b\""], "another entity tag"),
        ] as [([String], String)])
    func refusesContradictoryParts(more: [String], reason: String) {
        let lines = ["Content-Range: bytes 100-999/1000", "ETag: \"a\""]
        expectRefusal(decision(lines + more), reason)
    }

    @Test func refusesAPartWithoutRange() {
        expectRefusal(decision(["ETag: \"a\""]), "no Content-Range")
        expectRefusal(
            decision(["Content-Type: multipart/byteranges", "ETag: \"a\""]), "several parts")
    }

    @Test(
        arguments: [
            (tag, [], "no entity tag"), (tag, ["ETag: \"b\""], "another entity tag"),
            (tag, ["ETag: W/\"a\""], "another entity tag"),
            (tag, ["ETag: a"], "another entity tag"),
            (tag, ["Last-Modified: \(modified(3600))"], "no entity tag"),
            (.lastModified(modified(3600)), [], nil),
            (.lastModified(modified(3600)), ["Last-Modified: \(modified(3600))"], nil),
            (
                .lastModified(modified(3600)), ["Last-Modified: \(modified(3599))"],
                "at another time"
            ),
            (.lastModified(modified(3600)), ["ETag: \"a\""], "the body had none"),
        ] as [(PartialValidator, [String], String?)])
    func refusesPartsOfAnotherBody(
        validator: PartialValidator, lines: [String], reason: String?
    ) {
        let decision = decision(
            ["Content-Range: bytes 100-999/1000"] + lines, validator: validator)
        if let reason {
            expectRefusal(decision, reason)
        } else {
            #expect(decision == .append(total: 1000))
        }
    }

    @Test(
        arguments: [
            (200, .startOver), (416, .startOver), (304, .unanswered), (302, .unanswered),
            (404, .unanswered), (412, .unanswered), (429, .unanswered), (503, .unanswered),
            (204, .unanswered), (0, .unanswered),
        ] as [(Int, ResumeDecision)])
    func onlyA206IsAPart(status: Int, wanted: ResumeDecision) {
        let lines = ["Content-Range: bytes 100-999/1000", "ETag: \"a\""]
        #expect(decision(lines, status: status) == wanted)
        #expect(decision([], status: status) == wanted)
    }

    private func expectRefusal(
        _ decision: ResumeDecision, _ reason: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        guard case .refused(let text) = decision else {
            Issue.record("is \(decision)", sourceLocation: sourceLocation)
            return
        }
        #expect(text.contains(reason), sourceLocation: sourceLocation)
    }
}
