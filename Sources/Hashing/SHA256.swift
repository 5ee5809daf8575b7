internal import CCrypto
package import PrefetchModel

/// SHA-256 (FIPS 180-4) by libcrypto, which uses the processor's instructions for it.
///
/// A hasher serves one thread; making one costs an allocation, so a loop over many texts keeps it.
package struct SHA256Hasher: ~Copyable {
    /// Fetched once: looking an algorithm up by name costs more than hashing a URL with it.
    ///
    /// `nonisolated(unsafe)`: libcrypto's algorithm objects are immutable and may be shared.
    private nonisolated(unsafe) static let algorithm = EVP_MD_fetch(nil, "SHA256", nil)
    private let context: OpaquePointer

    package init() {
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("no memory for a digest") }
        self.context = context
    }

    deinit {
        EVP_MD_CTX_free(context)
    }

    package func digest(of bytes: UnsafeRawBufferPointer) -> ContentDigest {
        withUnsafeTemporaryAllocation(byteCount: ContentDigest.byteCount, alignment: 8) { result in
            var length: UInt32 = 0
            let isDone =
                EVP_DigestInit_ex2(context, SHA256Hasher.algorithm, nil) == 1
                && EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
                && EVP_DigestFinal_ex(
                    context, result.baseAddress?.assumingMemoryBound(to: UInt8.self), &length) == 1
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
