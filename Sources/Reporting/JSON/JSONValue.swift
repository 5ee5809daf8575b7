internal import CJSON
package import PrefetchModel

/// The value of a member of a JSON object (RFC 8259).
package protocol JSONValue {
    func appendJSON(to bytes: inout [UInt8])
}

/// A value that is also read. Numbers are at least 0 there.
package protocol JSONReadable: JSONValue {
    /// Returns nil for a member of another kind.
    static func read(_ member: ParsedMember) -> Self?
}

/// A member of an object that was parsed; valid as long as the result of ``JSONParser``.
package struct ParsedMember {
    let value: cjson_value
}

/// A value that is JSON already.
package struct RawJSON: JSONValue {
    private let json: [UInt8]

    package init(_ json: [UInt8]) { self.json = json }

    package func appendJSON(to bytes: inout [UInt8]) { bytes += json }

    package static let null = RawJSON(Array("null".utf8))
    fileprivate static let `true` = RawJSON(Array("true".utf8))
    fileprivate static let `false` = RawJSON(Array("false".utf8))
}

extension String: JSONReadable {
    package func appendJSON(to bytes: inout [UInt8]) { bytes.append(jsonString: self) }
    package static func read(_ member: ParsedMember) -> String? { member.value.string }
}

extension Bool: JSONReadable {
    package func appendJSON(to bytes: inout [UInt8]) {
        (self ? RawJSON.true : RawJSON.false).appendJSON(to: &bytes)
    }
    package static func read(_ member: ParsedMember) -> Bool? { member.value.truth }
}

extension Int: JSONReadable {
    package func appendJSON(to bytes: inout [UInt8]) {
        bytes.appendDigits(magnitude, isNegative: self < 0, least: 1)
    }
    package static func read(_ member: ParsedMember) -> Int? { member.value.integer }
}

extension Double: JSONValue {
    /// Three decimals, rounded; null if not finite, since JSON has no such numbers. From 9 × 10¹⁵
    /// on, a `Double` has no decimals left, so its shortest text is written.
    package func appendJSON(to bytes: inout [UInt8]) {
        if !isFinite {
            RawJSON.null.appendJSON(to: &bytes)
        } else if self.magnitude < 9e15 {
            bytes.append(thousandths: Int((self * 1000).rounded()))
        } else {
            bytes += description.utf8
        }
    }
}

extension Duration: JSONReadable {
    /// Milliseconds with three decimals, truncated to whole microseconds; saturates at ± 292 000
    /// years. The member's name should end in `_ms`.
    package func appendJSON(to bytes: inout [UInt8]) {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        bytes.append(
            thousandths: Int(overflow || carried ? (seconds < 0 ? Int64.min : .max) : sum))
    }
    package static func read(_ member: ParsedMember) -> Duration? { member.value.duration }
}

extension Timestamp: JSONValue {
    /// RFC 3339 in UTC, whole seconds.
    package func appendJSON(to bytes: inout [UInt8]) { description.appendJSON(to: &bytes) }
}

extension ByteCount: JSONValue {
    package func appendJSON(to bytes: inout [UInt8]) { self.bytes.appendJSON(to: &bytes) }
}

extension Array: JSONValue where Element: JSONValue {
    package func appendJSON(to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "["))
        for (index, value) in enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            value.appendJSON(to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }
}

extension [Int]: JSONReadable {
    package static func read(_ member: ParsedMember) -> [Int]? {
        member.value.withValues(CJSON_ARRAY) { values in
            let numbers = values.compactMap(\.integer)
            return numbers.count == values.count ? numbers : nil
        }
    }
}

extension [UInt8] {
    fileprivate mutating func append(thousandths value: Int) {
        let (whole, fraction) = value.magnitude.quotientAndRemainder(dividingBy: 1000)
        appendDigits(whole, isNegative: value < 0, least: 1)
        append(UInt8(ascii: "."))
        appendDigits(fraction, isNegative: false, least: 3)
    }

    fileprivate mutating func appendDigits(_ magnitude: UInt, isNegative: Bool, least: Int) {
        if isNegative { append(UInt8(ascii: "-")) }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var start = 20
            var rest = magnitude
            while rest > 0 || 20 - start < least {
                start -= 1
                digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            }
            append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
        }
    }
}

/// One JSON object, built member by member in the order in which they are added.
///
/// Used for machine-readable output of commands, with the escaping and number formats of the
/// report. Names are not checked for duplicates.
package struct JSONObject: JSONValue, CustomStringConvertible, Sendable {
    /// The object without its closing brace; empty before the first member.
    @usableFromInline var text: [UInt8] = []

    package init() {}

    /// Writes null for nil. Inlined for `list`, which prints a million objects.
    @inlinable package mutating func add(_ name: String, _ value: (some JSONValue)?) {
        begin(name)
        if let value { value.appendJSON(to: &text) } else { RawJSON.null.appendJSON(to: &text) }
    }

    @usableFromInline mutating func begin(_ name: String) {
        text.append(text.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
        text.append(jsonString: name)
        text.append(UInt8(ascii: ":"))
    }

    /// Bytes in base64 with padding (RFC 4648 §4).
    package mutating func add(_ name: String, base64 bytes: [UInt8]) {
        add(name, String(decoding: bytes.base64, as: UTF8.self))
    }

    package mutating func addNull(_ name: String) { add(name, RawJSON.null) }

    /// The whole object as UTF-8, without a line end.
    package var bytes: [UInt8] { (text.isEmpty ? Array("{".utf8) : text) + [UInt8(ascii: "}")] }

    package func appendJSON(to bytes: inout [UInt8]) { bytes += self.bytes }

    package var description: String { String(decoding: bytes, as: UTF8.self) }
}
