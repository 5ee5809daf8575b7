extension Freshness {
    /// The user's rules for lifetimes. Negative durations count as zero.
    ///
    /// Forced lifetime, floor and ceiling count from the last validation, by our own clock. A
    /// ceiling below the floor wins.
    package struct Rules: Hashable, Sendable {
        /// `--ttl`, or the entry's own. Overrides the origin, including `no-store` and `no-cache`,
        /// and floor and ceiling.
        package var forced: Duration?
        /// `--min-ttl`; not for responses that must be validated at each use.
        package var minimum: Duration?
        /// `--max-ttl`.
        package var maximum: Duration?
        /// `--default-ttl`: the lifetime when the origin names none, and the ceiling of heuristic
        /// lifetimes; 7 days by default.
        package var defaultLifetime: Duration
        /// `--ahead`: a response that expires within it counts as stale. Does not affect stored
        /// values.
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
