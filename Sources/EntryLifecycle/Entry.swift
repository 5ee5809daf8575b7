package import PrefetchModel

/// One manifest line that is not warm, while it waits. It also makes the variants of later lines
/// with its key.
///
/// Small, since many wait in memory; without references to stages, since others wait in a file.
package struct Entry: Sendable {
    /// The work that an entry needs.
    package enum Plan: Hashable, Sendable {
        /// Nothing is stored: fetch it.
        case fetch
        /// A copy is stored: revalidate it, or fetch its missing variants.
        case refresh(resource: Int64)
        /// Make the missing variants from the stored original, without a request: by this run's
        /// rules the copy is fresh until then.
        case derive(resource: Int64, expiresAt: Timestamp)
        /// The entry is warm: store its attributes.
        case annotate(resource: Int64)
        /// Take the copy of the seed cache: by this run's rules it is fresh until then.
        case adopt(expiresAt: Timestamp)
        /// An earlier line of its key has ended in this run: make the missing variants of that
        /// copy, or fetch it once more.
        case extend

        /// The stored resource; nil for none, or if it is to be found by its key.
        package var resource: Int64? {
            switch self {
            case .fetch, .adopt, .extend: nil
            case .refresh(let resource), .derive(let resource, _), .annotate(let resource):
                resource
            }
        }

        package var isAnnotation: Bool { if case .annotate = self { true } else { false } }

        package var isAdoption: Bool { if case .adopt = self { true } else { false } }

        package var isExtension: Bool { if case .extend = self { true } else { false } }

        /// Whether the entry needs a turn at its host.
        package var asksOrigin: Bool {
            switch self {
            case .fetch, .refresh: true
            case .derive, .adopt, .annotate, .extend: false
            }
        }
    }

    package let manifest: String
    package let line: Int
    /// The first URL of its line. Includes the credentials of the manifest.
    package let listedURL: RequestURL
    /// The number of the URL in use among those of its line, 0 for the first.
    package internal(set) var alternative = 0
    package let key: String
    package internal(set) var priority: Priority
    package let queuedAt: ContinuousClock.Instant
    package let plan: Plan
    /// The number of the variants that its own line asks for.
    package let variantSet: UInt32
    /// Whether an earlier run recorded a failure of its key.
    package var failedBefore = false
    /// Whether an earlier run stored anything about it.
    package var wasKnownBefore: Bool {
        plan.resource != nil || plan.isExtension || plan.isAdoption || failedBefore
    }
    /// Boxed: few entries have extras, and the others need no memory for them.
    private let box: ExtrasBox?
    package var extras: EntryExtras? { box?.extras }
    /// The URL in use.
    package var url: RequestURL {
        alternative == 0 ? listedURL : extras?.alternatives[alternative - 1] ?? listedURL
    }

    private final class ExtrasBox: Sendable {
        let extras: EntryExtras

        init(_ extras: EntryExtras) {
            self.extras = extras
        }
    }

    /// The header fields of its line, for the URL in use. Those of a table of hosts belong to the
    /// first URL, so another origin gets none.
    package var headers: [HeaderField] {
        guard let headers = extras?.headers, !headers.isEmpty else { return [] }
        return alternative == 0 || url.origin == listedURL.origin ? headers : []
    }

    package init(
        manifest: String, line: Int, url: RequestURL, key: String, priority: Priority, plan: Plan,
        extras: EntryExtras?, variantSet: UInt32 = 0, alternative: Int = 0,
        queuedAt: ContinuousClock.Instant
    ) {
        self.manifest = manifest
        self.line = line
        listedURL = url
        self.key = key
        self.priority = priority
        self.queuedAt = queuedAt
        self.plan = plan
        self.variantSet = variantSet
        self.alternative = alternative
        box = extras.map(ExtrasBox.init)
    }

    /// A later line of the same key, which ends with the entry.
    package struct Duplicate: Sendable {
        package let manifest: String
        package let line: Int
        package let url: String
        /// The number of the variants that it asks for.
        package let variantSet: UInt32
        /// Whether no earlier line asked for all of them.
        package let addsVariants: Bool
        /// Whether all of them were stored and fresh when it was read.
        package let isFresh: Bool
        /// As ``EntryExtras/columns``.
        package let columns: [UInt8]?

        /// The approximate size of its texts.
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
