import CacheStorage
import Decoding
import EntryLifecycle
import EntryQueue
import PrefetchModel
import Scheduling

/// One run, start to end: the loop that joins the owners of its state.
///
/// It stays on the thread that calls ``run(_:)`` and receives everything from other threads through
/// one mailbox, so it needs no lock. ``Intake`` knows the entries seen, ``Dispatch`` decides which
/// one is next, an ``EntryMachine`` decides each step of an entry, ``RunStages`` does the work, and
/// ``Ledger`` counts and reports.
package final class RunCoordinator {
    let rules: RunRules
    let clock: RunClock
    let recorder: any RunRecording
    /// Entries that wait, are in flight, with the codecs or waiting for their commit.
    let store: EntryStore
    var intake: Intake
    var dispatch: Dispatch
    var ledger: Ledger
    var stages: RunStages
    var ending: RunEnding
    var pendingResults = PendingResults()
    var reading = ListProgress()
    private let events: any EventSource

    /// The progress of reading the lists, and of reports about the run.
    struct ListProgress {
        var isDone = false
        /// Resources that the lists have named and that were stored before the run.
        var listed = ResourceSet()
        /// Entries for images that are not stored.
        var newImages = 0
        /// The first part of the lists that hides images; nil for whole lists.
        var gap = ListGap(.unread, at: "", "the lists were not read to their end")
        /// The requested entries with keys of other URLs' images.
        var reusedKeys = ReusedKeys()
        /// Whether the stages know ``listed``, all resources that must stay.
        var isProtecting = false
        var nextProgress: ContinuousClock.Instant?
        static let progressInterval = Duration.milliseconds(100)
        var nextHosts: ContinuousClock.Instant?
        static let hostsInterval = Duration.seconds(1)
    }

    init(
        _ rules: RunRules, clock: RunClock, events: any EventSource,
        stages: any StageProviding, recorder: any RunRecording, observer: any RunObserving,
        random: some RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        self.rules = rules
        self.clock = clock
        ending = RunEnding(rules.configuration.runLimits, start: clock.now)
        self.events = events
        self.recorder = recorder
        store = EntryStore(
            capacity: rules.configuration.queue.capacity, folder: rules.temporaryFolder,
            variants: rules.variants)
        intake = Intake(store: store, variants: rules.variants, random: random)
        dispatch = Dispatch(rules.configuration, store: store, random: random)
        ledger = Ledger(observer: observer, leavesShard: rules.configuration.entries.leavesShard)
        self.stages = RunStages(stages)
    }

    /// Brings the cache up to date with the inputs, and returns the summary.
    ///
    /// With `readsAheadOfStarts` everything is read before the first transfer starts, which LIFO
    /// order over regular files and `--max-size` require. `startReading` starts the readers, after
    /// the run has been noted.
    func run(readsAheadOfStarts: Bool, startReading: () throws -> Void) -> RunSummary {
        let startedAt = clock.wall()
        let start = ending.start
        do {
            try recorder.begin(at: startedAt)
            ledger.ongoingOutages = try recorder.ongoingOutages()
            if !rules.configuration.lifetimes.isOffline { try recallHosts() }
            try startReading()
        } catch {
            fail(error)
            reading.isDone = true
        }
        while !isFinished {
            let mayStart = !ending.isStopping && (reading.isDone || !readsAheadOfStarts)
            if mayStart {
                if reading.isDone, !reading.isProtecting { protectListed() }
                startWork()
            } else if ending.isStopping {
                endWaiting()
            }
            step(start: start, mayStart: mayStart)
        }
        events.endReading()
        return summary(startedAt: startedAt, start: start)
    }

    /// Lets the stages evict all resources but the listed ones, once these are known.
    private func protectListed() {
        reading.isProtecting = true
        let listed = RunListing(resources: reading.listed, isWhole: keptBy == nil)
        if listed.isWhole { stages.protect(listed.resources) }
        endingRunOnError {
            stages.gate = RoomGate(
                try recorder.fullness(listed: listed), newImages: reading.newImages)
        }
    }

    private var isFinished: Bool {
        store.isEmpty && dispatch.isEmpty && pendingResults.hasNoLookups
            && (reading.isDone || ending.takesNoEntries)
    }

    private func step(start: ContinuousClock.Instant, mayStart: Bool) {
        send()
        // Entries beyond the queue's capacity wait in a file, so that a slow host does not keep
        // others from being read.
        if reading.isDone || mayStart && pendingResults.held.needsProbes {
            startProbes()
        }
        let hasRoom =
            stages.hasRoomForCommit && pendingResults.hasRoom && hasRoomForAnnotation
            // Entries of their hosts wait for the answers of probes.
            && !(mayStart && pendingResults.held.awaitsProbes)
        let before = clock.now
        let nextProgress = reading.nextProgress ?? before + ListProgress.progressInterval
        reading.nextProgress = nextProgress
        var deadline =
            ending.isStopping && !dispatch.isEmpty ? before : ending.deadline(nextProgress)
        if mayStart,
            let wakeTime = dispatch.nextStartTime(
                hasRoomForImage: hasRoomForTransferredImage,
                hasRoomForLookup: hasRoomForLookup, at: before)
        {
            deadline = min(deadline, wakeTime)
        }
        let (events, input) = events.take(
            wantsInput: hasRoom && !reading.isDone && !ending.takesNoEntries, until: deadline)
        for event in events { handle(event) }
        switch input {
        case .batch(let batch):
            read(batch)
        case .ended(let gap):
            reading.isDone = true
            reading.gap = gap
        case .failed(let error):
            reading.isDone = true
            fail(error)
        case nil:
            break
        }
        let now = clock.now
        endAtLimit(at: now)
        if ending.cancels(at: now) { cancelRunning() }
        storeHosts(at: now)
        if nextProgress <= now { reportProgress(since: start, at: now) }
        if reading.isDone || ending.takesNoEntries, dispatch.isEmpty,
            store.count == pendingResults.held.count
        {
            startProbes()
            if dispatch.isEmpty { pendingResults.held.removeAll().forEach(endHeld) }
        }
        // Commit at once when nothing else is outstanding, or when entries take all their memory.
        let isLast =
            (reading.isDone || ending.takesNoEntries) && dispatch.isEmpty && dispatch.inFlight == 0
            && stages.isIdle
        if isLast || !store.hasRoomForStart {
            stages.hurry()
        }
    }

    private func reportProgress(
        since start: ContinuousClock.Instant, at now: ContinuousClock.Instant
    ) {
        reading.nextProgress = now + ListProgress.progressInterval
        let wantsHosts = (reading.nextHosts ?? start + ListProgress.hostsInterval) <= now
        if wantsHosts { reading.nextHosts = now + ListProgress.hostsInterval }
        var progress = RunProgress(
            counters: ledger.counters, inFlight: dispatch.inFlight,
            isTotalKnown: reading.isDone, elapsed: now - start)
        progress.holdUp = holdUp(at: now)
        progress.isStopping = ending.isStopping
        progress.hosts = wantsHosts ? hostPaces : nil
        ledger.report(progress)
    }

    /// Stores the hosts' pace now and then, so that the run after a kill knows it.
    private func storeHosts(at now: ContinuousClock.Instant) {
        guard !ending.isStopping, dispatch.takesStorage(at: now) else { return }
        endingRunOnError { try rememberHosts() }
    }

    /// Returns the host that limits the transfers: nil when all slots are in use, images wait for
    /// the processor or the disk, or the list is still being read and nothing waits.
    private func holdUp(at now: ContinuousClock.Instant) -> HoldUp? {
        guard dispatch.hasRoomForTransfer, hasRoomForTransferredImage, !ending.isStopping,
            reading.isDone || !dispatch.scheduler.isEmpty
        else { return nil }
        var holdUp = dispatch.holdUp(at: now)
        if let host = holdUp?.host {
            holdUp?.perSecond = ledger.tallies.recentRate(of: host, at: now)
        }
        return holdUp
    }

    private func handle(_ event: Mailbox.StageEvent) {
        switch event {
        case .transferred(let completion): transferred(completion)
        case .found(let findings): findings.forEach(found)
        case .processed(let completion): processed(completion)
        case .committed(let identifiers): identifiers.forEach(committed)
        case .transfersFailed(let error): transfersFailed(error)
        case .lookupsFailed(let error): lookupsFailed(error)
        case .writerFailed(let error): writerFailed(error)
        case .stop(let signal):
            if ending.stop(signal: signal, at: clock.now) { stopStarting() }
        }
    }

    // MARK: Stopping

    private func endAtLimit(at now: ContinuousClock.Instant) {
        if ending.isLastStart(at: now) {
            stop(at: .deadline)
        } else if rules.configuration.runLimits.endsAtFailure,
            rules.configuration.exit.hasFailed(ledger.counters)
        {
            stop(at: .failure)
        } else if ending.limit == .entries, dispatch.hasOnlyNewEntries {
            stop(at: .entries)
        }
    }

    /// Ends the requests of further entries. Entries that had their turn may be redirected or
    /// retried.
    func takeNoMoreEntries() {
        guard !ending.takesNoEntries else { return }
        ending.takeNoMoreEntries()
        events.endReading()
    }

    /// Ends the run: nothing more starts, and running work may finish until the deadline.
    func stop(at limit: RunLimit) {
        if ending.stop(at: limit) { stopStarting() }
    }

    /// Ends the run: nothing more starts, running work is cancelled, stored images are committed.
    func fail(_ error: any Error) {
        if ending.fail(error, at: clock.now) { stopStarting() }
    }

    func endingRunOnError(_ work: () throws -> Void) {
        do {
            try work()
        } catch {
            fail(error)
        }
    }

    private func stopStarting() {
        events.endReading()
        guard countsUnread else { return }
        let (count, placeless) = dispatch.dropSpilled()
        ledger.countCancelled(count)
        placeless.forEach(cancel)
    }

    /// Whether spilled entries may be counted as cancelled without reading them: nothing but their
    /// number is wanted.
    private var countsUnread: Bool {
        guard !ledger.wantsResults(of: .cancelled) else { return false }
        // The end of a started entry may release others of its host, and counts its redirects.
        return !store.hasSpilledReturning
            || pendingResults.held.isEmpty && rules.configuration.entries.leavesShard == nil
    }

    /// Cancels entries that wait, a limited number at a time, to handle the events of running work.
    private func endWaiting() {
        for _ in 0..<RunCoordinator.endedAtOnce {
            do {
                guard let identifier = try dispatch.removeNext() else { return }
                cancel(identifier)
            } catch {
                ending.losesEntries = true
                fail(error)
            }
        }
    }

    private static let endedAtOnce = 4096

    /// Cancels running work; images with a worker end soon and are still reported.
    private func cancelRunning() {
        for identifier in stages.cancelTransfers() {
            dispatch.withdrew(identifier, at: clock.now)
            cancel(identifier)
        }
        for identifier in stages.cancelImages() {
            cancel(identifier)
        }
    }

    // MARK: The end

    private func summary(startedAt: Timestamp, start: ContinuousClock.Instant) -> RunSummary {
        endingRunOnError { try stages.finish() }
        // The last checkpoint follows the last commit, and may fail or be interrupted.
        for event in events.take(wantsInput: false, until: clock.now).events {
            switch event {
            // The cookie jar is written at the very end.
            case .writerFailed(let error), .transfersFailed(let error): fail(error)
            case .stop(let signal): ending.stopSignal = signal
            case .transferred, .found, .processed, .committed, .lookupsFailed: break
            }
        }
        if ending.fatal?.isDiskFull == true { recorder.makeRoom(at: clock.wall()) }
        // Only lines of entries that were counted unread are left.
        ledger.countCancelled(store.laterLines.counts)
        if ending.losesEntries {
            // Entries lost with the temporary file still get an outcome.
            ledger.countLost()
        }
        let outages = judgeOutages()
        var summary = RunSummary(
            counters: ledger.counters, startedAt: startedAt, elapsed: clock.now - start,
            exitStatus: exitStatus, cacheDirectory: rules.cacheDirectory)
        if let outages { summary.note(outages) }
        summary.lostVariants = ledger.lostVariants
        summary.sandbox = (stages.sandbox.text, stages.sandbox.isLess)
        summary.reusedKeys = reading.reusedKeys
        summary.hosts = hostPaces
        summary.hasSeveralVariants = rules.variants.count > 1 || ledger.sharesDownloads
        // A damaged database is not written.
        if ending.fatal?.isDamage != true {
            do {
                (summary.pruned, summary.snapshotFailure) = try record(summary)
            } catch {
                fail(error)
                if ending.fatal?.isDiskFull == true {
                    recorder.noteUnlogged(at: clock.wall(), exitStatus: exitStatus)
                }
            }
            summary.exitStatus = exitStatus
        }
        if ending.fatal?.isDamage == true {
            ending.setHint(recorder.noteDamage())
        }
        summary.unlistedKeptBy = rules.configuration.storing.removesUnlisted ? keptBy : nil
        summary.endedBy = isWorkLeft ? ending.limit : nil
        summary.fatalMessage = ending.fatal?.error.description
        summary.fatalHint = ending.fatal?.error.hint
        // The fatal error says more than the signal.
        summary.stoppedBySignal = ending.fatal == nil ? ending.stopSignal : nil
        return summary
    }

    /// The reason that images that no list names are kept; nil if they may be removed.
    private var keptBy: ListGap? {
        rules.configuration.storing.allowsPartialLists && reading.isDone ? nil : reading.gap
    }

    private func takeSnapshot() -> String? {
        recorder.takeSnapshot(at: clock.wall(), ledger.counters, isStopped: isStoppedLate)
    }

    private func isStoppedLate() -> Bool {
        for case .stop(let signal) in events.take(wantsInput: false, until: clock.now).events {
            ending.stopSignal = signal
        }
        return ending.isInterrupted
    }

    /// Writes the end of the run. Returns the pruned images, and why no snapshot could be taken.
    private func record(_ summary: RunSummary) throws -> (RemovalTotals?, snapshotFailure: String?)
    {
        try recorder.checkHold()
        if stages.hasStored {
            try settleFailures(ledger)
        }
        try rememberHosts()
        if reading.isProtecting {
            try recorder.note(stages.fullness(isComplete: !ending.takesNoEntries))
        }
        let pruned = try recorder.end(
            at: clock.wall(), exitStatus: summary.exitStatus, summary.counters,
            mayRemove: !ending.isStopping, outages: ledger.ongoingOutages,
            listed: RunListing(resources: reading.listed, isWhole: keptBy == nil),
            isStopped: isStoppedLate)
        let snapshotFailure = isStoppedLate() ? nil : takeSnapshot()
        try recorder.close()
        return (pruned, snapshotFailure)
    }

    private func judgeOutages() -> OutageReport? {
        let listed = reading.isDone && ending.fatal == nil ? reading.listed : nil
        var report: OutageReport?
        endingRunOnError {
            report = try ledger.judgeOutages(at: clock.wall()) { [recorder] host, limit in
                // In lists that were not read to their end any number may be fresh.
                guard let listed else { return limit + 1 }
                return try recorder.countStored(of: host, in: listed, upTo: limit)
            }
        }
        return report
    }

    private func settleFailures(_ ledger: Ledger) throws {
        let held = pendingResults.held
        func hasRecovered(_ host: String) -> Bool {
            ledger.faults.hasRecovered(
                host, isProbed: held.hasRecovered(host), hasSuccess: ledger.hasSuccess(at: host))
        }
        let (outage, now) = (ledger.outage, clock.wall())
        let faults = Dictionary(uniqueKeysWithValues: ledger.faults.faults.map { ($0, $1) })
        try recorder.settleFailures(
            isOver: ledger.hasSuccess(at: nil)
                ? { record in
                    record.isOfHost
                        && (record.isOfFault
                            ? hasRecovered(record.host) : ledger.hasSuccess(at: record.host))
                } : nil,
            isOfFault: !faults.isEmpty
                ? { record in
                    let end = FailurePolicy.endOfFault(firstFailedAt: record.streak.firstFailedAt)
                    return faults[record.host] == record.reason && now < end ? end : nil
                } : nil
        ) {
            FailureLog.settlement(
                of: $0, outage: outage, ledger, hasRecovered: hasRecovered($0.host),
                rules.failureSettings)
        }
    }

    private var exitStatus: Int32 {
        if ending.fatal != nil { return 2 }
        if let signal = ending.stopSignal { return 128 + signal }
        // Before the first entry of a list, nothing is known of it.
        let isUnread = isWorkLeft && ledger.counters.entriesRead == 0
        guard isUnread || rules.configuration.exit.isSuccess(ledger.counters) else { return 1 }
        return isWorkLeft ? 3 : 0
    }

    /// Whether a limit has ended the run before all entries had their turn.
    private var isWorkLeft: Bool {
        ending.limit != nil && (ledger.counters[.cancelled] > 0 || !reading.isDone)
    }
}

/// Knowledge about hosts and failures that is passed from run to run.
extension RunCoordinator {
    private static let hostsAtOnce = 4096

    /// Gives the dispatch the knowledge of earlier runs; with `--retry-failed` only the pace of
    /// hosts.
    func recallHosts() throws {
        let (wall, now) = (clock.wall(), clock.now)
        let forgives = rules.configuration.retriesFailed
        let hosts = rules.configuration.hosts
        try recorder.forEachHost(at: wall) { state in
            // The pace of a host is that of all runs that share it.
            let parts = hosts.parts[hostIn: state.host] ?? 1
            dispatch.scheduler.recall(
                HostPacing.Memory(
                    concurrency: state.concurrency.map { max(1, $0 / parts) },
                    interval: state.interval.map { $0 * parts },
                    latency: state.latency, failuresInARow: forgives ? 0 : state.failuresInARow,
                    coolingUntil: forgives
                        ? nil : state.coolingUntil.map { now + $0.timeSince(wall) }),
                of: state.host)
        }
    }

    var hostPaces: [HostPace] {
        ledger.tallies.largest.map { tally in
            let found = dispatch.scheduler.pace(of: tally.pace.host)
            var pace = tally.pace
            pace.concurrency = found.concurrency
            pace.limit = limit(found.limit, tally)
            pace.perSecond = tally.perSecond
            pace.times = tally.transferTimes
            return pace
        }
    }

    private func limit(
        _ limit: HostPace.Limit?, _ tally: HostTallies.HostTally
    ) -> HostPace.Limit? {
        if limit == .refusals { return .refusals }
        if ledger.tallies.waitsForCodecs { return .codecs }
        return limit != nil && tally.waitsForBodies ? .bandwidth : limit
    }

    func rememberHosts() throws {
        let (wall, now) = (clock.wall(), clock.now)
        var states: [HostState] = []
        try dispatch.scheduler.forEachMemory(at: now) { host, memory in
            let parts = rules.configuration.hosts.parts[hostIn: host] ?? 1
            var state = HostState(host: host, updatedAt: wall)
            state.concurrency = memory?.concurrency.map { $0 * parts }
            state.interval = memory?.interval.map { $0 / parts }
            state.latency = memory?.latency
            state.limitedBy = memory?.limit
            state.failuresInARow = memory?.failuresInARow ?? 0
            state.coolingUntil = memory?.coolingUntil.map { wall.advanced(by: $0 - now) }
            states.append(state)
            guard states.count >= RunCoordinator.hostsAtOnce else { return }
            try recorder.save(states)
            states.removeAll(keepingCapacity: true)
        }
        try recorder.save(states)
    }
}
