import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Reporting

@Suite(.timeLimit(.minutes(15)))
struct JSONObjectTests {
    private func parsed(_ object: JSONObject) throws -> [String: Any] {
        try #require(
            JSONSerialization.jsonObject(with: Data(object.bytes)) as? [String: Any])
    }

    private func roundTrip(_ text: String) throws {
        var object = JSONObject()
        object.add("value", text)
        object.add(text, 1)
        let result = try parsed(object)
        // By scalars: equality of strings would hide a change of normalisation.
        let value = try #require(result["value"] as? String)
        #expect(Array(value.unicodeScalars) == Array(text.unicodeScalars))
        #expect(!object.bytes.contains { $0 < 0x20 || $0 == 0x7F })
    }

    @Test(arguments: 0..<0x20 as Range<UInt32>)
    func escapesControlCharacters(value: UInt32) throws {
        let scalar = try #require(Unicode.Scalar(value))
        try roundTrip("a\(Character(scalar))b")
    }

    @Test(arguments: [
        "", "plain", "\"", "\\", "\\\"\\", "/", "\u{7F}", "\u{80}\u{9F}\u{A0}", "\u{2028}\u{2029}",
        "\u{202E}abc\u{2066}", "\u{200D}\u{FEFF}\u{FFFD}", "😀👨‍👩‍👧🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "e\u{301}é", "\u{7FF}\u{800}",
        "\u{FFFF}\u{10000}\u{10FFFF}", "\u{D7FF}\u{E000}", String(repeating: "ä\n", count: 5000),
    ])
    func keepsText(text: String) throws {
        try roundTrip(text)
    }

    @Test func keepsRandomText() throws {
        var generator = SplitMix(seed: 42)
        for _ in 0..<2000 {
            var text = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 0...40, using: &generator) {
                let limit: UInt32 =
                    [0x80, 0x800, 0x1_0000, 0x11_0000].randomElement(using: &generator) ?? 1
                if let scalar = Unicode.Scalar(UInt32.random(in: 0..<limit, using: &generator)) {
                    text.append(scalar)
                }
            }
            try roundTrip(String(text))
        }
    }

    /// RFC 4648 §10, and each value of six bits.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
    func writesBytesInBase64(text: String, encoded: String) throws {
        var object = JSONObject()
        object.add("value", base64: Array(text.utf8))
        #expect(object.description == "{\"value\":\"\(encoded)\"}")
    }

    @Test func keepsAllBytesInBase64() throws {
        for length in 253...256 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 167) }
            var object = JSONObject()
            object.add("value", base64: bytes)
            let text = try #require(try parsed(object)["value"] as? String)
            #expect(Data(base64Encoded: text) == Data(bytes))
        }
    }

    @Test func keepsBridgedAndInvalidText() throws {
        try roundTrip(String(NSString("Zoë \u{1}")))
        try roundTrip(String(decoding: [0x61, 0xFF, 0xC3, 0x28, 0xED, 0xA0, 0x80], as: UTF8.self))
    }

    @Test func showsNoByteThatSteersATerminal() {
        var object = JSONObject()
        object.add("a", "\u{1B}[2J\u{7F}\u{9B}\u{202E}\u{2028}\u{FEFF}\n\t\u{8}\u{C}\r\"\\/ü")
        #expect(
            object.description
                == #"{"a":"\u001b[2J\u007f\u009b\u202e\u2028\ufeff\n\t\b\f\r\"\\/ü"}"#)
    }

    @Test func writesEveryKindOfMember() throws {
        var inner = JSONObject()
        inner.add("x", 1)
        var object = JSONObject()
        object.add("integer", Int.min)
        object.add("largest", Int.max)
        object.add("none", nil as Int?)
        object.add("true", true)
        object.add("list", ["a", "\""])
        object.add("empty", [String]())
        object.add("inner", inner)
        object.add("void", JSONObject())
        object.add("after", "x")
        object.add("time", Timestamp(seconds: 0))
        object.add("size", ByteCount(5))
        object.add("took_ms", Duration.microseconds(1_234_567))
        object.addNull("null")
        #expect(
            object.description
                == #"{"integer":-9223372036854775808,"largest":9223372036854775807,"none":null,"#
                + #""true":true,"list":["a","\""],"empty":[],"inner":{"x":1},"void":{},"#
                + #""after":"x","time":"1970-01-01T00:00:00Z","size":5,"took_ms":1234.567,"#
                + #""null":null}"#)
        _ = try parsed(object)
    }

    @Test(
        arguments: [
            (0, "0.000"), (-0.0, "0.000"), (1.5, "1.500"), (-1.5, "-1.500"), (-0.25, "-0.250"),
            (0.0004, "0.000"), (0.0005, "0.001"), (999.9996, "1000.000"),
            (123_456_789.125, "123456789.125"), (1e300, "1e+300"), (.infinity, "null"),
            (-.infinity, "null"), (.nan, "null"),
        ] as [(Double, String)])
    func decimalsHaveThreePlaces(value: Double, text: String) throws {
        var object = JSONObject()
        object.add("a", value)
        #expect(object.description == "{\"a\":\(text)}")
        _ = try parsed(object)
    }

    @Test(arguments: [
        (Duration.zero, "0.000"), (.nanoseconds(999), "0.000"), (.microseconds(1), "0.001"),
        (.milliseconds(-1), "-1.000"), (.seconds(86400), "86400000.000"),
        (.seconds(Int64.max), "9223372036854775.807"),
    ])
    func durationsAreMilliseconds(value: Duration, text: String) {
        var object = JSONObject()
        object.add("a", value)
        #expect(object.description == "{\"a\":\(text)}")
    }
}
