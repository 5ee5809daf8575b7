import CacheStorage
import EntryLifecycle
import EntryQueue
import PrefetchModel
import Scheduling

/// Knowledge about hosts and failures that is passed from run to run.
extension RunCoordinator {
    /// The number of hosts in one transaction.
    private static let hostsAtOnce = 4096

    /// Gives the dispatch the knowledge of earlier runs; with `--retry-failed` only the pace of
    /// hosts.
    func recallHosts() throws(FatalError) {
        let (wall, now) = (clock.wall(), clock.now)
        let forgives = rules.configuration.retriesFailed
        try recorder.forEachHost(at: wall) { state in
            dispatch.recall(
                HostPacing.Memory(
                    concurrency: state.concurrency, interval: state.interval,
                    latency: state.latency, failuresInARow: forgives ? 0 : state.failuresInARow,
                    coolingUntil: forgives
                        ? nil : state.coolingUntil.map { now + $0.timeSince(wall) }),
                of: state.host)
        }
    }

    /// The paces of the largest hosts.
    var hostPaces: [HostPace] {
        tallies.largest.map { host, tally in
            let pace = dispatch.pace(of: host)
            var summary = HostPace(
                host: host, version: tally.version, requests: tally.requests,
                responses: tally.responses, refusals: tally.refusals,
                concurrency: pace.concurrency, perSecond: tally.perSecond,
                limit: limit(pace.limit, tally))
            summary.failures = tally.failures
            summary.times = tally.transferTimes
            return summary
        }
    }

    private func limit(
        _ limit: HostPace.Limit?, _ tally: HostTallies.Tally
    ) -> HostPace.Limit? {
        if limit == .refusals { return .refusals }
        if tallies.waitsForCodecs { return .codecs }
        return limit != nil && tally.waitsForBodies ? .bandwidth : limit
    }

    /// Stores the knowledge of this run.
    func rememberHosts() throws(FatalError) {
        let (wall, now) = (clock.wall(), clock.now)
        var states: [HostState] = []
        try dispatch.forEachMemory(at: now) { (host, memory) throws(FatalError) in
            states.append(
                HostState(
                    host: host, concurrency: memory?.concurrency, interval: memory?.interval,
                    latency: memory?.latency, limitedBy: memory?.limit,
                    failuresInARow: memory?.failuresInARow ?? 0,
                    coolingUntil: memory?.coolingUntil.map { wall.advanced(by: $0 - now) },
                    updatedAt: wall))
            guard states.count >= RunCoordinator.hostsAtOnce else { return }
            try recorder.save(states)
            states.removeAll(keepingCapacity: true)
        }
        try recorder.save(states)
    }
}
