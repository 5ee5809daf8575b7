import CacheStorage
import EntryLifecycle
import EntryQueue
import PrefetchModel
import Scheduling
import Transfers

extension RunCoordinator {
    /// The data of an event that its action needs.
    enum Payload {
        case none
        case body(Body, isFramed: Bool)
        case interrupted(InterruptedBody)
        case refusal(Failure)
    }

    func context(of identifier: Int) -> EntryContext {
        EntryContext(
            rules: rules.entries, phase: ending.phase, variants: self.readVariants(of: identifier),
            now: clock.wall()
        ) { [self] in
            dispatch.decideRetry(of: $0, $1, httpStatus: $2, attempts: $3)
        }
    }

    /// Carries out an entry's action. With `trouble`, a host that is given up with the entry, the
    /// host's earlier state is looked up too.
    func perform(
        _ action: EntryAction, for identifier: Int, with payload: Payload = .none,
        trouble: (host: String, cause: HostPacing.GiveUpCause)? = nil
    ) {
        if let error = ending.unreported.take() { fail(error) }
        switch action {
        case .lookUp: lookUp(identifier, trouble: trouble)
        case .ask(let request): ask(request, for: identifier)
        case .queue(let placement): queue(identifier, placement)
        case .moveOn:
            dispatch.withdrew(identifier, at: clock.now)
            queue(identifier, .next)
        case .process(let work): process(work, for: identifier, with: payload)
        case .keepPart(let part, let receivedAt):
            keep(part, receivedAt: receivedAt, for: identifier, with: payload)
        case .write(let change): write(change, for: identifier)
        case .forget(let image, let next):
            endingRunOnError { try stages.write(.lost(image), token: nil) }
            perform(next, for: identifier)
        case .forgetPart(let next):
            if let key = store[identifier]?.entry.key {
                endingRunOnError { try recorder.discardPart(of: key) }
            }
            perform(next, for: identifier)
        case .finish(let end): finish(identifier, end)
        }
    }

    func cancel(_ identifier: Int) {
        perform(store.update(identifier) { $0.cancel() }, for: identifier)
    }

    func abort(_ identifier: Int, _ error: any Error) {
        perform(store.update(identifier) { $0.abort(RunFailure(error).failure) }, for: identifier)
    }

    /// Returns the variants of all lines so far of an entry's key; nil, after ending the run, if
    /// they cannot be read back.
    private func variants(of identifier: Int) -> VariantSet? {
        variants(numbered: store.positions.variantSet(of: identifier))
    }

    /// Does the same during an event of the entry. The run must not end within it, so the next
    /// ``perform(_:for:with:trouble:)`` reports an error.
    private func readVariants(of identifier: Int) -> VariantSet? {
        // An event reads them several times, and must not succeed with some of them.
        guard ending.unreported == nil else { return nil }
        do {
            return try store.variantSets.set(store.positions.variantSet(of: identifier))
        } catch {
            ending.unreported = error
            return nil
        }
    }

    private func isFiltered(_ identifier: Int) -> Bool {
        let number = store.positions.variantSet(of: identifier)
        let variants = number == 0 ? rules.variants : variants(numbered: number)
        return variants?.primary.recipe.bodyFilter != nil
    }

    func variants(numbered number: UInt32) -> VariantSet? {
        do {
            return try store.variantSets.set(number)
        } catch {
            fail(error)
            return nil
        }
    }

    // MARK: Asking

    private func lookUp(
        _ identifier: Int, trouble: (host: String, cause: HostPacing.GiveUpCause)?
    ) {
        guard let machine = store[identifier] else { return }
        // An entry with a given-up host needs more than the look-up ahead.
        if let trouble {
            return stages.find(lookup(of: identifier, machine.entry, trouble: trouble))
        }
        guard machine.needsLookup, machine.entry.wasKnownBefore else {
            return lookedUp(identifier, .nothing)
        }
        lookAhead(from: identifier)
        switch stages.ahead.take(identifier) {
        case .found(let findings): lookedUp(identifier, findings)
        case .awaited: break
        case .unknown: stages.find(lookup(of: identifier, machine.entry))
        }
    }

    /// Looks up the entries that follow one at its host: the next window when half of the last one
    /// is used.
    private func lookAhead(from identifier: Int) {
        guard stages.ahead.hasRoom else { return }
        if stages.ahead.knows(identifier) {
            let middle = LookAhead.window / 2
            guard let next = dispatch.upcoming(after: identifier, middle..<middle + 1).first,
                store[next]?.entry.wasKnownBefore == true, !stages.ahead.knows(next)
            else { return }
        }
        for next in dispatch.upcoming(after: identifier, 0..<LookAhead.window) {
            guard let machine = store[next], machine.isWaiting, machine.entry.wasKnownBefore else {
                continue
            }
            stages.findAhead(next) { lookup(of: next, machine.entry, isAhead: true) }
        }
    }

    private func lookup(
        of identifier: Int, _ entry: Entry, isAhead: Bool = false,
        trouble: (host: String, cause: HostPacing.GiveUpCause)? = nil
    ) -> CopyRequest {
        CopyRequest(
            token: identifier, key: entry.key,
            // The run ends where the variants cannot be read, and the findings are not used.
            subject: .entry(entry, variants(of: identifier) ?? rules.variants, isAhead: isAhead),
            trouble: trouble)
    }

    func lookedUp(_ identifier: Int, _ found: Findings) {
        var findings = found
        if let machine = store[identifier], machine.needsLookup {
            endingRunOnError {
                findings.part = try recorder.part(of: machine.entry.key)
            }
        }
        let context = context(of: identifier)
        let action = store.update(identifier) { $0.lookedUp(findings, in: context) }
        if store[identifier]?.isAsking != true { dispatch.withdrew(identifier, at: clock.now) }
        perform(action, for: identifier)
    }

    private func ask(_ request: EntryRequest, for identifier: Int) {
        guard let machine = store[identifier] else { return }
        let entry = machine.entry
        if entry.addsImages, !stages.admits(identifier) {
            dispatch.withdrew(identifier, at: clock.now)
            return perform(
                store.update(identifier) { $0.abort(RunStages.notRequested) }, for: identifier)
        }
        ledger.countRequest()
        ledger.tallies.noteRequest(to: machine.target.origin, at: clock.now)
        // A stored body is accepted whatever the limits are now, and one that crashed a run fails
        // as such. The digest of the whole body identifies them.
        let judgesFormatOnly =
            request.mayBeKnown || stages.knowsCrashes
            || store.positions.variantSet(of: identifier) != 0
        // Else its header is judged for the run's variants. Other lines may join meanwhile.
        pendingResults.tried[identifier] = judgesFormatOnly ? nil : rules.variants.count
        stages.ask(
            rules.requests.request(
                request, of: entry, id: identifier, isAlone: dispatch.isAlone(identifier),
                judgesFormatOnly: judgesFormatOnly, isFiltered: isFiltered(identifier)))
    }

    private func queue(_ identifier: Int, _ placement: QueuePlacement) {
        guard let machine = store[identifier] else { return }
        if case .retry = placement { pendingResults.held.attemptFailed(identifier) }
        endingRunOnError {
            try dispatch.requeue(identifier, machine, placement, at: clock.now)
        }
    }

    // MARK: The stages

    private func process(_ work: CodecWork, for identifier: Int, with payload: Payload) {
        guard let machine = store[identifier] else { return }
        guard let variants = variants(of: identifier) else { return cancel(identifier) }
        let entry = machine.entry
        switch work {
        case .refusal: break
        // Lines that were read since the look-up may request more.
        case .seeded(let copy): pendingResults.tried[identifier] = copy.images.count
        case .body, .original: pendingResults.tried[identifier] = variants.count
        }
        let url = machine.target.withoutCredentials.text
        let part = CodecJob.PartKey(key: entry.key, url: url)
        let input: CodecJob.JobInput
        switch (work, payload) {
        case (.body(var known, stored: let stored, let validation), .body(let body, let isFramed)):
            known?.extend(to: variants.count)
            // Lines that were read since the look-up may request some of them.
            let others = machine.otherVariants.filter { other in
                // Another filter would make another image of the body.
                Recipe.haveSameFilter(other.recipeText, variants.primary.recipeText)
                    && !variants.contains {
                        $0.name == other.name || $0.recipeText == other.recipeText
                    }
            }
            input = .body(
                CodecJob.Download(
                    body: body, originURL: validation.location.respondingURL,
                    hasFramedBody: isFramed, known: known,
                    expected: entry.extras?.sourceDigest, stored: stored, others: others,
                    part: part))
        case (.original(let image, var kept), _):
            while kept.count < variants.count { kept.append(nil) }
            input = .original(image, originURL: url, kept: kept)
        case (.seeded(let copy), _):
            input = .seeded(copy)
        case (.refusal, .refusal(let refusal)):
            input = .refused(refusal, part: part)
        case (.body, _), (.refusal, _):
            preconditionFailure("a body comes with its response")
        }
        enqueue(CodecJob(id: identifier, variants: variants, input: input))
    }

    private func keep(
        _ part: PartialBody, receivedAt: Timestamp, for identifier: Int, with payload: Payload
    ) {
        guard case .interrupted(let body) = payload, let entry = store[identifier]?.entry else {
            preconditionFailure("a part comes with its body")
        }
        enqueue(
            CodecJob(
                id: identifier, variants: rules.variants,
                input: .interrupted(
                    CodecJob.InterruptedDownload(
                        body: body.body, key: entry.key, part: part, receivedAt: receivedAt))))
    }

    private func enqueue(_ job: CodecJob) {
        do {
            try stages.process(job)
        } catch {
            fail(error)
            cancel(job.id)
        }
    }

    /// Hands a change to the writer; the outcome follows the commit, so that a reported entry is
    /// committed.
    private func write(_ made: ImageChange, for identifier: Int) {
        var change = made
        change.variants += pendingResults.others.removeValue(forKey: identifier) ?? []
        // The failure of its key may concern another line.
        if intake.isBesideUnrequested(identifier) { change.isIncomplete = true }
        do {
            try stages.checkWriter()
            for variant in change.variants where variant.isKept { recorder.pin(variant.image) }
            try stages.write(.image(change), token: identifier)
        } catch {
            fail(error)
            abort(identifier, error)
        }
    }

    // MARK: Outcomes

    /// Gives an entry and the later lines of its key their outcomes.
    private func finish(_ identifier: Int, _ end: EntryEnd) {
        guard let machine = store[identifier] else {
            preconditionFailure("an entry has one outcome")
        }
        // Without its variants the run ends, and the report shows the run's.
        let line = variants(numbered: machine.entry.variantSet) ?? rules.variants
        let all = variants(of: identifier) ?? line
        let lines = LineEnds(
            machine, end, variants: all,
            tried: pendingResults.tried.removeValue(forKey: identifier), rules)
        let isShared = all.count > line.count
        store.end(identifier, reason: isShared ? lines.commonReason : end.reason)
        if machine.entry.state.isUnannotated { pendingResults.annotating -= 1 }
        let own = lines.lineEnd(line) ?? (end, Array(line.indices))
        let result = lines.result(line, own)
        let variants = VariantsOfFailure(
            line: machine.entry.variantSet == 0 ? nil : line, failed: isShared ? lines.failed : nil)
        var knowledge = FailureKnowledge.new
        switch end {
        case .failed(let failed):
            ledger.tallies.noteFailure(
                failed.failure.reason, httpStatus: machine.httpStatus, at: machine.target.origin,
                at: clock.now)
            knowledge = remember(
                machine, failed,
                message: own.end.reason == nil ? failed.failure.message : result.message ?? "",
                variants)
            if stages.gate.isKnown, machine.entry.addsImages,
                RunStages.isWithoutRoom(failed.failure)
            {
                knowledge = .ofURL
            }
        case .excluded(let message, let reason?) where machine.hadTurn && reason != .notSelected:
            // So that the next runs need no request.
            _ = remember(machine, reason, message: message, variants)
        case .stored: stages.gate.noteStored(identifier)
        case .excluded, .requested, .cancelled: break
        }
        if knowledge != .new { intake.noteKnown(identifier) }
        endingRunOnError {
            try ledger.finish(machine, end, result, knowledge)
        }
        finishLaterLines(of: identifier, lines, isKnown: knowledge != .new)
        releaseHeld(after: identifier, machine, isSuccess: end.isSuccess)
    }

    private func releaseHeld(after identifier: Int, _ machine: EntryMachine, isSuccess: Bool) {
        let servingHost = isSuccess && machine.hadTurn ? machine.entry.url.origin : nil
        switch pendingResults.held.ended(identifier, servedBy: servingHost) {
        case .none: break
        case .released(let released): queueHeld(released)
        case .ended(let ended): ended.forEach(endHeld)
        }
        guard !pendingResults.held.isEmpty, machine.hadTurn else { return }
        let host = machine.entry.url.origin
        if ledger.hasSuccess(at: host) { queueHeld(pendingResults.held.release(host: host)) }
    }

    /// Requests one entry of each host at fault that has not been probed.
    func startProbes() {
        guard !ending.isStopping, !ending.takesNoEntries, !pendingResults.held.isEmpty else {
            return
        }
        queueHeld(dispatch.choosingAtRandom { pendingResults.held.takeProbes(using: &$0) })
    }

    private func queueHeld(_ identifiers: [Int]) {
        for identifier in identifiers {
            guard let entry = store[identifier]?.entry else { continue }
            // An error of an earlier one has stopped the run, and emptied the queue.
            guard !ending.isStopping else {
                cancel(identifier)
                continue
            }
            endingRunOnError {
                try dispatch.push(identifier, entry, at: clock.now)
            }
        }
    }

    func endHeld(_ ended: HeldEntries<HeldEntry>.Ended) {
        let (identifier, held) = (ended.identifier, ended.value)
        guard let entry = store[identifier]?.entry else { return }
        store.end(identifier, reason: nil)
        ledger.noteBlacklisted(
            held.reason, held.httpStatus, at: ended.host, isStored: held.isStored)
        endingRunOnError {
            try ledger.finish(.blacklisted, reason: held.reason) {
                guard let result = held.result else {
                    preconditionFailure("a wanted result is held")
                }
                return result
            }
        }
        finishHeldLines(of: identifier, entry, stored: held.result?.stored)
    }

    /// Stores a failure, or the result of a filter; returns nil if it is not to be stored.
    private func remember(
        _ machine: EntryMachine, _ reason: FailureReason, message: String,
        _ variants: VariantsOfFailure, isHarmless: Bool = false
    ) -> FailureRecord? {
        guard ending.fatal == nil, rules.entries.storesImages,
            let record = FailureRecord(
                machine, reason, message: message, rules.failureSettings, variants,
                isHarmless: isHarmless, at: clock.wall())
        else { return nil }
        endingRunOnError {
            try stages.write(isHarmless ? .harmlessFailure(record) : .failure(record), token: nil)
        }
        return record
    }

    /// Stores a failure for the next runs, and returns whether earlier runs make it known.
    private func remember(
        _ machine: EntryMachine, _ failed: EntryEnd.Failed, message: String,
        _ variants: VariantsOfFailure
    ) -> FailureKnowledge {
        let former = machine.findings.formerFailure
        let host = machine.entry.url.origin
        let (reason, status) = (failed.failure.reason, machine.httpStatus)
        let isExplained = ledger.ongoingOutages.explain(
            reason, httpStatus: status, host: host, failedBefore: former != nil,
            isStored: machine.entry.resource != nil)
        if failed.blame == .hostGivenUp {
            return machine.findings.wasGivenUpBefore || isExplained ? .ofHost : .new
        }
        // The memory of a full cache says nothing about stored images, nor about one large image.
        let isOfRoom =
            failed.failure == RunStages.noRoom
            && !(machine.entry.addsImages && (stages.gate.isKnown || stages.isFull))
        let memory =
            isOfRoom
            ? .known
            : failed.memory(
                httpStatus: machine.httpStatus,
                blacklisting: rules.failureSettings.blacklistedStatuses(
                    atHostIn: machine.entry.url.text))
        guard memory == .known || memory == .counted && machine.hadTurn,
            let record = remember(
                machine, reason, message: message, variants, isHarmless: memory == .known)
        else { return isExplained ? .ofHost : .new }
        let query = rules.configuration.entries.ignoredQuery
        return FailurePolicy.knowledge(
            of: (reason, status), former: former,
            isSameURL: former.map { query.areEqual($0.url, record.url) } ?? false,
            isExplained: isExplained, isHostOut: ledger.ongoingOutages.isOut(host),
            hasSuccess: ledger.hasSuccess(at: host))
    }
}

extension EntryEnd {
    /// Whether the origin has served the image.
    fileprivate var isSuccess: Bool {
        switch self {
        case .stored, .requested: true
        case .excluded(_, let reason): reason != nil
        case .failed, .cancelled: false
        }
    }
}
