internal import CCrypto

/// A digest by which other programs name the files of their caches. Not for security.
package enum NameDigest: Sendable {
    /// RFC 1321
    case md5
    /// RFC 3174
    case sha1
    /// FIPS 180-4
    case sha256

    /// The digest of a text's UTF-8 in lower-case hexadecimal digits.
    package func hexadecimal(of text: String) -> String {
        var text = text
        return text.withUTF8 { hexadecimal(of: $0) }
    }

    private func hexadecimal(of bytes: UnsafeBufferPointer<UInt8>) -> String {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { digest in
            let result =
                switch self {
                case .md5: MD5(bytes.baseAddress, bytes.count, digest.baseAddress)
                case .sha1: SHA1(bytes.baseAddress, bytes.count, digest.baseAddress)
                case .sha256: SHA256(bytes.baseAddress, bytes.count, digest.baseAddress)
                }
            precondition(result != nil, "libcrypto lacks a digest")
            return String(unsafeUninitializedCapacity: 2 * count) { text in
                for (index, byte) in digest.enumerated() {
                    text[2 * index] = NameDigest.digit(byte >> 4)
                    text[2 * index + 1] = NameDigest.digit(byte & 15)
                }
                return 2 * count
            }
        }
    }

    /// The number of bytes.
    private var count: Int {
        switch self {
        case .md5: 16
        case .sha1: 20
        case .sha256: 32
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
