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
}

/// The first 128 bits of a cache key's SHA-256: what the index holds instead of the key.
///
/// Nobody can make two keys meet in it, so no key needs to be compared.
package struct KeyFingerprint: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    package init(_ key: UnsafeRawBufferPointer, hasher: borrowing SHA256Hasher) {
        (high, low) = hasher.digest(of: key).leadingWords
    }

    package init(_ key: String, hasher: borrowing SHA256Hasher) {
        var key = key
        self = key.withUTF8 { KeyFingerprint(UnsafeRawBufferPointer($0), hasher: hasher) }
    }

    package func hash(into hasher: inout Hasher) {
        // The bits are evenly spread already.
        hasher.combine(high)
    }
}
