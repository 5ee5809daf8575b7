package import PrefetchModel

// Inputs and results of a host's pacing.

extension HostPacing {
    /// The rules for every host of a run.
    package struct PaceRules: Sendable {
        /// The limit of simultaneous transfers at one host; at least 1.
        package var concurrency: Int
        /// The limit over shared connections (HTTP/2), at least ``concurrency``.
        package var sharedConcurrency: Int
        /// Whether the user has set these two; other limits are not reported.
        package var isChosen: Bool
        /// Simultaneous transfers at a new host.
        package var firstConcurrency: Int
        package var isAdaptive: Bool
        package var interval: Duration
        /// The longest accepted pause; a host that requests a longer one is given up in this run.
        package var longestCoolDown: Duration
        /// The pauses between an opening of the breaker and its probe.
        package var backoff: Backoff
        /// The time without a response, or with overload responses only, after which a host is
        /// given up.
        package var patience: Duration

        package init(
            concurrency: Int, sharedConcurrency: Int? = nil, isChosen: Bool = true,
            firstConcurrency: Int? = nil, isAdaptive: Bool = false,
            interval: Duration = .zero, longestCoolDown: Duration = .seconds(300),
            backoff: Backoff = Backoff(), patience: Duration = .seconds(60)
        ) {
            precondition(concurrency >= 1, "a host needs room for one transfer")
            self.concurrency = concurrency
            self.sharedConcurrency = max(concurrency, sharedConcurrency ?? concurrency)
            self.isChosen = isChosen
            self.firstConcurrency = min(concurrency, max(1, firstConcurrency ?? concurrency))
            self.isAdaptive = isAdaptive
            self.interval = interval
            self.longestCoolDown = longestCoolDown
            self.backoff = backoff
            self.patience = patience
        }

        /// The rules of one of several runs that request the host at the same time.
        func divided(by parts: Int) -> PaceRules {
            guard parts > 1 else { return self }
            var part = self
            part.concurrency = max(1, concurrency / parts)
            part.sharedConcurrency = max(1, sharedConcurrency / parts)
            part.firstConcurrency = max(1, firstConcurrency / parts)
            part.interval = interval * parts
            return part
        }
    }

    /// The result of a finished transfer, as far as it concerns its host.
    package enum Signal: Hashable, Sendable {
        /// The host responded, with any status.
        case answered
        /// The host is overloaded, and may say how long to pause.
        case overloaded(retryAfter: Duration?)
        /// The response began and was interrupted.
        case brokeOff
        /// No byte of a response arrived: name resolution, connection or TLS failed, or timed out.
        /// The reason is for messages.
        case unreachable(FailureReason)
        /// Nothing listens at the host, it speaks no TLS, or its name has no address.
        case absent(FailureReason)
        case untrusted
        /// The transfer was cancelled, or failed for a local reason.
        case nothing
    }

    /// The measurements of a response.
    package struct Observation: Sendable {
        /// From the sent request to the first byte of the response; nil if unknown.
        package var latency: Duration?
        package var quota: Quota?
        /// Whether the host has refused the same entry before.
        package var isRepeated = false
        /// Whether its connection carries several transfers at once (HTTP/2).
        package var isShared = false

        package static let nothing = Observation()
    }

    /// The requests that a host's rate-limit fields still allow.
    package typealias Quota = (remaining: Int, reset: Duration)

    /// The cause of a refusal (429, 503), as far as the pace can tell.
    package enum RefusalCause: Sendable {
        /// The pace, so that the entry has not failed.
        case pace
        /// The pace or the image: the entry may be requested again later.
        case unclear
        /// The image or the host, or no refusal.
        case otherwise
    }

    /// The number of a transfer at its host, and the transfers that ran then, itself included.
    package struct NumberedStart: Hashable, Sendable {
        package let number: Int
        package let running: Int
    }

    /// The cause for which a host is no longer requested.
    package enum GiveUpCause: Hashable, Sendable {
        /// It requested a pause until then, longer than the run waits.
        case coolingDown(until: Moment)
        /// This number of connections in a row failed, including the probes, the last one for this
        /// reason.
        case unreachable(FailureReason, failures: Int)
        /// This number of overload responses arrived in a row.
        case overloaded(answers: Int)
    }

    /// Knowledge about a host that outlasts a run; times are the caller's instants.
    package struct Memory: Hashable, Sendable {
        /// Nil for that of a new host.
        package var concurrency: Int?
        /// The shortest time between two starts; nil for none.
        package var interval: Duration?
        /// The latency of the best round; nil if unknown.
        package var latency: Duration?
        package var limit: HostPace.Limit?
        package var failuresInARow: Int
        package var coolingUntil: Instant?

        package init(
            concurrency: Int?, interval: Duration? = nil, latency: Duration? = nil,
            limit: HostPace.Limit? = nil, failuresInARow: Int, coolingUntil: Instant?
        ) {
            self.limit = limit
            self.concurrency = concurrency
            self.interval = interval
            self.latency = latency
            self.failuresInARow = failuresInARow
            self.coolingUntil = coolingUntil
        }
    }
}
