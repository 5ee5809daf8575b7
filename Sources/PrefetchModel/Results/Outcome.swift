/// The final state of a manifest entry. Every entry has exactly one, so their counts add up to the
/// entries read.
package enum Outcome: String, CaseIterable, Sendable {
    /// Fetched, decoded, stored and committed.
    case downloaded
    /// The origin confirmed the stored copy with 304.
    case revalidated
    /// The stored copy was fresh; no request was made.
    case fresh
    /// Made from a stored original; no request was made.
    case derived
    /// An earlier entry of this run has the same key and determines the result.
    case duplicate
    /// The URL failed permanently in an earlier run, and its blacklisting has not expired.
    case blacklisted
    case excluded
    /// Not warm; ``FailureReason`` says why.
    case failed
    /// The run was stopped before the entry was done.
    case cancelled
    /// The origin has responded; the run stores nothing.
    case requested

    /// The position in `allCases`; avoids hashing a million times.
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
        case .requested: 9
        }
    }
}

/// The reason of a failure or exclusion: a fixed set for counting. Details are in the message.
package enum FailureReason: String, CaseIterable, BitwiseCopyable, Sendable {
    case invalidEntry = "invalid-entry"
    case unsupportedScheme = "unsupported-scheme"
    case refusedAddress = "refused-address"
    case dns
    case connect
    case tls
    case timeout
    case stalled
    /// The connection was closed or reset during the transfer, or the body was too short.
    case interrupted
    case redirect
    case httpStatus = "http-status"
    case tooLarge = "too-large"
    case notAnImage = "not-an-image"
    case corruptImage = "corrupt-image"
    case tooManyPixels = "too-many-pixels"
    case unsupportedImage = "unsupported-image"
    case uncacheable
    /// Excluded by ``OtherFormats/skip``.
    case otherFormat = "other-format"
    /// Excluded by ``ImageFilter``, like the next two.
    case belowMinimumSize = "min-size"
    case overMaximumAspect = "max-aspect"
    case belowMinimumBytes = "min-bytes"
    /// Excluded by the rule for its URL.
    case notSelected = "not-selected"
    /// Excluded by a directive of its origin that the user follows.
    case robots
    case bodyFilter = "body-filter"
    case disk
    case `internal`

    /// Whether the outcome is ``Outcome/excluded`` instead of failed: the image is fine, but a rule
    /// of the user excludes it.
    package var isExclusion: Bool {
        switch self {
        case .otherFormat, .belowMinimumSize, .overMaximumAspect, .belowMinimumBytes,
            .notSelected, .robots:
            true
        case .invalidEntry, .unsupportedScheme, .refusedAddress, .dns, .connect, .tls, .timeout,
            .stalled, .interrupted, .redirect, .httpStatus, .tooLarge, .notAnImage, .corruptImage,
            .tooManyPixels, .unsupportedImage, .uncacheable, .bodyFilter, .disk, .internal:
            false
        }
    }

    /// Whether the program or this machine is at fault, so that the failure says nothing about the
    /// origin.
    package var isLocal: Bool { self == .disk || self == .internal }

    /// Whether an image was received, and is none that can be used.
    package var isAboutImage: Bool {
        switch self {
        case .notAnImage, .corruptImage, .tooManyPixels, .unsupportedImage, .otherFormat,
            .belowMinimumSize, .overMaximumAspect, .belowMinimumBytes, .bodyFilter:
            true
        case .invalidEntry, .unsupportedScheme, .refusedAddress, .dns, .connect, .tls, .timeout,
            .stalled, .interrupted, .redirect, .httpStatus, .tooLarge, .uncacheable, .notSelected,
            .robots, .disk, .internal:
            false
        }
    }

    package var index: Int { FailureReason.indices[self] ?? 0 }

    private static let indices = Dictionary(
        uniqueKeysWithValues: allCases.enumerated().map { ($1, $0) })
}

/// The consequence of a failure for later runs. The raw values are stored.
package enum FailureClass: String, CaseIterable, Hashable, Sendable {
    /// Another request gives the same response: the URL is blacklisted from the first failed run on
    /// (`uncacheable` from the second).
    case permanent
    /// The failure may be temporary: the URL is retried in this run and in later ones. It is
    /// blacklisted after ``FailurePolicy/transientRunsToBlacklist`` failed runs in a row.
    case transient
    /// The cause is local or lies with the user: neither blacklisted nor counted. Unless
    /// ``FailurePolicy/isKnown(of:httpStatus:)``, nothing is stored, and the URL's row stays as it
    /// is.
    case ours
}

/// A reason for failing, and one line for the user.
package struct Failure: Error, Hashable, Sendable {
    package let reason: FailureReason
    package let message: String

    package init(_ reason: FailureReason, _ message: String) {
        self.reason = reason
        self.message = message
    }
}

/// The failure that an earlier run recorded for a key.
package typealias FormerFailure = (
    url: String, reason: FailureReason, httpStatus: Int?, host: HostMark?
)

/// The part of a URL's host in its failure, as the failure's row stores it.
package enum HostMark: String, Sendable {
    /// No URL of the host succeeded in the run.
    case down
    /// The failure was the host's, and was reported as an outage or with others of the host.
    case fault
}
