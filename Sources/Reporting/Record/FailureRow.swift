package import PrefetchModel

/// Failures with one cause, for a page.
package struct FailureRow: Hashable, Sendable {
    /// Scheme, host and port; nil for several hosts, and for failures without one.
    package let host: String?
    package let reason: FailureReason
    package let httpStatus: Int?
    package let count: Int
    /// `m.txt:12: URL` of the first entry, printable and redacted.
    package let sample: String
    package let message: String?

    init(_ group: FailureGroups.Group) {
        if case .host(let name) = group.cause.place {
            host = RedactedURL(name).description
        } else {
            host = nil
        }
        reason = group.cause.reason
        httpStatus = group.cause.httpStatus
        count = group.count
        sample = group.sample.entry
        message = group.sample.message
    }
}
