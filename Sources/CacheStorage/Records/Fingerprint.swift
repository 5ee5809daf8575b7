package import Hashing
import PrefetchModel

/// What identifies a recipe in a ``VariantFingerprint``: the first 128 bits of the SHA-256 of its
/// canonical text.
package struct RecipeFingerprint: Hashable, Sendable {
    fileprivate let high: UInt64
    fileprivate let low: UInt64

    package init(_ canonicalText: String, hasher: borrowing SHA256Hasher) {
        (high, low) = hasher.digest(of: canonicalText).leadingWords
    }
}

/// A key and a recipe in 128 bits, under which the table `freshness` knows a variant: the bits of
/// the key's and of the recipe's fingerprint, one exclusive-or the other.
///
/// Two variants that meet in the upper half, which is the table's primary key, are told apart by
/// the lower one; the later of them has no row then and is asked for at every run.
package struct VariantFingerprint: Hashable, Sendable {
    /// `freshness.fingerprint`
    package let upper: Int64
    /// `freshness.fingerprint_low`
    package let lower: Int64

    package init(_ key: KeyFingerprint, _ recipe: RecipeFingerprint) {
        upper = Int64(bitPattern: key.high ^ recipe.high)
        lower = Int64(bitPattern: key.low ^ recipe.low)
    }

    init(upper: Int64, lower: Int64) {
        self.upper = upper
        self.lower = lower
    }
}

/// The column `freshness.vary`: the first 64 bits of the SHA-256 of `resource.vary`.
struct VaryFingerprint: Hashable {
    let value: Int64

    init(_ text: String, hasher: borrowing SHA256Hasher) {
        value = Int64(bitPattern: hasher.digest(of: text).leadingWords.0)
    }

    init(value: Int64) {
        self.value = value
    }
}
