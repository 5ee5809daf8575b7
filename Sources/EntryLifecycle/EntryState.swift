package import PrefetchModel

/// The state of an entry in the cache, and so the work that it needs.
package enum EntryState: Hashable, BitwiseCopyable, Sendable {
    /// The line is invalid; nothing was looked up.
    case invalid
    /// No work is left.
    case fresh(expiresAt: Timestamp)
    /// Fresh, but the resource lacks attributes of the entry, which are stored.
    case unannotated(expiresAt: Timestamp)
    /// Not stored by the recipes of the entry: it is fetched.
    case missing
    /// A copy is stored: it is revalidated, or its missing variants are fetched.
    case stale(Staleness)
    /// Fresh, but for variants that are made from the stored original, or have the bytes of
    /// another one.
    case derivable(expiresAt: Timestamp)
    /// To be requested, but fresh in the seed cache: its copy is taken.
    case seeded(expiresAt: Timestamp)
    /// An earlier line of its key has ended in this run: the missing variants of that copy are
    /// made, or it is fetched once more.
    case extended
    case blacklisted(Int)

    package enum Staleness: Hashable, BitwiseCopyable, Sendable {
        /// By its lifetime, or by the rules of the run.
        case expired(at: Timestamp)
        case otherSource
        /// Its source is a file that has changed.
        case changedFile
        /// The variant at this position cannot be made from the stored images.
        case incomplete(position: Int32)
        /// Its variants can be made from the stored original, which is not fresh.
        case original
    }

    /// The expiry, by the rules of the run, of a fresh copy with all variants; nil for others.
    package var freshUntil: Timestamp? {
        switch self {
        case .fresh(let expiresAt), .unannotated(let expiresAt): expiresAt
        case .invalid, .missing, .stale, .derivable, .seeded, .extended, .blacklisted: nil
        }
    }

    package var asksOrigin: Bool {
        switch self {
        case .missing, .stale: true
        case .invalid, .fresh, .unannotated, .derivable, .seeded, .extended, .blacklisted: false
        }
    }

    /// Whether the resource is stored under the entry's key, since the list was read or before, so
    /// that it is found by the key.
    package var isFoundByKey: Bool {
        switch self {
        case .seeded, .extended: true
        case .invalid, .fresh, .unannotated, .missing, .stale, .derivable, .blacklisted: false
        }
    }

    package var isSeeded: Bool { if case .seeded = self { true } else { false } }

    package var isUnannotated: Bool { if case .unannotated = self { true } else { false } }
}
