import CacheStorage
import HTTPSemantics
import Hashing
import PrefetchModel
import Scheduling

extension RunCoordinator {
    /// Decides for each entry of a batch what is to be done.
    func read(_ looked: LookedUpBatch) {
        let batch = looked.batch
        counters.entriesRead += batch.records.count
        if !looked.returning.isEmpty, !isStopping, let stages = runningStages() {
            stages.writer.enqueue(
                .used(resources: looked.returning, recipe: configuration.recipe), token: nil)
        }
        batch.text.withUnsafeBytes { text in
            for (number, record) in batch.records.enumerated() {
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
                let entry = RawEntry(
                    manifest: batch.manifest, record: record,
                    fingerprint: looked.fingerprints[number], extras: batch.extras(of: record),
                    image: looked.images.isEmpty ? nil : looked.images[number], text: text)
                read(entry, number, of: looked)
            }
        }
        reportWarmLines()
    }

    private func read(_ entry: RawEntry, _ number: Int, of looked: LookedUpBatch) {
        let state = looked.states[number]
        // A run over a warm list has seen no other entries, and need not hash for them.
        if !seen.isEmpty, let first = seen[entry.fingerprint] {
            // What was cancelled has no fate to share.
            if isStopping { return finish(.cancelled) { entry.result(.cancelled) } }
            guard entry.requestMark == pending.requestMark(of: first) else {
                let (manifest, line) = pending.origin(of: first)
                return refuse(entry, since: "\(manifest):\(line)")
            }
            readDuplicate(entry, of: first)
            return
        }
        if case .fresh(let resource, let expiresAt, lacksAttributes: false) = state {
            guard warm.insert(resource) else {
                return readWarmDuplicate(entry, of: resource, expiresAt: expiresAt)
            }
            if !entry.isUsual { unusualWarm.note(entry, of: resource) }
            if let lines = looked.lines { return finishFresh(number, lines) }
            return finish(.fresh) { entry.result(.fresh, expiresAt: expiresAt) }
        }
        // What was fresh may be stale by the lifetime that another line gives it.
        if let resource = state.resource, warm.contains(resource) {
            readWarmDuplicate(entry, of: resource, expiresAt: state.expiresAt)
            return
        }
        switch state {
        case .blocked(let block, _):
            let failure = looked.blocks[block]
            leaveOut(entry, .blacklisted, message: failure.blockMessage, block: failure)
        case .missing where configuration.isOffline:
            leaveOut(entry, .excluded, message: "not in the cache (--offline)")
        case .stale(_, let expiresAt) where configuration.isOffline:
            let cause =
                expiresAt == Freshness.alwaysStale
                ? "to be validated at every use"
                : expiresAt <= wallClock() ? "expired at \(expiresAt)" : "stale by this run's rules"
            leaveOut(entry, .excluded, message: "\(cause) (--offline)")
        case .derivable(_, isFresh: false) where configuration.isOffline:
            leaveOut(entry, .excluded, message: "its original is not fresh (--offline)")
        case .fresh, .missing, .stale, .derivable:
            if isStopping {
                // A report that cannot be written ends the run in the middle of a batch.
                finish(.cancelled) { entry.result(.cancelled) }
            } else {
                enqueue(entry, state)
            }
        case .invalid:
            preconditionFailure("an entry without a problem was looked up")
        }
    }

    /// Ends an entry that is neither warm nor asked for; `block` is the failure that forbids to ask.
    private func leaveOut(
        _ entry: RawEntry, _ outcome: Outcome, message: String, block: FailureRecord? = nil
    ) {
        pending.noteEnd(identifier(for: entry), reason: nil)
        finish(outcome) {
            var result = entry.result(outcome)
            result.message = message
            result.reason = block?.reason
            result.blockedUntil = block?.blockedUntil
            return result
        }
    }

    /// A new identifier, by which those of the same key find the entry.
    private func identifier(for entry: RawEntry) -> Int {
        seen.append(entry.fingerprint)
        let identifier = seen.count - 1
        pending.noteOrigin(
            identifier, manifest: entry.manifest, line: entry.record.line,
            requestMark: entry.requestMark)
        return identifier
    }

    private func enqueue(_ entry: RawEntry, _ state: EntryState) {
        let identifier = identifier(for: entry)
        let url = RequestURL(normalized: entry.url)
        let plan = PendingEntry.Plan(state)
        let now = ContinuousClock.now
        pending.add(
            PendingEntry(
                manifest: entry.manifest, line: entry.record.line, url: url,
                // One string for both where they are equal, which is nearly always.
                key: entry.record.key == entry.record.url ? url.text : entry.key,
                priority: entry.record.priority, plan: plan, extras: entry.extras,
                queuedAt: now),
            as: identifier)
        do {
            switch plan {
            case .fetch, .refresh:
                try scheduler.push(
                    identifier, priority: entry.record.priority,
                    host: url.origin, at: now)
            case .derive:
                try derivations.push(
                    identifier, priority: entry.record.priority, host: "", at: now)
            case .annotate(let resource):
                annotate(identifier, resource: resource, state, image: entry.image)
            }
        } catch {
            // It waits in memory, and is cancelled with the others.
            fail(FatalError(spilling: error))
        }
    }

    /// Fails an entry that shares its key with one that is asked for differently: whichever was stored
    /// would be wrong for the other.
    private func refuse(_ entry: RawEntry, since origin: String) {
        finish(.failed, reason: .invalidEntry) {
            var result = entry.result(.failed)
            result.reason = .invalidEntry
            result.message = """
                \(entry.manifest):\(entry.record.line): same key as \(origin), but a different URL or \
                different header= fields
                """
            return result
        }
    }

    private func readWarmDuplicate(_ entry: RawEntry, of resource: Int64, expiresAt: Timestamp?) {
        let first = unusualWarm.entry(of: resource)
        guard entry.requestMark == first?.requestMark ?? 0 else {
            return refuse(entry, since: first?.position ?? "an earlier line")
        }
        finish(.duplicate) { entry.result(.duplicate, expiresAt: expiresAt) }
    }

    /// Lets an entry that waits start by the priority of a duplicate, if that is higher.
    private func raise(_ first: Int, to priority: Priority) {
        guard let entry = pending[first], entry.priority < priority, pending.canBeRaised(first)
        else { return }
        switch entry.plan {
        case .fetch, .refresh: break
        // These wait for nobody.
        case .derive, .annotate: return
        }
        // Its old place is passed over when it comes up.
        pending.raise(first, to: priority)
        do {
            try scheduler.push(first, priority: priority, host: entry.url.origin, at: .now)
        } catch {
            fail(FatalError(spilling: error))
        }
    }

    private func readDuplicate(_ entry: RawEntry, of first: Int) {
        guard pending.hasEnded(first) else {
            raise(first, to: entry.record.priority)
            do throws(SpillError) {
                try pending.add(
                    PendingEntry.Duplicate(
                        manifest: entry.manifest, line: entry.record.line, url: entry.url),
                    of: first)
            } catch {
                finish(.cancelled) { entry.result(.cancelled) }
                fail(FatalError(error))
            }
            return
        }
        finish(.duplicate) {
            var result = entry.result(.duplicate)
            fate(of: first, entry).describe(&result)
            return result
        }
    }

    /// How the first entry of a key ended, when that is over.
    private func fate(of first: Int, _ entry: RawEntry) -> Fate {
        let (manifest, line) = pending.origin(of: first)
        var fate = Fate(reason: pending.reason(of: first), manifest: manifest, line: line)
        do throws(StorageError) {
            // What it has brought is in the cache by now.
            let stored = try coordinatorReader().stored(
                key: entry.key, recipe: configuration.recipe)
            fate.stored = stored?.image
            fate.expiresAt = stored?.expiresAt
        } catch {
            fail(FatalError(error))
        }
        return fate
    }
}

/// An entry whose text still lies in its batch; strings are made only where they are needed.
private struct RawEntry {
    let manifest: String
    let record: EntryBatch.Record
    let fingerprint: KeyFingerprint
    let extras: EntryExtras?
    /// What is stored, for a fresh entry that somebody wants to hear of.
    let image: StoredImage?
    let text: UnsafeRawBufferPointer

    var url: String { text.string(record.url) }
    var key: String { text.string(record.key) }

    /// Whether its key says what is asked for.
    var isUsual: Bool {
        guard extras?.headers.isEmpty ?? true else { return false }
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
        return UInt32(truncatingIfNeeded: hasher.finalize()) | 1
    }

    func result(_ outcome: Outcome, expiresAt: Timestamp? = nil) -> EntryResult {
        EntryResult(
            manifest: manifest, line: record.line, url: url, key: key, outcome: outcome,
            stored: image, expiresAt: expiresAt)
    }
}

/// The warm entries of a run whose requests are not what their keys say, to tell duplicates from lines
/// that only have the same key. They are never asked for, but would be at another time.
struct UnusualWarmEntries {
    private var marks = ChunkedArray<UInt32>()
    private var lines = ChunkedArray<UInt32>()
    private var manifestIndices = ChunkedArray<UInt16>()
    private var manifests: [String] = []

    /// Beyond it, identifiers are not worth a table.
    private static let largestResource: Int64 = 1 << 32

    fileprivate mutating func note(_ entry: RawEntry, of resource: Int64) {
        guard (0..<UnusualWarmEntries.largestResource).contains(resource) else { return }
        let index = Int(resource)
        marks[index] = entry.requestMark
        lines[index] = UInt32(clamping: entry.record.line)
        if manifests.last != entry.manifest { manifests.append(entry.manifest) }
        manifestIndices[index] = UInt16(clamping: manifests.count - 1)
    }

    /// The mark of a resource's first entry, and where it stands; nil for a usual one.
    fileprivate func entry(of resource: Int64) -> (requestMark: UInt32, position: String)? {
        guard (0..<UnusualWarmEntries.largestResource).contains(resource),
            case let index = Int(resource), marks[index] != 0
        else { return nil }
        return (marks[index], "\(manifests[Int(manifestIndices[index])]):\(lines[index])")
    }
}

extension PendingEntry.Plan {
    fileprivate init(_ state: EntryState) {
        switch state {
        case .missing: self = .fetch
        case .stale(let resource, _), .derivable(let resource, isFresh: false):
            self = .refresh(resource: resource)
        case .derivable(let resource, isFresh: true): self = .derive(resource: resource)
        case .fresh(let resource, _, _): self = .annotate(resource: resource)
        case .invalid, .blocked: preconditionFailure("nothing is to be done for such an entry")
        }
    }
}

extension EntryState {
    fileprivate var expiresAt: Timestamp? {
        if case .fresh(_, let expiresAt, _) = self { expiresAt } else { nil }
    }
}

extension FailureRecord {
    /// Why an entry is not asked for, and when it is again, in one line.
    fileprivate var blockMessage: String {
        let runs = runsInARow > 1 ? " in \(runsInARow) runs in a row" : ""
        let until = blockedUntil.map { "; next try after \($0)" } ?? ""
        return "failed with \(cause)\(runs)\(until)"
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func string(_ range: Range<Int>) -> String {
        String(decoding: self[range], as: UTF8.self)
    }
}
