import CacheStorage
import PrefetchModel
import Scheduling

extension RunCoordinator {
    /// Decides for each entry of a batch: invalid, fresh, a duplicate, or to be fetched.
    func read(_ batch: EntryBatch) {
        let hasher = SHA256Hasher()
        let now = wallClock()
        counters.entriesRead += batch.records.count
        batch.text.withUnsafeBytes { text in
            for record in batch.records {
                if record.problem >= 0 {
                    let problem = batch.problems[record.problem]
                    finish(.failed, reason: problem.reason) {
                        EntryResult(
                            manifest: batch.manifest, line: record.line,
                            url: text.string(record.url), key: text.string(record.key),
                            outcome: .failed, reason: problem.reason,
                            message: "\(batch.manifest):\(record.line): \(problem.message)")
                    }
                    continue
                }
                let fingerprint = KeyFingerprint(
                    UnsafeRawBufferPointer(rebasing: text[record.key]), hasher: hasher)
                let entry = RawEntry(
                    manifest: batch.manifest, record: record, fingerprint: fingerprint, text: text)
                if let first = seen[fingerprint] {
                    readDuplicate(entry, of: first)
                } else if let cached = index[fingerprint], cached.isFresh(at: now) {
                    seen[fingerprint] = RunCoordinator.freshEntry
                    finish(.fresh) { entry.result(.fresh, cached: cached) }
                } else if isStopping {
                    // A report that cannot be written ends the run in the middle of a batch.
                    finish(.cancelled) { entry.result(.cancelled, cached: nil) }
                } else {
                    enqueue(entry)
                }
            }
        }
    }

    private func enqueue(_ entry: RawEntry) {
        let identifier = nextID
        nextID += 1
        let url = entry.url
        seen[entry.fingerprint] = identifier
        pending[identifier] = PendingEntry(
            manifest: entry.manifest, line: entry.record.line, url: url,
            // One string for both where they are equal, which is nearly always.
            key: entry.record.key == entry.record.url ? url : entry.key,
            priority: entry.record.priority, queuedAt: .now)
        scheduler.push(
            identifier, priority: entry.record.priority, host: RequestTarget.origin(of: url))
    }

    private func readDuplicate(_ entry: RawEntry, of first: Int) {
        if pending[first] != nil {
            pending[first]?.duplicates.append(
                PendingEntry.Duplicate(
                    manifest: entry.manifest, line: entry.record.line, url: entry.url))
            return
        }
        finish(.duplicate) {
            var result = entry.result(.duplicate, cached: index[entry.fingerprint])
            fates[first]?.describe(&result)
            return result
        }
    }
}

/// An entry whose text still lies in its batch; strings are made only where they are needed.
private struct RawEntry {
    let manifest: String
    let record: EntryBatch.Record
    let fingerprint: KeyFingerprint
    let text: UnsafeRawBufferPointer

    var url: String { text.string(record.url) }
    var key: String { text.string(record.key) }

    func result(_ outcome: Outcome, cached: CacheIndex.Record?) -> EntryResult {
        EntryResult(
            manifest: manifest, line: record.line, url: url, key: key, outcome: outcome,
            stored: cached?.image, expiresAt: cached?.expiresAt)
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func string(_ range: Range<Int>) -> String {
        String(decoding: self[range], as: UTF8.self)
    }
}
