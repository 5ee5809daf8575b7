import PrefetchModel

/// The circuit breaker of a host: it opens after failures in a row, and then lets probes pass.
struct HostBreaker: Sendable {
    /// The number of starts when it last began a pause: those are not probes. Nil while it is
    /// closed.
    var startsAtOpening: Int?
    var failuresInARow = 0
    var failedProbes = 0
    /// The time of the first of the consecutive failures; nil without any.
    var failingSince: Moment?
    /// Nil unless the host is given up.
    var giveUpCause: HostPacing.GiveUpCause?
}

struct HostStarts: Sendable {
    private(set) var count = 0
    private(set) var first: Moment?
    /// The earliest time of the next start; nil without a limit.
    var next: Moment?
    /// The value of ``next`` before the last start.
    private(set) var formerNext: Moment?

    mutating func note(at time: Moment) {
        count += 1
        formerNext = next
        if first == nil { first = time }
    }
}

/// The starts that a host's rate-limit fields still allow.
struct RemainingQuota: Sendable {
    var starts: Int
    /// The most that the host has allowed.
    let whole: Int
    /// The time at which the host allows all of them again.
    var until: Moment

    /// The end of a new quota, until a response states it.
    private static let unknownTime = Duration.seconds(1)

    /// The end of the pause; nil while something is left.
    var pauseEnd: Moment? { starts <= 0 ? until : nil }

    mutating func started(at now: Moment) {
        if until <= now {
            starts = whole
            until = now + RemainingQuota.unknownTime
        }
        starts -= 1
    }
}
