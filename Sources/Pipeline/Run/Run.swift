package import CacheStorage
import EntryLifecycle
package import PrefetchModel

/// One run over a cache: the coordinator with real stages.
package struct Run {
    private let configuration: RunConfiguration
    private let cache: OpenCache
    private let seed: SeedCache?
    private let observer: any RunObserving
    private let mailbox: Mailbox
    private let clock: RunClock

    /// Takes `control`, by which other threads stop the run, and the wall clock for freshness and
    /// the run log.
    package init(
        configuration: RunConfiguration, cache: OpenCache, seed: SeedCache? = nil,
        observer: any RunObserving,
        control: RunControl, wallClock: @escaping @Sendable () -> Timestamp
    ) {
        self.configuration = configuration
        self.cache = cache
        self.seed = seed
        self.observer = observer
        mailbox = control.mailbox
        clock = RunClock(wall: wallClock)
    }

    /// Brings the cache up to date with the entries and returns the summary.
    ///
    /// Threads of their own read the entries. With `readsAheadOfStarts` everything is read before
    /// the first transfer starts, which LIFO order over regular files requires; a size limit does,
    /// too.
    package func execute(
        _ entries: some EntryReading, readsAheadOfStarts: Bool
    ) -> RunSummary {
        if configuration.storing.writesFileAttributes { cache.content.writeFileAttributes() }
        let recorder = CacheRecorder(configuration: configuration, cache: cache)
        let stages = LiveStages(
            configuration: configuration, cache: cache, seed: seed, recorder: recorder,
            mailbox: mailbox, wallClock: clock.wall)
        let rules = RunRules(
            configuration,
            temporaryFolder: configuration.queue.temporaryFolder ?? cache.directory.temporaryFolder,
            cacheDirectory: cache.directory.path)
        let coordinator = RunCoordinator(
            rules, clock: clock, events: mailbox, stages: stages, recorder: recorder,
            observer: observer)
        var lookup: EntryLookup?
        // All listed resources must be known before anything is evicted.
        let readsAhead = readsAheadOfStarts || configuration.storing.maximumSize != nil
        let summary = coordinator.run(readsAheadOfStarts: readsAhead) {
            lookup = try startReading(entries, by: rules)
        }
        lookup?.finish()
        return summary
    }

    private func startReading(
        _ entries: some EntryReading, by rules: RunRules
    ) throws -> EntryLookup {
        let lookup = try EntryLookup(
            entries, source: CacheCatalog(cache), seed: seed, rules: rules,
            wantsFreshImages: observer.wantsResults(of: .fresh),
            lineWriter: observer.warmLineWriter, mailbox: mailbox, wallClock: clock.wall)
        try lookup.start()
        return lookup
    }
}

package final class RunControl: Sendable {
    let mailbox = Mailbox()

    package init() {}

    /// Stops the run because of a signal: nothing more starts, running work is finished or
    /// cancelled within ten seconds, and stored images are committed. Any thread may call it.
    package func stop(signal: Int32) {
        mailbox.put(.stop(signal: signal))
    }
}

/// The two clocks of a run: the monotonic one for waiting, the wall clock for stored times.
struct RunClock: Sendable {
    var monotonic: @Sendable () -> ContinuousClock.Instant = { .now }
    let wall: @Sendable () -> Timestamp

    var now: ContinuousClock.Instant { monotonic() }
}

struct RunEnding {
    private let limits: RunLimits
    let start: ContinuousClock.Instant
    /// The time of the longest transfers, which decays.
    private var transferTime = Duration.zero
    /// An error that ends the run once the entry's present event is handled.
    var unreported: (any Error)?
    /// The first error; later ones follow from it.
    private(set) var fatal: RunFailure?
    var stopSignal: Int32?
    private(set) var limit: RunLimit?
    private var startsNothing = false
    private var cancelTime: ContinuousClock.Instant?
    /// Whether that time has passed: nothing more is decoded.
    private var isCancelling = false
    var losesEntries = false

    /// The time for finishing running work, of the ten seconds that a stop may take.
    private static let finishingTime = Duration.seconds(5)

    init(_ limits: RunLimits, start: ContinuousClock.Instant) {
        self.limits = limits
        self.start = start
    }

    var isStopping: Bool { isInterrupted || startsNothing }
    /// Whether no further entry is requested; earlier ones may still be retried.
    var takesNoEntries: Bool { isStopping || limit != nil }
    var isInterrupted: Bool { fatal != nil || stopSignal != nil }

    var phase: RunPhase {
        if fatal != nil { return .failed }
        if isCancelling { return .cancelling }
        return isStopping ? .stopping : .running
    }

    mutating func fail(_ error: any Error, at now: ContinuousClock.Instant) -> Bool {
        guard fatal == nil else { return false }
        fatal = RunFailure(error)
        cancelTime = now
        return true
    }

    mutating func stop(signal: Int32, at now: ContinuousClock.Instant) -> Bool {
        guard stopSignal == nil else { return false }
        stopSignal = signal
        let time = now + RunEnding.finishingTime
        cancelTime = min(cancelTime ?? time, time)
        return true
    }

    mutating func stop(at limit: RunLimit) -> Bool {
        guard !isStopping else { return false }
        self.limit = self.limit ?? limit
        startsNothing = true
        cancelTime = limits.deadline
        return true
    }

    mutating func takeNoMoreEntries() { limit = limit ?? .entries }

    mutating func noteTransfer(of duration: Duration) {
        transferTime = max(duration, transferTime * 15 / 16)
    }

    /// The time at which starts end because of the deadline; nil if they have, or without one.
    private var lastStart: ContinuousClock.Instant? {
        isStopping ? nil : limits.lastStart(start: start, transferTime: transferTime)
    }

    func isLastStart(at now: ContinuousClock.Instant) -> Bool {
        lastStart.map { $0 <= now } ?? false
    }

    mutating func setHint(_ hint: String?) { if let hint { fatal?.error.hint = hint } }

    /// Returns the earliest of a time, the time of cancelling and the end of starts.
    func deadline(_ time: ContinuousClock.Instant) -> ContinuousClock.Instant {
        min(cancelTime ?? time, lastStart ?? time, time)
    }

    mutating func cancels(at now: ContinuousClock.Instant) -> Bool {
        guard let time = cancelTime, time <= now else { return false }
        cancelTime = nil
        isCancelling = true
        return true
    }
}

struct RunFailure: Sendable {
    var error: UserError
    let reason: FailureReason
    let isDiskFull: Bool
    let isDamage: Bool

    init(_ error: any Error) {
        let storage = error as? StorageError
        reason = storage == nil ? .internal : .disk
        isDiskFull = storage?.isDiskFull ?? false
        isDamage = storage?.isDamage ?? false
        self.error = UserError(reporting: error)
    }

    var failure: Failure { Failure(reason, error.description) }
}
