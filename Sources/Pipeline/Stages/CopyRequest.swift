import CacheStorage
import EntryLifecycle
import PrefetchModel
import Scheduling

struct CopyRequest: Sendable {
    enum Subject: Sendable {
        case entry(EntryLookUp)
        /// The stored image of a key after the end of its first entry.
        case stored(Recipe)
    }

    /// A manifest's entry, and the knowledge about it.
    struct EntryLookUp: Sendable {
        /// Nil if nothing is stored, or if ``isFoundByKey``: then the key leads to it.
        let resource: Int64?
        /// Whether an earlier line of its key may have stored the resource since the list was read.
        var isFoundByKey = false
        var isSeeded = false
        let failedBefore: Bool
        let variants: VariantSet
        /// Whether the look-up is before the entry's turn.
        let isAhead: Bool
    }

    /// Returned with the findings.
    let token: Int
    let key: String
    let subject: Subject
    /// A given-up host and the cause; nil without one.
    var trouble: (host: String, cause: HostPacing.GiveUpCause)?

    var asEntry: EntryLookUp? { if case .entry(let entry) = subject { entry } else { nil } }
}

struct CopyFindings: Sendable {
    enum CopyResult: Sendable {
        /// Without the kept part of a body, which is not looked up.
        case entry(Findings, isAhead: Bool)
        case stored((image: StoredImage, expiresAt: Timestamp)?)
    }

    let token: Int
    let found: CopyResult
}
