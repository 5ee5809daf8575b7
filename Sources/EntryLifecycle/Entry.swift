package import PrefetchModel

/// One manifest line that is not warm, while it waits. It also makes the variants of later lines
/// with its key.
///
/// Small, since many wait in memory; without references to stages, since others wait in a file.
package struct Entry: Sendable {
    package let manifest: String
    package let line: Int
    /// The first URL of its line. Includes the credentials of the manifest.
    package let listedURL: RequestURL
    /// The number of the URL in use in its line, 0 for the first.
    package internal(set) var alternative = 0
    package let key: String
    package internal(set) var priority: Priority
    package let queuedAt: ContinuousClock.Instant
    package let state: EntryState
    /// The stored resource of its key, if any.
    package let resource: Int64?
    package let variantSet: UInt32
    package var failedBefore = false
    /// Whether an earlier run stored anything about it.
    package var wasKnownBefore: Bool {
        resource != nil || state.isFoundByKey || failedBefore
    }
    /// One at most. Boxed: few entries have extras, and the others need no memory for them.
    private let box: [EntryExtras]
    package var extras: EntryExtras? { box.first }
    package var url: RequestURL {
        alternative == 0 ? listedURL : extras?.alternatives[alternative - 1] ?? listedURL
    }

    /// Whether the image of its key is the entry's, see ``PrefetchModel/StoredURLs``.
    package func isImage(at location: ResourceLocation) -> Bool {
        StoredURLs(location).areOfImage(at: listedURL, mirrors: extras?.alternatives ?? [])
    }

    /// The header fields of its line, for the URL in use. Fields from a table of hosts belong to
    /// the first URL, so another origin gets none.
    package var headers: [HeaderField] {
        guard let headers = extras?.headers, !headers.isEmpty else { return [] }
        return alternative == 0 || url.origin == listedURL.origin ? headers : []
    }

    package init(
        manifest: String, line: Int, url: RequestURL, key: String, priority: Priority,
        state: EntryState, resource: Int64?, extras: EntryExtras?, variantSet: UInt32 = 0,
        alternative: Int = 0, queuedAt: ContinuousClock.Instant
    ) {
        self.manifest = manifest
        self.line = line
        listedURL = url
        self.key = key
        self.priority = priority
        self.queuedAt = queuedAt
        self.state = state
        self.resource = resource
        self.variantSet = variantSet
        self.alternative = alternative
        box = extras.map { [$0] } ?? []
    }

    /// A later line of the same key, which ends with the entry.
    package struct Duplicate: Sendable {
        package let manifest: String
        package let line: Int
        package let url: String
        package let variantSet: UInt32
        package let addsVariants: Bool
        /// Whether all of its variants were stored and fresh when it was read.
        package let isFresh: Bool
        package let columns: [UInt8]?

        package var textBytes: Int { url.utf8.count + (columns?.count ?? 0) }

        package init(
            manifest: String, line: Int, url: String, variantSet: UInt32 = 0,
            addsVariants: Bool = false, isFresh: Bool = false, columns: [UInt8]? = nil
        ) {
            self.manifest = manifest
            self.line = line
            self.url = url
            self.variantSet = variantSet
            self.addsVariants = addsVariants
            self.isFresh = isFresh
            self.columns = columns
        }
    }
}
