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
    private let failuresInARow: UInt16
    private let overloadsInARow: UInt16
    private let giveUpCount: UInt16
    private let answersInRound: UInt16
    private let failedProbes: UInt8
    private let failure: UInt8
    private let kind: GiveUpKind
    private let flags: Flags

    private enum GiveUpKind: UInt8 { case none, coolingDown, unreachable, overloaded }

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let isHalfOpen = Flags(rawValue: 1)
        static let isRemembered = Flags(rawValue: 2)
        static let isUntouched = Flags(rawValue: 4)
        static let hasResponded = Flags(rawValue: 8)
    }

    /// Whether an earlier run left knowledge about the host.
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
    /// Packs the pacing of an idle host.
    init(
        _ pacing: HostPacing, _ rules: HostPacing.Rules, name: PoolIndex, isRemembered: Bool
    ) {
        failingSince = PackedPacing.nanoseconds(pacing.failingSince)
        var coolingUntil = pacing.coolingUntil
        if let end = pacing.quota?.pauseEnd { coolingUntil = max(coolingUntil ?? end, end) }
        nextStart = PackedPacing.nanoseconds(pacing.nextStart)
        concurrency =
            pacing.concurrency == rules.firstConcurrency && pacing.adaptive.bestLatency == nil
            ? 0 : UInt32(clamping: pacing.concurrency)
        rate = Float(pacing.rate.limit ?? 0)
        bestLatency = Float(pacing.adaptive.bestLatency ?? 0)
        self.name = name
        failuresInARow = UInt16(clamping: pacing.failuresInARow)
        overloadsInARow = UInt16(clamping: pacing.overloadsInARow)
        answersInRound = UInt16(clamping: pacing.adaptive.answersInRound)
        failedProbes = UInt8(clamping: pacing.failedProbes)
        var reason = FailureReason.connect
        switch pacing.storedGiveUpCause {
        case nil:
            (kind, giveUpCount) = (.none, 0)
        case .coolingDown(let until):
            // It holds to the end of the run, so earlier cool-downs do not matter.
            (kind, giveUpCount, coolingUntil) = (.coolingDown, 0, until)
        case .unreachable(let cause, let failures):
            (kind, giveUpCount, reason) = (.unreachable, UInt16(clamping: failures), cause)
        case .overloaded(let answers):
            (kind, giveUpCount) = (.overloaded, UInt16(clamping: answers))
        }
        failure = UInt8(clamping: reason.index)
        self.coolingUntil = PackedPacing.nanoseconds(coolingUntil)
        var flags: Flags = []
        if pacing.isHalfOpen { flags.insert(.isHalfOpen) }
        if isRemembered { flags.insert(.isRemembered) }
        if pacing.hasResponded { flags.insert(.hasResponded) }
        self.flags = flags
    }

    /// Packs the knowledge of an earlier run.
    init(remembered memory: HostPacing.Memory) {
        failingSince = PackedPacing.noTime
        coolingUntil = PackedPacing.nanoseconds(memory.coolingUntil.map(Moment.init))
        nextStart = PackedPacing.noTime
        concurrency = memory.concurrency.map { UInt32(clamping: max(1, $0)) } ?? 0
        rate = memory.interval.map { Float(1 / $0.secondsValue) } ?? 0
        bestLatency = Float(memory.latency?.secondsValue ?? 0)
        name = .none
        failuresInARow = UInt16(clamping: memory.failuresInARow)
        (overloadsInARow, giveUpCount, answersInRound, failedProbes) = (0, 0, 0, 0)
        failure = 0
        kind = .none
        flags = [.isRemembered, .isUntouched]
    }

    func unpacked(_ rules: HostPacing.Rules, at now: Instant) -> HostPacing {
        let memory = HostPacing.Memory(
            concurrency: concurrency == 0 ? nil : Int(concurrency),
            interval: rate > 0 ? .seconds(1 / Double(rate)) : nil,
            latency: bestLatency > 0 ? .seconds(Double(bestLatency)) : nil,
            failuresInARow: isUntouched ? Int(failuresInARow) : 0,
            coolingUntil: isUntouched ? PackedPacing.moment(coolingUntil)?.instant : nil)
        var pacing = HostPacing(rules, remembered: memory, now: now)
        guard !isUntouched else { return pacing }
        let coolingUntil = PackedPacing.moment(coolingUntil)
        // With adaptive pacing a round begins again.
        if !rules.isAdaptive { pacing.adaptive.answersInRound = Int(answersInRound) }
        pacing.failuresInARow = Int(failuresInARow)
        pacing.overloadsInARow = Int(overloadsInARow)
        pacing.failedProbes = Int(failedProbes)
        pacing.startsAtOpening = flags.contains(.isHalfOpen) ? 0 : nil
        pacing.hasResponded = flags.contains(.hasResponded)
        pacing.failingSince = PackedPacing.moment(failingSince)
        pacing.nextStart = PackedPacing.moment(nextStart)
        pacing.coolingUntil = coolingUntil
        switch kind {
        case .none:
            break
        case .coolingDown:
            pacing.coolingUntil = nil
            pacing.storedGiveUpCause = coolingUntil.map { .coolingDown(until: $0) }
        case .unreachable:
            pacing.storedGiveUpCause = .unreachable(
                FailureReason.allCases[Int(failure)], failures: Int(giveUpCount))
        case .overloaded:
            pacing.storedGiveUpCause = .overloaded(answers: Int(giveUpCount))
        }
        return pacing
    }
}
