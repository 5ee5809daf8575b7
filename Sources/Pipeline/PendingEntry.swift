import PrefetchModel
import Scheduling

/// An entry that is not warm, from the moment it is queued to its outcome.
///
/// Small, since in LIFO order all of them wait in memory; what only a started entry needs is in
/// its ``Progress``.
struct PendingEntry {
    let manifest: String
    let line: Int
    /// As requested, with user information when the manifest has it.
    let url: String
    let key: String
    let priority: Priority
    let queuedAt: ContinuousClock.Instant
    /// Set when the first transfer starts.
    var progress: Progress?
    /// Entries of the same key that share this one's fate.
    var duplicates: [Duplicate] = []

    struct Duplicate {
        let manifest: String
        let line: Int
        let url: String
    }

    /// What has become of a started entry so far.
    final class Progress {
        /// The position in which its first transfer began, 1 for the run's first.
        let start: Int
        /// Set while it occupies its host.
        var host: Scheduler<Int>.HostID?
        /// Where the present transfer goes; changes with each redirect.
        var target: String
        /// URLs asked so far, the present one included, to see loops.
        var visited: [String] = []
        var stages = StageDurations()
        var bytesReceived = 0
        var httpStatus: Int?
        var expiresAt: Timestamp?
        var stored: StoredImage?

        init(start: Int, target: String, queued: Duration) {
            self.start = start
            self.target = target
            stages.queue = queued
        }
    }

    func result(
        _ outcome: Outcome, reason: FailureReason? = nil, message: String? = nil
    ) -> EntryResult {
        // What was on its way to the cache and did not get there is nobody's business.
        let isStored = outcome == .downloaded
        return EntryResult(
            manifest: manifest, line: line, url: url, key: key, outcome: outcome, reason: reason,
            message: message, httpStatus: progress?.httpStatus,
            attempts: progress == nil ? 0 : 1, start: progress?.start,
            bytesReceived: progress?.bytesReceived ?? 0,
            stored: isStored ? progress?.stored : nil,
            expiresAt: isStored ? progress?.expiresAt : nil,
            stages: progress?.stages ?? StageDurations())
    }

    func result(of duplicate: Duplicate, _ outcome: Outcome, fate: Fate) -> EntryResult {
        var result = EntryResult(
            manifest: duplicate.manifest, line: duplicate.line, url: duplicate.url, key: key,
            outcome: outcome)
        fate.describe(&result)
        return result
    }
}

/// How the first entry of a key ended, for those that come later.
struct Fate {
    let reason: FailureReason?
    let stored: StoredImage?
    let expiresAt: Timestamp?
    /// Where that entry stands.
    let manifest: String
    let line: Int

    func describe(_ result: inout EntryResult) {
        result.reason = reason
        result.message = "shares the fate of \(manifest):\(line)"
        result.stored = stored
        result.expiresAt = expiresAt
    }
}
