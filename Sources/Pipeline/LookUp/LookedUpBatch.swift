import CacheStorage
import Hashing
import PrefetchModel

/// What the cache says of one entry.
enum EntryState {
    /// The line is no entry; nothing was looked up.
    case invalid
    /// `lacksAttributes`: the entry asks for attributes that the resource does not have so.
    case fresh(resource: Int64, expiresAt: Timestamp, lacksAttributes: Bool)
    /// Stored, and to be asked for again.
    case stale(resource: Int64, expiresAt: Timestamp)
    /// Fresh, but for a variant that cannot be made of what is stored.
    case incomplete(resource: Int64, missing: VariantName)
    /// Not stored by this recipe, but the original is, of which it can be made, or a variant with the
    /// same bytes.
    case derivable(resource: Int64, isFresh: Bool)
    case missing
    /// Not to be asked for; an index into ``LookedUpBatch/blacklistedBy``, and the resource that may be
    /// stored all the same.
    case blacklisted(Int, resource: Int64?)

    /// What is stored of the entry, by whatever recipe.
    var resource: Int64? {
        switch self {
        case .fresh(let resource, _, _), .stale(let resource, _), .derivable(let resource, _),
            .incomplete(let resource, _):
            resource
        case .blacklisted(_, let resource): resource
        case .invalid, .missing: nil
        }
    }

    /// Of entries that may be reported without another look-up, what is stored: those that are fresh, and those that
    /// are left out for a variant that is not there.
    var resourceOfReportedImages: Int64? {
        switch self {
        case .fresh(let resource, _, _), .incomplete(let resource, _): resource
        case .blacklisted(_, let resource): resource
        case .invalid, .stale, .derivable, .missing: nil
        }
    }
}

/// A batch of entries with what the cache says of each.
struct LookedUpBatch: Sendable {
    let batch: EntryBatch
    let fingerprints: [KeyFingerprint]
    var states: [EntryState]
    /// The images of entries that may be reported as they are, those of the run's variants one after the other for each
    /// record; empty when nobody wants to hear of them.
    var images: [StoredImage?] = []
    /// How many these are for each record.
    var imagesEach = 1
    /// Of records that ask for other variants than the run.
    var ownImages: [Int: [StoredImage?]] = [:]
    /// What the report says of fresh entries; nil when it is not written here.
    var lines: WarmLines?
    var blacklistedBy: [FailureRecord] = []
    /// Records of fresh entries of which an earlier run used other variants than this.
    var returning: Set<Int> = []
    /// Resources of records that are stored by other recipes than the run's.
    var otherResources: [Int64] = []
    /// Records whose keys have failed in earlier runs.
    var failedBefore: Set<Int> = []

    /// Whether a reader has written what is reported of a record.
    func hasLine(_ number: Int) -> Bool { lines?.has(number) == true }

    /// By position of the variant that an entry asks for; empty when nobody wants to hear of them.
    func images(of number: Int) -> [StoredImage?] {
        if let own = ownImages[number] { return own }
        guard !images.isEmpty else { return [] }
        return Array(images[(number * imagesEach)..<((number + 1) * imagesEach)])
    }
}

extension LookedUpBatch {
    /// The entries that are fresh and ask for nothing else, nor for variants of their own.
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
}

extension EntryState {
    /// Whether anything is to be asked for or made.
    var mayFail: Bool {
        switch self {
        case .stale, .missing, .incomplete, .derivable: true
        case .invalid, .fresh, .blacklisted: false
        }
    }
}
