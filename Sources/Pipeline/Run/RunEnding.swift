import EntryLifecycle
import PrefetchModel

/// The early end of a run: a signal, or an error without which it cannot continue.
struct RunEnding {
    /// The first error; later ones follow from it.
    private(set) var fatal: FatalError?
    private(set) var stopSignal: Int32?
    /// Set when rows can no longer be committed.
    private(set) var writerError: FatalError?
    /// The time at which running work is cancelled.
    private var cancelTime: ContinuousClock.Instant?
    /// Whether that time has passed: nothing more is decoded.
    private var isCancelling = false
    /// Whether some entries could not be read back from the temporary file.
    private(set) var losesEntries = false

    /// The time for finishing running work, of the ten seconds that a stop may take.
    private static let finishingTime = Duration.seconds(5)

    var isStopping: Bool { fatal != nil || stopSignal != nil }

    var phase: RunPhase {
        if fatal != nil { return .failed }
        if isCancelling { return .cancelling }
        return stopSignal == nil ? .running : .stopping
    }

    /// Returns whether the error is the run's first.
    mutating func fail(_ error: FatalError, at now: ContinuousClock.Instant) -> Bool {
        guard fatal == nil else { return false }
        fatal = error
        cancelTime = now
        return true
    }

    /// Returns whether the signal is the run's first.
    mutating func stop(signal: Int32, at now: ContinuousClock.Instant) -> Bool {
        guard stopSignal == nil else { return false }
        stopSignal = signal
        let time = now + RunEnding.finishingTime
        cancelTime = min(cancelTime ?? time, time)
        return true
    }

    /// Notes a signal after everything has ended.
    mutating func noteLateStop(signal: Int32) { stopSignal = signal }
    mutating func noteWriterError(_ error: FatalError) { writerError = error }
    mutating func noteLoss() { losesEntries = true }
    mutating func setHint(_ hint: String?) { if let hint { fatal?.hint = hint } }

    /// Returns the earlier of a time and the time of cancelling.
    func deadline(_ time: ContinuousClock.Instant) -> ContinuousClock.Instant {
        min(cancelTime ?? time, time)
    }

    /// Whether to cancel running work now; true once.
    mutating func cancels(at now: ContinuousClock.Instant) -> Bool {
        guard let time = cancelTime, time <= now else { return false }
        cancelTime = nil
        isCancelling = true
        return true
    }
}
