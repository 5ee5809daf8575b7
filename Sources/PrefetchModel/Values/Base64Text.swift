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
    /// Decodes base64 (RFC 4648 §4 and §5), also with line ends, without padding, or as a `data:`
    /// URL; nil for any other text.
    package init?(base64 text: UnsafeRawBufferPointer) {
        var digits = text[...]
        if text.starts(with: "data:".utf8) {
            guard let comma = text.firstIndex(of: UInt8(ascii: ",")) else { return nil }
            digits = text[(comma + 1)...]
        }
        self = []
        reserveCapacity(digits.count / 4 * 3 + 3)
        var (bits, count) = (UInt32(0), 0)
        var padding = 0
        for byte in digits {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                continue
            case UInt8(ascii: "="):
                padding += 1
                continue
            default: break
            }
            guard let value = base64Value(byte), padding == 0 else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 1
            guard count == 4 else { continue }
            self += [UInt8(bits >> 16 & 0xFF), UInt8(bits >> 8 & 0xFF), UInt8(bits & 0xFF)]
            (bits, count) = (0, 0)
        }
        guard count != 1, padding == 0 || count + padding == 4 else { return nil }
        if count == 2 { append(UInt8(bits >> 4 & 0xFF)) }
        if count == 3 { self += [UInt8(bits >> 10 & 0xFF), UInt8(bits >> 2 & 0xFF)] }
    }
}

private func base64Value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
    case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
    default: nil
    }
}

private let base64Digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
