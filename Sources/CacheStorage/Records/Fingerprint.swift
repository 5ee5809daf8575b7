package import Hashing
import PrefetchModel

/// A recipe in a ``VariantFingerprint``: the first 128 bits of its canonical text's SHA-256.
package struct RecipeFingerprint: Hashable, Sendable {
    fileprivate let high: UInt64
    fileprivate let low: UInt64

    package init(_ canonicalText: String, hasher: borrowing SHA256Hasher) {
        (high, low) = hasher.digest(of: canonicalText).leadingWords
    }
}

/// Identifies a variant in the table `freshness`: the exclusive-or of the 128-bit fingerprints of
/// key and recipe. The upper half is the table's primary key. If two variants share it, the lower
/// half tells them apart; the later one has no row and is requested at every run.
package struct VariantFingerprint: Hashable, Sendable {
    /// `freshness.fingerprint`
    package let upper: Int64
    /// `freshness.fingerprint_low`
    package let lower: Int64
}

extension VariantFingerprint {
    package init(_ key: KeyFingerprint, _ recipe: RecipeFingerprint) {
        self.init(
            upper: Int64(bitPattern: key.high ^ recipe.high),
            lower: Int64(bitPattern: key.low ^ recipe.low))
    }
}

/// The column `freshness.vary`: the first 64 bits of the SHA-256 of `resource.vary`.
struct VaryFingerprint: Hashable {
    let value: Int64
}

extension VaryFingerprint {
    init(_ text: String, hasher: borrowing SHA256Hasher) {
        self.init(value: Int64(bitPattern: hasher.digest(of: text).leadingWords.0))
    }
}
