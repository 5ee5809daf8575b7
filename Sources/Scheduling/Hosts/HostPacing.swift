package import PrefetchModel

/// Decides how one host is requested: how many transfers at once, how soon, and whether at all.
///
/// A value type without clock; its instants are the caller's.
/// - Concurrency: found by ``AdaptiveConcurrency``, at most the user's limit. With fixed pacing it
///   is the user's limit, halved by an overload response and raised by one after each full round of
///   good responses (additive increase, multiplicative decrease).
/// - Rate: none, until refusals continue with fewer transfers; then ``RequestRate``. The user's
///   interval is the minimum time between two starts.
/// - Quota: when the host's rate-limit fields say that no request is left, nothing starts until
///   their reset.
/// - Cool-down: nothing starts before the time that the host has named.
/// - Circuit breaker: opens after ``failuresToOpen`` failed connections in a row, and when a lower
///   pace does not end refusals. Nothing is requested for a pause that doubles; then one
///   transfer is the probe. When a probe fails after the caller's patience has ended, the host is
///   given up: its entries fail without a request. The breaker opens at the first failure of an
///   absent host. That host is given up after ``absentTries``, by default within nine seconds. A
///   host without a valid certificate is given up at once. A host to which no connection is made
///   for ``silentTime`` is given up by adaptive pacing. None of this applies to a host that has
///   responded.
package struct HostPacing: Sendable {
    package typealias Instant = ContinuousClock.Instant

    package static let failuresToOpen = 10
    /// Connections in a row that were reset before a response, which may be due to the pace.
    private static let resetsForPace = 3
    package static let absentTries = 3

    /// The time for which a host that never responded may refuse connections or leave them
    /// unanswered, from the first start on.
    package static let silentTime = Duration.seconds(9)

    var adaptive: AdaptiveConcurrency
    var rate = RequestRate()
    var refusals = RefusalSeries()
    private(set) var quota: RemainingQuota?
    var breaker = HostBreaker()
    var starts = HostStarts()
    var overloadsInARow = 0
    var isHalfOpen: Bool { breaker.startsAtOpening != nil }
    var coolingUntil: Moment?
    var hasResponded = false
    /// Whether its last good response used a connection that carries several transfers.
    private var isShared = false

    package var concurrency: Int { adaptive.limit }
    package var requestsPerSecond: Double? { rate.limit }

    /// The limit of the pace; nil while it is not known, because something else limits the run.
    package func limit(_ rules: PaceRules) -> HostPace.Limit? {
        if rate.limit != nil || adaptive.refusedLimit != nil { return .refusals }
        let isAtMaximum = rules.isChosen && concurrency >= maximum(rules)
        if isAtMaximum || starts.next != nil { return .settings }
        return adaptive.isLimitedByLatency ? .latency : nil
    }

    /// The limit of transfers that the user or the default sets.
    private func maximum(_ rules: PaceRules) -> Int {
        isShared ? rules.sharedConcurrency : rules.concurrency
    }

    package var giveUpCause: GiveUpCause? { breaker.giveUpCause }

    var isGivenUp: Bool { breaker.giveUpCause != nil }

    package init(_ rules: PaceRules) {
        adaptive = AdaptiveConcurrency(
            limit: rules.firstConcurrency, ramps: rules.firstConcurrency < rules.concurrency)
    }

    /// Continues from the knowledge of an earlier run.
    ///
    /// A host that was unreachable gets one probe, and is given up when that fails: the earlier run
    /// was patient already.
    package init(_ rules: PaceRules, remembered: Memory, now: Instant) {
        self.init(rules)
        if let concurrency = remembered.concurrency {
            adaptive = AdaptiveConcurrency(
                limit: min(
                    rules.isAdaptive ? rules.sharedConcurrency : rules.concurrency,
                    max(1, concurrency)), ramps: false,
                bestLatency: remembered.latency?.secondsValue)
        }
        if rules.isAdaptive, let interval = remembered.interval, interval > .zero {
            rate = RequestRate(remembered: 1 / interval.secondsValue)
        }
        if let until = remembered.coolingUntil, until > now { coolDown(until: until, now, rules) }
        if remembered.failuresInARow > 0 {
            breaker.failuresInARow = remembered.failuresInARow
            breaker.startsAtOpening = 0
            breaker.failingSince = Moment(now - rules.patience)
        }
    }

    /// Returns the knowledge for the next run, if any.
    package func memory(_ rules: PaceRules, at now: Instant) -> Memory? {
        guard !hasDefaultCounts(rules) || coolingUntil != nil else { return nil }
        var until = coolingUntil?.instant
        if case .coolingDown(let time)? = breaker.giveUpCause { until = time.instant }
        if let time = until, time <= now { until = nil }
        // The open breaker of an absent host that was not given up says little.
        let isOften = isGivenUp || breaker.failuresInARow >= HostPacing.failuresToOpen - 1
        let isUnreachable =
            (isHalfOpen && overloadsInARow == 0 && isOften)
            || breaker.failuresInARow >= HostPacing.failuresToOpen
        let concurrency = knownConcurrency(rules)
        guard concurrency != nil || rate.limit != nil || until != nil || isUnreachable else {
            return nil
        }
        return Memory(
            concurrency: concurrency, interval: rate.remembered.map { .seconds(1 / $0) },
            latency: rules.isAdaptive ? adaptive.bestLatency.map { .seconds($0) } : nil,
            limit: rules.isAdaptive ? limit(rules) : nil,
            failuresInARow: isUnreachable ? max(1, breaker.failuresInARow) : 0, coolingUntil: until)
    }

    /// The limit of transfers that the next run starts with; nil for that of a new host.
    private func knownConcurrency(_ rules: PaceRules) -> Int? {
        let isKnown =
            rules.isAdaptive
            ? concurrency != rules.firstConcurrency
            : concurrency < rules.concurrency
        return isKnown ? concurrency : nil
    }

    /// Whether one more transfer may run, by numbers alone.
    package func hasRoom(running: Int) -> Bool {
        running < (isHalfOpen ? 1 : concurrency)
    }

    package var wakeTime: Instant? {
        var time = coolingUntil
        for other in [starts.next, quota?.pauseEnd] {
            if let other { time = max(time ?? other, other) }
        }
        return time?.instant
    }

    /// Whether it is equal to a host that was never requested.
    package func isPristine(_ rules: PaceRules, at now: Instant) -> Bool {
        hasDefaultCounts(rules) && (wakeTime.map { $0 <= now } ?? true)
    }

    /// Whether everything except the times has its initial value.
    private func hasDefaultCounts(_ rules: PaceRules) -> Bool {
        concurrency == rules.firstConcurrency && adaptive.bestLatency == nil && rate.limit == nil
            && breaker.failuresInARow == 0 && overloadsInARow == 0 && !isHalfOpen && !isGivenUp
    }

    /// Notes a start; `running` transfers ran before it.
    package mutating func started(at now: Instant, running: Int = 0, _ rules: PaceRules)
        -> NumberedStart
    {
        let time = Moment(now)
        let former = starts.next
        starts.note(at: time)
        if rules.isAdaptive { rate.started(at: time) }
        quota?.started(at: time)
        var next = rules.interval > .zero ? time + rules.interval : nil
        if let interval = rate.interval {
            // From the time at which this start was due: late wake-ups must not lower the rate.
            let due = max(former ?? time, time + (.zero - interval))
            next = max(next ?? due, min(due, time) + interval)
        }
        starts.next = next
        return NumberedStart(number: starts.count, running: running + 1)
    }

    package mutating func withdrew(_ start: NumberedStart) {
        // A later start has set the time again.
        if start.number == starts.count { starts.next = starts.formerNext }
        quota?.starts += 1
    }

    /// Applies the result of a transfer; `running` others run on. Returns the cause of a refusal.
    @discardableResult
    package mutating func finished(
        _ signal: Signal, _ observation: Observation = .nothing, start: NumberedStart,
        running: Int = 0, at now: Instant, _ rules: PaceRules
    ) -> RefusalCause {
        let number = start.number
        switch signal {
        case .nothing:
            break
        case .brokeOff:
            connected(rules)
        case .answered:
            overloadsInARow = 0
            connected(rules)
            answered(observation, start, running: running, at: now, rules)
        case .overloaded(let retryAfter):
            if overloadsInARow == 0 { breaker.failingSince = Moment(now) }
            hasResponded = true
            breaker.failuresInARow = 0
            if let retryAfter { coolDown(until: now + retryAfter, now, rules) }
            guard rules.isAdaptive else {
                slowDown(start: number, at: now, rules)
                return .otherwise
            }
            let cause = refusedForPace(
                start, isRate: retryAfter != nil, isRepeated: observation.isRepeated,
                running: running, at: now, rules)
            return isGivenUp ? .otherwise : cause
        // A host that has responded is restarting, or one of its servers differs.
        case .unreachable(let reason),
            .absent(let reason) where hasResponded:
            fail(reason, start: number, at: now, failuresToOpen: HostPacing.failuresToOpen, rules)
            // It may reset connections because there are too many.
            if rules.isAdaptive, hasResponded, reason == .interrupted,
                breaker.failuresInARow >= HostPacing.resetsForPace
            {
                _ = adaptive.refused(start: number, of: starts.count)
            }
            giveUpIfSilent(reason, at: now, rules)
        case .untrusted where hasResponded:
            fail(.tls, start: number, at: now, failuresToOpen: HostPacing.failuresToOpen, rules)
        case .absent(let reason):
            // Without patience there is no probe.
            fail(
                reason, start: number, at: now,
                failuresToOpen: rules.patience > .zero ? 1 : HostPacing.absentTries,
                mostProbes: HostPacing.absentTries - 1, rules)
        case .untrusted:
            fail(.tls, start: number, at: now, failuresToOpen: 1, mostProbes: 0, rules)
        }
        return .otherwise
    }

    private mutating func answered(
        _ observation: Observation, _ start: NumberedStart, running: Int, at now: Instant,
        _ rules: PaceRules
    ) {
        guard rules.isAdaptive else { return adaptive.raise(to: rules.concurrency) }
        refusals.noteAnswer()
        rate.answered(at: Moment(now))
        isShared = observation.isShared
        if let latency = observation.latency {
            adaptive.answered(
                after: latency, start: start.number, running: start.running, of: starts.count,
                maximum: maximum(rules))
        }
        if let quota = observation.quota { obey(quota, running: running, at: now, rules) }
    }

    private mutating func obey(_ given: Quota, running: Int, at now: Instant, _ rules: PaceRules) {
        // Misconfigured hosts always send zero, or times of years.
        guard given.remaining > 0 || quota != nil, given.reset <= rules.longestCoolDown else {
            quota = nil
            return
        }
        let known = quota?.whole ?? 0
        quota = RemainingQuota(
            // The host may not have counted the requests under way.
            starts: max(0, given.remaining - running), whole: max(known, given.remaining),
            until: Moment(now + given.reset))
    }

    /// Gives up a host to which no connection could be made: every try takes seconds.
    private mutating func giveUpIfSilent(
        _ reason: FailureReason, at now: Instant, _ rules: PaceRules
    ) {
        guard rules.isAdaptive, !hasResponded, !isGivenUp, rules.patience > .zero,
            reason == .connect || reason == .dns || reason == .tls,
            let first = starts.first, Moment(now) >= first + HostPacing.silentTime
        else { return }
        breaker.giveUpCause = .unreachable(
            reason, failures: min(breaker.failuresInARow, max(1, starts.count)))
    }

    /// A host with `mostProbes` is given up after these.
    private mutating func fail(
        _ reason: FailureReason, start: Int, at now: Instant, failuresToOpen: Int,
        mostProbes: Int = .max, _ rules: PaceRules
    ) {
        if breaker.failuresInARow == 0, overloadsInARow == 0 { breaker.failingSince = Moment(now) }
        breaker.failuresInARow += 1
        refused(
            start: start, at: now, isOften: breaker.failuresInARow >= failuresToOpen,
            mostProbes: mostProbes,
            // Failures of earlier runs do not count.
            .unreachable(reason, failures: min(breaker.failuresInARow, max(1, starts.count))), rules
        )
    }

    private mutating func connected(_ rules: PaceRules) {
        hasResponded = true
        if isHalfOpen, !rules.isAdaptive || breaker.failuresInARow > 0 {
            adaptive.restart(ramps: rules.isAdaptive)
        }
        breaker.startsAtOpening = nil
        breaker.failuresInARow = 0
        breaker.failedProbes = 0
        switch breaker.giveUpCause {
        // A transfer that was still running has succeeded.
        case .unreachable, .overloaded: breaker.giveUpCause = nil
        // The host requested the pause before that response.
        case .coolingDown, nil: break
        }
    }

    private mutating func slowDown(start: Int, at now: Instant, _ rules: PaceRules) {
        overloadsInARow += 1
        let wasOne = concurrency == 1
        adaptive.halve(start: start, of: starts.count)
        refused(
            start: start, at: now,
            // The concurrency cannot be reduced below one.
            isOften: wasOne && overloadsInARow >= HostPacing.failuresToOpen,
            .overloaded(answers: overloadsInARow), rules)
    }

    /// Counts towards opening a closed breaker, or as a probe of an open one.
    mutating func refused(
        start: Int, at now: Instant, isOften: Bool, mostProbes: Int = .max,
        _ cause: GiveUpCause, _ rules: PaceRules
    ) {
        if let startsAtOpening = breaker.startsAtOpening {
            // Transfers started before the breaker opened are not probes.
            guard start > startsAtOpening else { return }
            breaker.failedProbes += 1
        } else {
            guard isOften else { return }
        }
        breaker.startsAtOpening = starts.count
        let end = (breaker.failingSince ?? Moment(now)) + rules.patience
        // Probes that met an overload do not count.
        if Moment(now) >= end
            || breaker.failedProbes >= mostProbes && breaker.failuresInARow > mostProbes
        {
            if !isGivenUp { breaker.giveUpCause = cause }
        } else {
            // The last probe starts when the patience ends.
            let pause = rules.backoff.limit(retry: breaker.failedProbes + 1)
            // Some servers take seconds to restart, and some networks to come up.
            let time = min(end, Moment(now) + (mostProbes < .max ? pause * 3 : pause))
            coolingUntil = max(coolingUntil ?? time, time)
        }
    }

    private mutating func coolDown(until instant: Instant, _ now: Instant, _ rules: PaceRules) {
        let time = Moment(instant)
        if instant - now > rules.longestCoolDown {
            breaker.giveUpCause = .coolingDown(until: time)
        } else {
            coolingUntil = max(coolingUntil ?? time, time)
        }
    }
}
