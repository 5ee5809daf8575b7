import PrefetchModel

/// Appends JSON objects (RFC 8259) to a buffer of UTF-8 bytes.
struct JSONObjectWriter: Sendable {
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

    mutating func beginObject() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "{"))
        needsComma = false
    }

    mutating func beginObject(named name: JSONName) {
        appendName(name)
        bytes.append(UInt8(ascii: "{"))
        needsComma = false
    }

    mutating func endObject() {
        bytes.append(UInt8(ascii: "}"))
        needsComma = true
    }

    mutating func beginArray(named name: JSONName) {
        appendName(name)
        bytes.append(UInt8(ascii: "["))
        needsComma = false
    }

    mutating func endArray() {
        bytes.append(UInt8(ascii: "]"))
        needsComma = true
    }

    mutating func endLine() {
        bytes.append(UInt8(ascii: "\n"))
        needsComma = false
    }

    mutating func append(lines: ArraySlice<UInt8>) {
        bytes.append(contentsOf: lines)
        needsComma = false
    }

    mutating func null(_ name: JSONName) {
        appendName(name)
        bytes.append(contentsOf: Constant.null)
    }

    mutating func text(_ name: JSONName, _ value: @autoclosure () -> String?) {
        guard let value = value() else { return null(name) }
        appendName(name)
        bytes.append(jsonString: value)
    }

    mutating func strings(_ name: JSONName, _ values: [String]) {
        appendName(name)
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(jsonString: value)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    mutating func numbers(
        _ name: JSONName, _ value: @autoclosure () -> [Int]?, _ read: ([Int]) -> Void
    ) {
        guard let values = value() else { return null(name) }
        appendName(name)
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            appendInteger(value)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    mutating func number(_ name: JSONName, _ value: @autoclosure () -> Int?) {
        guard let value = value() else { return null(name) }
        appendName(name)
        appendInteger(value)
    }

    mutating func truth(_ name: JSONName, _ value: @autoclosure () -> Bool?) {
        guard let value = value() else { return null(name) }
        appendName(name)
        bytes.append(contentsOf: value ? Constant.true : Constant.false)
    }

    /// Three decimals, rounded; null if not finite, since JSON has no such numbers. From 9 × 10¹⁵
    /// on, a `Double` has no decimals left, so its shortest text is written.
    mutating func rate(_ name: JSONName, _ value: @autoclosure () -> Double?) {
        guard let value = value(), value.isFinite else { return null(name) }
        appendName(name)
        if value.magnitude < 9e15 {
            appendThousandths(Int((value * 1000).rounded()))
        } else {
            bytes.append(contentsOf: value.description.utf8)
        }
    }

    /// Milliseconds with three decimals, truncated to whole microseconds; saturates at ± 292 000
    /// years.
    mutating func duration(_ name: JSONName, _ value: @autoclosure () -> Duration?) {
        guard let value = value() else { return null(name) }
        appendName(name)
        let (seconds, attoseconds) = value.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        appendThousandths(Int(overflow || carried ? (seconds < 0 ? Int64.min : .max) : sum))
    }

    /// Base64 with padding (RFC 4648 §4).
    mutating func base64(_ name: JSONName, _ value: [UInt8]) {
        appendName(name)
        bytes.append(UInt8(ascii: "\""))
        bytes += value.base64
        bytes.append(UInt8(ascii: "\""))
    }

    mutating func objects(_ name: JSONName, _ objects: [[UInt8]]) {
        beginArray(named: name)
        for (index, object) in objects.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(contentsOf: object)
        }
        endArray()
    }

    mutating func json(_ name: JSONName, _ value: @autoclosure () -> [UInt8]) {
        appendName(name)
        bytes.append(contentsOf: value())
    }
}

// MARK: - Records

extension JSONObjectWriter: JSONVisitor {
    /// Appends a record as an object: a line, or an element of an array.
    mutating func append(_ record: some JSONRecord) {
        beginObject()
        appendMembers(of: record)
        endObject()
    }

    private mutating func appendMembers<Record: JSONRecord>(of record: Record) {
        var draft = Record.emptyDraft
        record.visitMembers(&self, into: &draft)
    }

    mutating func counts(
        _ name: JSONName, _ value: @autoclosure () -> [(name: String, count: Int)],
        _ read: ([String: Int]) -> Void
    ) {
        beginObject(named: name)
        for (name, count) in value() { number(.text(name), count) }
        endObject()
    }

    mutating func record<Record: JSONRecord>(
        _ name: JSONName, _ value: @autoclosure () -> Record?, _ read: (Record.Draft) -> Void
    ) {
        guard let record = value() else { return null(name) }
        beginObject(named: name)
        appendMembers(of: record)
        endObject()
    }

    mutating func records(_ name: JSONName, _ value: @autoclosure () -> [some JSONRecord]) {
        beginArray(named: name)
        for record in value() { append(record) }
        endArray()
    }

    mutating func path(_ name: JSONName, _ value: @autoclosure () -> String?) {
        let path = value().map { pathPrefix + $0 }
        text(name, path)
    }

    mutating func text(
        _ name: JSONName, _ value: @autoclosure () -> String?, _ read: (String) -> Void
    ) {
        text(name, value())
    }

    mutating func number(_ name: JSONName, _ value: @autoclosure () -> Int?, _ read: (Int) -> Void)
    {
        number(name, value())
    }

    mutating func truth(_ name: JSONName, _ value: @autoclosure () -> Bool?, _ read: (Bool) -> Void)
    {
        truth(name, value())
    }

    mutating func duration(
        _ name: JSONName, _ value: @autoclosure () -> Duration?, _ read: (Duration) -> Void
    ) {
        duration(name, value())
    }

    mutating func records<Record: JSONRecord>(
        _ name: JSONName, _ value: @autoclosure () -> [Record], _ read: ([Record.Draft]) -> Void
    ) {
        records(name, value())
    }
}

// MARK: - Tokens

extension JSONObjectWriter {
    private enum Constant {
        static let null = Array("null".utf8)
        static let `true` = Array("true".utf8)
        static let `false` = Array("false".utf8)
    }

    private mutating func appendName(_ name: JSONName) {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
        switch name {
        case .literal(let name):
            bytes.append(UInt8(ascii: "\""))
            bytes.append(
                contentsOf: UnsafeBufferPointer(
                    start: name.utf8Start, count: name.utf8CodeUnitCount))
            bytes.append(UInt8(ascii: "\""))
        case .text(let name):
            bytes.append(jsonString: name)
        }
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func appendInteger(_ value: Int) {
        appendDigits(value.magnitude, isNegative: value < 0, least: 1)
    }

    private mutating func appendThousandths(_ value: Int) {
        let (whole, fraction) = value.magnitude.quotientAndRemainder(dividingBy: 1000)
        appendDigits(whole, isNegative: value < 0, least: 1)
        bytes.append(UInt8(ascii: "."))
        appendDigits(fraction, isNegative: false, least: 3)
    }

    private mutating func appendDigits(_ magnitude: UInt, isNegative: Bool, least: Int) {
        if isNegative { bytes.append(UInt8(ascii: "-")) }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var start = 20
            var rest = magnitude
            while rest > 0 || 20 - start < least {
                start -= 1
                digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
        }
    }
}
