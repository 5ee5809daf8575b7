/// One line of the report: the result of one manifest entry.
package struct EntryResult: Sendable {
    /// The manifest's path as the user gave it, `-` for standard input.
    package var manifest: String
    package var line: Int
    /// The line's other columns, as ``EntryExtras/columns``.
    package var columns: [UInt8]?
    /// The requested URL including user information, or the beginning of a bad line; show only
    /// ``shownURL``.
    package var url: String
    package var key: String
    package var outcome: Outcome
    /// Set exactly if the outcome is `failed`, `blacklisted` (the earlier failure's reason),
    /// `excluded` by a rule for images, or a `duplicate` of such an exclusion.
    package var reason: FailureReason?
    /// Whether it failed in an earlier run with the same reason and status.
    package var isKnown = false
    /// One line of details; nil if there is nothing to add.
    package var message: String?
    /// The end of a blacklisting, or of an exclusion remembered from an earlier run; nil for all
    /// other entries.
    package var blacklistedUntil: Timestamp?
    /// The last response's status; nil when none arrived.
    package var httpStatus: Int?
    /// Nil without a request.
    package var exchange: Exchange?
    /// The number of attempts, each from the entry's own URL including redirects; 0 if the entry
    /// had no turn.
    package var attempts = 0
    /// The start position of the entry, 1 for the run's first; nil if it had no turn.
    package var start: Int?
    package var bytesReceived = 0
    /// The stored image of ``VariantSet/primary``, if any.
    package var stored: StoredImage?
    /// The result of each variant, in the order of the entry's ``VariantSet``; empty for entries
    /// that request `main` alone, which the other fields describe.
    package var variants: [VariantResult] = []
    /// Nil if nothing is stored, or the copy must be validated at every use.
    package var expiresAt: Timestamp?
    package var stages = StageDurations()
    /// The time from the run's start to the end of the entry; nil without a request.
    package var endedAfter: Duration?
    /// The image that ``stored`` replaced; nil for a new or unchanged image.
    package var replaced: ReplacedImage?
    /// The placeholder made and stored in this run, if any.
    package var placeholder: Placeholder?
    /// A fault of the processed file that loses no pixel; nil for none.
    package var warning: String?

    /// The display form without secrets; other text than URLs is unchanged.
    package var shownURL: String { shown(url) }
    package var shownKey: String { key == url ? shownURL : shown(key) }

    private func shown(_ text: String) -> String {
        switch reason {
        case .invalidEntry, .unsupportedScheme: RedactedURL(line: text).description
        default: RedactedURL(text).description
        }
    }

    /// The requests made for an entry, as of its last response.
    package struct Exchange: Hashable, Sendable {
        /// The final URL after redirects, without user information; nil without redirects. Show it
        /// only through ``RedactedURL``.
        package var finalURL: String?
        /// The last response's field, unchanged; nil without one, or without a complete response.
        package var contentType: String?
        /// The number of redirects followed; 0 if the request used the stored target of earlier
        /// permanent redirects.
        package var redirects = 0
        /// The last response's connection; nil when none arrived.
        package var connection: ResponseConnection?
        package var cacheStatus: CacheStatus?

        package init() {}
    }
}

extension EntryResult {
    package init(
        manifest: String, line: Int, columns: [UInt8]? = nil, url: String, key: String,
        outcome: Outcome
    ) {
        self.init(
            manifest: manifest, line: line, columns: columns, url: url, key: key,
            outcome: outcome, reason: nil)
    }
}

/// The time that an entry spent in each stage; nil for a stage that it did not reach. Queue and
/// transfer are waiting time, decode and encode processor time.
package struct StageDurations: BitwiseCopyable, Sendable {
    package var queue: Duration?
    package var transfer: Duration?
    package var decode: Duration?
    package var encode: Duration?

    package init() {}
}

/// A stored image that a download with other bytes has replaced.
package struct ReplacedImage: Hashable, Sendable {
    package let fetchedAt: Timestamp
    /// The variant; its file is removed soon after.
    package let image: StoredImage
    /// As ``Placeholder/thumbHash``; nil if it had none.
    package let thumbHash: [UInt8]?

    package init(fetchedAt: Timestamp, image: StoredImage, thumbHash: [UInt8]?) {
        self.fetchedAt = fetchedAt
        self.image = image
        self.thumbHash = thumbHash
    }
}

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
