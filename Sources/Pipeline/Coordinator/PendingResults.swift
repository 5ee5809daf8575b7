import CacheStorage
import PrefetchModel
import Scheduling

/// Entries that end without a turn: duplicates of ended entries, during the look-up of their
/// images, fresh entries while their attributes are committed, and blacklisted ones of hosts that
/// are not back yet. Also variants that wait for their entry.
struct PendingResults {
    private var duplicates: [Int: (EntryResult, SharedOutcome?)] = [:]
    /// The columns of the duplicates.
    private var bytes = 0
    /// Tokens are negative; entries have other identifiers.
    private var last = 0
    var annotating = 0
    var held = HeldEntries<HeldEntry>()
    /// Variants that were made beside the requested ones, until their entry's change is written.
    var others: [Int: [VariantChange]] = [:]
    /// The number of variants that the codec workers make or have tried to make, by entry.
    var tried: [Int: Int] = [:]

    private static let (capacity, maximumBytes) = (4096, 8 << 20)

    var hasNoLookups: Bool { duplicates.isEmpty }
    var hasRoom: Bool {
        duplicates.count < PendingResults.capacity && bytes < PendingResults.maximumBytes
    }
    var tokens: [Int] { Array(duplicates.keys) }

    /// Returns the token of the duplicate's findings. Without an outcome to share, its own stays.
    mutating func add(_ result: EntryResult, _ shared: SharedOutcome?) -> Int {
        last -= 1
        bytes += result.columns?.count ?? 0
        duplicates[last] = (result, shared)
        return last
    }

    mutating func take(_ token: Int) -> (EntryResult, SharedOutcome?)? {
        guard let taken = duplicates.removeValue(forKey: token) else { return nil }
        bytes -= taken.0.columns?.count ?? 0
        return taken
    }
}

/// An entry that waits for its host; its end if the host does not recover.
struct HeldEntry {
    /// Nil for a result that is not wanted.
    let result: EntryResult?
    let reason: FailureReason
    let httpStatus: Int?
    let isStored: Bool

    init(_ failure: FailureRecord, _ result: EntryResult?) {
        self.result = result
        reason = failure.reason
        httpStatus = failure.httpStatus
        isStored = failure.isStored
    }
}
