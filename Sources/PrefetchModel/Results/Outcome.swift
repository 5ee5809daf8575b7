/// What became of one manifest entry. Every entry ends in exactly one of these, so that their
/// counts always add up to the entries read.
package enum Outcome: String, CaseIterable, Sendable {
    /// Fetched, decoded, stored and committed.
    case downloaded
    /// The origin confirmed the stored copy with 304.
    case revalidated
    /// The stored copy was fresh; no request was made.
    case fresh
    /// Made from a stored original; no request was made.
    case derived
    /// The key stood in an earlier entry of this run and shares that entry's fate.
    case duplicate
    /// The URL failed for good before and its block has not expired.
    case blacklisted
    /// A rule of the user left it out.
    case excluded
    /// Not warm; ``FailureReason`` says why.
    case failed
    /// The run was stopped before the entry was done.
    case cancelled

    /// The position in `allCases`, for counting without hashing a million times.
    package var index: Int {
        switch self {
        case .downloaded: 0
        case .revalidated: 1
        case .fresh: 2
        case .derived: 3
        case .duplicate: 4
        case .blacklisted: 5
        case .excluded: 6
        case .failed: 7
        case .cancelled: 8
        }
    }
}

/// Why an entry failed, or was left out: a bounded set, for counting. Details go into the message.
package enum FailureReason: String, CaseIterable, Sendable {
    case invalidEntry = "invalid-entry"
    case unsupportedScheme = "unsupported-scheme"
    case refusedAddress = "refused-address"
    case dns
    case connect
    case tls
    case timeout
    case stalled
    /// Closed or reset midway, or a body shorter than announced.
    case interrupted
    case redirect
    case httpStatus = "http-status"
    case tooLarge = "too-large"
    case notAnImage = "not-an-image"
    case corruptImage = "corrupt-image"
    case tooManyPixels = "too-many-pixels"
    case unsupportedImage = "unsupported-image"
    case uncacheable
    /// Left out by ``OtherFormats/skip``.
    case otherFormat = "other-format"
    /// Left out by ``ImageFilter``, and so are the next two.
    case belowMinimumSize = "min-size"
    case overMaximumAspect = "max-aspect"
    case belowMinimumBytes = "min-bytes"
    case disk
    case `internal`

    /// Whether the entry is not failed but ``Outcome/excluded``: nothing is wrong with the image, and a rule of the user
    /// leaves it out.
    package var isExclusion: Bool {
        switch self {
        case .otherFormat, .belowMinimumSize, .overMaximumAspect, .belowMinimumBytes: true
        case .invalidEntry, .unsupportedScheme, .refusedAddress, .dns, .connect, .tls, .timeout,
            .stalled, .interrupted, .redirect, .httpStatus, .tooLarge, .notAnImage, .corruptImage,
            .tooManyPixels, .unsupportedImage, .uncacheable, .disk, .internal:
            false
        }
    }

    /// The position in `allCases`.
    package var index: Int { FailureReason.indices[self] ?? 0 }

    private static let indices = Dictionary(
        uniqueKeysWithValues: allCases.enumerated().map { ($1, $0) })
}
