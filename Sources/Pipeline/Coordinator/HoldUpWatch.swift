import PrefetchModel

/// The host that holds the run up, as it was found last: finding it goes through all hosts.
struct HoldUpWatch {
    private(set) var found: HoldUp?
    private var nextLook: ContinuousClock.Instant?

    private static let interval = Duration.seconds(1)
    /// Shorter pauses are those between any two requests.
    private static let shownPause = Duration.seconds(1)

    /// Whether to look again, which is counted from now then.
    mutating func isDue(at now: ContinuousClock.Instant) -> Bool {
        if let nextLook, now < nextLook { return false }
        nextLook = now + HoldUpWatch.interval
        return true
    }

    mutating func note(_ found: HoldUp?) {
        self.found = found
        if let pause = found?.pause, pause < HoldUpWatch.shownPause { self.found?.pause = nil }
    }
}
