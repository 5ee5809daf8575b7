import CacheStorage
import EntryLifecycle
import EntryQueue
import PrefetchModel
import Scheduling

/// Knowledge about hosts and failures that is passed from run to run.
extension RunCoordinator {
    private static let hostsAtOnce = 4096

    /// Gives the dispatch the knowledge of earlier runs; with `--retry-failed` only the pace of
    /// hosts.
    func recallHosts() throws {
        let (wall, now) = (clock.wall(), clock.now)
        let forgives = rules.configuration.retriesFailed
        let hosts = rules.configuration.hosts
        try recorder.forEachHost(at: wall) { state in
            // The pace of a host is that of all runs that share it.
            let parts = hosts.parts[hostIn: state.host] ?? 1
            dispatch.scheduler.recall(
                HostPacing.Memory(
                    concurrency: state.concurrency.map { max(1, $0 / parts) },
                    interval: state.interval.map { $0 * parts },
                    latency: state.latency, failuresInARow: forgives ? 0 : state.failuresInARow,
                    coolingUntil: forgives
                        ? nil : state.coolingUntil.map { now + $0.timeSince(wall) }),
                of: state.host)
        }
    }

    var hostPaces: [HostPace] {
        ledger.tallies.largest.map { tally in
            let found = dispatch.scheduler.pace(of: tally.pace.host)
            var pace = tally.pace
            pace.concurrency = found.concurrency
            pace.limit = limit(found.limit, tally)
            pace.perSecond = tally.perSecond
            pace.times = tally.transferTimes
            return pace
        }
    }

    private func limit(
        _ limit: HostPace.Limit?, _ tally: HostTallies.HostTally
    ) -> HostPace.Limit? {
        if limit == .refusals { return .refusals }
        if ledger.tallies.waitsForCodecs { return .codecs }
        return limit != nil && tally.waitsForBodies ? .bandwidth : limit
    }

    func rememberHosts() throws {
        let (wall, now) = (clock.wall(), clock.now)
        var states: [HostState] = []
        try dispatch.scheduler.forEachMemory(at: now) { host, memory in
            let parts = rules.configuration.hosts.parts[hostIn: host] ?? 1
            var state = HostState(host: host, updatedAt: wall)
            state.concurrency = memory?.concurrency.map { $0 * parts }
            state.interval = memory?.interval.map { $0 / parts }
            state.latency = memory?.latency
            state.limitedBy = memory?.limit
            state.failuresInARow = memory?.failuresInARow ?? 0
            state.coolingUntil = memory?.coolingUntil.map { wall.advanced(by: $0 - now) }
            states.append(state)
            guard states.count >= RunCoordinator.hostsAtOnce else { return }
            try recorder.save(states)
            states.removeAll(keepingCapacity: true)
        }
        try recorder.save(states)
    }
}
