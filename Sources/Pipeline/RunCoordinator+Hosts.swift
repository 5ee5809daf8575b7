import CacheStorage
import PrefetchModel
import Scheduling

/// What runs tell one another about hosts.
extension RunCoordinator {
    /// A host of which nothing has been heard for so long is like any other.
    private static let hostMemory = Duration.seconds(30 * 86400)
    /// Hosts in one transaction, since there may be many of them.
    private static let hostsAtOnce = 4096

    /// Lets the scheduler go on from what earlier runs have found out; with `--retry-failed` from how
    /// much a host bears only.
    func recallHosts() throws(StorageError) {
        let (wall, now) = (wallClock(), ContinuousClock.now)
        let forgives = configuration.retriesFailed
        try cache.hosts.forEach(at: wall) { state in
            let memory = HostPacing.Memory(
                concurrency: state.concurrency,
                failuresInARow: forgives ? 0 : state.failuresInARow,
                coolingUntil: forgives
                    ? nil : state.coolingUntil.map { now + $0.timeSince(wall) })
            scheduler.recall(memory, of: state.host)
        }
    }

    /// Notes what this run has found out.
    func rememberHosts() throws(StorageError) {
        let (wall, now) = (wallClock(), ContinuousClock.now)
        var states: [HostState] = []
        try scheduler.forEachMemory(at: now) { (host, memory) throws(StorageError) in
            states.append(
                HostState(
                    host: host, concurrency: memory?.concurrency,
                    failuresInARow: memory?.failuresInARow ?? 0,
                    coolingUntil: memory?.coolingUntil.map { wall.advanced(by: $0 - now) },
                    updatedAt: wall))
            guard states.count >= RunCoordinator.hostsAtOnce else { return }
            try cache.hosts.save(states)
            states.removeAll(keepingCapacity: true)
        }
        try cache.hosts.save(states)
        try cache.hosts.forget(olderThan: RunCoordinator.hostMemory, at: wall)
    }
}
