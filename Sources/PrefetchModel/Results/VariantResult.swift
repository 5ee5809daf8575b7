/// What became of one of the variants that an entry asks for.
package struct VariantResult: Hashable, Sendable {
    package let variant: RequestedVariant
    /// One of ``Outcome/downloaded``, ``Outcome/revalidated``, ``Outcome/fresh`` and
    /// ``Outcome/derived`` where it is warm, else the entry's own outcome.
    package var outcome: Outcome
    /// Why this variant could not be made; set exactly when the outcome is `failed`, or `blacklisted`:
    /// then why the entry failed before.
    package var reason: FailureReason?
    /// What is stored, when something is: of a variant that failed, the copy that was kept.
    package var stored: StoredImage?

    package init(
        _ variant: RequestedVariant, outcome: Outcome, reason: FailureReason? = nil,
        stored: StoredImage? = nil
    ) {
        self.variant = variant
        self.outcome = outcome
        self.reason = reason
        self.stored = stored
    }
}
