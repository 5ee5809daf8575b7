package import PrefetchModel

/// Decides whether a failed entry is tried again in this run, and when.
///
/// It counts the retries of a run: what fails everywhere must not multiply the load. The first
/// hundred retries are free, then one for every five entries that were asked for.
package struct RetryPolicy: Sendable {
    package enum Decision: Hashable, Sendable {
        case retry(after: Duration)
        /// Time does not mend it, or it has had its retries.
        case final
        /// It would be tried again if the run had a retry left.
        case exhausted
        /// It would be tried again if there were room to wait for that.
        case noRoom
    }

    /// Of one entry.
    package let maximumRetries: Int
    package let backoff: Backoff
    /// Retries so far, of all entries, those included that wait for their time.
    package private(set) var retries = 0

    private static let freeRetries = 100
    private static let startsPerRetry = 5

    package init(maximumRetries: Int, backoff: Backoff) {
        self.maximumRetries = maximumRetries
        self.backoff = backoff
    }

    /// Decides on an entry that has failed `attempts` times, the last time so; a retry is counted.
    ///
    /// `starts` are the entries that were asked for in this run, and `hasRoom` says whether one more can
    /// wait for its retry. What the origin says with `Retry-After` holds for its host, see
    /// ``HostPacing``; the entry waits for the host then.
    package mutating func decide(
        _ reason: FailureReason, httpStatus: Int?, attempts: Int, starts: Int,
        hasRoom: Bool = true, using random: inout some RandomNumberGenerator
    ) -> Decision {
        guard attempts <= maximumRetries, RetryPolicy.isRetried(reason, httpStatus: httpStatus)
        else { return .final }
        guard retries < RetryPolicy.freeRetries + starts / RetryPolicy.startsPerRetry else {
            return .exhausted
        }
        guard hasRoom else { return .noRoom }
        retries += 1
        return .retry(after: backoff.delay(retry: attempts, using: &random))
    }

    /// Takes a retry back that was decided on and is not carried out after all.
    package mutating func withdraw() {
        retries -= 1
    }

    /// Whether a failure may be over within the run.
    ///
    /// Those that ``FailurePolicy`` calls transient, but for odd successes and redirects without an
    /// image: they are how a site is built today, and a minute does not change that.
    package static func isRetried(_ reason: FailureReason, httpStatus: Int?) -> Bool {
        guard FailurePolicy.failureClass(of: reason, httpStatus: httpStatus) == .transient else {
            return false
        }
        guard reason == .httpStatus, let httpStatus else { return true }
        return httpStatus >= 400
    }
}
