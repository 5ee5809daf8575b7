import CacheStorage
import EntryLifecycle
import EntryQueue
import HTTPSemantics
import Hashing
import PrefetchModel
import Scheduling

extension RunCoordinator {
    func read(_ looked: LookedUpBatch) {
        let batch = looked.batch
        ledger.countRead(batch.records.count)
        looked.noteListed(in: &reading.listed)
        var changes = ChangesOfBatch()
        batch.text.withUnsafeBytes { text in
            for (number, record) in batch.records.enumerated() {
                endingRunOnError {
                    guard record.problem < 0 else {
                        return try finishInvalid(record, of: batch, text)
                    }
                    if let objection = looked.objections[number] {
                        return try finishNotSelected(record, objection, of: looked, text)
                    }
                    let finding = looked.findings[number]
                    var entry = RawEntry(
                        manifest: batch.manifest, record: record, fingerprint: finding.fingerprint,
                        extras: batch.extras(of: record), text: text)
                    let arrival = try intake.arrival(of: &entry, number, in: looked)
                    if let resource = try resourceToNote(entry, arrival, finding) {
                        changes.returning[entry.variantsOfKey, default: []].append(resource)
                    }
                    // Only the first line of a key changes anything else.
                    if arrival.isFirst { changes.note(finding, of: entry) }
                    try read(entry, arrival, number, of: looked)
                }
            }
        }
        endingRunOnError { try ledger.reportWarmLines() }
        guard !ending.isStopping else { return }
        endingRunOnError { try write(changes) }
    }

    private struct ChangesOfBatch {
        /// Resources with variants that are in use again, by the number of the variants.
        var returning: [UInt32: [Int64]] = [:]
        var expiries: [Int64: Timestamp] = [:]
        var urls: [Int64: String] = [:]

        mutating func note(_ finding: EntryFinding, of entry: RawEntry) {
            guard let resource = finding.resource else { return }
            if let expiry = finding.newExpiry { expiries[resource] = expiry }
            if finding.hasNewURL {
                urls[resource] = RequestURL(normalized: entry.url).withoutCredentials.text
            }
        }
    }

    private func write(_ changes: ChangesOfBatch) throws {
        for (number, resources) in changes.returning {
            let variants = Array(try store.variantSets.set(number))
            try stages.write(.used(resources: resources, variants), token: nil)
        }
        if !changes.expiries.isEmpty { try stages.write(.expiries(changes.expiries), token: nil) }
        if !changes.urls.isEmpty { try stages.write(.listedURLs(changes.urls), token: nil) }
    }

    /// Returns the resource of a fresh entry if its variants in use are to be noted; nil if they
    /// are in use already, or the entry adds none.
    private func resourceToNote(
        _ entry: RawEntry, _ arrival: Intake.Arrival, _ finding: EntryFinding
    ) throws -> Int64? {
        switch arrival {
        case .warm(let resource, _):
            guard finding.isReturning else { return nil }
            intake.noteUse(of: resource)
            return resource
        case .warmAddition(let resource, _):
            let main = try nameOfMain(of: entry)
            guard intake.mustNoteAddition(to: resource, finding, main: main) else { return nil }
            intake.noteUse(of: resource)
            return resource
        case .addition(to: let first):
            // An entry of its key may have changed them since the look-up.
            return (store.positions.hasEnded(first) || isAnnotation(first))
                && finding.state.freshUntil != nil
                ? finding.resource : nil
        case .new, .duplicate, .warmDuplicate, .refused, .blacklisted: return nil
        }
    }

    private func nameOfMain(of entry: RawEntry) throws -> Intake.NameOfMain {
        let variants = try store.variantSets.set(entry.variantsOfKey)
        guard let main = rules.variants(of: entry.extras).main?.canonicalText else {
            return .unused
        }
        return variants.first { $0.name == .main }?.recipeText == main ? .kept : .taken
    }

    private func finishNotSelected(
        _ record: EntryBatch.Record, _ objection: Failure, of looked: LookedUpBatch,
        _ text: UnsafeRawBufferPointer
    ) throws {
        try ledger.finish(.excluded, reason: objection.reason) {
            var result = EntryResult(
                manifest: looked.batch.manifest, line: record.line,
                columns: looked.batch.extras(of: record)?.columns, url: text.string(record.url),
                key: text.string(record.key), outcome: .excluded)
            result.reason = objection.reason
            result.message = objection.message
            return result
        }
    }

    private func finishInvalid(
        _ record: EntryBatch.Record, of batch: EntryBatch, _ text: UnsafeRawBufferPointer
    ) throws {
        let problem = batch.problems[record.problem]
        let failure = problem.failure
        let outcome: Outcome = failure.reason.isExclusion ? .excluded : .failed
        try ledger.finish(outcome, reason: failure.reason, isKnown: problem.isKnown) {
            var result = EntryResult(
                manifest: batch.manifest, line: record.line, columns: problem.columns,
                url: text.string(record.url), key: text.string(record.key), outcome: outcome)
            result.reason = failure.reason
            result.message =
                outcome == .excluded
                ? failure.message : "\(batch.manifest):\(record.line): \(failure.message)"
            return result
        }
    }

    private func read(
        _ entry: RawEntry, _ arrival: Intake.Arrival, _ number: Int, of looked: LookedUpBatch
    ) throws {
        if arrival.isWarm, let lines = looked.lines, looked.hasLine(number) {
            return try ledger.finishFresh(number, lines)
        }
        var entry = entry
        entry.images = looked.images[number]
        switch arrival {
        case .warm(_, let expiresAt), .warmAddition(_, let expiresAt):
            try ledger.finish(.fresh) {
                rules.result(of: entry, .fresh, expiresAt: expiresAt)
            }
        case .duplicate(of: let first):
            // A cancelled entry has no outcome to share.
            if ending.isStopping { return try finishCancelled(entry) }
            try readDuplicate(entry, of: first)
        case .addition(to: let first):
            if ending.isStopping { return try finishCancelled(entry) }
            let finding = looked.findings[number]
            // An entry that waits for its attributes makes no images.
            let expiresAt = finding.state.freshUntil
            if let expiresAt, store.positions.hasEnded(first) || isAnnotation(first) {
                return try ledger.finish(.fresh) {
                    rules.result(of: entry, .fresh, expiresAt: expiresAt)
                }
            }
            guard store.positions.hasEnded(first) else {
                return try add(entry, to: first, addsVariants: true, isFresh: expiresAt != nil)
            }
            try readLate(entry, after: first, number, of: looked)
        case .warmDuplicate(let expiresAt):
            try ledger.finish(.duplicate) {
                rules.result(of: entry, .duplicate, expiresAt: expiresAt)
            }
        case .refused(let message):
            try finishRefused(entry, message)
        case .blacklisted:
            guard let failure = looked.blacklisting(of: number) else {
                preconditionFailure("a blacklisted entry has a failure")
            }
            if ending.isStopping { return try finishCancelled(entry) }
            let (outcome, reason) = failure.unrequestedEnd
            try ledger.finish(outcome, reason: reason ?? failure.reason) {
                unrequestedResult(
                    of: entry, outcome, message: failure.blacklistMessage, by: failure)
            }
        case .new:
            try readNew(entry, number, of: looked)
        }
    }

    /// Whether an entry is warm, and only its attributes are being stored.
    private func isAnnotation(_ identifier: Int) -> Bool {
        store[identifier]?.entry.state.isUnannotated == true
    }

    private func finishRefused(_ entry: RawEntry, _ message: String) throws {
        if ending.isStopping { return try finishCancelled(entry) }
        try ledger.finish(.failed, reason: .invalidEntry) {
            rules.result(
                of: entry, .failed, reason: .invalidEntry,
                message: "\(entry.manifest):\(entry.record.line): \(message)")
        }
    }

    private func finishCancelled(_ entry: RawEntry) throws {
        try ledger.finish(.cancelled) { rules.result(of: entry, .cancelled) }
    }

    /// `isLate`: whether an entry of its key has ended since the look-up.
    private func readNew(
        _ entry: RawEntry, _ number: Int, of looked: LookedUpBatch, isLate: Bool = false
    ) throws {
        let finding = looked.findings[number]
        if let failure = looked.blacklisting(of: number) {
            return try readBlacklisted(entry, finding, by: failure)
        }
        if rules.configuration.lifetimes.isOffline,
            let cause = finding.cause(at: clock.wall(), rules.variants(of: entry.extras))
        {
            return try finishUnrequested(entry, .excluded, message: "\(cause) (--offline)")
        }
        // A failed report ends the run in the middle of a batch.
        if ending.isStopping { return try finishCancelled(entry) }
        if finding.hasOtherURL, let url = looked.otherURLs[number] {
            reading.reusedKeys.note(
                "\(entry.manifest):\(entry.record.line): \(ReusedKeys.text(entry.key, has: url))")
        }
        if isLate { return try queue(entry, .extended, failedBefore: finding.failedBefore) }
        guard case .unannotated(let expiresAt) = finding.state, let resource = finding.resource
        else {
            return try queue(
                entry, finding.state, resource: finding.resource,
                failedBefore: finding.failedBefore)
        }
        let identifier = add(
            entry.entry(finding.state, resource: resource, at: clock.now), of: entry)
        pendingResults.annotating += 1
        let (images, context) = (entry.images, context(of: identifier))
        perform(
            store.update(identifier) {
                $0.annotate(resource: resource, images: images, expiresAt: expiresAt, in: context)
            }, for: identifier)
    }

    private func readBlacklisted(
        _ entry: RawEntry, _ finding: EntryFinding, by failure: FailureRecord
    ) throws {
        if failure.isOfHost, !ending.isStopping {
            let hasReturned =
                failure.isOfFault
                ? pendingResults.held.hasRecovered(failure.host) == true
                : ledger.hasSuccess(at: failure.host)
            if hasReturned {
                return try queue(entry, .missing, resource: finding.resource, failedBefore: true)
            }
            if store.hasRoomForUnspilled {
                let admission = dispatch.choosingAtRandom {
                    pendingResults.held.admission(
                        at: failure.host, isAtFault: failure.isOfFault, using: &$0)
                }
                if case .waits(insteadOf: let other) = admission {
                    if let other { endHeld(other) }
                    return hold(entry, resource: finding.resource, by: failure)
                }
            }
        }
        if !failure.reason.isExclusion {
            ledger.noteBlacklisted(
                failure.reason, failure.httpStatus, at: failure.host, isStored: failure.isStored)
        }
        try finishUnrequested(
            entry, failure.unrequestedEnd.outcome, message: failure.blacklistMessage, by: failure)
    }

    private func add(_ queued: Entry, of entry: RawEntry) -> Int {
        let identifier = intake.identifier(for: entry)
        store.add(EntryMachine(queued), as: identifier)
        return identifier
    }

    private func queue(
        _ entry: RawEntry, _ state: EntryState, resource: Int64? = nil, failedBefore: Bool
    ) throws {
        let now = clock.now
        var queued = entry.entry(state, resource: resource, at: now)
        queued.failedBefore = failedBefore
        if queued.addsImages { reading.newImages += 1 }
        // After an error it waits in memory, and is cancelled with the others.
        try dispatch.push(add(queued, of: entry), queued, at: now)
    }

    private func hold(_ entry: RawEntry, resource: Int64?, by failure: FailureRecord) {
        var queued = entry.entry(.missing, resource: resource, at: clock.now)
        queued.failedBefore = true
        let result =
            ledger.wantsResults(of: .blacklisted)
            ? unrequestedResult(
                of: entry, .blacklisted, message: failure.blacklistMessage, by: failure) : nil
        pendingResults.held.hold(
            add(queued, of: entry), HeldEntry(failure, result), at: failure.host,
            isAtFault: failure.isOfFault)
    }

    /// Ends an entry that is neither warm nor requested; `failure` is the one that blacklists it.
    private func finishUnrequested(
        _ entry: RawEntry, _ outcome: Outcome, message: String, by failure: FailureRecord? = nil
    ) throws {
        let exclusion = failure?.unrequestedEnd.reason
        let identifier = intake.identifier(for: entry)
        intake.noteUnrequested(identifier)
        store.positions.noteEnd(identifier, reason: exclusion)
        let reason = exclusion ?? (outcome == .blacklisted ? failure?.reason : nil)
        try ledger.finish(outcome, reason: reason) {
            unrequestedResult(of: entry, outcome, message: message, by: failure)
        }
    }

    private func unrequestedResult(
        of entry: RawEntry, _ outcome: Outcome, message: String, by failure: FailureRecord?
    ) -> EntryResult {
        var result = rules.result(of: entry, outcome, reason: failure?.reason, message: message)
        result.blacklistedUntil = failure?.blacklistedUntil
        return result
    }

    // MARK: Duplicates

    private func readDuplicate(_ entry: RawEntry, of first: Int) throws {
        guard store.positions.hasEnded(first) else {
            return try add(entry, to: first, addsVariants: false)
        }
        guard ledger.wantsResults(of: .duplicate) else {
            return try ledger.finish(.duplicate) { rules.result(of: entry, .duplicate) }
        }
        let shared = SharedOutcome(
            reason: store.positions.reason(of: first), place: store.positions.place(of: first))
        // The first entry's image is in the cache by now.
        stages.find(
            CopyRequest(
                token: pendingResults.add(rules.result(of: entry, .duplicate), shared),
                key: entry.key, subject: .stored(rules.variants(of: entry.extras)[0].recipe)))
    }

    private func add(
        _ entry: RawEntry, to first: Int, addsVariants: Bool, isFresh: Bool = false
    ) throws {
        if pendingResults.held.contains(first) {
            store.update(first) { $0.raise(to: max($0.entry.priority, entry.record.priority)) }
        } else {
            endingRunOnError {
                try dispatch.raise(first, to: entry.record.priority, at: clock.now)
            }
        }
        do {
            try store.add(
                Entry.Duplicate(
                    manifest: entry.manifest, line: entry.record.line, url: entry.url,
                    variantSet: entry.variantSet, addsVariants: addsVariants, isFresh: isFresh,
                    columns: entry.extras?.columns), of: first)
        } catch {
            try finishCancelled(entry)
            throw error
        }
    }

    private func readLate(
        _ entry: RawEntry, after first: Int, _ number: Int, of looked: LookedUpBatch
    ) throws {
        // It would fail again.
        if let reason = store.positions.reason(of: first), !reason.dependsOnVariants {
            return try ledger.finishAddition(
                rules.result(
                    of: entry, reason.isExclusion ? .excluded : .failed, reason: reason,
                    message: "together with \(store.positions.place(of: first))"),
                isKnown: intake.isKnown(first))
        }
        try readNew(entry, number, of: looked, isLate: true)
    }

    func finishDuplicate(_ token: Int, _ stored: (image: StoredImage, expiresAt: Timestamp)?) {
        guard case (var result, let shared)? = pendingResults.take(token) else { return }
        shared?.describe(&result)
        result.stored = stored?.image
        result.expiresAt = stored?.expiresAt
        endingRunOnError { try ledger.finish(result.outcome) { result } }
    }

    /// Whether the attributes of one more fresh entry may wait for their commit.
    var hasRoomForAnnotation: Bool {
        pendingResults.annotating < rules.configuration.queue.capacity
    }
}

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
