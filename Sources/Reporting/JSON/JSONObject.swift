import PrefetchModel

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
