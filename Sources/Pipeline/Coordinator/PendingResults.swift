import PrefetchModel

/// Entries that end without a turn of their own: duplicates of those that have ended, whose images are
/// being looked up, and fresh ones whose attributes wait for their commit.
struct PendingResults {
    private var duplicates: [Int: (EntryResult, SharedOutcome)] = [:]
    /// Tokens are below 0: those above are entries.
    private var last = 0
    private(set) var annotating = 0

    private static let capacity = 4096

    var isEmpty: Bool { duplicates.isEmpty }
    var hasRoom: Bool { duplicates.count < PendingResults.capacity }
    var tokens: [Int] { Array(duplicates.keys) }

    /// - Returns: the token by which the findings come back.
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
