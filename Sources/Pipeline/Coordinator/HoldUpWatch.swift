import PrefetchModel

/// The host that delays the run most, cached because a search visits all hosts.
struct HoldUpWatch {
    private(set) var found: HoldUp?
    private var nextLook: ContinuousClock.Instant?

    private static let interval = Duration.seconds(1)
    /// Shorter pauses are the usual ones between requests.
    private static let shownPause = Duration.seconds(1)

    /// Whether to search again; the next search is an interval later.
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
