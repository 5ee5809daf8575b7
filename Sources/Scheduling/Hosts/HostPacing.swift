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
/// - Cool-down: nothing starts before the time that the host has asked for.
/// - Circuit breaker: opens after ``failuresToOpen`` failed connections in a row, and at refusals
///   that fewer transfers did not end. Nothing is requested for a pause that doubles; then one
///   transfer is the probe. When a probe fails after the caller's patience has ended, the host is
///   given up: its entries fail without a request. The breaker opens at the first failure of an
///   absent host. That host is given up after ``absentTries``, by default within nine seconds. A
///   host without a valid certificate is given up at once. A host to which no connection is made
///   for ``silentTime`` is given up by adaptive pacing. None of this applies to a host that has
///   responded.
package struct HostPacing: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// The rules for every host of a run.
    package struct Rules: Sendable {
        /// The limit of simultaneous transfers at one host; at least 1.
        package var concurrency: Int
        /// The limit over shared connections (HTTP/2), at least ``concurrency``.
        package var sharedConcurrency: Int
        /// Simultaneous transfers at a new host.
        package var firstConcurrency: Int
        /// Whether the pace follows the host's latency and refusals.
        package var isAdaptive: Bool
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
            concurrency: Int, sharedConcurrency: Int? = nil, firstConcurrency: Int? = nil,
            isAdaptive: Bool = false,
            interval: Duration = .zero, longestCoolDown: Duration = .seconds(300),
            backoff: Backoff = Backoff(),
            patience: Duration = .seconds(60)
        ) {
            precondition(concurrency >= 1, "a host needs room for one transfer")
            self.concurrency = concurrency
            self.sharedConcurrency = max(concurrency, sharedConcurrency ?? concurrency)
            self.firstConcurrency = min(concurrency, max(1, firstConcurrency ?? concurrency))
            self.isAdaptive = isAdaptive
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

    /// The measurements of a response.
    package struct Observation: Hashable, Sendable {
        /// From the sent request to the first byte of the response; nil if unknown.
        package var latency: Duration?
        /// Nil without rate-limit fields.
        package var quota: Quota?
        /// Whether the host has refused the same entry before.
        package var isRepeated: Bool
        /// Whether its connection carries several transfers at once (HTTP/2).
        package var isShared: Bool

        package init(
            latency: Duration? = nil, quota: Quota? = nil, isRepeated: Bool = false,
            isShared: Bool = false
        ) {
            self.isShared = isShared
            self.latency = latency
            self.quota = quota
            self.isRepeated = isRepeated
        }
    }

    /// The requests that a host's rate-limit fields still allow.
    package struct Quota: Hashable, Sendable {
        package let remaining: Int
        /// The time until more are allowed.
        package let reset: Duration

        package init(remaining: Int, reset: Duration) {
            self.remaining = remaining
            self.reset = reset
        }
    }

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
    package struct Start: Hashable, Sendable {
        package let number: Int
        package let running: Int
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

    /// The limit of a host's pace.
    package enum Limitation: String, CaseIterable, Sendable {
        /// The user's numbers or the defaults.
        case settings
        /// Requests queue at the host.
        case latency
        /// The host refuses more.
        case refusals
    }

    /// Knowledge about a host that outlasts a run; times are the caller's instants.
    package struct Memory: Hashable, Sendable {
        /// Nil for that of a new host.
        package var concurrency: Int?
        /// The shortest time between two starts; nil for none.
        package var interval: Duration?
        /// The latency of the best round; nil if unknown.
        package var latency: Duration?
        /// For display.
        package var limitation: Limitation?
        package var failuresInARow: Int
        package var coolingUntil: Instant?

        package init(
            concurrency: Int?, interval: Duration? = nil, latency: Duration? = nil,
            limitation: Limitation? = nil, failuresInARow: Int, coolingUntil: Instant?
        ) {
            self.limitation = limitation
            self.concurrency = concurrency
            self.interval = interval
            self.latency = latency
            self.failuresInARow = failuresInARow
            self.coolingUntil = coolingUntil
        }
    }

    /// Failures in a row that open the breaker.
    package static let failuresToOpen = 10
    /// Connections in a row that were reset before a response, which may be due to the pace.
    private static let resetsForPace = 3
    /// The requests to an absent host.
    package static let absentTries = 3

    /// The time for which a host that never responded may refuse connections or leave them
    /// unanswered, from the first start on.
    package static let silentTime = Duration.seconds(9)

    var adaptive: AdaptiveConcurrency
    var rate = RequestRate()
    private var refusals = Refusals()
    /// The starts that the host's fields allow until a time; nil without a limit.
    private(set) var quota: RemainingQuota?
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
    private var firstStart: Moment?
    /// The value of ``nextStart`` before the last start.
    private var formerNextStart: Moment?
    var storedGiveUpCause: StoredGiveUpCause?

    /// A ``GiveUpCause`` in its stored form.
    enum StoredGiveUpCause: Sendable {
        case coolingDown(until: Moment)
        case unreachable(FailureReason, failures: Int)
        case overloaded(answers: Int)
    }

    /// The refusals for the pace.
    private struct Refusals {
        /// The time of the last one, and the number of starts when the pace was reduced last; nil
        /// before the first.
        var last: (starts: Int, time: Moment)?
        /// Good answers since.
        var answers = 0
        /// Whether a good answer has followed the last one, repeated ones included.
        var hasAnswered = false
        /// Whether they come whatever the pace.
        var areUnavoidable = false
        /// The limit of transfers before the first.
        var formerLimit = 1
        /// The fastest refused pace of the present series, in transfers or requests a second.
        var fastest = 0.0
        /// Good answers since the first of the series.
        var answersInSeries = 0
        /// Refused entries of the series.
        var entriesInSeries = 0
        /// Refused entries since the last good answer.
        var entriesInARow = 0
    }

    /// A series of refusals ends with this many good answers, and this time without a refusal.
    private static let answersAfterSeries = 8
    private static let timeAfterSeries = Duration.seconds(4)
    /// A series with this many good answers and responses that goes on at this share of its fastest
    /// pace has another cause than the pace.
    private static let answersInVain = 5
    private static let responsesInVain = 14
    private static let shareInVain = 1.0 / 3
    /// Entries refused in a row at a host that accepts nothing.
    private static let entriesToClose = 3
    /// Unavoidable refusals in a row that may be due to the pace again.
    private static let refusalsForPace = 5

    /// The current limit of simultaneous transfers.
    package var concurrency: Int { adaptive.limit }
    /// The current limit of requests a second; nil for none.
    package var requestsPerSecond: Double? { rate.limit }

    /// The limit of the pace; nil while it is not known, because something else limits the run.
    package func limitation(_ rules: Rules) -> Limitation? {
        if rate.limit != nil || adaptive.refusedLimit != nil { return .refusals }
        if concurrency >= rules.concurrency || nextStart != nil { return .settings }
        return adaptive.isLimitedByLatency ? .latency : nil
    }

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
        adaptive = AdaptiveConcurrency(
            limit: rules.firstConcurrency, ramps: rules.firstConcurrency < rules.concurrency)
    }

    /// Continues from the knowledge of an earlier run.
    ///
    /// A host that was unreachable gets one probe, and is given up when that fails: the earlier run
    /// was patient already.
    package init(_ rules: Rules, remembered: Memory, now: Instant) {
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
        let concurrency = knownConcurrency(rules)
        guard concurrency != nil || rate.limit != nil || until != nil || isUnreachable else {
            return nil
        }
        return Memory(
            concurrency: concurrency, interval: rate.remembered.map { .seconds(1 / $0) },
            latency: rules.isAdaptive ? adaptive.bestLatency.map { .seconds($0) } : nil,
            limitation: rules.isAdaptive ? limitation(rules) : nil,
            failuresInARow: isUnreachable ? max(1, failuresInARow) : 0,
            coolingUntil: until)
    }

    /// The limit of transfers that the next run starts with; nil for that of a new host.
    private func knownConcurrency(_ rules: Rules) -> Int? {
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

    /// The earliest time of the next start; nil for at once.
    package var wakeTime: Instant? {
        var time = coolingUntil
        for other in [nextStart, quota?.pauseEnd] {
            if let other { time = max(time ?? other, other) }
        }
        return time?.instant
    }

    /// Whether it is equal to a host that was never requested.
    package func isPristine(_ rules: Rules, at now: Instant) -> Bool {
        hasDefaultCounts(rules) && (wakeTime.map { $0 <= now } ?? true)
    }

    /// Whether everything except the times has its initial value.
    private func hasDefaultCounts(_ rules: Rules) -> Bool {
        concurrency == rules.firstConcurrency && adaptive.bestLatency == nil && rate.limit == nil
            && failuresInARow == 0 && overloadsInARow == 0 && !isHalfOpen && !isGivenUp
    }

    /// Notes a start; `running` transfers ran before it.
    package mutating func started(at now: Instant, running: Int = 0, _ rules: Rules) -> Start {
        starts += 1
        formerNextStart = nextStart
        let time = Moment(now)
        if firstStart == nil { firstStart = time }
        if rules.isAdaptive { rate.started(at: time) }
        quota?.started(at: time)
        var next = rules.interval > .zero ? time + rules.interval : nil
        if let interval = rate.interval {
            // From the time at which this start was due: late wake-ups must not lower the rate.
            let due = max(nextStart ?? time, time + (.zero - interval))
            next = max(next ?? due, min(due, time) + interval)
        }
        nextStart = next
        return Start(number: starts, running: running + 1)
    }

    /// Takes back a start without a request.
    package mutating func withdrew(_ start: Start) {
        // A later start has set the time again.
        if start.number == starts { nextStart = formerNextStart }
        quota?.starts += 1
    }

    /// Applies the result of a transfer; `running` others run on.
    ///
    /// - Returns: the cause of a refusal.
    @discardableResult
    package mutating func finished(
        _ signal: Signal, _ observation: Observation = Observation(), start: Start,
        running: Int = 0, at now: Instant, _ rules: Rules
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
            if overloadsInARow == 0 { failingSince = Moment(now) }
            hasResponded = true
            failuresInARow = 0
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
                failuresInARow >= HostPacing.resetsForPace
            {
                _ = adaptive.refused(start: number, of: starts)
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
        _ observation: Observation, _ start: Start, running: Int, at now: Instant, _ rules: Rules
    ) {
        guard rules.isAdaptive else { return adaptive.raise(to: rules.concurrency) }
        refusals.answers += 1
        refusals.answersInSeries += 1
        refusals.hasAnswered = true
        refusals.entriesInARow = 0
        rate.answered(at: Moment(now))
        if let latency = observation.latency {
            adaptive.answered(
                after: latency, start: start.number, running: start.running, of: starts,
                maximum: observation.isShared ? rules.sharedConcurrency : rules.concurrency)
        }
        if let quota = observation.quota { obey(quota, running: running, at: now, rules) }
    }

    /// Keeps to the host's own count of requests.
    private mutating func obey(
        _ given: Quota, running: Int, at now: Instant, _ rules: Rules
    ) {
        // Misconfigured hosts always send zero, or times of years.
        guard given.remaining > 0 || quota != nil, given.reset <= rules.longestCoolDown else {
            quota = nil
            return
        }
        let known = quota?.whole ?? 0
        quota = RemainingQuota(
            // The host may not have counted the requests under way.
            starts: max(0, given.remaining - running),
            whole: max(known, given.remaining),
            until: Moment(now + given.reset))
    }

    /// Slows down for a refusal: fewer transfers at once first, then fewer a second.
    ///
    /// - Returns: the cause.
    private mutating func refusedForPace(
        _ start: Start, isRate: Bool, isRepeated: Bool, running: Int, at now: Instant,
        _ rules: Rules
    ) -> RefusalCause {
        overloadsInARow += 1
        if !isRepeated {
            refusals.entriesInSeries += 1
            refusals.entriesInARow += 1
        }
        // Transfers that were under way at the last refusal report the same one.
        guard start.number > refusals.last?.starts ?? 0 else {
            return refusals.areUnavoidable ? .otherwise : .pace
        }
        if refusals.areUnavoidable {
            guard overloadsInARow >= HostPacing.refusalsForPace else { return .otherwise }
            refusals.areUnavoidable = false
        }
        // The interval between two starts is the pause, unless it has not helped.
        defer {
            if rate.limit != nil, !refusals.hasAnswered, refusals.entriesInARow > 1 {
                pause(start, at: now, rules)
            }
            refusals.hasAnswered = false
        }
        let isKnown = rate.limit != nil || adaptive.refusedLimit != nil
        // The image may be the cause: others decide.
        if isRepeated, refusals.hasAnswered || rate.limit != nil {
            return isKnown && rate.hasAnswers ? .pace : .otherwise
        }
        let isFirst = refusals.last?.starts ?? 0 == 0
        if isFirst { refusals.formerLimit = adaptive.limit }
        let isInVain = isInVain(at: Moment(now)) && !isRate
        // A single one may be due to its image.
        guard isRate || isKnown || refusals.entriesInSeries > 1 else {
            refusals.last = (refusals.last?.starts ?? 0, Moment(now))
            refusals.answers = 0
            let isAlone = running == 0 && !rate.hasAnswers
            return isRepeated || isAlone ? .otherwise : .unclear
        }
        let hasHelped = isFirst || refusals.answers >= adaptive.limit
        refusals.last = (starts, Moment(now))
        refusals.answers = 0
        guard !isInVain else {
            refusals.areUnavoidable = true
            adaptive.forgetRefusals(limit: refusals.formerLimit)
            rate.forget()
            return .otherwise
        }
        let atOnce = max(start.running, running + 1)
        if rate.limit == nil, !isRate, atOnce > 1, hasHelped || !rate.hasAnswers,
            adaptive.refused(
                start: start.number, of: starts, running: atOnce, halves: !refusals.hasAnswered)
        {
            return .pace
        }
        if rate.limit == nil { refusals.fastest = 0 }
        rate.refused(
            at: Moment(now), isClosed: refusals.entriesInARow >= HostPacing.entriesToClose)
        refusals.fastest = max(refusals.fastest, rate.refused)
        // A host that never answered well may refuse this image only, and for long.
        return rate.hasAnswers || refusals.entriesInARow > 1 ? .pace : .otherwise
    }

    private mutating func pause(_ start: Start, at now: Instant, _ rules: Rules) {
        refused(
            start: start.number, at: now,
            // Without patience the first pause would be the end.
            isOften: rules.patience > .zero || overloadsInARow >= HostPacing.failuresToOpen,
            .overloaded(answers: overloadsInARow), rules)
    }

    /// Whether the present refusal shows that a much slower pace has not helped.
    private mutating func isInVain(at now: Moment) -> Bool {
        let pace = rate.limit ?? Double(adaptive.limit)
        guard let last = refusals.last,
            refusals.answers < HostPacing.answersAfterSeries
                || now < last.time + HostPacing.timeAfterSeries
        else {
            refusals.fastest = pace
            refusals.answersInSeries = 0
            refusals.entriesInSeries = 1
            return false
        }
        refusals.fastest = max(refusals.fastest, pace)
        return refusals.answersInSeries >= HostPacing.answersInVain
            && refusals.answersInSeries + refusals.entriesInSeries >= HostPacing.responsesInVain
            && pace <= refusals.fastest * HostPacing.shareInVain
    }

    /// Gives up a host to which no connection could be made, whose every try takes seconds.
    private mutating func giveUpIfSilent(
        _ reason: FailureReason, at now: Instant, _ rules: Rules
    ) {
        guard rules.isAdaptive, !hasResponded, !isGivenUp, rules.patience > .zero,
            reason == .connect || reason == .dns || reason == .tls,
            let firstStart, Moment(now) >= firstStart + HostPacing.silentTime
        else { return }
        storedGiveUpCause = .unreachable(reason, failures: min(failuresInARow, max(1, starts)))
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

    private mutating func connected(_ rules: Rules) {
        hasResponded = true
        if isHalfOpen, !rules.isAdaptive || failuresInARow > 0 {
            adaptive.restart(ramps: rules.isAdaptive)
        }
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
