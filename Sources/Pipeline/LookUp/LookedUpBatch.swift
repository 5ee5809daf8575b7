import CacheStorage
import Hashing
import PrefetchModel

/// The state of one entry in the cache.
enum EntryState {
    /// The line is invalid; nothing was looked up.
    case invalid
    /// `lacksAttributes`: the resource's attributes differ from the entry's.
    case fresh(resource: Int64, expiresAt: Timestamp, lacksAttributes: Bool)
    /// Stored, and to be requested again.
    case stale(resource: Int64, expiresAt: Timestamp)
    /// Made of another source than the entry asks for.
    case otherSource(resource: Int64)
    /// Fresh, except for a variant that cannot be made from the stored images.
    case incomplete(resource: Int64, missing: VariantName)
    /// Not stored by this recipe, but it can be made from the stored original, or another variant
    /// has the same bytes.
    /// `freshUntil`: nil if it is stale.
    case derivable(resource: Int64, freshUntil: Timestamp?)
    /// To be requested, but fresh in the seed cache until then; `resource` is the stored one.
    case seeded(resource: Int64?, expiresAt: Timestamp)
    case missing
    /// Blacklisted; an index into ``LookedUpBatch/blacklistedBy``, and the resource that may be
    /// stored nevertheless.
    case blacklisted(Int, resource: Int64?)

    /// The stored resource of the entry, by whatever recipe.
    var resource: Int64? {
        switch self {
        case .fresh(let resource, _, _), .stale(let resource, _), .derivable(let resource, _),
            .incomplete(let resource, _), .otherSource(let resource):
            resource
        case .blacklisted(_, let resource), .seeded(let resource, _): resource
        case .invalid, .missing: nil
        }
    }

    /// The stored resource of entries that may be reported without another look-up: fresh ones, and
    /// those excluded for a missing variant.
    var resourceOfReportedImages: Int64? {
        switch self {
        case .fresh(let resource, _, _), .incomplete(let resource, _): resource
        case .blacklisted(_, let resource): resource
        case .invalid, .stale, .otherSource, .derivable, .seeded, .missing: nil
        }
    }
}

/// A batch of entries with the state of each.
struct LookedUpBatch: Sendable {
    let batch: EntryBatch
    let fingerprints: [KeyFingerprint]
    var states: [EntryState]
    /// The images of entries that may be reported without a request, for each record those of the
    /// run's variants; empty when the observer does not want them.
    var images: [StoredImage?] = []
    /// The number of ``images`` for each record.
    var imagesEach = 1
    /// The images of records that ask for other variants than the run.
    var ownImages: [Int: [StoredImage?]] = [:]
    /// The report lines of fresh entries; nil when the readers do not write them.
    var lines: WarmLines?
    var blacklistedBy: [FailureRecord] = []
    /// Records of fresh entries whose variants differ from those that an earlier run used.
    var returning: Set<Int> = []
    /// The records of ``returning`` with a superseded variant.
    var superseded: Set<Int> = []
    /// The expiry of entries that need no request, if this run's rules give a later one than the
    /// stored.
    var newExpiries: [Int: Timestamp] = [:]
    /// The URLs of records with a field `key` that name an image by another URL than the last list,
    /// without user information.
    var newURLs: [Int: String] = [:]
    /// Resources of records that are stored by other recipes than the run's, by record.
    var otherResources: [Int: Int64] = [:]
    /// Stored resources of entries that the run does not take: those of other shards, and those
    /// that are not selected.
    var resourcesNotTaken: [Int64] = []
    /// Records whose keys failed in earlier runs.
    var failedBefore: Set<Int> = []

    /// Returns the failure that blacklists a record; nil if none does.
    func blacklisting(of number: Int) -> FailureRecord? {
        guard case .blacklisted(let index, _) = states[number] else { return nil }
        return blacklistedBy[index]
    }

    /// Whether a reader has written the report line of a record.
    func hasLine(_ number: Int) -> Bool { lines?.has(number) == true }

    /// Returns the images by position of the entry's variants; empty when the observer does not
    /// want them.
    func images(of number: Int) -> [StoredImage?] {
        if let own = ownImages[number] { return own }
        guard !images.isEmpty else { return [] }
        return Array(images[(number * imagesEach)..<((number + 1) * imagesEach)])
    }
}

extension LookedUpBatch {
    /// The fresh entries without other work and without variants of their own.
    var warm: [WarmEntry] {
        states.indices.compactMap { number in
            guard case .fresh(_, let expiresAt, lacksAttributes: false) = states[number],
                ownImages[number] == nil
            else { return nil }
            let first = number * imagesEach
            return WarmEntry(
                number: number, image: images.isEmpty ? nil : images[first],
                variantImages: imagesEach > 1 ? images[first..<(first + imagesEach)] : [],
                expiresAt: expiresAt)
        }
    }

    init(_ batch: EntryBatch) {
        self.batch = batch
        fingerprints = []
        states = []
    }

    /// A batch without stored images.
    init(nothingKnownOf batch: EntryBatch) {
        self.batch = batch
        fingerprints = batch.fingerprints(by: SHA256Hasher())
        states = batch.records.map { $0.problem < 0 ? .missing : .invalid }
    }
}

extension EntryBatch {
    /// The fingerprints of the keys.
    func fingerprints(by hasher: borrowing SHA256Hasher) -> [KeyFingerprint] {
        text.withUnsafeBytes { text in
            records.map { record in
                KeyFingerprint(UnsafeRawBufferPointer(rebasing: text[record.key]), hasher: hasher)
            }
        }
    }
}

extension EntryState {
    /// Whether it leads to a request or to processing.
    var mayFail: Bool {
        switch self {
        case .stale, .otherSource, .missing, .incomplete, .derivable, .seeded: true
        case .invalid, .fresh, .blacklisted: false
        }
    }
}
