package import PrefetchModel

/// One JSON object, built member by member in the order in which they are added.
///
/// Used for machine-readable output of commands, with the escaping and number formats of the
/// report. Names are not checked for duplicates.
package struct JSONObject: Sendable {
    /// Holds the object without its closing brace, so that members can be added.
    private var writer = JSONObjectWriter()

    package init() {
        writer.beginObject()
    }

    /// Writes null for nil, as do all other overloads.
    package mutating func add(_ name: String, _ value: String?) {
        writer.text(.text(name), value)
    }
    package mutating func add(_ name: String, _ value: Int?) { writer.number(.text(name), value) }
    package mutating func add(_ name: String, _ value: Bool) { writer.truth(.text(name), value) }
    package mutating func add(_ name: String, _ values: [String]) {
        writer.strings(.text(name), values)
    }

    package mutating func add(_ name: String, _ values: [Int]) {
        writer.numbers(.text(name), values) { _ in }
    }

    /// Three decimals; null if not finite.
    package mutating func add(_ name: String, _ value: Double?) {
        writer.rate(.text(name), value)
    }

    /// RFC 3339 in UTC, whole seconds.
    package mutating func add(_ name: String, _ value: Timestamp?) {
        writer.text(.text(name), value?.description)
    }

    package mutating func add(_ name: String, _ value: ByteCount?) {
        writer.number(.text(name), value?.bytes)
    }

    /// Milliseconds with three decimals; the name should end in `_ms`.
    package mutating func add(_ name: String, _ value: Duration?) {
        writer.duration(.text(name), value)
    }

    package mutating func add(_ name: String, _ value: JSONObject?) {
        guard let value else { return writer.null(.text(name)) }
        writer.json(.text(name), value.bytes)
    }

    package mutating func add(_ name: String, _ values: [JSONObject]) {
        writer.objects(.text(name), values.map(\.bytes))
    }

    /// Bytes in base64 with padding (RFC 4648 §4).
    package mutating func add(_ name: String, base64 bytes: [UInt8]) {
        writer.base64(.text(name), bytes)
    }

    package mutating func add(_ name: String, json value: [UInt8]) {
        writer.json(.text(name), value)
    }

    package mutating func addNull(_ name: String) { writer.null(.text(name)) }

    /// The whole object as UTF-8, without a line end.
    package var bytes: [UInt8] { writer.bytes + [UInt8(ascii: "}")] }
}

extension JSONObject: CustomStringConvertible {
    package var description: String { String(decoding: bytes, as: UTF8.self) }
}
