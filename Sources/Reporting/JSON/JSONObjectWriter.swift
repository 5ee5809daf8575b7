import PrefetchModel

/// Appends records as JSON objects to a buffer of UTF-8 bytes.
struct JSONObjectWriter: JSONVisitor, Sendable {
    private(set) var bytes: [UInt8] = []
    /// The prefix of paths of content files; empty for paths relative to the cache directory.
    var pathPrefix = ""
    private var needsComma = false

    mutating func reserveCapacity(_ capacity: Int) {
        bytes.reserveCapacity(capacity)
    }

    /// Removes all bytes, keeping the memory.
    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    mutating func endLine() {
        bytes.append(UInt8(ascii: "\n"))
        needsComma = false
    }

    mutating func append(lines: ArraySlice<UInt8>) {
        bytes.append(contentsOf: lines)
        needsComma = false
    }

    /// Appends a record as an object: a line, or an element of an array.
    mutating func append<Record: JSONRecord>(_ record: Record) {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "{"))
        needsComma = false
        var draft = Record.emptyDraft
        record.visitMembers(&self, into: &draft)
        bytes.append(UInt8(ascii: "}"))
        needsComma = true
    }

    private mutating func appendName(_ name: StaticString) {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
        bytes.append(UInt8(ascii: "\""))
        bytes.append(
            contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    // MARK: Members

    mutating func add(_ name: StaticString, _ value: @autoclosure () -> (some JSONValue)?) {
        appendName(name)
        if let value = value() {
            value.appendJSON(to: &bytes)
        } else {
            RawJSON.null.appendJSON(to: &bytes)
        }
    }

    mutating func add<Value: JSONReadable>(
        _ name: StaticString, _ value: @autoclosure () -> Value?, _ read: (Value) -> Void
    ) {
        add(name, value())
    }

    mutating func path(_ name: StaticString, _ value: @autoclosure () -> String?) {
        let path = value().map { pathPrefix + $0 }
        add(name, path)
    }

    mutating func counts(
        _ name: StaticString, _ value: @autoclosure () -> [(name: String, count: Int)],
        _ read: ([String: Int]) -> Void
    ) {
        var object = JSONObject()
        for (name, count) in value() { object.add(name, count) }
        add(name, object)
    }

    mutating func record<Record: JSONRecord>(
        _ name: StaticString, _ value: @autoclosure () -> Record?, _ read: (Record.Draft) -> Void
    ) {
        guard let record = value() else { return add(name, RawJSON.null) }
        appendName(name)
        needsComma = false
        append(record)
    }

    mutating func records(_ name: StaticString, _ value: @autoclosure () -> [some JSONRecord]) {
        appendName(name)
        bytes.append(UInt8(ascii: "["))
        needsComma = false
        for record in value() { append(record) }
        bytes.append(UInt8(ascii: "]"))
        needsComma = true
    }

    mutating func records<Record: JSONRecord>(
        _ name: StaticString, _ value: @autoclosure () -> [Record],
        _ read: ([Record.Draft]) -> Void
    ) {
        records(name, value())
    }
}
