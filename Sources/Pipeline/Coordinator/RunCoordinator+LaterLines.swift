import EntryLifecycle
import EntryQueue
import Hashing
import PrefetchModel

// Later lines of an entry's key.

extension RunCoordinator {
    /// Ends the later lines of an entry's key. Lines that came too late for it become an entry.
    func finishLaterLines(of identifier: Int, _ lines: LineEnds, isKnown: Bool) {
        var next: Int?
        do {
            try store.takeDuplicates(of: identifier) { duplicate in
                endingRunOnError {
                    guard let line = variants(numbered: duplicate.variantSet),
                        let own = lines.lineEnd(line)
                    else {
                        guard !ending.isStopping else {
                            return try ledger.finish(.cancelled) {
                                EntryResult(
                                    manifest: duplicate.manifest, line: duplicate.line,
                                    columns: duplicate.columns, url: duplicate.url,
                                    key: lines.machine.entry.key,
                                    outcome: .cancelled)
                            }
                        }
                        return try extend(&next, with: duplicate, after: identifier, lines.machine)
                    }
                    if duplicate.isFresh, lines.changesNothing {
                        return try finishFresh(duplicate, line, lines.machine.entry.key)
                    }
                    if duplicate.addsVariants {
                        return try ledger.finishAddition(
                            lines.result(of: duplicate, line, own), isKnown: isKnown)
                    }
                    try ledger.finish(lines.end.outcome == .cancelled ? .cancelled : .duplicate) {
                        lines.result(of: duplicate, line, own)
                    }
                }
            }
        } catch {
            // Entries that cannot be read back are counted at the end.
            ending.noteLoss()
            fail(error)
        }
    }

    /// Ends a line with fresh images, although the images of an earlier one of its key could not be
    /// made.
    private func finishFresh(
        _ duplicate: Entry.Duplicate, _ line: VariantSet, _ key: String
    ) throws {
        let result = EntryResult(
            manifest: duplicate.manifest, line: duplicate.line, columns: duplicate.columns,
            url: duplicate.url, key: key, outcome: .fresh)
        guard ledger.wantsResults(of: .fresh), !ending.isStopping else {
            return try ledger.finish(.fresh) { result }
        }
        stages.find(
            CopyRequest(
                token: pendingResults.add(result, nil), key: key,
                subject: .stored(line[0].recipe)))
    }

    /// Makes a line that came too late for an entry the next entry of its key, or adds it to that.
    private func extend(
        _ next: inout Int?, with line: Entry.Duplicate, after identifier: Int,
        _ machine: EntryMachine
    ) throws {
        if let next {
            do {
                return try store.add(line, of: next)
            } catch {
                // It is no longer in the store, so it ends here.
                try ledger.finish(.cancelled) {
                    EntryResult(
                        manifest: line.manifest, line: line.line, columns: line.columns,
                        url: line.url, key: machine.entry.key, outcome: .cancelled)
                }
                throw error
            }
        }
        let now = clock.now
        var extras = machine.entry.extras
        if extras != nil || line.columns != nil {
            extras = extras ?? EntryExtras()
            extras?.columns = line.columns
        }
        let entry = Entry(
            manifest: line.manifest, line: line.line, url: RequestURL(normalized: line.url),
            key: machine.entry.key, priority: machine.entry.priority,
            state: .extended, resource: nil, extras: extras, variantSet: line.variantSet,
            queuedAt: now)
        let added = intake.identifier(
            for: line, of: KeyFingerprint(entry.key, hasher: SHA256Hasher()), after: identifier)
        next = added
        store.add(EntryMachine(entry), as: added)
        try dispatch.push(added, entry, at: now)
    }

    func finishHeldLines(of identifier: Int, _ entry: Entry, stored: StoredImage?) {
        let shared = SharedOutcome(
            reason: nil, stored: stored, expiresAt: nil, manifest: entry.manifest, line: entry.line)
        do {
            try store.takeDuplicates(of: identifier) { duplicate in
                endingRunOnError {
                    if duplicate.isFresh, let line = variants(numbered: duplicate.variantSet) {
                        return try finishFresh(duplicate, line, entry.key)
                    }
                    let outcome: Outcome = duplicate.addsVariants ? .blacklisted : .duplicate
                    try ledger.finish(outcome) {
                        var result = EntryResult(
                            manifest: duplicate.manifest, line: duplicate.line,
                            columns: duplicate.columns, url: duplicate.url, key: entry.key,
                            outcome: outcome)
                        shared.describe(&result)
                        if duplicate.addsVariants {
                            result.stored = nil
                            result.message = "together with \(entry.manifest):\(entry.line)"
                        }
                        return result
                    }
                }
            }
        } catch {
            // Entries that cannot be read back are counted at the end.
            ending.noteLoss()
            fail(error)
        }
    }
}
