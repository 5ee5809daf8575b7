import PrefetchModel

/// The limit of simultaneous transfers, found from the latency and the refusals of responses.
///
/// A value type without a clock. Responses are grouped into rounds. Only transfers that start while
/// more than half of the limit is in use count. A round has at least as many responses as the
/// limit, or half of it during a ramp, and lasts until their mean latency is known well enough. The
/// number of requests that queue at the host is estimated as in TCP Vegas (Brakmo and Peterson,
/// 1995): limit × (1 − best ÷ latency). The best latency is the lowest mean of a round.
/// - Ramp: the limit doubles each round, until requests queue or the host refuses one.
/// - After the ramp the limit grows while almost no requests queue. The step doubles, up to an
///   eighth of the limit. If the queue exceeds a quarter of the limit, the limit falls by half of
///   the queue.
/// - A reduction that does not lower the latency is undone: the latency has another cause, and
///   becomes the best one. A steady limit is reduced every ``roundsToCheck`` rounds to check this.
/// - A refusal halves the limit during a ramp, and lowers it by an eighth later. The limit stays
///   below the refused one for ``roundsBelowRefusal`` rounds.
struct AdaptiveConcurrency: Sendable {
    /// At least 1.
    private(set) var limit: Int
    private var phase: Phase
    /// The mean latency of the best round, in seconds; nil before the first round.
    private(set) var bestLatency: Double?
    private var round = Round(after: 0)
    private var step = 1
    /// The lowest limit that was refused; nil without a refusal.
    private(set) var refusedLimit: Int?
    private var steadyRounds = 0
    private var startsAtRefusal = 0

    private enum Phase {
        case ramping
        case steady
        /// After a reduction from this limit with this mean latency.
        case reduced(from: Int, latency: Double, isCheck: Bool)
    }

    private struct Round {
        /// Transfers up to this start belong to earlier rounds.
        let startsBefore: Int
        var count = 0
        private(set) var mean = 0.0
        private var squares = 0.0

        init(after starts: Int) {
            startsBefore = starts
        }

        mutating func add(_ latency: Double) {
            count += 1
            let difference = latency - mean
            mean += difference / Double(count)
            squares += difference * (latency - mean)
        }

        /// Whether the standard error of the mean is at most this share of it.
        func isKnown(within share: Double) -> Bool {
            let variance = squares / Double(max(1, count - 1))
            return variance <= Double(count) * share * share * mean * mean
        }
    }

    /// Shorter latencies count as 10 ms: the host responds immediately, and this machine may cause
    /// any difference.
    private static let negligibleLatency = 0.01
    /// The largest round, for latencies that vary a lot.
    private static let mostAnswersInRound = 256
    /// The standard error of a round's mean latency, as a share of it.
    private static let errorOfRamp = 0.2
    private static let errorOfRound = 0.07
    /// Rounds before a step towards a refused limit, and before a steady limit is checked.
    private static let roundsBelowRefusal = 16
    private static let roundsToCheck = 16

    /// `ramps`: whether the limit may double; false for one that is known or given.
    init(limit: Int, ramps: Bool, bestLatency: Double? = nil) {
        self.limit = limit
        self.bestLatency = bestLatency
        phase = ramps ? .ramping : .steady
    }

    /// Whether requests queued at the host when the limit was found.
    var isLimitedByLatency: Bool { !isRamping && bestLatency != nil }

    private var isRamping: Bool { if case .ramping = phase { true } else { false } }

    /// Takes a good response to the `start`-th transfer of `starts`, which began as one of
    /// `running`.
    mutating func answered(
        after latency: Duration, start: Int, running: Int, of starts: Int, maximum: Int
    ) {
        if limit > maximum {
            limit = maximum
            round = Round(after: starts)
        }
        guard start > round.startsBefore, running * 2 > limit else { return }
        round.add(max(latency.secondsValue, AdaptiveConcurrency.negligibleLatency))
        let error =
            isRamping ? AdaptiveConcurrency.errorOfRamp : AdaptiveConcurrency.errorOfRound
        // In a ramp the first half of a round fills the limit.
        guard round.count >= (isRamping ? (limit + 1) / 2 : limit),
            round.isKnown(within: error)
                || round.count >= max(limit, AdaptiveConcurrency.mostAnswersInRound)
        else { return }
        endRound(round.mean, maximum)
        round = Round(after: starts)
    }

    private mutating func endRound(_ latency: Double, _ maximum: Int) {
        if case .reduced(let former, let formerLatency, let isCheck) = phase {
            phase = .steady
            let fall = 1 - latency / formerLatency
            guard fall * 2 >= 1 - Double(limit) / Double(former) else {
                bestLatency = latency
                limit = former
                return
            }
            if isCheck { bestLatency = latency }
        }
        let best = min(bestLatency ?? latency, latency)
        bestLatency = best
        let queued = Double(limit) * (1 - best / latency)
        if queued > max(2, Double(limit) / 4) {
            reduce(by: isRamping ? queued : queued / 2, latency)
        } else if isRamping, limit < maximum {
            limit = min(maximum, limit * 2)
        } else if queued < max(0.75, Double(limit) / 10), limit < maximum, mayGrow {
            step = min(max(1, limit / 8), step * 2)
            let next = refusedLimit.map { $0 > limit ? max(limit + 1, $0 - 1) : .max } ?? .max
            limit = min(maximum, limit + step, next)
            steadyRounds = 0
        } else {
            if isRamping { phase = .steady }
            step = 1
            steadyRounds += 1
            if steadyRounds % AdaptiveConcurrency.roundsToCheck == 0 {
                reduce(by: Double(limit) / 4, latency, isCheck: true)
            }
        }
    }

    private var mayGrow: Bool {
        limit + 1 != refusedLimit || steadyRounds >= AdaptiveConcurrency.roundsBelowRefusal - 1
    }

    private mutating func reduce(by count: Double, _ latency: Double, isCheck: Bool = false) {
        guard limit > 1 else { return }
        phase = .reduced(from: limit, latency: latency, isCheck: isCheck)
        limit = max((limit + 1) / 2, limit - max(1, Int(count.rounded())))
        step = 1
        steadyRounds = 0
    }

    /// Takes a refusal of the `start`-th transfer of `starts`, one of `running`. `halves`: whether
    /// no response has been good since the last refusal. Returns whether the limit was reduced: not
    /// for a transfer under way at the last refusal, because all of these report the same one.
    mutating func refused(
        start: Int, of starts: Int, running: Int = .max, halves: Bool = false
    ) -> Bool {
        guard start > startsAtRefusal else { return false }
        startsAtRefusal = starts
        round = Round(after: starts)
        steadyRounds = 0
        step = 1
        guard limit > 1 else { return false }
        // The limit may not have been in use.
        limit = min(limit, max(2, running))
        refusedLimit = limit
        limit = max(1, isRamping || halves ? limit / 2 : limit - max(1, limit / 8))
        phase = .steady
        return true
    }

    // MARK: Fixed pacing

    /// Good responses since the limit last changed.
    var answersInRound: Int {
        get { round.count }
        set { round.count = newValue }
    }

    /// Counts a good response: each full round of them raises the limit by one.
    mutating func raise(to maximum: Int) {
        guard limit < maximum else { return }
        round.count += 1
        guard round.count >= limit else { return }
        round.count = 0
        limit += 1
    }

    /// Halves the limit for a refusal of the `start`-th transfer of `starts`.
    mutating func halve(start: Int, of starts: Int) {
        round.count = 0
        // All transfers under way at the first refusal report the same one.
        guard start > startsAtRefusal, limit > 1 else { return }
        startsAtRefusal = starts
        limit /= 2
    }

    // MARK: Other causes

    /// Forgets refusals, which turned out to have another cause than the number of transfers.
    mutating func forgetRefusals(limit former: Int) {
        refusedLimit = nil
        limit = max(limit, former)
    }

    mutating func restart(ramps: Bool) {
        limit = 1
        if ramps { phase = .ramping }
    }
}

/// The limit of simultaneous transfers of a run: a number, or found like that of a host.
package struct JobLimit: Sendable {
    private var concurrency: AdaptiveConcurrency
    private let maximum: Int
    private let isAdaptive: Bool
    private var starts = 0

    package init(fixed limit: Int) {
        concurrency = AdaptiveConcurrency(limit: limit, ramps: false)
        maximum = limit
        isAdaptive = false
    }

    /// A limit that grows while the latency of the responses does not.
    package init(first: Int, maximum: Int) {
        concurrency = AdaptiveConcurrency(limit: min(first, maximum), ramps: true)
        self.maximum = maximum
        isAdaptive = true
    }

    package var limit: Int { concurrency.limit }

    /// Notes a start beside `running` transfers.
    package mutating func started(running: Int) -> HostPacing.NumberedStart {
        starts += 1
        return HostPacing.NumberedStart(number: starts, running: running + 1)
    }

    package mutating func answered(after latency: Duration, _ start: HostPacing.NumberedStart) {
        guard isAdaptive else { return }
        concurrency.answered(
            after: latency, start: start.number, running: start.running, of: starts,
            maximum: maximum)
    }
}
