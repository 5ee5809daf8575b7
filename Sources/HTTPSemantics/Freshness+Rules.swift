extension Freshness {
    /// What the user says about lifetimes. Negative durations count as zero.
    ///
    /// Forced lifetime, floor and ceiling count from the last validation, by our own clock; where
    /// floor and ceiling contradict one another, the ceiling holds.
    package struct Rules: Hashable, Sendable {
        /// `--ttl`, or the entry's own; overrides whatever the origin says, `no-store` and
        /// `no-cache` too, and floor and ceiling.
        package var forced: Duration?
        /// `--min-ttl`; not for responses that have to be validated at each use.
        package var minimum: Duration?
        /// `--max-ttl`.
        package var maximum: Duration?
        /// `--default-ttl`: the lifetime when the origin says nothing, and the ceiling of heuristic
        /// ones; 7 days unless set.
        package var defaultLifetime: Duration
        /// `--ahead`: what expires within it counts as stale. Of no effect on what is stored.
        package var ahead: Duration

        package init(
            forced: Duration? = nil, minimum: Duration? = nil, maximum: Duration? = nil,
            defaultLifetime: Duration = .seconds(7 * 86400), ahead: Duration = .zero
        ) {
            self.forced = forced
            self.minimum = minimum
            self.maximum = maximum
            self.defaultLifetime = defaultLifetime
            self.ahead = ahead
        }
    }
}
