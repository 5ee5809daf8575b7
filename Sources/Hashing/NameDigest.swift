internal import CCrypto
import PrefetchModel

/// A digest by which other programs name the files of their caches. Not for security.
package enum NameDigest: Sendable {
    /// RFC 1321
    case md5
    /// RFC 3174
    case sha1
    /// FIPS 180-4
    case sha256

    /// The digest of a text's UTF-8 in lower-case hexadecimal digits.
    ///
    /// Not by `MD5()` and the like: these go through EVP, which links all of libcrypto, 3 MB.
    package func hexadecimal(of text: String) -> String {
        let bytes = Array(text.utf8)
        var digest = [UInt8](repeating: 0, count: 20)
        let isDone: Int32
        switch self {
        case .md5:
            digest.removeLast(4)
            var context = MD5_CTX()
            isDone =
                MD5_Init(&context) & MD5_Update(&context, bytes, bytes.count)
                & MD5_Final(&digest, &context)
        case .sha1:
            var context = SHA_CTX()
            isDone =
                SHA1_Init(&context) & SHA1_Update(&context, bytes, bytes.count)
                & SHA1_Final(&digest, &context)
        case .sha256: return SHA256Hasher().digest(of: text).description
        }
        precondition(isDone == 1, "libcrypto lacks a digest")
        let digits = digest.flatMap {
            [UInt8(hexadecimalDigitOf: $0 >> 4), UInt8(hexadecimalDigitOf: $0 & 15)]
        }
        return String(decoding: digits, as: UTF8.self)
    }
}
