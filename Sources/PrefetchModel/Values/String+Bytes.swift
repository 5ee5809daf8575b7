extension StringProtocol {
    /// Calls `body` with the string's UTF-8 without a copy, for native strings. Iterating over the
    /// bytes takes a tenth of the time of iterating over `utf8`.
    package func withBytes<Result>(
        _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result {
        if let result = try utf8.withContiguousStorageIfAvailable(body) { return result }
        return try Array(utf8).withUnsafeBufferPointer(body)
    }
}

extension StringProtocol {
    /// The bytes with percent-encodings decoded (RFC 3986 §2.1); an incomplete one stays as it is.
    package var percentDecoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count)
        var rest = Array(utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = rest.first?.hexadecimalValue,
                let low = rest.dropFirst().first?.hexadecimalValue
            {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }
}

extension Sequence<UInt8> {
    /// The bytes with all but letters, digits and `marks` percent-encoded (RFC 3986 §2.1).
    package func percentEncoded(except marks: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        let kept = Set(marks.utf8)
        var bytes: [UInt8] = []
        for byte in self {
            if byte.isLetter || byte.isDecimalDigit || kept.contains(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
