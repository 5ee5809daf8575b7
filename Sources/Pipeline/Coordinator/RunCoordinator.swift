import CacheStorage
import EntryLifecycle
import EntryQueue
import PrefetchModel
import Scheduling

/// One run, start to end: the loop that joins the owners of its state.
///
/// It lives on the thread that calls ``run(_:)`` and hears of the other threads through one
/// mailbox; so nothing here needs a lock. ``Intake`` knows which entries have been seen,
/// ``Dispatch`` which one is next, an ``EntryMachine`` each what becomes of one, ``RunStages`` who does
/// it, and ``Ledger`` what has become of them.
package final class RunCoordinator {
    let rules: RunRules
    let clock: RunClock
    let recorder: any RunRecording
    /// Entries that are queued, in flight, with the codecs or waiting for their commit.
    let store: EntryStore
    var intake: Intake
    var dispatch: Dispatch
    var ledger: Ledger
    var stages: RunStages
    var ending = RunEnding()
    /// Duplicates of entries that have ended, whose stored images are being looked up.
    var pendingResults = PendingResults()
    var reading = Reading()
    private let events: any EventSource

    /// The progress of reading the lists.
    struct Reading {
        var isDone = false
        /// Resources that the lists have named and that were stored before the run.
        var listed = ResourceSet()
        /// Whether the stages have been told of all of them.
        var isProtecting = false
        /// The time of the next progress report.
        var nextProgress: ContinuousClock.Instant?
        static let progressInterval = Duration.milliseconds(100)
    }

    init(
        _ rules: RunRules, clock: RunClock, events: any EventSource,
        stages: any StageProviding, recorder: any RunRecording, observer: any RunObserving,
        random: some RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        self.rules = rules
        self.clock = clock
        self.events = events
        self.recorder = recorder
        store = EntryStore(
            capacity: rules.limits.queueCapacity, folder: rules.temporaryFolder)
        intake = Intake(store: store, variants: rules.variants, random: random)
        dispatch = Dispatch(rules.limits, store: store, random: random)
        ledger = Ledger(observer: observer)
        self.stages = RunStages(stages)
    }

    /// Brings the cache up to date with what the events' inputs bring, and returns how it went.
    ///
    /// With `readsAheadOfStarts` everything is read before the first transfer starts, which LIFO order
    /// over regular files asks for. `startReading` lets the inputs begin, after the run has been noted.
    func run(
        readsAheadOfStarts: Bool, startReading: () throws(FatalError) -> Void
    ) -> RunSummary {
        let startedAt = clock.wall()
        let start = clock.now
        do throws(FatalError) {
            try recorder.begin(at: startedAt)
            if !rules.configuration.lifetimes.isOffline { try recallHosts() }
            try startReading()
        } catch {
            fail(error)
            reading.isDone = true
        }
        while !isFinished {
            let mayStart = !ending.isStopping && (reading.isDone || !readsAheadOfStarts)
            if mayStart {
                if reading.isDone, !reading.isProtecting {
                    stages.protect(reading.listed)
                    reading.isProtecting = true
                }
                startWork()
            }
            step(start: start, mayStart: mayStart)
        }
        events.endReading()
        return summary(startedAt: startedAt, start: start)
    }

    private var isFinished: Bool {
        store.isEmpty && dispatch.isEmpty && pendingResults.isEmpty
            && (reading.isDone || ending.isStopping)
    }

    /// Waits for the next thing to happen and carries it out.
    private func step(start: ContinuousClock.Instant, mayStart: Bool) {
        send()
        // What waits to start goes to a file beyond the queue's capacity, so that a host that has
        // to wait does not keep the entries of others from being read.
        let hasRoom = stages.hasRoomForCommit && pendingResults.hasRoom && hasRoomForAnnotation
        let before = clock.now
        let nextProgress = reading.nextProgress ?? before + Reading.progressInterval
        reading.nextProgress = nextProgress
        var deadline = ending.deadline(nextProgress)
        if mayStart,
            let wakeTime = dispatch.nextStartTime(
                hasRoomForImage: stages.hasRoomForImage,
                hasRoomForLookup: stages.hasRoomForLookup, at: before)
        {
            deadline = min(deadline, wakeTime)
        }
        let (events, input) = events.take(
            wantsInput: hasRoom && !reading.isDone, until: deadline)
        for event in events { handle(event) }
        switch input {
        case .batch(let batch):
            read(batch)
        case .ended:
            reading.isDone = true
        case .failed(let error):
            reading.isDone = true
            fail(error)
        case nil:
            break
        }
        let now = clock.now
        if ending.cancels(at: now) { cancelRunning() }
        if nextProgress <= now {
            reading.nextProgress = now + Reading.progressInterval
            ledger.progress(
                inFlight: dispatch.inFlight, isTotalKnown: reading.isDone, elapsed: now - start,
                holdUp: holdUp(at: now))
        }
        // When only commits are outstanding, nobody is waited for: commit at once.
        if reading.isDone || ending.isStopping, dispatch.isEmpty, dispatch.inFlight == 0,
            stages.isIdle
        {
            stages.hurry()
        }
    }

    /// What keeps more transfers from running, when that is a host: nil while as many run as may, or
    /// images wait for the processor or the disk, or the list has not been read to its end and
    /// nothing waits.
    private func holdUp(at now: ContinuousClock.Instant) -> HoldUp? {
        guard dispatch.hasRoomForTransfer, stages.hasRoomForImage, !ending.isStopping,
            reading.isDone || !dispatch.waitsForNoHost
        else { return nil }
        return dispatch.holdUp(at: now)
    }

    private func handle(_ event: Mailbox.Event) {
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

    /// Ends the run: nothing more starts, what runs is cancelled, what is stored is committed.
    func fail(_ error: FatalError) {
        if ending.fail(error, at: clock.now) { stopStarting() }
    }

    /// Does what may find that the run cannot go on.
    func attempt(_ work: () throws(FatalError) -> Void) {
        do throws(FatalError) {
            try work()
        } catch {
            fail(error)
        }
    }

    private func stopStarting() {
        events.endReading()
        // The outcome of an entry may fail to be reported, which leads here again; each call goes on
        // with what is left.
        while true {
            do throws(FatalError) {
                guard let identifier = try dispatch.removeNext() else { return }
                perform(store.update(identifier) { $0.cancel() }, for: identifier)
            } catch {
                ending.noteLoss()
                fail(error)
            }
        }
    }

    /// Cancels what runs: images that a worker has begun end soon, and are heard of then.
    private func cancelRunning() {
        for identifier in stages.cancelTransfers() {
            dispatch.withdrew(identifier, at: clock.now)
            perform(store.update(identifier) { $0.cancel() }, for: identifier)
        }
        for identifier in stages.cancelImages() {
            perform(store.update(identifier) { $0.cancel() }, for: identifier)
        }
    }

    // MARK: The end

    private func summary(
        startedAt: Timestamp, start: ContinuousClock.Instant
    ) -> RunSummary {
        attempt { () throws(FatalError) in try stages.finish() }
        // The last checkpoint comes after the last commit, and may fail or be interrupted.
        for event in events.take(wantsInput: false, until: clock.now).events {
            switch event {
            // The cookie jar is written at the very end.
            case .writerFailed(let error), .transfersFailed(let error): fail(error)
            case .stop(let signal): ending.noteLateStop(signal: signal)
            case .transferred, .found, .processed, .committed, .lookupsFailed: break
            }
        }
        if ending.fatal?.isDiskFull == true { recorder.makeRoom(at: clock.wall()) }
        if ending.losesEntries {
            // What could not be read back from the temporary file has its outcome all the same.
            ledger.countLost()
        }
        var summary = RunSummary(
            counters: ledger.counters, startedAt: startedAt, elapsed: clock.now - start,
            exitStatus: exitStatus, cacheDirectory: rules.cacheDirectory)
        summary.outage = ledger.outages.first
        summary.hasSeveralVariants = rules.variants.count > 1
        // What is damaged is not written to.
        if ending.fatal?.isDamage != true {
            attempt { () throws(FatalError) in
                (summary.pruned, summary.snapshotFailure) = try record(summary)
            }
            summary.exitStatus = exitStatus
        }
        if ending.fatal?.isDamage == true {
            ending.setHint(recorder.noteDamage())
        }
        summary.fatalMessage = ending.fatal?.message
        summary.fatalHint = ending.fatal?.hint
        // What could not be completed says more than who stopped it.
        summary.stoppedBySignal = ending.fatal == nil ? ending.stopSignal : nil
        return summary
    }

    /// Everything is done by then: a signal ends the copying, and the run soon after.
    private func takeSnapshot() -> String? {
        recorder.takeSnapshot(at: clock.wall(), ledger.counters, isStopped: isStoppedLate)
    }

    private func isStoppedLate() -> Bool {
        for case .stop(let signal) in events.take(wantsInput: false, until: clock.now).events {
            ending.noteLateStop(signal: signal)
        }
        return ending.isStopping
    }

    /// - Returns: what was pruned, and why no snapshot could be taken.
    private func record(
        _ summary: RunSummary
    ) throws(FatalError) -> (PrunedCounts?, snapshotFailure: String?) {
        try recorder.checkHold()
        if stages.hasStored {
            try recorder.settleFailures { [ledger] in
                FailureLog.Settlement($0, outage: summary.outage, ledger)
            }
        }
        try rememberHosts()
        let pruned = try recorder.end(
            at: clock.wall(), exitStatus: summary.exitStatus, summary.counters,
            listed: reading.listed, isStopped: isStoppedLate)
        let snapshotFailure = isStoppedLate() ? nil : takeSnapshot()
        try recorder.close()
        return (pruned, snapshotFailure)
    }

    private var exitStatus: Int32 {
        if ending.fatal != nil { return 2 }
        if let signal = ending.stopSignal { return 128 + signal }
        return rules.configuration.exit.isSuccess(ledger.counters) ? 0 : 1
    }
}
