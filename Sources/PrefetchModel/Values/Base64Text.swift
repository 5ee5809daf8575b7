extension Collection where Element == UInt8, Index == Int {
    /// The bytes in base64 with padding (RFC 4648 §4), as ASCII.
    package var base64: [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((count + 2) / 3 * 4)
        for start in stride(from: startIndex, to: endIndex, by: 3) {
            let group = self[start..<Swift.min(start + 3, endIndex)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0..<4 {
                text.append(
                    place > group.count
                        ? UInt8(ascii: "=") : base64Digits[bits >> (18 - 6 * place) & 63])
            }
        }
        return text
    }
}

extension [UInt8] {
    /// Decodes base64 with padding; nil for any other text.
    package init?(base64 text: String) {
        guard text.utf8.count % 4 == 0 else { return nil }
        self = []
        var bits = 0
        var padding = 0
        for (index, digit) in text.utf8.enumerated() {
            if digit == UInt8(ascii: "=") {
                padding += 1
                bits <<= 6
            } else {
                guard padding == 0, let value = base64Value(digit) else {
                    return nil
                }
                bits = bits << 6 | value
            }
            guard index % 4 == 3 else { continue }
            guard padding < 3 else { return nil }
            append(UInt8(bits >> 16 & 0xFF))
            if padding < 2 { append(UInt8(bits >> 8 & 0xFF)) }
            if padding < 1 { append(UInt8(bits & 0xFF)) }
            bits = 0
        }
    }
}

private func base64Value(_ digit: UInt8) -> Int? {
    switch digit {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(digit) - 65
    case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(digit) - 97 + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(digit) - 48 + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
}

private let base64Digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
