package import PrefetchModel

/// How one host is asked: how much at once, how soon, and whether at all.
///
/// A value type without clock. Its instants are the caller's.
/// - Concurrency: at most the user's limit. An answer of overload (429, 503) halves it, every
///   full round of good answers gives one back (additive increase, multiplicative decrease).
/// - Interval: so much time between two starts.
/// - Cool-down: nothing starts before a time that the host has asked for.
/// - Circuit breaker: after ``failuresToOpen`` connections that failed in a row, or as many answers
///   of overload down to a concurrency of one, nothing is asked for a while that doubles; then one
///   transfer is the probe. When a probe fails after the caller's patience is over, the host is
///   given up: its entries fail without being asked for.
package struct HostPacing: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// What holds for every host of a run.
    package struct Rules: Sendable {
        /// Transfers at once at one host; at least 1.
        package var concurrency: Int
        /// The least time between two starts.
        package var interval: Duration
        /// A host that asks for a longer pause is given up in this run.
        package var longestCoolDown: Duration
        /// Between an opening of the breaker and its probe.
        package var backoff: Backoff
        /// How long a host may give no answer, or only answers of overload, before it is given up.
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

    /// What a finished transfer tells of its host.
    package enum Signal: Hashable, Sendable {
        /// It answered, whatever it said.
        case answered
        /// It answered that it has too much to do, and perhaps how long it wants to be left alone.
        case overloaded(retryAfter: Duration?)
        /// It began to answer, and the answer broke off.
        case brokeOff
        /// No byte of an answer came: name, connect or TLS failed, the time was over, or the
        /// connection broke before; the reason is for messages.
        case unreachable(FailureReason)
        /// Nothing: the transfer was cancelled, or failed by our own doing.
        case nothing
    }

    /// Why a host's entries are not asked for any more.
    package enum GiveUpCause: Hashable, Sendable {
        /// It asked to be left alone for longer than the run waits, until then.
        case coolingDown(until: Instant)
        /// So many connections in a row failed, the probes included, the last one for this reason.
        case unreachable(FailureReason, failures: Int)
        /// So many answers of overload came in a row.
        case overloaded(answers: Int)
    }

    /// What is known of a host beyond one run; times are the caller's instants.
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

    /// Transfers that may run at once now.
    package internal(set) var concurrency: Int
    /// Good answers since the last change of ``concurrency``.
    var answersInRound = 0
    /// Starts up to the last halving: their answers of overload are the same news.
    private var startsAtHalving = 0
    /// Starts up to the last opening of the breaker: what failed of them was no probe.
    private var startsAtOpening = 0
    private var starts = 0
    var failuresInARow = 0
    var overloadsInARow = 0
    var failedProbes = 0
    /// When the first of the failures in a row came; nil without any.
    var failingSince: Moment?
    /// Whether what starts next is a probe.
    var isHalfOpen = false
    var coolingUntil: Moment?
    var nextStart: Moment?
    /// ``nextStart`` before the last start.
    private var formerNextStart: Moment?
    var storedGiveUpCause: StoredGiveUpCause?

    /// ``GiveUpCause`` as it is stored.
    enum StoredGiveUpCause: Sendable {
        case coolingDown(until: Moment)
        case unreachable(FailureReason, failures: Int)
        case overloaded(answers: Int)
    }

    /// Why the host is given up; nil when it is not.
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
        concurrency = rules.concurrency
    }

    /// Goes on from what an earlier run has found out.
    ///
    /// A host that was unreachable is asked with one probe first, and given up when that fails: there
    /// was patience with it before.
    package init(_ rules: Rules, remembered: Memory, now: Instant) {
        concurrency = min(rules.concurrency, max(1, remembered.concurrency ?? rules.concurrency))
        if let until = remembered.coolingUntil, until > now { coolDown(until: until, now, rules) }
        if remembered.failuresInARow >= HostPacing.failuresToOpen {
            failuresInARow = HostPacing.failuresToOpen - 1
            isHalfOpen = true
            failingSince = Moment(now - rules.patience)
        }
    }

    /// What the next run should know; nil when there is nothing.
    package func memory(_ rules: Rules, at now: Instant) -> Memory? {
        guard !hasDefaultCounts(rules) || coolingUntil != nil else { return nil }
        var until = coolingUntil?.instant
        if case .coolingDown(let time)? = storedGiveUpCause { until = time.instant }
        if let time = until, time <= now { until = nil }
        let isUnreachable =
            (isHalfOpen && overloadsInARow == 0) || failuresInARow >= HostPacing.failuresToOpen
        guard concurrency < rules.concurrency || until != nil || isUnreachable else { return nil }
        return Memory(
            concurrency: concurrency < rules.concurrency ? concurrency : nil,
            failuresInARow: isUnreachable ? max(failuresInARow, HostPacing.failuresToOpen) : 0,
            coolingUntil: until)
    }

    /// Whether one more may run beside those that do, as far as numbers go.
    package func hasRoom(running: Int) -> Bool {
        running < (isHalfOpen ? 1 : concurrency)
    }

    /// When the next may start; nil for at once.
    package var wakeTime: Instant? {
        switch (coolingUntil, nextStart) {
        case (nil, nil): nil
        case (let first?, let second?): max(first, second).instant
        case (let time, nil), (nil, let time): time?.instant
        }
    }

    /// Whether it is as any other host that was never asked.
    package func isPristine(_ rules: Rules, at now: Instant) -> Bool {
        hasDefaultCounts(rules) && (wakeTime.map { $0 <= now } ?? true)
    }

    /// Whether it is so but for times.
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

    /// Takes a start back that led to no request.
    package mutating func withdrew(start: Int) {
        // A later one has set the time anew.
        if start == starts { nextStart = formerNextStart }
    }

    /// Takes what a transfer tells, the `start`-th of the host.
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
            recover(rules)
        case .overloaded(let retryAfter):
            if overloadsInARow == 0 { failingSince = Moment(now) }
            failuresInARow = 0
            if let retryAfter { coolDown(until: now + retryAfter, now, rules) }
            slowDown(start: start, at: now, rules)
        case .unreachable(let reason):
            if failuresInARow == 0, overloadsInARow == 0 { failingSince = Moment(now) }
            failuresInARow += 1
            refused(
                start: start, at: now, isOften: failuresInARow >= HostPacing.failuresToOpen,
                .unreachable(reason, failures: failuresInARow), rules)
        }
    }

    private mutating func connected() {
        if isHalfOpen { concurrency = 1 }
        isHalfOpen = false
        failuresInARow = 0
        failedProbes = 0
        switch storedGiveUpCause {
        // Something of the host still ran, and got through.
        case .unreachable, .overloaded: storedGiveUpCause = nil
        // It answered before that it wants to be left alone.
        case .coolingDown, nil: break
        }
    }

    private mutating func recover(_ rules: Rules) {
        guard concurrency < rules.concurrency else { return }
        answersInRound += 1
        guard answersInRound >= concurrency else { return }
        answersInRound = 0
        concurrency += 1
    }

    private mutating func slowDown(start: Int, at now: Instant, _ rules: Rules) {
        answersInRound = 0
        overloadsInARow += 1
        let wasOne = concurrency == 1
        // All that was under way when the first answer of overload came says the same.
        if start > startsAtHalving, !wasOne {
            startsAtHalving = starts
            concurrency = max(1, concurrency / 2)
        }
        refused(
            start: start, at: now,
            // It cannot be asked for less than one at a time.
            isOften: wasOne && overloadsInARow >= HostPacing.failuresToOpen,
            .overloaded(answers: overloadsInARow), rules)
    }

    /// Takes what a closed breaker counts, and an open one is probed with.
    private mutating func refused(
        start: Int, at now: Instant, isOften: Bool, _ cause: StoredGiveUpCause, _ rules: Rules
    ) {
        if isHalfOpen {
            // Those that were under way when the breaker opened tell nothing new.
            guard start > startsAtOpening else { return }
            failedProbes += 1
        } else {
            guard isOften else { return }
            isHalfOpen = true
        }
        startsAtOpening = starts
        let end = (failingSince ?? Moment(now)) + rules.patience
        if Moment(now) >= end {
            if !isGivenUp { storedGiveUpCause = cause }
        } else {
            // The last probe comes when the patience ends.
            let time = min(end, Moment(now) + rules.backoff.limit(retry: failedProbes + 1))
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
