import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import URLParsing

/// The fast path and libcurl agree on every text, and normalising twice changes nothing.
@Suite(.timeLimit(.minutes(15)))
struct URLAgreementTests {
    /// Counts the comparisons, so that a generator of mere rubbish is noticed.
    struct Tally {
        var texts = 0
        var accepted = 0
        var fast = 0
    }

    /// Parsers with and without the fast path and a base.
    struct Pair {
        let fast: URLParser
        let libcurl: URLParser

        init(baseURL: String? = nil) throws {
            fast = try URLParser(baseURL: baseURL)
            libcurl = try URLParser(baseURL: baseURL, usesFastPath: false)
        }

        /// Describes the disagreement; nil for none.
        func disagreement(on text: [UInt8], _ tally: inout Tally) -> String? {
            tally.texts += 1
            let isFast = fast.isCanonical(text.span)
            if isFast { tally.fast += 1 }
            let left = Pair.result(fast, text)
            let right = Pair.result(libcurl, text)
            guard left == right else { return "\(left) and \(right)" }
            guard case .success(let value) = left else { return nil }
            tally.accepted += 1
            if isFast, value.url != text { return "the fast path changes it" }
            let again = Pair.result(libcurl, value.url)
            guard again == left else { return "\(left) and then \(again)" }
            guard case .success(let key) = Pair.result(libcurl, value.key), key.url == value.key
            else {
                return "the key \(value.key) is not canonical"
            }
            return nil
        }

        struct Value: Equatable {
            var url: [UInt8]
            var key: [UInt8]
        }

        private static func result(
            _ parser: URLParser, _ text: [UInt8]
        ) -> Result<Value, URLParsingError> {
            var output: [UInt8] = [1]
            do throws(URLParsingError) {
                let ranges = try parser.append(text.span, to: &output)
                return .success(
                    Value(url: Array(output[ranges.url]), key: Array(output[ranges.key])))
            } catch {
                return .failure(error)
            }
        }
    }

    static let pieces: [[String]] = [
        [
            "http://", "https://", "http://", "https://", "HTTP://", "hTTps://", "http:/",
            "http:///",
            "http:", "ftp://", "//", "/", "", "http:\\\\", "https:////", "x:", "h", "ht", "http",
        ],
        [
            "", "", "", "", "", "", "u@", "u:p@", ":@", "@", "u:p:q@", "%75:%2f@", "ä@", "u@v@",
            "a/b@",
        ],
        [
            "a", "example", "b-c", "r3---sn", "xn--bcher-kva", "xn--", "-", "_", "~", "1", "127",
            "0",
            "01", "0x7f", "0x", "1e3", "255", "256", "2130706433", "4294967296", "fe", "abc", "ä",
            "ß",
            "１", "A", "%41", "%31", "%2e", "%25", "%00", "%", "|", "*", "+", "[::1]",
            "[::FFFF:1.2.3.4]",
            "[fe80::1%25e]", "[", "]", " ", "\\", "\u{AD}", "500px", "1-2", "..", ".", "。",
            "é\u{301}", "$",
            "99999999999999999999", "00", "x", "a.b", "1.2.3.4", "10.0.0.1", "1.2.3", "1.2.3.4.5",
        ],
        [
            "", "", "", ".", "..", ".a", ".1", ".com", ".0x1", ".-2", ".1.1", ".0.0.1", "-",
            ".0.0.01", ".255.255.255", ".+1", ". 1",
        ],
        [
            "", "", "", "", ":80", ":443", ":8080", ":080", ":0", ":65535", ":65536", ":", ":8a",
            ":99999",
            ":-1", ":1:2", ":000000080", ":100000",
        ],
    ]
    /// Pieces of canonical URLs, in the order of ``pieces``.
    static let plainPieces: [[String]] = [
        ["http://", "https://"], [""],
        ["a", "example", "b-c", "500px", "1", "0x7f", "fe", "10.0.0.1", "x_y"],
        ["", ".com", ".a", ".1", ".255"], ["", "", "", ":8080", ":65535", ":443"],
    ]
    static let plainTails = ["", "a", "b.jpg", "/c", "%20", "%2F", "?x=y", "~_-"]
    static let tails = [
        "/", "/", "/", "a", "b.jpg", ".", "..", "/.", "/..", "/...", "/../", "/./", "%2e", "%2E%2e",
        "%41",
        "%7E", "%7e", "%20", "%2F", "%2f", "%c3%a4", "%C3%A4", "%", "%z", "%4", "%%34%31", "%00",
        "?",
        "?", "#", " ", "ä", "[", "]", "<", ">", "\"", "|", "\\", "^", "`", "{", "}", "'",
        "!$&()*+,;=",
        ":", "@", "~", "_", "-", "//", "\u{1}", "\u{7F}", "\u{80}", "x=y&z", "+", "\t", "%25",
        "%2525", ":80",
    ]

    @Test(arguments: [(UInt64(1), false), (2, false), (3, true), (4, true)])
    func agreesOnRandomText(seed: UInt64, hasBase: Bool) throws {
        var generator = SplitMix(seed: seed)
        let pair = try Pair(baseURL: hasBase ? "http://b.c/d/e/f?g" : nil)
        var tally = Tally()
        for round in 0..<80_000 {
            var text: [UInt8] = []
            // Half of the texts would be canonical but for their path, or nearly so.
            let isPlain = Bool.random(using: &generator)
            for index in Self.pieces.indices {
                let isOdd = !isPlain || Int.random(in: 0..<12, using: &generator) == 0
                let choices = (isOdd ? Self.pieces : Self.plainPieces)[index]
                text += choices[Int.random(in: 0..<choices.count, using: &generator)].utf8
                // Sometimes a host of several pieces.
                if index == 2, Int.random(in: 0..<3, using: &generator) == 0 {
                    text += choices[Int.random(in: 0..<choices.count, using: &generator)].utf8
                }
            }
            for part in 0..<Int.random(in: 0..<6, using: &generator) {
                if part == 0 { text.append(UInt8(ascii: "/")) }
                let choices = isPlain && part % 2 == 0 ? Self.plainTails : Self.tails
                text += choices[Int.random(in: 0..<choices.count, using: &generator)].utf8
            }
            if UInt8.random(in: 0..<20, using: &generator) == 0, !text.isEmpty {
                text[Int.random(in: 0..<text.count, using: &generator)] =
                    UInt8.random(in: 0...255, using: &generator)
            }
            if let difference = pair.disagreement(on: text, &tally) {
                Issue.record("seed \(seed), round \(round), \(text.debugText): \(difference)")
                return
            }
        }
        #expect(tally.accepted > 20_000, "\(tally)")
        #expect(tally.fast > 3_000, "\(tally)")
    }

    /// Canonical lines with one byte changed: each byte at each place.
    @Test func agreesOnEveryByteAtEveryPlace() throws {
        let pair = try Pair()
        var tally = Tally()
        for original in [
            "http://a1.b-c.de/p/q.jpg?r=s", "https://1.2.3.4:81/%2Fa", "http://10.de:8080/a?%3F",
            "http://0.x/a",
        ] {
            for index in original.utf8.indices {
                let offset = original.utf8.distance(from: original.utf8.startIndex, to: index)
                for byte in UInt8.min...UInt8.max {
                    var text = Array(original.utf8)
                    text[offset] = byte
                    if let difference = pair.disagreement(on: text, &tally) {
                        Issue.record("\(text.debugText): \(difference)")
                        return
                    }
                }
            }
        }
        #expect(tally.fast > 1_500, "\(tally)")
    }

    @Test(.enabled(if: !SharedData.urlParsing.isEmpty))
    func agreesOnCollectedText() throws {
        var tally = Tally()
        let without = try Pair()
        for file in SharedData.urlParsing {
            let cases = try #require(
                try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [Any])
            for case let entry as [String: Any] in cases {
                for field in ["input", "href", "base"] {
                    guard let text = entry[field] as? String else { continue }
                    let difference = without.disagreement(on: Array(text.utf8), &tally)
                    #expect(difference == nil, "\(text.debugDescription)")
                    guard let base = entry["base"] as? String,
                        let with = try? Pair(baseURL: base)
                    else { continue }
                    let other = with.disagreement(on: Array(text.utf8), &tally)
                    #expect(other == nil, "\(text.debugDescription) on \(base.debugDescription)")
                }
            }
        }
        #expect(tally.accepted > 100, "\(tally)")
    }
}

extension [UInt8] {
    var debugText: String { String(decoding: self, as: UTF8.self).debugDescription }
}
