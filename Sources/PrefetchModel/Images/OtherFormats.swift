/// The treatment of sources in a known format that is not decoded.
package enum OtherFormats: String, CaseIterable, Sendable {
    /// The entry fails with ``FailureReason/unsupportedImage``.
    case fail
    /// The source bytes are stored for every variant, if the container is complete.
    case store
    /// The entry is excluded for the reason ``FailureReason/otherFormat``.
    case skip
}
