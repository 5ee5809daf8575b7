import PrefetchModel

/// Entries that end without a turn: duplicates of ended entries, during the look-up of their
/// images, fresh entries while their attributes are committed, and blacklisted ones of hosts that
/// are not back yet. Also variants that wait for their entry.
struct PendingResults {
    private var duplicates: [Int: (EntryResult, SharedOutcome?)] = [:]
    /// Tokens are negative; entries have other identifiers.
    private var last = 0
    var annotating = 0
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

/// Entries that are blacklisted because their host was down. They wait in the store, without a
/// place in any queue: if their host responds in this run, they are requested after all.
struct HeldEntries {
    /// The limits of held entries; further ones end at once.
    private static let maximumCount = 1000
    private static let maximumCountOfHost = 200

    /// By entry; nil for a result that is not wanted.
    private var results: [Int: EntryResult?] = [:]
    private var identifiers: [String: [Int]] = [:]

    var isEmpty: Bool { results.isEmpty }
    var count: Int { results.count }

    func hasRoom(for host: String) -> Bool {
        count < HeldEntries.maximumCount
            && identifiers[host, default: []].count < HeldEntries.maximumCountOfHost
    }

    func contains(_ identifier: Int) -> Bool { results.keys.contains(identifier) }

    /// Holds an entry; `result` is its result if the host does not respond, nil if it is not
    /// wanted.
    mutating func hold(_ identifier: Int, host: String, result: EntryResult?) {
        results.updateValue(result, forKey: identifier)
        identifiers[host, default: []].append(identifier)
    }

    mutating func release(host: String) -> [Int] {
        let released = identifiers.removeValue(forKey: host) ?? []
        for identifier in released { results.removeValue(forKey: identifier) }
        return released
    }

    mutating func removeAll() -> [(identifier: Int, result: EntryResult?)] {
        let all = results.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        self = HeldEntries()
        return all
    }
}
