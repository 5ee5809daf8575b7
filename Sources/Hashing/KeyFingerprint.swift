import PrefetchModel

/// The first 128 bits of a cache key's SHA-256, which represent the key during a run.
///
/// Collisions cannot be constructed, so keys need no comparison.
package struct KeyFingerprint: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    package init(_ key: UnsafeRawBufferPointer, hasher: borrowing SHA256Hasher) {
        (high, low) = hasher.digest(of: key).leadingWords
    }

    package init(_ key: String, hasher: borrowing SHA256Hasher) {
        (high, low) = hasher.digest(of: key).leadingWords
    }

    package func hash(into hasher: inout Hasher) {
        // The bits are already evenly distributed.
        hasher.combine(high)
    }
}
