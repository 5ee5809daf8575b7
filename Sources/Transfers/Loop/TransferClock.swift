/// The times of one transfer, by the monotonic clock.
struct TransferClock {
    typealias Instant = ContinuousClock.Instant

    let startedAt: Instant
    /// The arrival of the response's last byte, or the last byte sent; nil before the first one.
    private var lastByteAt: Instant?
    /// The active time at the response's first byte.
    private var timeToFirstByte: Duration?
    private var pausedAt: Instant?
    /// The sum of all pauses, which count against no time-out: the origin did not cause them.
    private var pausedTime: Duration = .zero

    init(startedAt: Instant) {
        self.startedAt = startedAt
    }

    var isPaused: Bool { pausedAt != nil }

    mutating func noteByte(at now: Instant) {
        lastByteAt = now
        timeToFirstByte = timeToFirstByte ?? activeTime(at: now)
    }

    /// Notes bytes of the request, which end a stall as well.
    mutating func noteSent(at now: Instant) { lastByteAt = now }

    mutating func pause(at now: Instant) { pausedAt = pausedAt ?? now }

    mutating func resume(at now: Instant) {
        if let pausedAt { pausedTime += now - pausedAt }
        pausedAt = nil
        lastByteAt = now
    }

    /// The length of the present pause.
    func presentPause(at now: Instant) -> Duration? { pausedAt.map { now - $0 } }

    func elapsed(at now: Instant) -> Duration { now - startedAt }

    /// The time that counts for the total time-out.
    func activeTime(at now: Instant) -> Duration { now - startedAt - pausedTime }

    /// The time since the response's first byte that counts; zero before it.
    func receivingTime(at now: Instant) -> Duration {
        timeToFirstByte.map { activeTime(at: now) - $0 } ?? .zero
    }

    /// The time without a byte. Zero until the request is sent, ``startedAt`` plus `timeToRequest`.
    func stalledTime(at now: Instant, timeToRequest: Duration?) -> Duration {
        if let lastByteAt { return now - lastByteAt }
        return timeToRequest.map { now - (startedAt + $0) } ?? .zero
    }
}
