package import PrefetchModel

/// A row of the table `freshness`, as far as a run needs it to decide whether an entry is warm.
package struct FreshnessRecord: Hashable, Sendable {
    package let resourceID: Int64
    /// The time of the origin's last confirmation.
    package let validatedAt: Timestamp
    /// Zero if it must be validated at every use.
    package let expiresAt: Timestamp
    /// The fingerprint of the response's Vary values; nil without Vary.
    let vary: VaryFingerprint?
    /// Whether a later run used another variant of the resource by its name.
    package let isSuperseded: Bool
    /// Whether it is or was in use as `main`.
    package private(set) var isMain = true

    /// Whether the variant is in use by that name.
    package func isInUse(as name: VariantName) -> Bool {
        // Only `main` needs the distinction: its recipe may differ between entries.
        !isSuperseded && (isMain || name != .main)
    }
}

extension FreshnessRecord {
    /// Decodes `mark`, a value of `freshness.superseded`.
    init(
        resourceID: Int64, validatedAt: Timestamp, expiresAt: Timestamp, vary: VaryFingerprint?,
        mark: Int64
    ) {
        self.init(
            resourceID: resourceID, validatedAt: validatedAt, expiresAt: expiresAt, vary: vary,
            isSuperseded: mark == 1, isMain: mark == 0)
    }
}
