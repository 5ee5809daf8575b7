package import PrefetchModel

/// Decides how one host is requested: how many transfers at once, how soon, and whether at all.
///
/// A value type without clock; its instants are the caller's.
/// - Concurrency: at most the user's limit. An overload response (429, 503) halves it, and every
///   full round of good responses raises it by one (additive increase, multiplicative decrease).
/// - Interval: the minimum time between two starts.
/// - Cool-down: nothing starts before the time that the host has asked for.
/// - Circuit breaker: opens after ``failuresToOpen`` failed connections in a row, or as many
///   overload responses at a concurrency of one. Nothing is requested for a pause that doubles;
///   then one transfer is the probe. When a probe fails after the caller's patience has ended, the
///   host is given up: its entries fail without a request. The breaker opens at the first
///   failure of an absent host. That host is given up after ``absentTries``, by default within nine
///   seconds. A host without a valid certificate is given up at once. Neither rule applies to a
///   host that has responded.
package struct HostPacing: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// The rules for every host of a run.
    package struct Rules: Sendable {
        /// Simultaneous transfers at one host; at least 1.
        package var concurrency: Int
        /// The minimum time between two starts.
        package var interval: Duration
        /// The longest accepted pause; a host that asks for more is given up in this run.
        package var longestCoolDown: Duration
        /// The pauses between an opening of the breaker and its probe.
        package var backoff: Backoff
        /// The time without a response, or with overload responses only, after which a host is
        /// given up.
        package var patience: Duration

        package init(
            concurrency: Int, interval: Duration = .zero,
            longestCoolDown: Duration = .seconds(300), backoff: Backoff = Backoff(),
            patience: Duration = .seconds(60)
        ) {
            precondition(concurrency >= 1, "a host needs room for one transfer")
            self.concurrency = concurrency
            self.interval = interval
            self.longestCoolDown = longestCoolDown
            self.backoff = backoff
            self.patience = patience
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
        /// The host's certificate is not valid.
        case untrusted
        /// The transfer was cancelled, or failed for a local reason.
        case nothing
    }

    /// The cause for which a host is no longer requested.
    package enum GiveUpCause: Hashable, Sendable {
        /// It asked for a pause until then, longer than the run waits.
        case coolingDown(until: Instant)
        /// This number of connections in a row failed, including the probes, the last one for this
        /// reason.
        case unreachable(FailureReason, failures: Int)
        /// This number of overload responses arrived in a row.
        case overloaded(answers: Int)
    }

    /// Knowledge about a host that outlasts a run; times are the caller's instants.
    package struct Memory: Hashable, Sendable {
        /// Nil for the user's limit.
        package var concurrency: Int?
        package var failuresInARow: Int
        package var coolingUntil: Instant?

        package init(concurrency: Int?, failuresInARow: Int, coolingUntil: Instant?) {
            self.concurrency = concurrency
            self.failuresInARow = failuresInARow
            self.coolingUntil = coolingUntil
        }
    }

    /// Failures in a row that open the breaker.
    package static let failuresToOpen = 10
    /// The requests to an absent host.
    package static let absentTries = 3

    var adaptive: AdaptiveConcurrency
    /// The number of starts when the open breaker last began a pause: those are not probes. Nil
    /// while it is closed.
    var startsAtOpening: Int?
    private var starts = 0
    var failuresInARow = 0
    var overloadsInARow = 0
    var failedProbes = 0
    /// The time of the first of the consecutive failures; nil without any.
    var failingSince: Moment?
    /// Whether the next start is a probe.
    var isHalfOpen: Bool { startsAtOpening != nil }
    var coolingUntil: Moment?
    var nextStart: Moment?
    /// Whether it has responded while it was requested.
    var hasResponded = false
    /// The value of ``nextStart`` before the last start.
    private var formerNextStart: Moment?
    var storedGiveUpCause: StoredGiveUpCause?

    /// A ``GiveUpCause`` in its stored form.
    enum StoredGiveUpCause: Sendable {
        case coolingDown(until: Moment)
        case unreachable(FailureReason, failures: Int)
        case overloaded(answers: Int)
    }

    /// The current limit of simultaneous transfers.
    package var concurrency: Int { adaptive.limit }

    /// The cause for which the host is given up; nil when it is not.
    package var giveUpCause: GiveUpCause? {
        switch storedGiveUpCause {
        case nil: nil
        case .coolingDown(let until): .coolingDown(until: until.instant)
        case .unreachable(let reason, let failures): .unreachable(reason, failures: failures)
        case .overloaded(let answers): .overloaded(answers: answers)
        }
    }

    var isGivenUp: Bool { storedGiveUpCause != nil }

    package init(_ rules: Rules) {
        adaptive = AdaptiveConcurrency(limit: rules.concurrency)
    }

    /// Continues from the knowledge of an earlier run.
    ///
    /// A host that was unreachable gets one probe, and is given up when that fails: the earlier run
    /// was patient already.
    package init(_ rules: Rules, remembered: Memory, now: Instant) {
        adaptive = AdaptiveConcurrency(
            limit: min(rules.concurrency, max(1, remembered.concurrency ?? rules.concurrency)))
        if let until = remembered.coolingUntil, until > now { coolDown(until: until, now, rules) }
        if remembered.failuresInARow > 0 {
            failuresInARow = remembered.failuresInARow
            startsAtOpening = 0
            failingSince = Moment(now - rules.patience)
        }
    }

    /// Returns the knowledge for the next run; nil when there is none.
    package func memory(_ rules: Rules, at now: Instant) -> Memory? {
        guard !hasDefaultCounts(rules) || coolingUntil != nil else { return nil }
        var until = coolingUntil?.instant
        if case .coolingDown(let time)? = storedGiveUpCause { until = time.instant }
        if let time = until, time <= now { until = nil }
        // The open breaker of an absent host that was not given up says little.
        let isOften = isGivenUp || failuresInARow >= HostPacing.failuresToOpen - 1
        let isUnreachable =
            (isHalfOpen && overloadsInARow == 0 && isOften)
            || failuresInARow >= HostPacing.failuresToOpen
        guard concurrency < rules.concurrency || until != nil || isUnreachable else { return nil }
        return Memory(
            concurrency: concurrency < rules.concurrency ? concurrency : nil,
            failuresInARow: isUnreachable ? max(1, failuresInARow) : 0,
            coolingUntil: until)
    }

    /// Whether one more transfer may run, by numbers alone.
    package func hasRoom(running: Int) -> Bool {
        running < (isHalfOpen ? 1 : concurrency)
    }

    /// The earliest time of the next start; nil for at once.
    package var wakeTime: Instant? {
        switch (coolingUntil, nextStart) {
        case (nil, nil): nil
        case (let first?, let second?): max(first, second).instant
        case (let time, nil), (nil, let time): time?.instant
        }
    }

    /// Whether it is equal to a host that was never requested.
    package func isPristine(_ rules: Rules, at now: Instant) -> Bool {
        hasDefaultCounts(rules) && (wakeTime.map { $0 <= now } ?? true)
    }

    /// Whether everything except the times has its initial value.
    private func hasDefaultCounts(_ rules: Rules) -> Bool {
        concurrency == rules.concurrency && failuresInARow == 0 && overloadsInARow == 0
            && !isHalfOpen && !isGivenUp
    }

    /// Notes a start.
    ///
    /// - Returns: its number, for ``finished(_:start:at:_:)``.
    package mutating func started(at now: Instant, _ rules: Rules) -> Int {
        starts += 1
        formerNextStart = nextStart
        if rules.interval > .zero { nextStart = Moment(now + rules.interval) }
        return starts
    }

    /// Takes back a start without a request.
    package mutating func withdrew(start: Int) {
        // A later start has set the time again.
        if start == starts { nextStart = formerNextStart }
    }

    /// Applies the result of the host's `start`-th transfer.
    package mutating func finished(
        _ signal: Signal, start: Int, at now: Instant, _ rules: Rules
    ) {
        switch signal {
        case .nothing:
            break
        case .brokeOff:
            connected()
        case .answered:
            overloadsInARow = 0
            connected()
            adaptive.raise(to: rules.concurrency)
        case .overloaded(let retryAfter):
            if overloadsInARow == 0 { failingSince = Moment(now) }
            hasResponded = true
            failuresInARow = 0
            if let retryAfter { coolDown(until: now + retryAfter, now, rules) }
            slowDown(start: start, at: now, rules)
        // A host that has responded is restarting, or one of its servers differs.
        case .unreachable(let reason),
            .absent(let reason) where hasResponded:
            fail(reason, start: start, at: now, failuresToOpen: HostPacing.failuresToOpen, rules)
        case .untrusted where hasResponded:
            fail(.tls, start: start, at: now, failuresToOpen: HostPacing.failuresToOpen, rules)
        case .absent(let reason):
            // Without patience there is no probe.
            fail(
                reason, start: start, at: now,
                failuresToOpen: rules.patience > .zero ? 1 : HostPacing.absentTries,
                mostProbes: HostPacing.absentTries - 1, rules)
        case .untrusted:
            fail(.tls, start: start, at: now, failuresToOpen: 1, mostProbes: 0, rules)
        }
    }

    /// A host with `mostProbes` is given up after these.
    private mutating func fail(
        _ reason: FailureReason, start: Int, at now: Instant, failuresToOpen: Int,
        mostProbes: Int = .max, _ rules: Rules
    ) {
        if failuresInARow == 0, overloadsInARow == 0 { failingSince = Moment(now) }
        failuresInARow += 1
        refused(
            start: start, at: now, isOften: failuresInARow >= failuresToOpen,
            mostProbes: mostProbes,
            // Failures of earlier runs do not count.
            .unreachable(reason, failures: min(failuresInARow, max(1, starts))), rules)
    }

    private mutating func connected() {
        hasResponded = true
        if isHalfOpen { adaptive.limit = 1 }
        startsAtOpening = nil
        failuresInARow = 0
        failedProbes = 0
        switch storedGiveUpCause {
        // A transfer that was still running has succeeded.
        case .unreachable, .overloaded: storedGiveUpCause = nil
        // The host asked for the pause before that response.
        case .coolingDown, nil: break
        }
    }

    private mutating func slowDown(start: Int, at now: Instant, _ rules: Rules) {
        overloadsInARow += 1
        let wasOne = concurrency == 1
        adaptive.halve(start: start, of: starts)
        refused(
            start: start, at: now,
            // The concurrency cannot be reduced below one.
            isOften: wasOne && overloadsInARow >= HostPacing.failuresToOpen,
            .overloaded(answers: overloadsInARow), rules)
    }

    /// Counts towards opening a closed breaker, or as a probe of an open one.
    private mutating func refused(
        start: Int, at now: Instant, isOften: Bool, mostProbes: Int = .max,
        _ cause: StoredGiveUpCause, _ rules: Rules
    ) {
        if let startsAtOpening {
            // Transfers started before the breaker opened are not probes.
            guard start > startsAtOpening else { return }
            failedProbes += 1
        } else {
            guard isOften else { return }
        }
        startsAtOpening = starts
        let end = (failingSince ?? Moment(now)) + rules.patience
        // Probes that were answered with an overload do not count.
        if Moment(now) >= end || failedProbes >= mostProbes && failuresInARow > mostProbes {
            if !isGivenUp { storedGiveUpCause = cause }
        } else {
            // The last probe starts when the patience ends.
            let pause = rules.backoff.limit(retry: failedProbes + 1)
            // Some servers take seconds to restart, as networks do to come up.
            let time = min(end, Moment(now) + (mostProbes < .max ? pause * 3 : pause))
            coolingUntil = max(coolingUntil ?? time, time)
        }
    }

    private mutating func coolDown(until instant: Instant, _ now: Instant, _ rules: Rules) {
        let time = Moment(instant)
        if instant - now > rules.longestCoolDown {
            storedGiveUpCause = .coolingDown(until: time)
        } else {
            coolingUntil = max(coolingUntil ?? time, time)
        }
    }
}
