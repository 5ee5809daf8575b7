import CacheStorage
import EntryLifecycle
import PrefetchModel
import Scheduling

/// A look-up of what earlier runs have left of an entry.
struct CopyRequest: Sendable {
    enum Subject: Sendable {
        case entry(Entry)
        /// What is stored by now of a key whose first entry has ended.
        case stored(Recipe)
    }

    /// An entry of a manifest, and what is known of it already.
    struct Entry: Sendable {
        /// Nil where nothing is stored.
        let resource: Int64?
        /// Whether an earlier run left a failure of its key.
        let failedBefore: Bool
        let variants: VariantSet
        /// Whether its turn is yet to come.
        let isAhead: Bool
    }

    /// Comes back with the findings.
    let token: Int
    let key: String
    let subject: Subject
    /// A host that is given up, and why; nil where none is.
    var trouble: (host: String, cause: HostPacing.GiveUpCause)?

    var asEntry: Entry? { if case .entry(let entry) = subject { entry } else { nil } }
}

/// What was found.
struct CopyFindings: Sendable {
    enum Found: Sendable {
        /// Without the part of a body, which no look-up finds.
        case entry(Findings, isAhead: Bool)
        /// Nil when nothing is stored.
        case stored((image: StoredImage, expiresAt: Timestamp)?)
    }

    let token: Int
    let found: Found
}
