internal import CCrypto
package import PrefetchModel

/// SHA-256 (FIPS 180-4) by libcrypto, which uses the processor's SHA instructions.
///
/// Calls the algorithm's own functions. The first digest through `EVP_MD_fetch` initialises all of
/// libcrypto, which takes a millisecond (OpenSSL 3.0), a sixth of `prefetch get`.
package struct SHA256Hasher: ~Copyable {
    package init() {}

    package func digest(of bytes: UnsafeRawBufferPointer) -> ContentDigest {
        withUnsafeTemporaryAllocation(byteCount: ContentDigest.byteCount, alignment: 8) { result in
            var context = SHA256_CTX()
            let isDone =
                SHA256_Init(&context) == 1
                && SHA256_Update(&context, bytes.baseAddress, bytes.count) == 1
                && SHA256_Final(
                    result.baseAddress?.assumingMemoryBound(to: UInt8.self), &context) == 1
            guard isDone, let digest = ContentDigest(bytes: UnsafeRawBufferPointer(result)) else {
                preconditionFailure("libcrypto offers no SHA-256")
            }
            return digest
        }
    }

    package func digest(of text: String) -> ContentDigest {
        var text = text
        return text.withUTF8 { digest(of: UnsafeRawBufferPointer($0)) }
    }
}
