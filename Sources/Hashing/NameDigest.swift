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
            write(of: bytes, to: digest.baseAddress)
            return String(unsafeUninitializedCapacity: 2 * count) { text in
                for (index, byte) in digest.enumerated() {
                    text[2 * index] = NameDigest.digit(byte >> 4)
                    text[2 * index + 1] = NameDigest.digit(byte & 15)
                }
                return 2 * count
            }
        }
    }

    /// Not by `SHA256()` and the like: these go through EVP, which links all of libcrypto, 3 MB.
    private func write(
        of bytes: UnsafeBufferPointer<UInt8>, to digest: UnsafeMutablePointer<UInt8>?
    ) {
        let isDone =
            switch self {
            case .md5:
                withContext(MD5_CTX()) {
                    MD5_Init($0) & MD5_Update($0, bytes.baseAddress, bytes.count)
                        & MD5_Final(digest, $0)
                }
            case .sha1:
                withContext(SHA_CTX()) {
                    SHA1_Init($0) & SHA1_Update($0, bytes.baseAddress, bytes.count)
                        & SHA1_Final(digest, $0)
                }
            case .sha256:
                withContext(SHA256_CTX()) {
                    SHA256_Init($0) & SHA256_Update($0, bytes.baseAddress, bytes.count)
                        & SHA256_Final(digest, $0)
                }
            }
        precondition(isDone == 1, "libcrypto lacks a digest")
    }

    private func withContext<Context>(
        _ context: Context, _ body: (UnsafeMutablePointer<Context>) -> Int32
    ) -> Int32 {
        var context = context
        return withUnsafeMutablePointer(to: &context, body)
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
