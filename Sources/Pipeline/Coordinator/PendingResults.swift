import PrefetchModel

/// Entries that end without a turn: duplicates of ended entries, whose images are being looked up,
/// and fresh entries whose attributes are being committed.
struct PendingResults {
    private var duplicates: [Int: (EntryResult, SharedOutcome)] = [:]
    /// Tokens are negative; entries have other identifiers.
    private var last = 0
    private(set) var annotating = 0

    private static let capacity = 4096

    var isEmpty: Bool { duplicates.isEmpty }
    var hasRoom: Bool { duplicates.count < PendingResults.capacity }
    var tokens: [Int] { Array(duplicates.keys) }

    /// Adds a duplicate.
    ///
    /// - Returns: the token of its findings.
    mutating func add(_ result: EntryResult, _ shared: SharedOutcome) -> Int {
        last -= 1
        duplicates[last] = (result, shared)
        return last
    }

    mutating func take(_ token: Int) -> (EntryResult, SharedOutcome)? {
        duplicates.removeValue(forKey: token)
    }

    mutating func annotationBegan() { annotating += 1 }
    mutating func annotationEnded() { annotating -= 1 }
}
