package import PrefetchModel

/// The time between a list's runs, found in their history.
package enum RunInterval {
    package static let consideredStarts = 9
    private static let fewestIntervals = 2

    /// Returns the time until the next run of a regularly read list; nil if its runs are irregular,
    /// or fewer than three. `starts` has the current one first.
    ///
    /// A run is regular if at least three quarters of the intervals before it differ from their
    /// median by at most a fifth. The longest of these is returned, so that images also outlast a
    /// late run.
    package static func expected(from starts: [Timestamp]) -> Duration? {
        let intervals = zip(starts, starts.dropFirst()).map { $0.timeSince($1) }
            .filter { $0 > .zero }.sorted()
        guard intervals.count >= fewestIntervals else { return nil }
        let median = intervals[intervals.count / 2]
        let regular = intervals.filter { max($0 - median, median - $0) <= median / 5 }
        guard 4 * regular.count >= 3 * intervals.count else { return nil }
        return regular.last
    }
}
