import CacheStorage
import EntryLifecycle
import EntryQueue
import Hashing
import PrefetchModel

/// The keys and resources seen in a run, to find the first entry of each key.
struct Intake {
    enum Arrival {
        /// The first of its key, or the first that is not warm.
        case new
        /// Fresh, and the first of its resource.
        case warm(resource: Int64, expiresAt: Timestamp)
        /// It has the key of an earlier entry that was not warm, which makes all its variants.
        case duplicate(of: Int)
        /// It has the key of an earlier entry that was not warm, and more variants.
        case addition(to: Int)
        /// It has the resource of earlier warm entries with all its variants.
        case warmDuplicate(expiresAt: Timestamp?)
        /// Fresh, with the resource of earlier warm entries without all of its variants.
        case warmAddition(resource: Int64, expiresAt: Timestamp)
        /// It has the key of an earlier entry, but another request: either's result would be wrong
        /// for the other. Or both have too many variants together.
        case refused(message: String)
        /// Blacklisted, with the key of an earlier entry that was not warm.
        case blacklisted

        var isWarm: Bool {
            switch self {
            case .warm, .warmAddition: true
            case .new, .duplicate, .addition, .warmDuplicate, .refused, .blacklisted: false
            }
        }

        var isFirst: Bool {
            switch self {
            case .new, .warm: true
            case .duplicate, .addition, .warmDuplicate, .warmAddition, .refused, .blacklisted:
                false
            }
        }
    }

    private let store: EntryStore
    private let variants: VariantSet
    private var seen: SeenKeys
    /// Identifiers of entries that ended without a request. No other entry makes their variants.
    private var unrequested = ResourceSet()
    private var known = ResourceSet()
    /// Identifiers of entries with another line of their key that was not requested.
    private var besideUnrequested = ResourceSet()
    /// By the first entry of a key that was not warm: its last one, plus one.
    private var successors = ChunkedArray<UInt32>()
    private var warm = ResourceSet()
    private var unusualWarm = UnusualWarmEntries()
    private var noted = ResourceSet()
    /// The number of the last line's own variants: neighbouring lines mostly have the same fields.
    private var last: (extras: EntryExtras, number: UInt32)?

    init(store: EntryStore, variants: VariantSet, random: some RandomNumberGenerator) {
        self.store = store
        self.variants = variants
        var random = random
        seen = SeenKeys(using: &random)
    }

    mutating func variantSet(of extras: EntryExtras?) throws -> UInt32 {
        guard let extras, extras.changesVariants else { return 0 }
        if let last, last.extras.hasVariants(of: extras) { return last.number }
        let number = try store.variantSets.number(of: variants.applying(extras))
        last = (extras, number)
        return number
    }

    /// Classifies the next entry, a record of a batch, and notes the variants of its key.
    mutating func arrival(
        of entry: inout RawEntry, _ number: Int, in looked: LookedUpBatch
    ) throws -> Arrival {
        entry.variantSet = try variantSet(of: entry.extras)
        entry.variantsOfKey = entry.variantSet
        return try arrival(
            of: &entry, looked.findings[number],
            // A failure that may have been the host's concerns all lines of the key.
            isBlacklisted: looked.blacklisting(of: number)?.isOfHost == false)
    }

    /// `other` is the URL of the entry that has the key; nil if it is not known.
    private static func conflict(
        of entry: RawEntry, since position: String, _ mark: UInt32, _ other: String?
    ) -> Arrival {
        // Without a mark, the key is the URL.
        let other = (mark == 0 ? entry.key : other).map { RequestURL(normalized: $0) }
        let url = RequestURL(normalized: entry.url).withoutCredentials
        let difference =
            switch other?.withoutCredentials {
            case nil: "but a different URL or different fields header= or sha256="
            case url: "but different fields header= or sha256=, or credentials"
            case let other?: "which is that of \(other)"
            }
        return .refused(message: "same key as \(position), \(difference)")
    }

    private static func overflow(since position: String) -> Arrival {
        .refused(message: "more than \(VariantSet.maximumCount) variants together with \(position)")
    }

    /// Other lines of its key do not make the variants of one that `isBlacklisted`.
    private mutating func arrival(
        of entry: inout RawEntry, _ finding: EntryFinding, isBlacklisted: Bool
    ) throws -> Arrival {
        // A run over a warm list has seen no other entries, and saves the hash.
        if !seen.isEmpty, let last = last(of: entry.fingerprint) {
            let isApart =
                !isBlacklisted && unrequested.contains(Int64(last))
                && store.positions.variantSet(of: last) != entry.variantSet
            guard isApart, entry.requestMark == store.positions.requestMark(of: last) else {
                return try arrival(of: &entry, after: last, isBlacklisted: isBlacklisted)
            }
        }
        guard let resource = finding.resource else { return .new }
        if case .fresh(let expiresAt) = finding.state {
            guard warm.insert(resource) else {
                return try warmArrival(of: &entry, finding, after: resource, isBlacklisted)
            }
            let mark = entry.requestMark
            if mark != 0 || entry.variantSet != 0 { unusualWarm.note(entry, mark, of: resource) }
            return .warm(resource: resource, expiresAt: expiresAt)
        }
        // A fresh image may be stale by the lifetime of another line.
        if warm.contains(resource) {
            return try warmArrival(of: &entry, finding, after: resource, isBlacklisted)
        }
        return .new
    }

    private func last(of key: KeyFingerprint) -> Int? {
        guard let first = seen[key] else { return nil }
        return successors[first] == 0 ? first : Int(successors[first]) - 1
    }

    private mutating func arrival(
        of entry: inout RawEntry, after first: Int, isBlacklisted: Bool
    ) throws -> Arrival {
        let mark = store.positions.requestMark(of: first)
        guard entry.requestMark == mark else {
            return Intake.conflict(
                of: entry, since: store.positions.place(of: first), mark,
                store.positions.url(of: first))
        }
        let before = store.positions.variantSet(of: first)
        guard let both = try store.variantSets.union(before, entry.variantSet) else {
            return Intake.overflow(since: store.positions.place(of: first))
        }
        guard both != before else {
            entry.variantsOfKey = both
            return .duplicate(of: first)
        }
        if isBlacklisted {
            besideUnrequested.insert(Int64(first))
            return .blacklisted
        }
        entry.variantsOfKey = both
        store.positions.note(variantSet: both, of: first)
        return .addition(to: first)
    }

    private mutating func warmArrival(
        of entry: inout RawEntry, _ finding: EntryFinding, after resource: Int64,
        _ isBlacklisted: Bool
    ) throws -> Arrival {
        let expiresAt = finding.state.freshUntil
        let mark = unusualWarm.requestMark(of: resource)
        guard entry.requestMark == mark else {
            return Intake.conflict(
                of: entry, since: unusualWarm.position(of: resource), mark,
                unusualWarm.url(of: resource))
        }
        let before = unusualWarm.variantSet(of: resource)
        guard let both = try store.variantSets.union(before, entry.variantSet) else {
            return Intake.overflow(since: unusualWarm.position(of: resource))
        }
        guard both != before else { return .warmDuplicate(expiresAt: expiresAt) }
        if isBlacklisted { return .new }
        entry.variantsOfKey = both
        unusualWarm.note(variantSet: both, of: resource)
        guard let expiresAt else { return .new }
        return .warmAddition(resource: resource, expiresAt: expiresAt)
    }

    /// Returns a new identifier, by which later entries of the key find this one.
    mutating func identifier(for entry: RawEntry) -> Int {
        let mark = entry.requestMark
        return identifier(
            of: entry.fingerprint, manifest: entry.manifest, line: entry.record.line,
            requestMark: mark, url: mark == 0 ? nil : entry.url, variantSet: entry.variantsOfKey)
    }

    /// Returns a new identifier for a later line of an entry's key that the entry could not take.
    mutating func identifier(
        for line: Entry.Duplicate, of key: KeyFingerprint, after first: Int
    ) -> Int {
        identifier(
            of: key, manifest: line.manifest, line: line.line,
            requestMark: store.positions.requestMark(of: first),
            url: store.positions.url(of: first), variantSet: store.positions.variantSet(of: first))
    }

    private mutating func identifier(
        of key: KeyFingerprint, manifest: String, line: Int, requestMark: UInt32, url: String?,
        variantSet: UInt32
    ) -> Int {
        let identifier = seen.count
        if let first = seen[key], let last = last(of: key) {
            if unrequested.contains(Int64(last)) || besideUnrequested.contains(Int64(last)) {
                besideUnrequested.insert(Int64(identifier))
            }
            successors[first] = UInt32(identifier + 1)
        }
        seen.append(key)
        store.positions.note(
            identifier, manifest: manifest, line: line, requestMark: requestMark, url: url,
            variantSet: variantSet)
        return identifier
    }

    mutating func noteKnown(_ identifier: Int) { known.insert(Int64(identifier)) }

    func isKnown(_ identifier: Int) -> Bool { known.contains(Int64(identifier)) }

    mutating func noteUnrequested(_ identifier: Int) { unrequested.insert(Int64(identifier)) }

    /// Whether a line of an entry's key was not requested, so that its failure stays.
    func isBesideUnrequested(_ identifier: Int) -> Bool {
        besideUnrequested.contains(Int64(identifier))
    }

    // MARK: Names of variants

    /// Whether to note the use of a warm entry's variants, which earlier lines of its resource do
    /// not request.
    ///
    /// `main` is the use of that name by the line, together with the earlier ones.
    func mustNoteAddition(to resource: Int64, _ finding: EntryFinding, main: NameOfMain) -> Bool {
        // Any earlier note may have superseded variants of this line.
        if noted.contains(resource) { return true }
        switch main {
        case .unused: return finding.isSuperseded
        case .taken: return finding.isSuperseded || !finding.isReturning
        case .kept: return finding.isReturning
        }
    }

    /// The use of the name `main` by a line, together with earlier ones of its key.
    enum NameOfMain {
        case unused
        /// An earlier line has another `main`, so that this one's has another name.
        case taken
        case kept
    }

    mutating func noteUse(of resource: Int64) { noted.insert(resource) }
}

/// The warm entries of a run with unusual requests for their keys. They distinguish duplicates
/// from lines that only share the key.
struct UnusualWarmEntries {
    private var positions = EntryPositions()

    /// Larger identifiers are not worth a table.
    private static let largestResource: Int64 = 1 << 32

    private static func place(_ resource: Int64) -> Int? {
        (0..<largestResource).contains(resource) ? Int(resource) : nil
    }

    mutating func note(_ entry: RawEntry, _ mark: UInt32, of resource: Int64) {
        guard let place = UnusualWarmEntries.place(resource) else { return }
        positions.note(
            place, manifest: entry.manifest, line: Int(entry.record.line), requestMark: mark,
            url: mark == 0 ? nil : entry.url, variantSet: entry.variantSet)
    }

    /// Changes the variants of all lines of a resource. The first one may be a usual one.
    mutating func note(variantSet: UInt32, of resource: Int64) {
        guard let place = UnusualWarmEntries.place(resource) else { return }
        positions.note(variantSet: variantSet, of: place)
    }

    func variantSet(of resource: Int64) -> UInt32 {
        UnusualWarmEntries.place(resource).map(positions.variantSet) ?? 0
    }

    func requestMark(of resource: Int64) -> UInt32 {
        UnusualWarmEntries.place(resource).map(positions.requestMark) ?? 0
    }

    func url(of resource: Int64) -> String? {
        UnusualWarmEntries.place(resource).flatMap(positions.url)
    }

    /// The position of a resource's first entry, as messages name it. That of a usual one is not
    /// known.
    func position(of resource: Int64) -> String {
        UnusualWarmEntries.place(resource).map(positions.place) ?? "an earlier line"
    }
}
