import PrefetchModel
import Scheduling
import SeededRandom

/// A month of cron over one host, through the rules alone: a run each six hours.
struct SimulatedMonth {
    struct Image {
        let url: String
        /// The status of a URL that fails in every run, well or not; nil for an image.
        var constant: Int?
        var lifetimeHours = 24
        var expiresAt: Timestamp?
        var isStored = false
        var row: Row?
    }

    /// A row of the table of failures.
    struct Row {
        var reason: FailureReason
        var httpStatus: Int?
        var firstFailedAt: Timestamp
        var lastFailedAt: Timestamp
        var streak: (kind: FailureClass, runsInARow: Int)
        var blacklistedUntil: Timestamp?
        var host: HostMark?
    }

    struct Run {
        var hours = 0
        var requests = 0
        var failed = 0
        var new = 0
        var fresh = 0
        var namesOutage = false
        var ended = 0
        /// A run has the flags `-q --fail-on new`.
        var isMailed: Bool { new > 0 || ended > 0 }
    }

    private static let host = "https://a"
    private static let start = Timestamp(seconds: 1_800_000_000)
    var images: [Image]
    private var ongoing = OngoingOutages()
    /// The age of rows that are pruned at the end of a run; nil keeps them.
    var history: Duration?
    private var random: SplitMix

    init(_ images: [Image], seed: UInt64 = 1) {
        self.images = images
        random = SplitMix(seed: seed)
    }

    static func time(_ hours: Int) -> Timestamp {
        start.advanced(by: .seconds(hours * 3600))
    }

    private struct RunState {
        var rule = OutageRule()
        var faults = HostFaultRule()
        var failing: [String: FailureReason] = [:]
        var failed: [Int: (reason: FailureReason, status: Int?)] = [:]
        var knowledge: [FailureKnowledge] = []
        var held = HeldEntries<Row>()
    }

    /// Runs at an hour; `kind` is the failure of the origin for an image, nil for success.
    mutating func run(
        at hours: Int, _ kind: (Image) -> (reason: FailureReason, status: Int?)?
    ) -> Run {
        let now = SimulatedMonth.time(hours)
        var run = Run(hours: hours)
        var state = RunState()
        for index in images.indices {
            let image = images[index]
            if let expiry = image.expiresAt, expiry > now { continue }
            guard let row = image.row,
                FailurePolicy.isBlacklisted(
                    blacklistedUntil: row.blacklistedUntil, lastFailedAt: row.lastFailedAt, at: now)
            else {
                request(index, kind(image), at: now, &state, &run)
                continue
            }
            if row.host == .fault, image.isStored,
                case .waits(insteadOf: nil) = state.held.admission(
                    at: SimulatedMonth.host, isAtFault: true, using: &random)
            {
                state.held.hold(index, row, at: SimulatedMonth.host, isAtFault: true)
            } else {
                note(row, image, &state)
            }
        }
        for probe in state.held.takeProbes(using: &random) {
            request(probe, kind(images[probe]), at: now, &state, &run)
            let isServed = state.failed[probe] == nil
            switch state.held.ended(probe, servedBy: isServed ? SimulatedMonth.host : nil) {
            case .none: break
            case .released(let released):
                for index in released { request(index, kind(images[index]), at: now, &state, &run) }
            case .ended(let ended):
                for end in ended { note(end.value, images[end.identifier], &state) }
            }
        }
        report(&run, state, at: now)
        settle(state, at: now)
        if let history {
            for index in images.indices {
                guard let row = images[index].row else { continue }
                let last = max(row.lastFailedAt, row.blacklistedUntil ?? row.lastFailedAt)
                if now.timeSince(last) > history { images[index].row = nil }
            }
        }
        run.fresh = images.count { $0.expiresAt.map { $0 > now } ?? false }
        return run
    }

    private func note(_ row: Row, _ image: Image, _ state: inout RunState) {
        state.faults.failed(
            host: SimulatedMonth.host, reason: row.reason, httpStatus: row.httpStatus,
            isStored: image.isStored, isRequested: false)
    }

    private mutating func request(
        _ index: Int, _ outage: (reason: FailureReason, status: Int?)?, at now: Timestamp,
        _ state: inout RunState, _ run: inout Run
    ) {
        run.requests += 1
        let host = SimulatedMonth.host
        let image = images[index]
        let constant = image.constant.map {
            (reason: FailureReason.httpStatus, status: Optional($0))
        }
        guard let (reason, status) = outage ?? constant else {
            state.rule.succeeded(host: host)
            state.faults.succeeded(host: host, isStored: image.isStored)
            images[index].row = nil
            images[index].isStored = true
            images[index].expiresAt = now.advanced(by: .seconds(image.lifetimeHours * 3600))
            return
        }
        let former = image.row.map {
            FormerFailure(image.url, $0.reason, $0.httpStatus, $0.host)
        }
        state.knowledge.append(
            FailurePolicy.knowledge(
                of: (reason, status), former: former, isSameURL: true,
                isExplained: ongoing.explain(
                    reason, httpStatus: status, host: host, failedBefore: former != nil,
                    isStored: image.isStored),
                isHostOut: ongoing.isOut(host), hasSuccess: state.rule.hasSuccess(at: host)))
        state.rule.failed(host: host, reason: reason, httpStatus: status)
        state.faults.failed(
            host: host, reason: reason, httpStatus: status, isStored: image.isStored)
        if RetryPolicy.isRetried(reason, httpStatus: status) { state.failing[host] = reason }
        state.failed[index] = (reason, status)
    }

    private mutating func report(_ run: inout Run, _ state: RunState, at now: Timestamp) {
        let host = SimulatedMonth.host
        let listed = images.count(where: \.isStored)
        let report = OutageReport(
            after: ongoing, state.rule, state.faults, failing: state.failing,
            explained: state.knowledge.contains(.ofHost) ? [host] : [], at: now
        ) { _, _ in listed }
        ongoing = report.ongoing
        run.failed = state.failed.count
        run.namesOutage = report.outage != nil && !report.isKnown
        run.ended = report.ended.count
        let isNews = report.hostsWithNews.contains(host)
        run.new = state.knowledge.count {
            $0 == .new || isNews && ($0 == .ofHost || run.namesOutage)
        }
    }

    private mutating func settle(_ state: RunState, at now: Timestamp) {
        let host = SimulatedMonth.host
        let hasSuccess = state.rule.hasSuccess(at: host)
        let outage = state.rule.outages().first
        let fault = state.faults.faults.first?.reason
        let hasRecovered = state.faults.hasRecovered(
            host, isProbed: state.held.hasRecovered(host), hasSuccess: hasSuccess)
        for index in images.indices where state.failed[index] == nil {
            guard var row = images[index].row, row.blacklistedUntil != nil else { continue }
            if row.host == .fault, hasRecovered {
                row.blacklistedUntil = nil
                row.host = nil
                row.streak.runsInARow = 0
            }
            let end = FailurePolicy.endOfFault(firstFailedAt: row.firstFailedAt)
            if images[index].isStored, row.host != .fault, now < end,
                row.reason == fault
            {
                row.host = .fault
                row.blacklistedUntil = end
            }
            images[index].row = row
        }
        for (index, (reason, status)) in state.failed {
            let kind = FailurePolicy.failureClass(of: reason, httpStatus: status)
            let former = images[index].row
            guard kind != .ours else {
                keepRefusal(of: index, reason, status, at: now)
                continue
            }
            let failure = UnsettledFailure(
                reason: reason, httpStatus: status, isStored: images[index].isStored,
                firstFailedAt: former?.firstFailedAt ?? now, lastFailedAt: now,
                streak: former?.streak ?? (kind, 0),
                former: former.map {
                    UnsettledFailure.FormerCause(
                        reason: $0.reason, httpStatus: $0.httpStatus, host: $0.host,
                        hasSameConditions: $0.host == nil)
                })
            let verdict = HostVerdict(
                isInOutage: outage.map {
                    state.rule.explains(reason, httpStatus: status, host: host, by: $0)
                } ?? false, isAtFault: state.faults.isAtFault(host), hasSuccess: hasSuccess,
                hasRecovered: hasRecovered)
            guard let settled = FailurePolicy.settlement(of: failure, at: verdict) else {
                images[index].row?.lastFailedAt = now
                continue
            }
            images[index].row = Row(
                reason: reason, httpStatus: status, firstFailedAt: failure.firstFailedAt,
                lastFailedAt: now, streak: (settled.kind, settled.runsInARow),
                blacklistedUntil: settled.blacklistedUntil, host: settled.host)
        }
    }

    /// As the table keeps refusals: they change only the time of a permanent failure.
    private mutating func keepRefusal(
        of index: Int, _ reason: FailureReason, _ status: Int?, at now: Timestamp
    ) {
        if images[index].row?.streak.kind == .permanent {
            images[index].row?.lastFailedAt = now
        } else {
            images[index].row = Row(
                reason: reason, httpStatus: status,
                firstFailedAt: images[index].row?.firstFailedAt ?? now, lastFailedAt: now,
                streak: (.transient, 0), blacklistedUntil: nil, host: nil)
        }
    }
}
