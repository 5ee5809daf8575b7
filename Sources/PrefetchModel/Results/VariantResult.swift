/// The result of one of an entry's variants.
package struct VariantResult: Hashable, Sendable {
    package let variant: RequestedVariant
    /// ``Outcome/downloaded``, ``Outcome/revalidated``, ``Outcome/fresh`` or ``Outcome/derived`` if
    /// it is warm, else the entry's outcome.
    package var outcome: Outcome
    /// The reason of the failure, set exactly for `failed`, or for `blacklisted` the reason of the
    /// earlier failure.
    package var reason: FailureReason?
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
