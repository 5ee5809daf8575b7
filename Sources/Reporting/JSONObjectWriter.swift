import PrefetchModel

/// Appends JSON objects (RFC 8259) to a buffer of UTF-8 bytes.
///
/// Beyond the escapes of RFC 8259 §7 (quotation mark, backslash, U+0000…U+001F), these are written
/// as `\uXXXX`: U+007F…U+009F, the bidirectional controls, U+2028, U+2029 and U+FEFF. People read
/// reports with `less` and `tail -f`, and a URL from a list must not control the terminal or
/// reorder a line. Parsers get the same text. A Swift string can't hold invalid Unicode.
struct JSONObjectWriter: Sendable {
    /// A member's name. Literals are appended in one piece: a line of the report has 27.
    enum Name: ExpressibleByStringLiteral {
        /// Printable ASCII without quotation marks and backslashes.
        case literal(StaticString)
        case text(String)

        init(stringLiteral name: StaticString) {
            self = .literal(name)
        }
    }

    private(set) var bytes: [UInt8] = []
    /// Whether the next member or element needs a comma before it.
    private var needsComma = false

    mutating func reserveCapacity(_ capacity: Int) {
        bytes.reserveCapacity(capacity)
    }

    /// Removes all bytes, keeping the memory.
    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    /// Begins a line's object or an element of an array.
    mutating func beginObject() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "{"))
        needsComma = false
    }

    mutating func beginObject(named name: Name) {
        appendName(name)
        bytes.append(UInt8(ascii: "{"))
        needsComma = false
    }

    mutating func endObject() {
        bytes.append(UInt8(ascii: "}"))
        needsComma = true
    }

    /// Begins an array of objects.
    mutating func beginArray(named name: Name) {
        appendName(name)
        bytes.append(UInt8(ascii: "["))
        needsComma = false
    }

    mutating func endArray() {
        bytes.append(UInt8(ascii: "]"))
        needsComma = true
    }

    /// Ends a line of JSON Lines.
    mutating func endLine() {
        bytes.append(UInt8(ascii: "\n"))
        needsComma = false
    }

    /// Appends complete lines unchanged.
    mutating func append(lines: ArraySlice<UInt8>) {
        bytes.append(contentsOf: lines)
        needsComma = false
    }

    mutating func null(_ name: Name) {
        appendName(name)
        bytes.append(contentsOf: Constant.null)
    }

    mutating func string(_ name: Name, _ value: String?) {
        guard let value else { return null(name) }
        appendName(name)
        appendQuoted(value)
    }

    mutating func strings(_ name: Name, _ values: [String]) {
        appendName(name)
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            appendQuoted(value)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    mutating func integers(_ name: Name, _ values: [Int]) {
        appendName(name)
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            appendInteger(value)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    mutating func integer(_ name: Name, _ value: Int?) {
        guard let value else { return null(name) }
        appendName(name)
        appendInteger(value)
    }

    mutating func boolean(_ name: Name, _ value: Bool?) {
        guard let value else { return null(name) }
        appendName(name)
        bytes.append(contentsOf: value ? Constant.true : Constant.false)
    }

    /// Three decimals, rounded; null if not finite, since JSON has no such numbers. From 9 × 10¹⁵
    /// on, a `Double` has no decimals left, so its shortest text is written.
    mutating func decimal(_ name: Name, _ value: Double?) {
        guard let value, value.isFinite else { return null(name) }
        appendName(name)
        if value.magnitude < 9e15 {
            appendThousandths(Int((value * 1000).rounded()))
        } else {
            bytes.append(contentsOf: value.description.utf8)
        }
    }

    /// Milliseconds with three decimals, truncated to whole microseconds; saturates at ± 292 000
    /// years.
    mutating func milliseconds(_ name: Name, _ value: Duration?) {
        guard let value else { return null(name) }
        appendName(name)
        let (seconds, attoseconds) = value.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        appendThousandths(Int(overflow || carried ? (seconds < 0 ? Int64.min : .max) : sum))
    }

    /// Base64 with padding (RFC 4648 §4).
    mutating func base64(_ name: Name, _ value: [UInt8]) {
        appendName(name)
        bytes.append(UInt8(ascii: "\""))
        bytes.reserveCapacity(bytes.count + value.count / 3 * 4 + 6)
        for start in stride(from: 0, to: value.count, by: 3) {
            let group = value[start..<min(start + 3, value.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for digit in 0..<4 {
                bytes.append(
                    digit > group.count
                        ? UInt8(ascii: "=") : Constant.base64Digits[bits >> (18 - 6 * digit) & 63])
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// The bytes are a whole JSON object.
    mutating func object(_ name: Name, _ object: [UInt8]) {
        appendName(name)
        bytes.append(contentsOf: object)
    }
}

// MARK: - Tokens

extension JSONObjectWriter {
    private enum Constant {
        static let null = Array("null".utf8)
        static let `true` = Array("true".utf8)
        static let `false` = Array("false".utf8)
        static let base64Digits = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        static let hexadecimalDigits = Array("0123456789abcdef".utf8)
    }

    private mutating func appendName(_ name: Name) {
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
            appendQuoted(name)
        }
        bytes.append(UInt8(ascii: ":"))
    }

    /// A text as a JSON string, quotation marks included.
    static func quoted(_ text: String) -> [UInt8] {
        var json = JSONObjectWriter()
        json.appendQuoted(text)
        return json.bytes
    }

    private mutating func appendQuoted(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        let isContiguous: Void? = text.utf8.withContiguousStorageIfAvailable { appendEscaped($0) }
        if isContiguous == nil {
            Array(text.utf8).withUnsafeBufferPointer { appendEscaped($0) }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// The text is valid UTF-8.
    private mutating func appendEscaped(_ text: UnsafeBufferPointer<UInt8>) {
        var start = 0
        var index = 0
        while index < text.count {
            let byte = text[index]
            if byte >= 0x20, byte < 0x7F, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                index += 1
                continue
            }
            let (value, length) = JSONObjectWriter.scalar(text, at: index)
            guard length == 1 || JSONObjectWriter.isEscaped(value) else {
                index += length
                continue
            }
            bytes.append(contentsOf: text[start..<index])
            appendEscape(value)
            index += length
            start = index
        }
        bytes.append(contentsOf: text[start...])
    }

    private static func scalar(
        _ text: UnsafeBufferPointer<UInt8>, at index: Int
    ) -> (value: UInt32, length: Int) {
        let lead = UInt32(text[index])
        let length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
        var value = length == 1 ? lead : lead & (0x7F >> UInt32(length))
        for offset in 1..<max(length, 1) where index + offset < text.count {
            value = value << 6 | UInt32(text[index + offset] & 0x3F)
        }
        return (value, min(length, text.count - index))
    }

    /// Whether a character beyond ASCII is escaped.
    private static func isEscaped(_ value: UInt32) -> Bool {
        switch value {
        case 0x80...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }

    private mutating func appendEscape(_ value: UInt32) {
        bytes.append(UInt8(ascii: "\\"))
        switch value {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x22, 0x5C: bytes.append(UInt8(truncatingIfNeeded: value))
        default:
            bytes.append(UInt8(ascii: "u"))
            for shift: UInt32 in [12, 8, 4, 0] {
                bytes.append(Constant.hexadecimalDigits[Int(value >> shift & 15)])
            }
        }
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
