/// The pace at which a host was requested in a run.
package struct HostPace: Hashable, Sendable {
    package enum Limit: String, CaseIterable, Sendable {
        /// The user's numbers, not the defaults.
        case settings
        /// More requests at once would queue at the host.
        case latency
        /// The host refused more (429, 503, resets).
        case refusals
        /// Bodies take longer to arrive than their hosts take to respond.
        case bandwidth
        /// Decoding, encoding or storing on this machine.
        case codecs
    }

    /// The slowest pace of a host that refuses requests. Longer pauses are the circuit breaker's.
    package static let longestInterval = Duration.seconds(10)

    package var host: String
    /// The last response's.
    package var version = HTTPVersion.http1_1
    /// Requests sent, redirects and retries included.
    package var requests = 0
    package var responses = 0
    package var refusals = 0
    /// The limit of concurrent transfers at the end.
    package var concurrency = 0
    /// Responses a second, from the first request to the last response.
    package var perSecond = 0.0
    /// Nil if the list had too few entries to find one.
    package var limit: Limit?
    package var failures = HostFailures()
    /// Nil without a complete response.
    package var times: TransferTimes?

    package init(host: String) {
        self.host = host
    }

    /// The numbers that tell refusals of the pace from images that the host cannot serve. Each of
    /// these is refused as often as it is tried.
    package struct Refusals: Hashable, Sendable {
        package var responses: Int
        package var refusals: Int
        package var limit: Limit?

        package init(responses: Int, refusals: Int, limit: Limit?) {
            self.responses = responses
            self.refusals = refusals
            self.limit = limit
        }

        /// Fewer say nothing about a host.
        private static let least = 3

        /// Whether the host refuses the pace; `failed` entries ended by a refusal.
        package func areOfPace(failed: Int) -> Bool {
            if limit == .refusals { return true }
            guard failed > 0 else { return refusals >= Refusals.least && refusals * 10 > responses }
            return failed >= Refusals.least && failed * 10 > responses - refusals
        }
    }

    /// Whether its refusals are of the pace.
    package var isPaceRefused: Bool {
        Refusals(responses: responses, refusals: refusals, limit: limit)
            .areOfPace(failed: failures.refused)
    }

    /// Percentiles of the times from request to end of a complete response.
    package struct TransferTimes: Hashable, Sendable {
        package let median: Duration
        package let percentile95: Duration

        package init(median: Duration, percentile95: Duration) {
            self.median = median
            self.percentile95 = percentile95
        }
    }
}

/// A host that limits the speed of a run.
/// `pause` is the remaining pause of the host; nil if it is being requested.
package typealias HoldUp = (
    host: String, perSecond: Double?, inFlight: Int, waiting: Int, pause: Duration?
)

/// A pause of a host that held up a run, as seen about once a second.
package struct HostPause: Hashable, Sendable {
    package var host: String
    package var start: Duration
    package var end: Duration

    package init(host: String, start: Duration, end: Duration) {
        self.host = host
        self.start = start
        self.end = end
    }
}
