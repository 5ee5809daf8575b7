import PrefetchModel

/// Entries that end without a turn: duplicates of ended entries, whose images are being looked up,
/// fresh entries whose attributes are being committed, and blacklisted ones whose host is not back
/// yet. Also variants that wait for their entry.
struct PendingResults {
    private var duplicates: [Int: (EntryResult, SharedOutcome?)] = [:]
    /// Tokens are negative; entries have other identifiers.
    private var last = 0
    /// Fresh entries with attributes that are being committed.
    var annotating = 0
    /// Blacklisted entries that wait for a response of their host.
    var held = HeldEntries()
    /// Variants that were made beside the requested ones, until their entry's change is written.
    var others: [Int: [VariantChange]] = [:]
    /// The number of variants that the codec workers make or have tried to make, by entry.
    var tried: [Int: Int] = [:]

    private static let capacity = 4096

    var hasNoLookups: Bool { duplicates.isEmpty }
    var hasRoom: Bool { duplicates.count < PendingResults.capacity }
    var tokens: [Int] { Array(duplicates.keys) }

    /// Returns the token of the duplicate's findings. Without an outcome to share, its own stays.
    mutating func add(_ result: EntryResult, _ shared: SharedOutcome?) -> Int {
        last -= 1
        duplicates[last] = (result, shared)
        return last
    }

    mutating func take(_ token: Int) -> (EntryResult, SharedOutcome?)? {
        duplicates.removeValue(forKey: token)
    }
}
