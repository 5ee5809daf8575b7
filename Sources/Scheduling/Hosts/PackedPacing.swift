import PrefetchModel

/// A ``HostPacing`` in 64 bytes, for idle hosts: a million of them may have failed.
///
/// Times have nanosecond resolution, like clocks. Counts of failures saturate, far above every
/// threshold.
struct PackedPacing: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let failingSince: Int64
    private let coolingUntil: Int64
    private let nextStart: Int64
    /// 0 for that of a new host.
    private let concurrency: UInt32
    /// Requests a second; 0 without a limit.
    private let rate: Float
    /// Seconds; 0 if unknown.
    private let bestLatency: Float
    /// The host's name in a ``NameStore``, once it has one.
    let name: PoolIndex
    private let overloadsInARow: UInt16
    private let answersInRound: UInt16
    private let flags: PacingFlags
    private let breaker: PackedBreaker

    /// A ``HostBreaker`` without its times.
    private struct PackedBreaker {
        enum CauseKind: UInt8 { case none, coolingDown, unreachable, overloaded }

        let failuresInARow: UInt16
        var count: UInt16 = 0
        let failedProbes: UInt8
        var reason: UInt8 = 0
        var kind = CauseKind.none

        init(_ breaker: HostBreaker) {
            failuresInARow = UInt16(clamping: breaker.failuresInARow)
            failedProbes = UInt8(clamping: breaker.failedProbes)
            switch breaker.giveUpCause {
            case nil: break
            case .coolingDown: kind = .coolingDown
            case .unreachable(let reason, let failures):
                kind = .unreachable
                self.reason = UInt8(clamping: reason.index)
                count = UInt16(clamping: failures)
            case .overloaded(let answers):
                kind = .overloaded
                count = UInt16(clamping: answers)
            }
        }

        func unpack(into breaker: inout HostBreaker, coolingUntil time: Moment?) {
            breaker.failuresInARow = Int(failuresInARow)
            breaker.failedProbes = Int(failedProbes)
            breaker.giveUpCause =
                switch kind {
                case .none: nil
                case .coolingDown: time.map { .coolingDown(until: $0) }
                case .unreachable:
                    .unreachable(FailureReason.allCases[Int(reason)], failures: Int(count))
                case .overloaded: .overloaded(answers: Int(count))
                }
        }
    }

    private struct PacingFlags: OptionSet {
        let rawValue: UInt8
        static let isHalfOpen = PacingFlags(rawValue: 1)
        static let isRemembered = PacingFlags(rawValue: 2)
        static let isUntouched = PacingFlags(rawValue: 4)
        static let hasResponded = PacingFlags(rawValue: 8)
    }

    var isRemembered: Bool { flags.contains(.isRemembered) }
    /// Whether nothing of the host has been pushed in this run.
    var isUntouched: Bool { flags.contains(.isUntouched) }

    private static let noTime = Int64.min

    private static func nanoseconds(_ moment: Moment?) -> Int64 {
        moment.map { max($0.nanoseconds, noTime + 1) } ?? noTime
    }

    private static func moment(_ nanoseconds: Int64) -> Moment? {
        nanoseconds == noTime ? nil : Moment(nanoseconds: nanoseconds)
    }
}

extension PackedPacing {
    init(_ pacing: HostPacing, _ rules: HostPacing.PaceRules, name: PoolIndex, isRemembered: Bool) {
        failingSince = PackedPacing.nanoseconds(pacing.breaker.failingSince)
        var coolingUntil = pacing.coolingUntil
        if let end = pacing.quota?.pauseEnd { coolingUntil = max(coolingUntil ?? end, end) }
        nextStart = PackedPacing.nanoseconds(pacing.starts.next)
        concurrency =
            pacing.concurrency == rules.firstConcurrency && pacing.adaptive.bestLatency == nil
            ? 0 : UInt32(clamping: pacing.concurrency)
        rate = Float(pacing.rate.limit ?? 0)
        bestLatency = Float(pacing.adaptive.bestLatency ?? 0)
        self.name = name
        overloadsInARow = UInt16(clamping: pacing.overloadsInARow)
        answersInRound = UInt16(clamping: pacing.adaptive.answersInRound)
        breaker = PackedBreaker(pacing.breaker)
        // It holds to the end of the run, so earlier cool-downs do not matter.
        if case .coolingDown(let until) = pacing.breaker.giveUpCause { coolingUntil = until }
        self.coolingUntil = PackedPacing.nanoseconds(coolingUntil)
        var flags: PacingFlags = []
        if pacing.isHalfOpen { flags.insert(.isHalfOpen) }
        if isRemembered { flags.insert(.isRemembered) }
        if pacing.hasResponded { flags.insert(.hasResponded) }
        self.flags = flags
    }

    init(remembered memory: HostPacing.Memory) {
        failingSince = PackedPacing.noTime
        coolingUntil = PackedPacing.nanoseconds(memory.coolingUntil.map(Moment.init))
        nextStart = PackedPacing.noTime
        concurrency = memory.concurrency.map { UInt32(clamping: max(1, $0)) } ?? 0
        rate = memory.interval.map { Float(1 / $0.secondsValue) } ?? 0
        bestLatency = Float(memory.latency?.secondsValue ?? 0)
        name = .none
        (overloadsInARow, answersInRound) = (0, 0)
        breaker = PackedBreaker(HostBreaker(failuresInARow: memory.failuresInARow))
        flags = [.isRemembered, .isUntouched]
    }

    func unpacked(_ rules: HostPacing.PaceRules, at now: Instant) -> HostPacing {
        let memory = HostPacing.Memory(
            concurrency: concurrency == 0 ? nil : Int(concurrency),
            interval: rate > 0 ? .seconds(1 / Double(rate)) : nil,
            latency: bestLatency > 0 ? .seconds(Double(bestLatency)) : nil,
            failuresInARow: isUntouched ? Int(breaker.failuresInARow) : 0,
            coolingUntil: isUntouched ? PackedPacing.moment(coolingUntil)?.instant : nil)
        var pacing = HostPacing(rules, remembered: memory, now: now)
        guard !isUntouched else { return pacing }
        let coolingUntil = PackedPacing.moment(coolingUntil)
        // With adaptive pacing a round begins again.
        if !rules.isAdaptive { pacing.adaptive.answersInRound = Int(answersInRound) }
        pacing.overloadsInARow = Int(overloadsInARow)
        pacing.breaker.startsAtOpening = flags.contains(.isHalfOpen) ? 0 : nil
        pacing.hasResponded = flags.contains(.hasResponded)
        pacing.breaker.failingSince = PackedPacing.moment(failingSince)
        pacing.starts.next = PackedPacing.moment(nextStart)
        pacing.coolingUntil = breaker.kind == .coolingDown ? nil : coolingUntil
        breaker.unpack(into: &pacing.breaker, coolingUntil: coolingUntil)
        return pacing
    }
}
