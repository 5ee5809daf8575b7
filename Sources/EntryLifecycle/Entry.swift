package import PrefetchModel

/// One line of a manifest that is not warm, as it waits to be dealt with.
///
/// Small, since many wait in memory, and without any reference to a stage, since others wait in a
/// file.
package struct Entry: Sendable {
    /// What has to be done for an entry.
    package enum Plan: Hashable, Sendable {
        /// Nothing of it is stored.
        case fetch
        /// A copy is stored: the origin is asked whether it is still good, or for what is missing.
        case refresh(resource: Int64)
        /// What is missing is made from the stored original, without asking.
        case derive(resource: Int64)
        /// It is warm, and gets attributes.
        case annotate(resource: Int64)

        /// What is stored of the entry.
        package var resource: Int64? {
            switch self {
            case .fetch: nil
            case .refresh(let resource), .derive(let resource), .annotate(let resource): resource
            }
        }

        package var isAnnotation: Bool { if case .annotate = self { true } else { false } }

        /// Whether the entry waits for a host.
        package var asksOrigin: Bool {
            switch self {
            case .fetch, .refresh: true
            case .derive, .annotate: false
            }
        }
    }

    package let manifest: String
    package let line: Int
    /// With credentials when the manifest has them.
    package let url: RequestURL
    package let key: String
    package internal(set) var priority: Priority
    package let queuedAt: ContinuousClock.Instant
    package let plan: Plan
    /// Whether an earlier run has left a failure of its key.
    package var failedBefore = false
    /// Whether an earlier run has left anything of it.
    package var wasKnownBefore: Bool { plan.resource != nil || failedBefore }
    /// The fields that few entries have, in a box, since the others wait in memory without them.
    private let box: ExtrasBox?
    package var extras: EntryExtras? { box?.extras }

    private final class ExtrasBox: Sendable {
        let extras: EntryExtras

        init(_ extras: EntryExtras) {
            self.extras = extras
        }
    }

    package init(
        manifest: String, line: Int, url: RequestURL, key: String, priority: Priority, plan: Plan,
        extras: EntryExtras?, queuedAt: ContinuousClock.Instant
    ) {
        self.manifest = manifest
        self.line = line
        self.url = url
        self.key = key
        self.priority = priority
        self.queuedAt = queuedAt
        self.plan = plan
        box = extras.map(ExtrasBox.init)
    }

    /// An entry of the same key, which shares this one's fate.
    package struct Duplicate: Sendable {
        package let manifest: String
        package let line: Int
        package let url: String

        package init(manifest: String, line: Int, url: String) {
            self.manifest = manifest
            self.line = line
            self.url = url
        }
    }
}
