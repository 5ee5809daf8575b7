import CacheStorage
import EntryLifecycle
import EntryQueue
import PrefetchModel

/// The keys and resources seen in a run, to find the first entry of each key.
struct Intake {
    /// An entry's relation to earlier ones.
    enum Arrival {
        /// The first of its key.
        case new
        /// Fresh, and the first of its resource.
        case warm(resource: Int64, expiresAt: Timestamp)
        /// It has the key of an earlier entry that was not warm.
        case duplicate(of: Int)
        /// It has the resource of an earlier warm entry.
        case warmDuplicate(expiresAt: Timestamp?)
        /// It has the key of the entry at that position, but another request: either's result would
        /// be wrong for the other.
        case conflicting(since: String)

        /// Whether it is the first entry of its key.
        var isFirst: Bool {
            switch self {
            case .new, .warm: true
            case .duplicate, .warmDuplicate, .conflicting: false
            }
        }
    }

    private let store: EntryStore
    /// The variants of entries without fields of their own.
    private let variants: VariantSet
    /// The keys of all entries that were not warm, by identifier.
    private var seen: SeenKeys
    /// The resources of warm entries.
    private var warm = ResourceSet()
    private var unusualWarm = UnusualWarmEntries()

    init(store: EntryStore, variants: VariantSet, random: some RandomNumberGenerator) {
        self.store = store
        self.variants = variants
        var random = random
        seen = SeenKeys(using: &random)
    }

    /// Classifies the next entry.
    mutating func arrival(of entry: RawEntry, _ state: EntryState) -> Arrival {
        // A run over a warm list has seen no other entries, and saves the hash.
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
        // A fresh image may be stale by the lifetime of another line.
        if let resource = state.resource, warm.contains(resource) {
            return warmDuplicate(entry, of: resource, expiresAt: state.expiresAt)
        }
        return .new
    }

    /// Returns a new identifier, by which later entries of the key find this one.
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

    /// The work for an entry that is not warm; nil without any.
    var plan: Entry.Plan? {
        switch self {
        case .missing: .fetch
        case .stale(let resource, _), .derivable(let resource, freshUntil: nil),
            .incomplete(let resource, _):
            .refresh(resource: resource)
        case .derivable(let resource, let expiresAt?):
            .derive(resource: resource, expiresAt: expiresAt)
        case .fresh(let resource, _, _): .annotate(resource: resource)
        case .invalid, .blacklisted: nil
        }
    }
}
