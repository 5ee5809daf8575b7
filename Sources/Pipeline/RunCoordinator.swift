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
/// one place. The stages' threads are started with the first entry that is not warm.
package final class RunCoordinator {
    let configuration: RunConfiguration
    let cache: OpenCache
    let index: CacheIndex
    let observer: any RunObserving
    let mailbox: Mailbox
    let wallClock: @Sendable () -> Timestamp
    private let wantedOutcomes: Set<Outcome>

    var counters = RunCounters()
    var scheduler: Scheduler<Int>
    /// Entries that are queued, in flight, with the codecs or waiting for their commit.
    var pending: [Int: PendingEntry] = [:]
    /// The entry of every key seen in this run; ``freshEntry`` for those that were warm.
    var seen: [KeyFingerprint: Int] = [:]
    /// How entries ended that are no longer pending; kept only when results of duplicates are wanted.
    var fates: [Int: Fate] = [:]
    var nextID = 0
    var starts = 0
    /// Transfers on the wire.
    var inFlight = 0
    /// Bodies with the codec workers or waiting for them.
    var decoding = 0
    var stages: RunningStages?
    var hasReadAll = false
    var fatal: FatalError?
    /// Set when rows can no longer be committed.
    var writerError: FatalError?
    var stopSignal: Int32?
    /// When what still runs is cancelled, after a signal or a fatal error.
    var cancelTime: ContinuousClock.Instant?
    /// Whether that time has come: nothing more is decoded.
    var isCancelling = false
    private var nextProgress: ContinuousClock.Instant

    static let freshEntry = -1
    /// Bodies that may wait for a codec worker before transfers stop being started.
    private static let decodingCapacity = 64
    /// Of the ten seconds that a stop may take, those for finishing what runs.
    static let finishingTime = Duration.seconds(5)
    private static let progressInterval = Duration.milliseconds(100)

    /// Other threads stop the run through `control`; the wall clock serves freshness and the run log.
    ///
    /// - Throws: when the cache's index cannot be read.
    package init(
        configuration: RunConfiguration, cache: OpenCache, observer: any RunObserving,
        control: RunControl, wallClock: @escaping @Sendable () -> Timestamp
    ) throws(StorageError) {
        self.configuration = configuration
        self.cache = cache
        self.observer = observer
        self.wallClock = wallClock
        mailbox = control.mailbox
        index = try CacheIndex(cache.database, recipe: configuration.recipe)
        scheduler = Scheduler(
            order: configuration.order, hostConcurrency: configuration.hostConcurrency)
        wantedOutcomes = Set(Outcome.allCases.filter(observer.wantsResults))
        nextProgress = .now
    }

    /// Brings the cache up to date with the entries and returns how it went.
    ///
    /// The entries are read on a thread of their own. With `readsAheadOfStarts` everything is read
    /// before the first transfer starts, which LIFO order over regular files asks for.
    package func run(
        _ entries: some EntryReading, readsAheadOfStarts: Bool
    ) -> RunSummary {
        let startedAt = wallClock()
        let clockStart = ContinuousClock.now
        var logged: Int64?
        do throws(StorageError) {
            try cache.log.collectStrays(scansContent: try cache.log.lastRunMayHaveLeftStrays())
            logged = try cache.log.begin(manifests: configuration.manifests, at: startedAt)
        } catch {
            fail(FatalError(error))
        }
        startReading(entries)
        while !isFinished {
            if !isStopping, hasReadAll || !readsAheadOfStarts { startTransfers() }
            step(clockStart: clockStart)
        }
        mailbox.endReading()
        finishStages()
        // The last checkpoint comes after the last commit, and may fail or be interrupted.
        for event in mailbox.take(wantsInput: false, until: .now).events {
            switch event {
            case .writerFailed(let error): fail(error)
            case .stop(let signal): stopSignal = signal
            default: break
            }
        }

        if fatal?.isDiskFull == true { makeRoom() }

        var summary = RunSummary(
            counters: counters, startedAt: startedAt, elapsed: .now - clockStart, exitStatus: 0,
            cacheDirectory: cache.directory.path)
        summary.exitStatus = exitStatus
        if let logged {
            do throws(StorageError) {
                try cache.log.end(
                    logged, at: wallClock(), exitStatus: summary.exitStatus, counters: counters)
            } catch {
                fail(FatalError(error))
                summary.exitStatus = exitStatus
            }
        }
        summary.fatalMessage = fatal?.message
        summary.fatalHint = fatal?.hint
        // What could not be completed says more than who stopped it.
        summary.stoppedBySignal = fatal == nil ? stopSignal : nil
        return summary
    }

    /// Removes the files of this run whose rows found no room, so that a full disk is not left
    /// fuller than it need be.
    private func makeRoom() {
        do throws(StorageError) {
            try cache.log.collectStrays(scansContent: true)
        } catch {
            // The next run tries again: this one ends with status 2.
        }
    }

    private var isFinished: Bool {
        pending.isEmpty && (hasReadAll || isStopping)
    }

    private var exitStatus: Int32 {
        if fatal != nil { return 2 }
        if let stopSignal { return 128 + stopSignal }
        let isAccepted = configuration.tolerance.accepts(
            failures: counters[.failed], of: counters.entriesRead)
        return isAccepted ? 0 : 1
    }

    private func startReading(_ entries: some EntryReading) {
        // Not waited for: it may be blocked in a read of standard input when the run is stopped,
        // and it owns nothing that the run needs.
        let thread = OwnedThread(name: "reader") { [mailbox] in
            var entries = entries
            do {
                while let batch = try entries.nextBatch() {
                    guard mailbox.put(.batch(batch)) else { return }
                }
                _ = mailbox.put(.ended)
            } catch {
                _ = mailbox.put(
                    .failed(FatalError(message: "\(error)", hint: nil, reason: .internal)))
            }
        }
        thread.detach()
    }

    /// Waits for the next thing to happen and carries it out.
    private func step(clockStart: ContinuousClock.Instant) {
        // In FIFO order reading pauses while the queue is full. In LIFO order what is read next
        // starts next, so it has to be read.
        let hasRoom =
            configuration.order == .lifo || scheduler.count < configuration.queueCapacity
        let deadline = min(cancelTime ?? nextProgress, nextProgress)
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
            observer.progressed(
                RunProgress(
                    counters: counters, inFlight: inFlight, isTotalKnown: hasReadAll,
                    elapsed: now - clockStart))
        }
        // When only commits are outstanding, nobody is waited for: commit at once.
        if hasReadAll || isStopping, scheduler.isEmpty, inFlight == 0, decoding == 0 {
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

    // MARK: Starting

    private func startTransfers() {
        guard scheduler.hasReady, inFlight < configuration.jobs,
            decoding < RunCoordinator.decodingCapacity, let stages = runningStages()
        else { return }
        var requests: [TransferRequest] = []
        while inFlight < configuration.jobs, decoding < RunCoordinator.decodingCapacity,
            let start = scheduler.popReady()
        {
            let progress = progress(of: start.entry)
            progress.host = start.host
            progress.visited.append(progress.target)
            requests.append(TransferRequest(id: start.entry, url: progress.target))
            inFlight += 1
            counters.requests += 1
        }
        stages.transfers.start(requests)
    }

    /// The progress of an entry that starts, which begins with its first start.
    private func progress(of identifier: Int) -> PendingEntry.Progress {
        guard let entry = pending[identifier] else {
            preconditionFailure("a queued entry is pending")
        }
        if let progress = entry.progress { return progress }
        starts += 1
        let progress = PendingEntry.Progress(
            start: starts, target: entry.url, queued: .now - entry.queuedAt)
        pending[identifier]?.progress = progress
        return progress
    }

    // MARK: Outcomes

    /// Reports an entry that was never pending.
    func finish(_ outcome: Outcome, reason: FailureReason? = nil, result: () -> EntryResult) {
        counters.count(outcome, reason: reason)
        if wantedOutcomes.contains(outcome) { report(result()) }
    }

    /// Gives a pending entry, and those that wait for it, their outcome.
    func finish(
        _ identifier: Int, _ outcome: Outcome, reason: FailureReason? = nil,
        message: String? = nil
    ) {
        guard let entry = pending.removeValue(forKey: identifier) else {
            preconditionFailure("an entry has one outcome")
        }
        let result = entry.result(outcome, reason: reason, message: message)
        let fate = Fate(
            reason: reason, stored: result.stored, expiresAt: result.expiresAt,
            manifest: entry.manifest, line: entry.line)
        finish(outcome, reason: reason) { result }
        // What was cancelled has no fate to share: its duplicates were cancelled with it.
        let shared: Outcome = outcome == .cancelled ? .cancelled : .duplicate
        for duplicate in entry.duplicates {
            finish(shared) { entry.result(of: duplicate, shared, fate: fate) }
        }
        if wantedOutcomes.contains(.duplicate) { fates[identifier] = fate }
    }

    private func report(_ result: EntryResult) {
        do {
            try observer.entryFinished(result)
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
        for identifier in scheduler.removeAll() { finish(identifier, .cancelled) }
    }

    /// Cancels what runs, but for images that a worker has begun.
    private func cancelRunning() {
        isCancelling = true
        guard let stages else { return }
        stages.transfers.cancelAll()
        for identifier in stages.codecs.dropWaiting() {
            decoding -= 1
            finish(identifier, .cancelled)
        }
    }

    /// Whether entries that are not begun yet are to be left alone.
    var isStopping: Bool { fatal != nil || stopSignal != nil }
}
