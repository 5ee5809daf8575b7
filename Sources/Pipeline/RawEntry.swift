import CacheStorage
import EntryLifecycle
import EntryQueue
import Hashing
import PrefetchModel

/// An entry whose text still lies in its batch; strings are made only where they are needed.
struct RawEntry {
    let manifest: String
    let record: EntryBatch.Record
    let fingerprint: KeyFingerprint
    let extras: EntryExtras?
    let text: UnsafeRawBufferPointer
    /// What is stored, for a fresh entry that somebody wants to hear of, by position of the variant.
    var images: [StoredImage?] = []

    var url: String { text.string(record.url) }
    var key: String { text.string(record.key) }

    /// Whether its key says all that is asked for.
    var isUsual: Bool {
        if let extras, !extras.headers.isEmpty || extras.changesVariants { return false }
        return record.key == record.url || text[record.key].elementsEqual(text[record.url])
    }

    /// What tells its request from others of its key: 0 for a usual one, else a hash.
    var requestMark: UInt32 {
        if isUsual { return 0 }
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: text[record.url]))
        let fields = (extras?.headers ?? []).map { ($0.name.lowercased(), $0.value) }
        for (name, value) in fields.sorted(by: <) {
            hasher.combine(name)
            hasher.combine(value)
        }
        hasher.combine(extras?.encoding)
        hasher.combine(extras?.quality)
        hasher.combine(extras?.variants?.rawValue)
        return UInt32(truncatingIfNeeded: hasher.finalize()) | 1
    }

    /// The fields that may tell its request from that of another line.
    var conflictingFields: String {
        extras?.changesVariants == true
            ? "header=, encode=, quality= or variants=" : "header="
    }

    func result(
        _ outcome: Outcome, reason: FailureReason? = nil, message: String? = nil,
        expiresAt: Timestamp? = nil
    ) -> EntryResult {
        EntryResult(
            manifest: manifest, line: record.line, url: url, key: key, outcome: outcome,
            reason: reason, message: message, stored: images.first ?? nil, expiresAt: expiresAt)
    }

    /// As it waits.
    func entry(_ plan: Entry.Plan, at now: ContinuousClock.Instant) -> Entry {
        let url = RequestURL(normalized: url)
        return Entry(
            manifest: manifest, line: record.line, url: url,
            // One string for both where they are equal, which is nearly always.
            key: record.key == record.url ? url.text : key, priority: record.priority,
            plan: plan, extras: extras, queuedAt: now)
    }
}

extension UnsafeRawBufferPointer {
    func string(_ range: Range<Int>) -> String { String(decoding: self[range], as: UTF8.self) }
}
