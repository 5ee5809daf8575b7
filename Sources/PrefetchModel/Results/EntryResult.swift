/// One line of the report: what happened to one manifest entry.
package struct EntryResult: Sendable {
    /// The manifest's path as the user gave it, `-` for standard input.
    package var manifest: String
    /// 1 for the first line.
    package var line: Int
    /// As requested, user information included, or the beginning of a bad line; print it only as ``shownURL``.
    package var url: String
    package var key: String
    package var outcome: Outcome
    /// Set exactly when the outcome is `failed`, `excluded` by a rule that looks at the image, a `duplicate` of such an
    /// entry, or `blacklisted`: then why it failed before.
    package var reason: FailureReason?
    /// Whether it failed in an earlier run, too, for the same reason and with the same status.
    package var isKnown = false
    /// Details for people, one line; nil where there is nothing to add.
    package var message: String?
    /// Until when an entry is not asked for that is `blacklisted`, or `excluded` by what an earlier run has seen; nil for
    /// every other.
    package var blacklistedUntil: Timestamp?
    /// The last response's status; nil when none arrived.
    package var httpStatus: Int?
    /// Nil where nothing was asked for.
    package var exchange: Exchange?
    /// Times that the entry was tried, each from its own URL on; the redirects of an attempt are part of
    /// it. 0 without a request.
    package var attempts: Int
    /// The position in which the entry's transfer began, 1 for the run's first; nil when none did.
    package var start: Int?
    /// Body bytes that arrived.
    package var bytesReceived: Int
    /// What is stored of ``VariantSet/primary``, when something is.
    package var stored: StoredImage?
    /// What became of each variant, in the order of the entry's ``VariantSet``; empty for an entry that
    /// asks for `main` alone, of which the other fields tell all.
    package var variants: [VariantResult] = []
    /// Nil where nothing is stored, and for what has to be validated at every use.
    package var expiresAt: Timestamp?
    package var stages: StageDurations
    /// Made in this run and stored; nil where none was.
    package var placeholder: Placeholder?

    package init(
        manifest: String, line: Int, url: String, key: String, outcome: Outcome,
        reason: FailureReason? = nil, message: String? = nil, httpStatus: Int? = nil,
        attempts: Int = 0, start: Int? = nil, bytesReceived: Int = 0, stored: StoredImage? = nil,
        expiresAt: Timestamp? = nil, exchange: Exchange? = nil,
        stages: StageDurations = StageDurations()
    ) {
        self.manifest = manifest
        self.line = line
        self.url = url
        self.key = key
        self.outcome = outcome
        self.reason = reason
        self.message = message
        self.httpStatus = httpStatus
        self.attempts = attempts
        self.start = start
        self.bytesReceived = bytesReceived
        self.stored = stored
        self.expiresAt = expiresAt
        self.exchange = exchange
        self.stages = stages
    }

    /// For people, without secrets; what is no URL is as the line has it.
    package var shownURL: String { shown(url) }
    /// The same of the key.
    package var shownKey: String { key == url ? shownURL : shown(key) }

    private func shown(_ text: String) -> String {
        switch reason {
        case .invalidEntry, .unsupportedScheme: RedactedURL(line: text).description
        default: RedactedURL(text).description
        }
    }

    /// The requests that a run made for an entry, as its last response leaves them.
    package struct Exchange: Hashable, Sendable {
        /// Where redirects led, without user information; nil without any. Print it only through
        /// ``RedactedURL``.
        package var finalURL: String?
        /// The last response's field as it came; nil without one, or without a whole response.
        package var contentType: String?
        /// Redirects that were followed; none when the request went straight to where the permanent
        /// redirects of an earlier run led.
        package var redirects: Int

        package init(finalURL: String?, contentType: String?, redirects: Int) {
            self.finalURL = finalURL
            self.contentType = contentType
            self.redirects = redirects
        }
    }
}

/// How long an entry spent where; nil for a stage it did not reach. Queue and transfer are waiting
/// time, decode and encode processor time.
package struct StageDurations: Sendable {
    package var queue: Duration?
    package var transfer: Duration?
    package var decode: Duration?
    package var encode: Duration?

    package init(
        queue: Duration? = nil, transfer: Duration? = nil, decode: Duration? = nil,
        encode: Duration? = nil
    ) {
        self.queue = queue
        self.transfer = transfer
        self.decode = decode
        self.encode = encode
    }
}

/// A stored variant as the report and `get` describe it.
package struct StoredImage: Hashable, Sendable {
    package let digest: ContentDigest
    package let format: ImageFormat
    /// False for bytes that are stored as they came since their format is not decoded.
    package let isDecoded: Bool
    /// 0 where neither width nor height is known.
    package let widthInPixels: Int
    package let heightInPixels: Int
    package let size: ByteCount

    package init(
        digest: ContentDigest, format: ImageFormat, isDecoded: Bool = true, widthInPixels: Int,
        heightInPixels: Int, size: ByteCount
    ) {
        self.digest = digest
        self.format = format
        self.isDecoded = isDecoded
        self.widthInPixels = widthInPixels
        self.heightInPixels = heightInPixels
        self.size = size
    }

    /// Nil where it is not known.
    package var knownWidth: Int? { widthInPixels > 0 ? widthInPixels : nil }
    package var knownHeight: Int? { heightInPixels > 0 ? heightInPixels : nil }

    /// Relative to the cache directory: `content/ab/<64 hexadecimal digits>.<extension>`.
    package var relativePath: String {
        let name = digest.description
        return "content/\(name.prefix(2))/\(name).\(format.fileExtension)"
    }
}
