import PrefetchModel

/// The outcome of the first entry of a key, which its duplicates share.
struct SharedOutcome {
    let reason: FailureReason?
    var stored: StoredImage?
    var expiresAt: Timestamp?
    /// The position of the first entry.
    let manifest: String
    let line: Int

    func describe(_ result: inout EntryResult) {
        result.reason = reason
        result.message = "duplicate of \(manifest):\(line)"
        result.stored = stored
        result.expiresAt = expiresAt
    }
}
