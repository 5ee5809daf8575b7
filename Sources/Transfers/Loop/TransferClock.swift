/// The times of one transfer, by the monotonic clock.
struct TransferClock {
    typealias Instant = ContinuousClock.Instant

    let startedAt: Instant
    /// The time of the last byte, sent or received; nil before the first one.
    private(set) var lastByteAt: Instant?
    /// The active time at the first line of a head that is not complete. The final head may follow
    /// interim ones, and a proxy's response to CONNECT, after a long time.
    private(set) var timeToHead: Duration?
    /// The active time at the first byte of the response's body.
    private(set) var timeToBody: Duration?
    private(set) var pausedAt: Instant?
    /// The sum of all pauses, which count against no time-out: the origin did not cause them.
    private(set) var pausedTime: Duration = .zero

    var isPaused: Bool { pausedAt != nil }

    /// Notes bytes of the request.
    mutating func noteByte(at now: Instant) { lastByteAt = now }

    /// Notes a line of a head or of trailers.
    mutating func noteHead(at now: Instant, isComplete: Bool) {
        noteByte(at: now)
        timeToHead = isComplete ? nil : timeToHead ?? activeTime(at: now)
    }

    /// Notes bytes of the response's body.
    mutating func noteBody(at now: Instant) {
        noteByte(at: now)
        timeToBody = timeToBody ?? activeTime(at: now)
    }

    mutating func pause(at now: Instant) { pausedAt = pausedAt ?? now }

    mutating func resume(at now: Instant) {
        if let pausedAt { pausedTime += now - pausedAt }
        pausedAt = nil
        lastByteAt = now
    }

    func presentPause(at now: Instant) -> Duration? { pausedAt.map { now - $0 } }

    func elapsed(at now: Instant) -> Duration { now - startedAt }

    /// The time that counts for the total time-out.
    func activeTime(at now: Instant) -> Duration { now - startedAt - pausedTime }

    /// The active time since the first byte of the response's body, or of a head that is not
    /// complete; else zero.
    func receivingTime(at now: Instant) -> Duration {
        (timeToBody ?? timeToHead).map { activeTime(at: now) - $0 } ?? .zero
    }

    /// The time without a byte. Zero until the request is sent, ``startedAt`` plus `timeToRequest`.
    func stalledTime(at now: Instant, timeToRequest: Duration?) -> Duration {
        if let lastByteAt { return now - lastByteAt }
        return timeToRequest.map { now - (startedAt + $0) } ?? .zero
    }
}
