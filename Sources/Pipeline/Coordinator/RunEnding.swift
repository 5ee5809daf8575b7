import EntryLifecycle
import PrefetchModel

/// What ends a run before its lists are done: a signal, or something without which it cannot go on.
struct RunEnding {
    /// The first one; what follows from it says less.
    private(set) var fatal: FatalError?
    private(set) var stopSignal: Int32?
    /// Set when rows can no longer be committed.
    private(set) var writerError: FatalError?
    /// When what still runs is cancelled.
    private var cancelTime: ContinuousClock.Instant?
    /// Whether that time has come: nothing more is decoded.
    private var isCancelling = false
    /// Whether some entries could not be read back from the temporary file.
    private(set) var losesEntries = false

    /// Of the ten seconds that a stop may take, those for finishing what runs.
    private static let finishingTime = Duration.seconds(5)

    var isStopping: Bool { fatal != nil || stopSignal != nil }

    var phase: RunPhase {
        if fatal != nil { return .failed }
        if isCancelling { return .cancelling }
        return stopSignal == nil ? .running : .stopping
    }

    /// - Returns: whether it is the first.
    mutating func fail(_ error: FatalError, at now: ContinuousClock.Instant) -> Bool {
        guard fatal == nil else { return false }
        fatal = error
        cancelTime = now
        return true
    }

    /// - Returns: whether it is the first.
    mutating func stop(signal: Int32, at now: ContinuousClock.Instant) -> Bool {
        guard stopSignal == nil else { return false }
        stopSignal = signal
        let time = now + RunEnding.finishingTime
        cancelTime = min(cancelTime ?? time, time)
        return true
    }

    /// One that comes when everything has ended.
    mutating func noteLateStop(signal: Int32) { stopSignal = signal }
    mutating func noteWriterError(_ error: FatalError) { writerError = error }
    mutating func noteLoss() { losesEntries = true }
    mutating func setHint(_ hint: String?) { if let hint { fatal?.hint = hint } }

    /// The earlier of a time and that of cancelling.
    func deadline(_ time: ContinuousClock.Instant) -> ContinuousClock.Instant {
        min(cancelTime ?? time, time)
    }

    /// - Returns: whether what runs is to be cancelled now, which is said once.
    mutating func cancels(at now: ContinuousClock.Instant) -> Bool {
        guard let time = cancelTime, time <= now else { return false }
        cancelTime = nil
        isCancelling = true
        return true
    }
}
