import CacheStorage
import EntryLifecycle
import PrefetchModel

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
