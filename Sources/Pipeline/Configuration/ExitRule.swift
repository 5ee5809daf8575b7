import PrefetchModel

/// Which failures make a run's exit status 1.
package struct ExitRule: Sendable {
    package var tolerance = FailureTolerance.count(0)
    package var counted = CountedFailures.any

    func isSuccess(_ counters: RunCounters) -> Bool {
        // What was not asked for is not warm either; what the image left out was not wanted.
        var failures = counters[.failed] + counters[.excluded] - counters.excludedImages
        switch counted {
        case .any: failures += counters[.blacklisted]
        case .new: failures -= counters.knownFailures
        }
        return tolerance.accepts(failures: failures, of: counters.entriesRead)
    }
}

/// Which failures decide the exit status.
package enum CountedFailures: String, CaseIterable, Sendable {
    /// All of them, and what is blacklisted.
    case any
    /// Those that earlier runs did not have: neither what is blacklisted nor what failed again for the
    /// same reason.
    case new
}

/// How many failures a run may have and still exit with 0.
package enum FailureTolerance: Hashable, Sendable {
    case count(Int)
    /// 0…100 percent of the entries read.
    case percent(Double)

    package func accepts(failures: Int, of entries: Int) -> Bool {
        switch self {
        case .count(let limit): failures <= limit
        case .percent(let limit): Double(failures) * 100 <= limit * Double(entries)
        }
    }
}
