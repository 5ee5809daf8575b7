import PrefetchModel

package struct ExitRule: Sendable {
    package var tolerance = FailureTolerance.count(0)
    package var counted = CountedFailures.any
    /// Whether a run without any entry is a success. A list may be empty because the command that
    /// writes it has failed.
    package var allowsEmptyLists = false

    func isSuccess(_ counters: RunCounters) -> Bool {
        guard counters.entriesRead > 0 || allowsEmptyLists else { return false }
        return tolerance.accepts(failures: failures(in: counters), of: counters.entriesRead)
    }

    /// Whether no further entry can make the run a success.
    func hasFailed(_ counters: RunCounters) -> Bool {
        guard case .count(let limit) = tolerance else { return false }
        return failures(in: counters) > limit
    }

    private func failures(in counters: RunCounters) -> Int {
        // Entries without a request are not warm either; images excluded by filters were not
        // wanted.
        var failures = counters[.failed] + counters[.excluded] - counters.excludedImages
        switch counted {
        case .any: failures += counters[.blacklisted]
        case .new: failures -= counters.knownFailures
        }
        return failures
    }
}

package enum CountedFailures: String, CaseIterable, Sendable {
    /// All failures, blacklisted entries included.
    case any
    /// New failures: neither blacklisted entries nor failures that repeat an earlier run's.
    case new
}

/// The number of failures with which a run still exits with 0.
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

/// The limits of a whole run. At the first one that is reached, nothing more starts.
package struct RunLimits: Sendable {
    /// The most entries that are requested; nil for any number.
    package var entries: Int?
    /// The end of the run; nil for none. Starts end earlier, so that running transfers can finish;
    /// unfinished ones are cancelled.
    package var deadline: ContinuousClock.Instant?
    /// Whether the first failure that decides the exit status ends the run.
    package var endsAtFailure = false

    package init() {}

    /// The time for the decode and commit of the last transfers.
    private static let commitTime = Duration.milliseconds(500)

    /// The time at which starts end; nil without a deadline. `start` is the run's, and
    /// `transferTime` a long time that a transfer may take.
    func lastStart(
        start: ContinuousClock.Instant, transferTime: Duration
    ) -> ContinuousClock.Instant? {
        guard let deadline else { return nil }
        // A short run spends most of its time on work.
        return deadline - min(transferTime + RunLimits.commitTime, max(.zero, deadline - start) / 4)
    }
}
