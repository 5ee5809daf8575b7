package import PrefetchModel

/// Decides whether and when a failed entry is retried in this run.
///
/// It limits the retries of a run, so that a general failure does not multiply the load. The first
/// hundred retries are free, then one for every five requested entries.
package struct RetryPolicy: Sendable {
    package enum RetryDecision: Hashable, Sendable {
        case retry(after: Duration)
        /// A retry would not help, or the entry has used its retries.
        case final
        /// It would be retried if the run had a retry left.
        case exhausted
        /// It would be retried if there were room to wait for it.
        case noRoom
    }

    /// The limit for one entry; some hosts have their own.
    package let maximumRetries: Int
    private let maximumByHost: HostTable<Int>
    package let backoff: Backoff
    /// The retries of all entries so far, including waiting ones.
    package private(set) var retries = 0

    private static let freeRetries = 100
    private static let startsPerRetry = 5

    package init(maximumRetries: Int, byHost: HostTable<Int> = HostTable(), backoff: Backoff) {
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
    ) -> RetryDecision {
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
