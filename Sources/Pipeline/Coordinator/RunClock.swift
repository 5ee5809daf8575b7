package import PrefetchModel

/// The two clocks of a run: the monotonic one for waiting, the wall clock for stored times.
package struct RunClock: Sendable {
    let monotonic: @Sendable () -> ContinuousClock.Instant
    let wall: @Sendable () -> Timestamp

    package init(
        monotonic: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        wall: @escaping @Sendable () -> Timestamp
    ) {
        self.monotonic = monotonic
        self.wall = wall
    }

    var now: ContinuousClock.Instant { monotonic() }
}
