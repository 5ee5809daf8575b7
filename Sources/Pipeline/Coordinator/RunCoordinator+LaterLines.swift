import EntryLifecycle
import EntryQueue
import Hashing
import PrefetchModel

// Later lines of an entry's key.

extension RunCoordinator {
    /// Ends the later lines of an entry's key. Lines that were too late for it become an entry.
    func finishLaterLines(of identifier: Int, _ lines: LineEnds, isKnown: Bool) {
        let key = lines.machine.entry.key
        var next: Int?
        takeLines(of: identifier) { duplicate in
            guard let line = variants(numbered: duplicate.variantSet),
                let own = lines.lineEnd(line)
            else {
                guard !ending.isStopping else {
                    return try ledger.finish(.cancelled) { duplicate.result(.cancelled, key) }
                }
                return try extend(&next, with: duplicate, after: identifier, lines.machine)
            }
            if duplicate.isFresh, lines.changesNothing {
                return try finishFresh(duplicate, line, key)
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

    private func takeLines(of identifier: Int, _ body: (Entry.Duplicate) throws -> Void) {
        do {
            try store.takeDuplicates(of: identifier) { line in
                endingRunOnError { try body(line) }
            }
        } catch {
            // Entries that cannot be read back are counted at the end.
            ending.losesEntries = true
            fail(error)
        }
    }

    /// Ends a line with fresh images, although the images of an earlier one of its key could not be
    /// made.
    private func finishFresh(
        _ duplicate: Entry.Duplicate, _ line: VariantSet, _ key: String
    ) throws {
        let result = duplicate.result(.fresh, key)
        guard ledger.wantsResults(of: .fresh), !ending.isStopping else {
            return try ledger.finish(.fresh) { result }
        }
        stages.find(
            CopyRequest(
                token: pendingResults.add(result, nil), key: key, subject: .stored(line[0].recipe)))
    }

    /// Makes a line that was too late for an entry the next entry of its key, or adds it to that.
    private func extend(
        _ next: inout Int?, with line: Entry.Duplicate, after identifier: Int,
        _ machine: EntryMachine
    ) throws {
        if let next {
            do {
                return try store.add(line, of: next)
            } catch {
                // It is no longer in the store, so it ends here.
                try ledger.finish(.cancelled) { line.result(.cancelled, machine.entry.key) }
                throw error
            }
        }
        let now = clock.now
        var extras = machine.entry.extras
        if extras != nil || line.columns != nil {
            extras = extras ?? .empty
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
        let place = "\(entry.manifest):\(entry.line)"
        let shared = SharedOutcome(reason: nil, stored: stored, place: place)
        takeLines(of: identifier) { duplicate in
            if duplicate.isFresh, let line = variants(numbered: duplicate.variantSet) {
                return try finishFresh(duplicate, line, entry.key)
            }
            let outcome: Outcome = duplicate.addsVariants ? .blacklisted : .duplicate
            try ledger.finish(outcome) {
                var result = duplicate.result(outcome, entry.key)
                shared.describe(&result)
                if duplicate.addsVariants {
                    result.stored = nil
                    result.message = "together with \(place)"
                }
                return result
            }
        }
    }
}

extension Entry.Duplicate {
    func result(_ outcome: Outcome, _ key: String) -> EntryResult {
        EntryResult(
            manifest: manifest, line: line, columns: columns, url: url, key: key, outcome: outcome)
    }
}
