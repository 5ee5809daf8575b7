/// Exponential back-off with full jitter, so that clients that failed together do not retry
/// together.
package struct Backoff: Hashable, Sendable {
    /// The upper limit of the wait before the first retry.
    package var base: Duration
    /// The upper limit of every wait.
    package var ceiling: Duration

    package init(base: Duration = .seconds(1), ceiling: Duration = .seconds(60)) {
        self.base = base
        self.ceiling = ceiling
    }

    /// Returns the upper limit of the wait before a retry, 1 for the first one: base × 2^(retry −
    /// 1), at most the ceiling.
    package func limit(retry: Int) -> Duration {
        var limit = min(base, ceiling)
        // Sixty doublings of a nanosecond exceed every ceiling.
        for _ in 1..<max(1, min(retry, 64)) where limit < ceiling {
            limit = min(limit * 2, ceiling)
        }
        return limit
    }

    /// Returns a wait between zero and the limit, evenly distributed, in whole microseconds.
    package func delay(retry: Int, using random: inout some RandomNumberGenerator) -> Duration {
        let (seconds, attoseconds) = limit(retry: retry).components
        let microseconds = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        return .microseconds(Int64.random(in: 0...max(0, microseconds), using: &random))
    }
}
