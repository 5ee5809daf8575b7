package import CacheStorage
import Codecs
import Glibc
import HTTPSemantics
package import PrefetchModel
import Scheduling
import Transfers

/// One run, start to end: the only place that knows every stage.
///
/// It lives on the thread that calls ``run(_:)``, owns all the run's state, and hears of the other
/// threads through one mailbox; so nothing here needs a lock, and every entry gets its outcome in
/// one place. The stages' threads are started with the first entry that needs them.
package final class RunCoordinator {
    let configuration: RunConfiguration
    let cache: OpenCache
    let observer: any RunObserving
    let mailbox: Mailbox
    let wallClock: @Sendable () -> Timestamp
    /// The fields of every request that a response may vary on.
    let requestFields: [HeaderField]
    let transferSettings: TransferConfiguration
    let facts: RunFacts
    let bodyJudges: BodyJudges
    /// Of which outcomes the observer wants to hear, by ``Outcome/index``.
    private let wantedOutcomes: [Bool]

    var counters = RunCounters()
    var scheduler: Scheduler
    /// Entries whose variant is made from a stored original; they need no host.
    var derivations: Scheduler
    /// Entries that are queued, in flight, with the codecs or waiting for their commit.
    let pending: EntryStore
    /// The keys of all entries that were not warm, by the entries' identifiers.
    var seen: SeenKeys
    /// The resources of those that were.
    var warm = ResourceSet()
    var unusualWarm = UnusualWarmEntries()
    /// Entries that were asked for.
    var starts = 0
    var retries: RetryPolicy
    var random = SystemRandomNumberGenerator()
    /// Transfers on the wire.
    var inFlight = 0
    /// Bodies with the codec workers or waiting for them.
    var decoding = 0
    /// Fresh entries whose attributes wait for their commit.
    var annotating = 0
    var stages: RunningStages?
    var transfers: RunningTransfers?
    /// The threads that read.
    private var lookup: EntryLookup?
    /// This thread's own way to the cache, opened when first needed.
    var reader: CacheReader?
    /// The run's row in the log; failures are noted with it.
    var logged: Int64?
    /// Why the run's start could not be noted, when it went on without.
    private(set) var lackOfRoom: FatalError?
    var outageRule = OutageRule()
    var knownFailures = KnownFailures()
    var hasReadAll = false
    var fatal: FatalError?
    /// Whether some entries could not be read back from the temporary file.
    private var losesEntries = false
    /// Set when rows can no longer be committed.
    var writerError: FatalError?
    var stopSignal: Int32?
    /// When what still runs is cancelled, after a signal or a fatal error.
    var cancelTime: ContinuousClock.Instant?
    /// Whether that time has come: nothing more is decoded.
    var isCancelling = false
    private var nextProgress: ContinuousClock.Instant
    /// Lines of warm entries that are still to be reported: a part of those of the batch in work.
    private var warmLines: (lines: WarmLines, range: Range<Int>)?
    var holdUpWatch = HoldUpWatch()

    /// Of the ten seconds that a stop may take, those for finishing what runs.
    static let finishingTime = Duration.seconds(5)
    private static let progressInterval = Duration.milliseconds(100)

    /// Other threads stop the run through `control`; the wall clock serves freshness and the run log.
    package init(
        configuration: RunConfiguration, cache: OpenCache, observer: any RunObserving,
        control: RunControl, wallClock: @escaping @Sendable () -> Timestamp
    ) {
        self.configuration = configuration
        self.cache = cache
        self.observer = observer
        self.wallClock = wallClock
        mailbox = control.mailbox
        transferSettings = configuration.transfers
        requestFields = transferSettings.requestFields
        facts = RunFacts(configuration)
        bodyJudges = BodyJudges(configuration.headerRules)
        pending = EntryStore(
            capacity: configuration.queueCapacity,
            folder: configuration.temporaryFolder ?? cache.directory.temporaryFolder)
        scheduler = Scheduler(
            order: configuration.order, rules: configuration.hostRules, storage: pending)
        derivations = Scheduler(
            order: configuration.order, rules: HostPacing.Rules(concurrency: .max),
            storage: pending)
        seen = SeenKeys(using: &random)
        retries = RetryPolicy(
            maximumRetries: configuration.maximumRetries, backoff: configuration.backoff)
        wantedOutcomes = Outcome.allCases.map(observer.wantsResults)
        nextProgress = .now
    }

    /// Brings the cache up to date with the entries and returns how it went.
    ///
    /// The entries are read on threads of their own. With `readsAheadOfStarts` everything is read
    /// before the first transfer starts, which LIFO order over regular files asks for.
    package func run(
        _ entries: some EntryReading, readsAheadOfStarts: Bool
    ) -> RunSummary {
        let startedAt = wallClock()
        let clockStart = ContinuousClock.now
        if configuration.writesFileAttributes { cache.content.writeFileAttributes() }
        do throws(StorageError) {
            try beginLog(at: startedAt)
            if !configuration.isOffline { try recallHosts() }
            try startReading(entries)
        } catch {
            fail(FatalError(error))
            hasReadAll = true
        }
        while !isFinished {
            let mayStart = !isStopping && (hasReadAll || !readsAheadOfStarts)
            if mayStart { startWork() }
            step(clockStart: clockStart, mayStart: mayStart)
        }
        mailbox.endReading()
        lookup?.finish()
        finishStages()
        // The last checkpoint comes after the last commit, and may fail or be interrupted.
        for event in mailbox.take(wantsInput: false, until: .now).events {
            switch event {
            // The cookie jar is written at the very end.
            case .writerFailed(let error), .transfersFailed(let error): fail(error)
            case .stop(let signal): stopSignal = signal
            default: break
            }
        }

        if fatal?.isDiskFull == true { makeRoom() }
        if losesEntries {
            // What could not be read back from the temporary file has its outcome all the same.
            counters.count(
                .cancelled, reason: nil, times: counters.entriesRead - counters.entriesDone)
        }

        var summary = RunSummary(
            counters: counters, startedAt: startedAt, elapsed: .now - clockStart, exitStatus: 0,
            cacheDirectory: cache.directory.path)
        let outage = outageRule.outages().first
        summary.outage = outage
        summary.hasSeveralVariants = configuration.variants.count > 1
        summary.exitStatus = exitStatus
        // What is damaged is not written to.
        if let logged, fatal?.isDamage != true {
            do throws(StorageError) {
                try cache.checkHold()
                try settleFailures(of: logged, outage: outage)
                try rememberHosts()
                try cache.log.end(
                    logged, at: wallClock(), exitStatus: summary.exitStatus, counters: counters)
                reader = nil
                try cache.close()
            } catch {
                fail(FatalError(error))
                summary.exitStatus = exitStatus
            }
        }
        if fatal?.isDamage == true { setDatabaseAside() }
        summary.fatalMessage = fatal?.message
        summary.fatalHint = fatal?.hint
        // What could not be completed says more than who stopped it.
        summary.stoppedBySignal = fatal == nil ? stopSignal : nil
        return summary
    }

    /// Notes that the run begins. Without room for that it goes on: what is warm needs none, and what
    /// is not ends it.
    private func beginLog(at time: Timestamp) throws(StorageError) {
        do throws(StorageError) {
            logged = try cache.log.begin(
                manifests: configuration.manifests, at: time, bootID: BootID.current(),
                syncsFiles: configuration.durability != .off)
            try cache.partials.removeAll(olderThan: PartialStore.longestAge, at: time)
        } catch {
            guard error.isDiskFull else { throw error }
            lackOfRoom = FatalError(error)
        }
    }

    /// Removes the files of this run whose rows found no room, and the parts of bodies, so that a
    /// full disk is not left fuller than it need be.
    private func makeRoom() {
        do throws(StorageError) {
            // What has lost its row must not come back by a power cut.
            try cache.database.synchronizeLog()
            try cache.log.collectStrays(scansContent: true)
            try cache.partials.removeAll(olderThan: .zero, at: wallClock())
        } catch {
            // The next run tries again: this one ends with status 2.
        }
    }

    /// Lets the next run begin a new database in the place of one that turned out to be damaged.
    private func setDatabaseAside() {
        do throws(StorageError) {
            guard let name = try cache.setDatabaseAside(at: wallClock()) else {
                fatal?.hint = "run again: a check found no damage, so the disk may be at fault"
                return
            }
            fatal?.hint =
                "it is now \(name); run again: images are fetched again, files that are the same are kept"
        } catch {
            // The next run finds the damage, too.
        }
    }

    private var isFinished: Bool {
        pending.isEmpty && isQueueEmpty && derivations.isEmpty && (hasReadAll || isStopping)
    }

    /// Whether nothing is in the queue but places that raised entries have left behind: one each of
    /// those that have started, and of the others there are two.
    private var isQueueEmpty: Bool {
        scheduler.isEmpty || scheduler.count == pending.raisedCount
    }

    private var exitStatus: Int32 {
        if fatal != nil { return 2 }
        if let stopSignal { return 128 + stopSignal }
        // What is left out is not warm either.
        var failures = counters[.failed] + counters[.excluded]
        switch configuration.countedFailures {
        case .any: failures += counters[.blacklisted]
        case .new: failures -= counters.knownFailures
        }
        let isAccepted = configuration.tolerance.accepts(
            failures: failures, of: counters.entriesRead)
        return isAccepted ? 0 : 1
    }

    private func startReading(_ entries: some EntryReading) throws(StorageError) {
        let lookup = try EntryLookup(
            entries, cache: cache, configuration: configuration, facts: facts,
            wantsFreshImages: wantsResults(of: .fresh), lineWriter: observer.warmLineWriter,
            mailbox: mailbox, wallClock: wallClock)
        do throws(ThreadError) {
            try lookup.start()
            self.lookup = lookup
        } catch {
            fail(FatalError(error))
            hasReadAll = true
        }
    }

    /// Waits for the next thing to happen and carries it out.
    private func step(clockStart: ContinuousClock.Instant, mayStart: Bool) {
        // What waits to start goes to a file beyond the queue's capacity, so that a host that has
        // to wait does not keep the entries of others from being read.
        let hasRoom = annotating < configuration.queueCapacity && hasRoomForCommit
        var deadline = min(cancelTime ?? nextProgress, nextProgress)
        if mayStart, let wakeTime = nextStartTime { deadline = min(deadline, wakeTime) }
        let (events, input) = mailbox.take(wantsInput: hasRoom && !hasReadAll, until: deadline)
        for event in events { handle(event) }
        switch input {
        case .batch(let batch):
            read(batch)
        case .ended:
            hasReadAll = true
        case .failed(let error):
            hasReadAll = true
            fail(error)
        case nil:
            break
        }
        let now = ContinuousClock.now
        if let time = cancelTime, time <= now {
            cancelTime = nil
            cancelRunning()
        }
        if nextProgress <= now {
            nextProgress = now + RunCoordinator.progressInterval
            var progress = RunProgress(
                counters: counters, inFlight: inFlight, isTotalKnown: hasReadAll,
                elapsed: now - clockStart)
            progress.holdUp = holdUp(at: now)
            observer.progressed(progress)
        }
        // When only commits are outstanding, nobody is waited for: commit at once.
        if hasReadAll || isStopping, isQueueEmpty, derivations.isEmpty, inFlight == 0,
            decoding == 0
        {
            stages?.writer.finish()
        }
    }

    private func handle(_ event: Mailbox.Event) {
        switch event {
        case .transferred(let completion): transferred(completion)
        case .processed(let completion): processed(completion)
        case .committed(let identifiers): committed(identifiers)
        case .transfersFailed(let error): transfersFailed(error)
        case .writerFailed(let error): writerFailed(error)
        case .stop(let signal):
            guard stopSignal == nil else { return }
            stopSignal = signal
            stopStarting()
        }
    }

    // MARK: Outcomes

    func wantsResults(of outcome: Outcome) -> Bool { wantedOutcomes[outcome.index] }

    /// Reports an entry that was never pending.
    func finish(_ outcome: Outcome, reason: FailureReason? = nil, result: () -> EntryResult) {
        counters.count(outcome, reason: reason)
        if wantsResults(of: outcome) { report(result()) }
    }

    /// Gives a pending entry, and those that wait for it, their outcome.
    func finish(
        _ identifier: Int, _ outcome: Outcome, reason: FailureReason? = nil,
        message: String? = nil, isKnown: Bool = false
    ) {
        guard let entry = pending.end(identifier, reason: reason) else {
            preconditionFailure("an entry has one outcome")
        }
        var result = entry.result(outcome, reason: reason, message: message)
        result.isKnown = isKnown
        if outcome == .failed, let reason { remember(entry, reason, &result) }
        if result.isKnown { counters.knownFailures += 1 }
        let fate = Fate(
            reason: reason, stored: result.stored, expiresAt: result.expiresAt,
            manifest: entry.manifest, line: entry.line)
        finish(outcome, reason: reason) { result }
        // What was cancelled has no fate to share: its duplicates were cancelled with it.
        let shared: Outcome = outcome == .cancelled ? .cancelled : .duplicate
        do throws(SpillError) {
            try pending.takeDuplicates(of: identifier) { duplicate in
                finish(shared) { entry.result(of: duplicate, shared, fate: fate) }
            }
        } catch {
            // What cannot be read back is counted at the end.
            losesEntries = true
            fail(FatalError(error))
        }
    }

    /// Reports an entry of the batch that is being read, which is fresh, by the line that a reader has
    /// written; it goes out with those of its neighbours.
    func finishFresh(_ number: Int, _ lines: WarmLines) {
        counters.count(.fresh, reason: nil)
        let line = lines[record: number]
        if let waiting = warmLines, waiting.range.upperBound == line.lowerBound {
            warmLines = (lines, waiting.range.lowerBound..<line.upperBound)
        } else {
            reportWarmLines()
            warmLines = (lines, line)
        }
    }

    /// Reports the lines that wait, before anything else is reported and at the end of each batch.
    func reportWarmLines() {
        guard let waiting = warmLines else { return }
        warmLines = nil
        report { try observer.warmEntriesFinished(waiting.lines.bytes[waiting.range]) }
    }

    private func report(_ result: EntryResult) {
        reportWarmLines()
        report { try observer.entryFinished(result) }
    }

    private func report(_ work: () throws -> Void) {
        do {
            try work()
        } catch {
            fail(FatalError(message: "\(error)", hint: nil, reason: .disk))
        }
    }

    /// Ends the run: nothing more starts, what runs is cancelled, what is stored is committed.
    func fail(_ error: FatalError) {
        guard fatal == nil else { return }
        fatal = error
        stopStarting()
        cancelTime = .now
    }

    private func stopStarting() {
        let time = ContinuousClock.now + RunCoordinator.finishingTime
        cancelTime = min(cancelTime ?? time, time)
        mailbox.endReading()
        cancelWaiting(\.scheduler)
        cancelWaiting(\.derivations)
    }

    /// Cancels what waits.
    ///
    /// The outcome of an entry may fail to be reported, which leads here again: so nothing of the
    /// scheduler is in use meanwhile, and each call goes on with what is left.
    private func cancelWaiting(_ queue: ReferenceWritableKeyPath<RunCoordinator, Scheduler>) {
        while true {
            do {
                guard let identifier = try self[keyPath: queue].removeNext() else { return }
                if !pending.dropPlace(of: identifier) { finish(identifier, .cancelled) }
            } catch {
                losesEntries = true
                fail(FatalError(spilling: error))
            }
        }
    }

    /// Cancels what runs: images that a worker has begun end soon, and are heard of then.
    private func cancelRunning() {
        isCancelling = true
        transfers?.loop.cancelAll()
        guard let stages else { return }
        for identifier in stages.codecs.dropWaiting() {
            decoding -= 1
            finish(identifier, .cancelled)
        }
        stages.codecs.cancel()
    }

    /// Whether entries that are not begun yet are to be left alone.
    var isStopping: Bool { fatal != nil || stopSignal != nil }
}
