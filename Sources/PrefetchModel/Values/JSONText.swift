// Text in JSON (RFC 8259), for reports.
//
// Beyond the escapes of RFC 8259 §7 (quotation mark, backslash, U+0000…U+001F), these are written
// as `\uXXXX`: U+007F…U+009F, the bidirectional controls, U+2028, U+2029 and U+FEFF. People read
// reports with `less` and `tail -f`, and a text from a list must not control the terminal or
// reorder a line. Parsers get the same text. A Swift string can't hold invalid Unicode.

extension [UInt8] {
    private static let hexadecimalDigits = Array("0123456789abcdef".utf8)

    /// Appends a text as a JSON string, quotation marks included.
    package mutating func append(jsonString text: String) {
        append(UInt8(ascii: "\""))
        let isContiguous: Void? = text.utf8.withContiguousStorageIfAvailable { appendEscaped($0) }
        if isContiguous == nil {
            Array(text.utf8).withUnsafeBufferPointer { appendEscaped($0) }
        }
        append(UInt8(ascii: "\""))
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
            let (value, length) = [UInt8].scalar(text, at: index)
            guard length == 1 || [UInt8].isEscaped(value) else {
                index += length
                continue
            }
            append(contentsOf: text[start..<index])
            appendEscape(value)
            index += length
            start = index
        }
        append(contentsOf: text[start...])
    }

    private static func scalar(
        _ text: UnsafeBufferPointer<UInt8>, at index: Int
    ) -> (value: UInt32, length: Int) {
        let lead = UInt32(text[index])
        let length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
        var value = length == 1 ? lead : lead & (0x7F >> UInt32(length))
        for offset in 1..<Swift.max(length, 1) where index + offset < text.count {
            value = value << 6 | UInt32(text[index + offset] & 0x3F)
        }
        return (value, Swift.min(length, text.count - index))
    }

    /// Whether a character beyond ASCII is escaped.
    private static func isEscaped(_ value: UInt32) -> Bool {
        switch value {
        case 0x80...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }

    private mutating func appendEscape(_ value: UInt32) {
        append(UInt8(ascii: "\\"))
        switch value {
        case 0x08: append(UInt8(ascii: "b"))
        case 0x09: append(UInt8(ascii: "t"))
        case 0x0A: append(UInt8(ascii: "n"))
        case 0x0C: append(UInt8(ascii: "f"))
        case 0x0D: append(UInt8(ascii: "r"))
        case 0x22, 0x5C: append(UInt8(truncatingIfNeeded: value))
        default:
            append(UInt8(ascii: "u"))
            for shift: UInt32 in [12, 8, 4, 0] {
                append([UInt8].hexadecimalDigits[Int(value >> shift & 15)])
            }
        }
    }
}
