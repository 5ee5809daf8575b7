import CacheStorage
import EntryLifecycle
import EntryQueue
import HTTPSemantics
import PrefetchModel
import Scheduling

extension RunCoordinator {
    /// Decides on each entry of a batch.
    func read(_ looked: LookedUpBatch) {
        let batch = looked.batch
        ledger.countRead(batch.records.count)
        for resource in looked.otherResources.values { reading.listed.insert(resource) }
        for resource in looked.resourcesNotTaken { reading.listed.insert(resource) }
        for state in looked.states {
            if let resource = state.resource { reading.listed.insert(resource) }
        }
        var returning: [UInt32: [Int64]] = [:]
        var newExpiries: [Int64: Timestamp] = [:]
        var newURLs: [Int64: String] = [:]
        batch.text.withUnsafeBytes { text in
            for (number, record) in batch.records.enumerated() {
                endingRunOnError { () throws(FatalError) in
                    guard record.problem < 0 else {
                        return try finishInvalid(record, of: batch, text)
                    }
                    var entry = RawEntry(
                        manifest: batch.manifest, record: record,
                        fingerprint: looked.fingerprints[number],
                        extras: batch.extras(of: record), text: text)
                    let arrival = try arrival(of: &entry, number, of: looked)
                    if let resource = try resourceToNote(entry, arrival, number, of: looked) {
                        returning[entry.variantsOfKey, default: []].append(resource)
                    }
                    // Only the first line of a key changes anything else.
                    if let expiresAt = looked.newExpiries[number], arrival.isFirst,
                        let resource = looked.states[number].resource
                    {
                        newExpiries[resource] = expiresAt
                    }
                    if let url = looked.newURLs[number], arrival.isFirst,
                        let resource = looked.states[number].resource
                    {
                        newURLs[resource] = url
                    }
                    try read(entry, arrival, number, of: looked)
                }
            }
        }
        endingRunOnError { () throws(FatalError) in try ledger.reportWarmLines() }
        noteReturning(returning)
        let changes: [MetadataChange] =
            (newExpiries.isEmpty ? [] : [.expiries(newExpiries)])
            + (newURLs.isEmpty ? [] : [.listedURLs(newURLs)])
        guard !ending.isStopping else { return }
        for change in changes {
            endingRunOnError { () throws(FatalError) in try stages.write(change, token: nil) }
        }
    }

    private func arrival(
        of entry: inout RawEntry, _ number: Int, of looked: LookedUpBatch
    ) throws(FatalError) -> Intake.Arrival {
        do throws(SpillError) {
            return try intake.arrival(of: &entry, number, in: looked)
        } catch {
            throw FatalError(spilling: error)
        }
    }

    /// Returns the resource of a fresh entry whose variants in use are to be noted; nil if they are
    /// in use already, or the entry adds none.
    private func resourceToNote(
        _ entry: RawEntry, _ arrival: Intake.Arrival, _ number: Int, of looked: LookedUpBatch
    ) throws(FatalError) -> Int64? {
        let isReturning = looked.returning.contains(number)
        switch arrival {
        case .warm(let resource, _):
            guard isReturning else { return nil }
            intake.noteUse(of: resource)
            return resource
        case .warmAddition(let resource, _):
            let variants: VariantSet
            do throws(SpillError) {
                variants = try store.variantSets.set(entry.variantsOfKey)
            } catch {
                throw FatalError(spilling: error)
            }
            let main = rules.variants(of: entry.extras).main?.canonicalText
            let isRenamed = main.map { text in
                variants.first { $0.name == .main }?.recipeText != text
            }
            guard
                intake.mustNoteAddition(
                    to: resource, isReturning: isReturning,
                    isSuperseded: looked.superseded.contains(number), isRenamed: isRenamed)
            else { return nil }
            intake.noteUse(of: resource)
            return resource
        case .addition(to: let first):
            // An entry of its key may have changed them since the look-up.
            guard store.hasEnded(first) || isAnnotation(first),
                case .fresh(let resource, _, _) = looked.states[number]
            else { return nil }
            return resource
        case .new, .duplicate, .warmDuplicate, .conflicting, .overfull, .blacklisted: return nil
        }
    }

    /// Notes which variants of resources are in use again.
    private func noteReturning(_ returning: [UInt32: [Int64]]) {
        guard !ending.isStopping else { return }
        for (number, resources) in returning {
            endingRunOnError { () throws(FatalError) in
                let variants: VariantSet
                do throws(SpillError) {
                    variants = try store.variantSets.set(number)
                } catch {
                    throw FatalError(spilling: error)
                }
                try stages.write(
                    .used(resources: resources, Array(variants)), token: nil)
            }
        }
    }

    private func finishInvalid(
        _ record: EntryBatch.Record, of batch: EntryBatch, _ text: UnsafeRawBufferPointer
    ) throws(FatalError) {
        let problem = batch.problems[record.problem]
        let failure = problem.failure
        let outcome: Outcome = failure.reason.isExclusion ? .excluded : .failed
        try ledger.finish(outcome, reason: failure.reason, isKnown: problem.isKnown) {
            EntryResult(
                manifest: batch.manifest, line: record.line, columns: problem.columns,
                url: text.string(record.url), key: text.string(record.key), outcome: outcome,
                reason: failure.reason,
                message: outcome == .excluded
                    ? failure.message : "\(batch.manifest):\(record.line): \(failure.message)")
        }
    }

    private func read(
        _ entry: RawEntry, _ arrival: Intake.Arrival, _ number: Int, of looked: LookedUpBatch
    ) throws(FatalError) {
        if arrival.isWarm, let lines = looked.lines, looked.hasLine(number) {
            return try ledger.finishFresh(number, lines)
        }
        var entry = entry
        entry.images = looked.images(of: number)
        switch arrival {
        case .warm(_, let expiresAt), .warmAddition(_, let expiresAt):
            try ledger.finish(.fresh) {
                rules.freshResult(of: entry, expiresAt: expiresAt)
            }
        case .duplicate(of: let first):
            // A cancelled entry has no outcome to share.
            if ending.isStopping { return try finishCancelled(entry) }
            try readDuplicate(entry, of: first)
        case .addition(to: let first):
            if ending.isStopping { return try finishCancelled(entry) }
            guard store.hasEnded(first) else {
                guard case .fresh(_, let expiresAt, _) = looked.states[number] else {
                    return try add(entry, to: first, addsVariants: true)
                }
                // That one makes no images, and waits for its attributes only.
                if isAnnotation(first) {
                    return try ledger.finish(.fresh) {
                        rules.freshResult(of: entry, expiresAt: expiresAt)
                    }
                }
                return try add(entry, to: first, addsVariants: true, isFresh: true)
            }
            try readLate(entry, after: first, number, of: looked)
        case .warmDuplicate(let expiresAt):
            try ledger.finish(.duplicate) {
                rules.result(of: entry, .duplicate, expiresAt: expiresAt)
            }
        case .conflicting(since: let position):
            try finishRefused(entry, Intake.conflict(since: position))
        case .overfull(since: let position):
            try finishRefused(entry, Intake.overflow(since: position))
        case .blacklisted:
            guard let failure = looked.blacklisting(of: number) else {
                preconditionFailure("a blacklisted entry has a failure")
            }
            if ending.isStopping { return try finishCancelled(entry) }
            let (outcome, reason) = failure.unrequestedEnd
            try ledger.finish(outcome, reason: reason) {
                unrequestedResult(
                    of: entry, outcome, message: failure.blacklistMessage, by: failure)
            }
        case .new:
            try readNew(entry, number, of: looked)
        }
    }

    /// Whether an entry is warm, and only its attributes are being stored.
    private func isAnnotation(_ identifier: Int) -> Bool {
        store[identifier]?.entry.plan.isAnnotation == true
    }

    private func finishRefused(_ entry: RawEntry, _ message: String) throws(FatalError) {
        if ending.isStopping { return try finishCancelled(entry) }
        try ledger.finish(.failed, reason: .invalidEntry) {
            rules.result(
                of: entry, .failed, reason: .invalidEntry,
                message: "\(entry.manifest):\(entry.record.line): \(message)")
        }
    }

    private func finishCancelled(_ entry: RawEntry) throws(FatalError) {
        try ledger.finish(.cancelled) { rules.result(of: entry, .cancelled) }
    }

    /// `isLate`: whether an entry of its key has ended since the look-up.
    private func readNew(
        _ entry: RawEntry, _ number: Int, of looked: LookedUpBatch, isLate: Bool = false
    ) throws(FatalError) {
        let state = looked.states[number]
        if case .blacklisted(let index, let resource) = state {
            let failure = looked.blacklistedBy[index]
            if failure.isOfHost, !ending.isStopping {
                let plan = resource.map { Entry.Plan.refresh(resource: $0) } ?? .fetch
                if ledger.hasSuccess(at: failure.host) {
                    return try queue(entry, plan, failedBefore: true)
                }
                if pendingResults.held.hasRoom(for: failure.host) {
                    return hold(entry, plan, by: failure)
                }
            }
            return try finishUnrequested(
                entry, failure.unrequestedEnd.outcome, message: failure.blacklistMessage,
                by: failure)
        }
        if rules.configuration.lifetimes.isOffline, let cause = state.cause(at: clock.wall()) {
            return try finishUnrequested(entry, .excluded, message: "\(cause) (--offline)")
        }
        // A failed report ends the run in the middle of a batch.
        if ending.isStopping { return try finishCancelled(entry) }
        guard var plan = state.plan else {
            preconditionFailure("an entry without a problem was looked up")
        }
        if isLate { plan = .extend }
        // Its other variants are made again if the source has changed.
        if case .fetch = plan, let resource = looked.otherResources[number] {
            plan = .refresh(resource: resource)
        }
        let failedBefore = looked.failedBefore.contains(number)
        guard case .annotate(let resource) = plan, case .fresh(_, let expiresAt, _) = state else {
            return try queue(entry, plan, failedBefore: failedBefore)
        }
        let identifier = add(entry.entry(plan, at: clock.now), of: entry)
        pendingResults.annotationBegan()
        let images = entry.images
        perform(
            store.update(identifier) {
                $0.annotate(resource: resource, images: images, expiresAt: expiresAt)
            }, for: identifier)
    }

    private func add(_ queued: Entry, of entry: RawEntry) -> Int {
        let identifier = intake.identifier(for: entry)
        store.add(EntryMachine(queued), as: identifier)
        return identifier
    }

    private func queue(
        _ entry: RawEntry, _ plan: Entry.Plan, failedBefore: Bool
    ) throws(FatalError) {
        let now = clock.now
        var queued = entry.entry(plan, at: now)
        queued.failedBefore = failedBefore
        // After an error it waits in memory, and is cancelled with the others.
        try dispatch.push(add(queued, of: entry), queued, at: now)
    }

    /// Lets a blacklisted entry wait for a response of its host.
    private func hold(_ entry: RawEntry, _ plan: Entry.Plan, by failure: FailureRecord) {
        var queued = entry.entry(plan, at: clock.now)
        queued.failedBefore = true
        let isWanted = ledger.wantsResults(of: .blacklisted)
        pendingResults.held.hold(
            add(queued, of: entry), host: failure.host,
            result: isWanted
                ? unrequestedResult(
                    of: entry, .blacklisted, message: failure.blacklistMessage, by: failure) : nil)
    }

    /// Ends an entry that is neither warm nor requested; `failure` is the one that blacklists it.
    private func finishUnrequested(
        _ entry: RawEntry, _ outcome: Outcome, message: String, by failure: FailureRecord? = nil
    ) throws(FatalError) {
        let exclusion = failure?.unrequestedEnd.reason
        let identifier = intake.identifier(for: entry)
        intake.noteUnrequested(identifier)
        store.noteEnd(identifier, reason: exclusion)
        try ledger.finish(outcome, reason: exclusion) {
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

    private func readDuplicate(_ entry: RawEntry, of first: Int) throws(FatalError) {
        guard store.hasEnded(first) else {
            return try add(entry, to: first, addsVariants: false)
        }
        let (manifest, line) = store.position(of: first)
        let shared = SharedOutcome(
            reason: store.reason(of: first), manifest: manifest, line: line)
        guard ledger.wantsResults(of: .duplicate) else {
            return try ledger.finish(.duplicate) { entry.result(.duplicate) }
        }
        // The first entry's image is in the cache by now.
        stages.find(
            CopyRequest(
                token: pendingResults.add(rules.result(of: entry, .duplicate), shared),
                key: entry.key,
                subject: .stored(rules.variants(of: entry.extras)[0].recipe)))
    }

    /// Lets a line wait for the outcome of an earlier one.
    private func add(
        _ entry: RawEntry, to first: Int, addsVariants: Bool, isFresh: Bool = false
    ) throws(FatalError) {
        if pendingResults.held.contains(first) {
            store.update(first) { $0.raise(to: max($0.entry.priority, entry.record.priority)) }
        } else {
            endingRunOnError { () throws(FatalError) in
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
            throw FatalError(spilling: error)
        }
    }

    /// Decides on a line that asks for more variants than an ended entry of its key.
    private func readLate(
        _ entry: RawEntry, after first: Int, _ number: Int, of looked: LookedUpBatch
    ) throws(FatalError) {
        if case .fresh(_, let expiresAt, _) = looked.states[number] {
            return try ledger.finish(.fresh) { rules.freshResult(of: entry, expiresAt: expiresAt) }
        }
        // It would fail again.
        if let reason = store.reason(of: first), !reason.dependsOnVariants {
            let (manifest, line) = store.position(of: first)
            return try ledger.finishAddition(
                rules.result(
                    of: entry, reason.isExclusion ? .excluded : .failed, reason: reason,
                    message: "together with \(manifest):\(line)"),
                isKnown: intake.isKnown(first))
        }
        try readNew(entry, number, of: looked, isLate: true)
    }

    /// Ends a duplicate of an ended entry, with the image that is stored.
    func finishDuplicate(
        _ token: Int, _ stored: (image: StoredImage, expiresAt: Timestamp)?
    ) {
        guard case (var result, let shared)? = pendingResults.take(token) else { return }
        shared?.describe(&result)
        result.stored = stored?.image
        result.expiresAt = stored?.expiresAt
        endingRunOnError { () throws(FatalError) in try ledger.finish(result.outcome) { result } }
    }

    /// Whether the attributes of one more fresh entry may wait for their commit.
    var hasRoomForAnnotation: Bool {
        pendingResults.annotating < rules.configuration.queue.capacity
    }
}
