package import PrefetchModel

/// Decides whether and when a failed entry is retried in this run.
///
/// It limits the retries of a run, so that a general failure does not multiply the load. The first
/// hundred retries are free, then one for every five requested entries.
package struct RetryPolicy: Sendable {
    package enum Decision: Hashable, Sendable {
        case retry(after: Duration)
        /// A retry would not help, or the entry has used its retries.
        case final
        /// It would be retried if the run had a retry left.
        case exhausted
        /// It would be retried if there were room to wait for it.
        case noRoom
    }

    /// The limit for one entry, and those at hosts with their own.
    package let maximumRetries: Int
    private let maximumByHost: HostTable<Int>
    package let backoff: Backoff
    /// The retries of all entries so far, including those that still wait.
    package private(set) var retries = 0

    private static let freeRetries = 100
    private static let startsPerRetry = 5

    package init(
        maximumRetries: Int, byHost: HostTable<Int> = HostTable(), backoff: Backoff
    ) {
        maximumByHost = byHost
        self.maximumRetries = maximumRetries
        self.backoff = backoff
    }

    /// Decides on an entry after its `attempts`-th attempt has failed; a retry is counted.
    ///
    /// `url` is that of the attempt, `starts` the number of entries requested in this run, and
    /// `hasRoom` says whether one more can wait for its retry. `Retry-After` applies to the whole
    /// host, see ``HostPacing``; the entry then waits for the host.
    package mutating func decide(
        _ reason: FailureReason, httpStatus: Int?, attempts: Int, starts: Int,
        of url: RequestURL? = nil,
        hasRoom: Bool = true, using random: inout some RandomNumberGenerator
    ) -> Decision {
        let most = url.flatMap { maximumByHost[hostIn: $0.text] } ?? maximumRetries
        guard attempts <= most, RetryPolicy.isRetried(reason, httpStatus: httpStatus)
        else { return .final }
        guard retries < RetryPolicy.freeRetries + starts / RetryPolicy.startsPerRetry else {
            return .exhausted
        }
        guard hasRoom else { return .noRoom }
        retries += 1
        return .retry(after: backoff.delay(retry: attempts, using: &random))
    }

    /// Takes back a retry that is not carried out.
    package mutating func withdraw() {
        retries -= 1
    }

    /// Whether a failure may disappear within the run.
    ///
    /// These are the transient ones of ``FailurePolicy``, except successes and redirects without an
    /// image: those reflect how a site is built, and a minute does not change that.
    package static func isRetried(_ reason: FailureReason, httpStatus: Int?) -> Bool {
        guard FailurePolicy.failureClass(of: reason, httpStatus: httpStatus) == .transient else {
            return false
        }
        guard reason == .httpStatus, let httpStatus else { return true }
        return httpStatus >= 400
    }
}
