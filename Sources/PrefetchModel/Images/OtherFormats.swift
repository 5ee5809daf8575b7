/// What becomes of a source whose format is known by its bytes and not decoded.
package enum OtherFormats: String, CaseIterable, Sendable {
    /// It fails, as ``FailureReason/unsupportedImage``.
    case fail
    /// Its bytes are stored as they came, for every variant, if its container is whole.
    case store
    /// It is left out, for the reason ``FailureReason/otherFormat``.
    case skip
}
