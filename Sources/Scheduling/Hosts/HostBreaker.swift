import PrefetchModel

/// The circuit breaker of a host: it opens after failures in a row, and then lets probes pass.
struct HostBreaker: Sendable {
    /// A ``HostPacing/GiveUpCause`` in its stored form.
    enum StoredCause: Sendable {
        case coolingDown(until: Moment)
        case unreachable(FailureReason, failures: Int)
        case overloaded(answers: Int)
    }

    /// The number of starts when it last began a pause: those are not probes. Nil while it is
    /// closed.
    var startsAtOpening: Int?
    var failuresInARow = 0
    var failedProbes = 0
    /// The time of the first of the consecutive failures; nil without any.
    var failingSince: Moment?
    var storedGiveUpCause: StoredCause?
}

struct HostStarts: Sendable {
    private(set) var count = 0
    private(set) var first: Moment?
    /// The earliest time of the next one; nil for at once.
    var next: Moment?
    /// The value of ``next`` before the last start.
    private(set) var formerNext: Moment?

    mutating func note(at time: Moment) {
        count += 1
        formerNext = next
        if first == nil { first = time }
    }
}
