import CacheStorage
import EntryLifecycle
import EntryQueue
import PrefetchModel

/// Which entries of the lists are the first of their key: the keys and resources that a run has seen.
struct Intake {
    /// What an entry is among those that were read before it.
    enum Arrival {
        /// The first of its key.
        case new
        /// Fresh, and the first of its resource.
        case warm(resource: Int64, expiresAt: Timestamp)
        /// Of the key of an entry that was not warm.
        case duplicate(of: Int)
        /// Of the resource of one that was.
        case warmDuplicate(expiresAt: Timestamp?)
        /// It shares its key with one that is asked for differently, which stands there: whichever was
        /// stored would be wrong for the other.
        case conflicting(since: String)
    }

    private let store: EntryStore
    /// What entries ask for that say nothing else.
    private let variants: VariantSet
    /// The keys of all entries that were not warm, by the entries' identifiers.
    private var seen: SeenKeys
    /// The resources of those that were.
    private var warm = ResourceSet()
    private var unusualWarm = UnusualWarmEntries()

    init(store: EntryStore, variants: VariantSet, random: some RandomNumberGenerator) {
        self.store = store
        self.variants = variants
        var random = random
        seen = SeenKeys(using: &random)
    }

    /// Takes the next entry.
    mutating func arrival(of entry: RawEntry, _ state: EntryState) -> Arrival {
        // A run over a warm list has seen no other entries, and need not hash for them.
        if !seen.isEmpty, let first = seen[entry.fingerprint] {
            guard entry.requestMark(beside: variants) == store.requestMark(of: first) else {
                let (manifest, line) = store.position(of: first)
                return .conflicting(since: "\(manifest):\(line)")
            }
            return .duplicate(of: first)
        }
        if case .fresh(let resource, let expiresAt, lacksAttributes: false) = state {
            guard warm.insert(resource) else {
                return warmDuplicate(entry, of: resource, expiresAt: expiresAt)
            }
            let mark = entry.requestMark(beside: variants)
            if mark != 0 { unusualWarm.note(entry, mark, of: resource) }
            return .warm(resource: resource, expiresAt: expiresAt)
        }
        // What was fresh may be stale by the lifetime that another line gives it.
        if let resource = state.resource, warm.contains(resource) {
            return warmDuplicate(entry, of: resource, expiresAt: state.expiresAt)
        }
        return .new
    }

    /// A new identifier, by which those of the same key find the entry.
    mutating func identifier(for entry: RawEntry) -> Int {
        seen.append(entry.fingerprint)
        let identifier = seen.count - 1
        store.notePosition(
            identifier, manifest: entry.manifest, line: entry.record.line,
            requestMark: entry.requestMark(beside: variants))
        return identifier
    }

    private func warmDuplicate(
        _ entry: RawEntry, of resource: Int64, expiresAt: Timestamp?
    ) -> Arrival {
        let first = unusualWarm.entry(of: resource)
        guard entry.requestMark(beside: variants) == first?.requestMark ?? 0 else {
            return .conflicting(since: first?.position ?? "an earlier line")
        }
        return .warmDuplicate(expiresAt: expiresAt)
    }
}

extension EntryState {
    fileprivate var expiresAt: Timestamp? {
        if case .fresh(_, let expiresAt, _) = self { expiresAt } else { nil }
    }

    /// What is to be done for an entry that is not warm; nil for one that is not dealt with.
    var plan: Entry.Plan? {
        switch self {
        case .missing: .fetch
        case .stale(let resource, _), .derivable(let resource, isFresh: false),
            .incomplete(let resource, _):
            .refresh(resource: resource)
        case .derivable(let resource, isFresh: true): .derive(resource: resource)
        case .fresh(let resource, _, _): .annotate(resource: resource)
        case .invalid, .blacklisted: nil
        }
    }
}
