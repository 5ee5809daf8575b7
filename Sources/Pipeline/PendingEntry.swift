import CacheStorage
import PrefetchModel
import Scheduling
import Transfers

/// An entry that is not warm, from the moment it is queued to its outcome.
struct PendingEntry: Sendable {
    let manifest: String
    let line: Int
    /// As requested, with user information when the manifest has it.
    let url: String
    let key: String
    let fingerprint: KeyFingerprint
    let priority: Priority
    let queuedAt: ContinuousClock.Instant

    /// The position in which its first transfer began.
    var start: Int?
    var startedAt: ContinuousClock.Instant?
    /// Set while it occupies its host.
    var host: Scheduler<Int>.HostID?
    /// Where the next transfer goes; changes with each redirect.
    var target: String
    /// URLs asked so far, the present one included, to see loops.
    var visited: [String] = []
    var stages = StageDurations()
    var bytesReceived = 0
    var httpStatus: Int?
    var expiresAt: Timestamp?
    var stored: StoredImage?
    /// Entries of the same key that share this one's fate.
    var duplicates: [Duplicate] = []

    struct Duplicate: Sendable {
        let manifest: String
        let line: Int
        let url: String
    }

    func result(
        _ outcome: Outcome, reason: FailureReason? = nil, message: String? = nil
    ) -> EntryResult {
        EntryResult(
            manifest: manifest, line: line, url: url, key: key, outcome: outcome, reason: reason,
            message: message, httpStatus: httpStatus, attempts: start == nil ? 0 : 1,
            start: start, bytesReceived: bytesReceived, stored: stored, expiresAt: expiresAt,
            stages: stages)
    }

    func result(of duplicate: Duplicate, fate: Fate) -> EntryResult {
        EntryResult(
            manifest: duplicate.manifest, line: duplicate.line, url: duplicate.url, key: key,
            outcome: .duplicate, reason: fate.reason, message: fate.message, stored: stored,
            expiresAt: expiresAt)
    }
}

/// How the first entry of a key ended, for those that come later.
struct Fate: Sendable {
    let reason: FailureReason?
    let message: String?
    let stored: StoredImage?
    let expiresAt: Timestamp?
}
