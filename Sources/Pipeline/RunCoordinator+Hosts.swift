import CacheStorage
import PrefetchModel
import Scheduling

/// What runs tell one another about hosts.
extension RunCoordinator {
    /// A host of which nothing has been heard for so long is like any other.
    private static let hostMemory = Duration.seconds(30 * 86400)

    /// Lets the scheduler go on from what earlier runs have found out; with `--retry-failed` from how
    /// much a host bears only.
    func recallHosts() throws(StorageError) {
        let (wall, now) = (wallClock(), ContinuousClock.now)
        var memories: [String: HostPacing.Memory] = [:]
        for state in try cache.hosts.all(at: wall) {
            let forgives = configuration.retriesFailed
            memories[state.host] = HostPacing.Memory(
                concurrency: state.concurrency,
                failuresInARow: forgives ? 0 : state.failuresInARow,
                coolingUntil: forgives
                    ? nil : state.coolingUntil.map { now + $0.timeSince(wall) })
        }
        scheduler.recall(memories)
    }

    /// Notes what this run has found out.
    func rememberHosts() throws(StorageError) {
        let (wall, now) = (wallClock(), ContinuousClock.now)
        let (known, forgotten) = scheduler.memories(at: now)
        let states =
            known.map { host, memory in
                HostState(
                    host: host, concurrency: memory.concurrency,
                    failuresInARow: memory.failuresInARow,
                    coolingUntil: memory.coolingUntil.map { wall.advanced(by: $0 - now) },
                    updatedAt: wall)
            }
            + forgotten.map { host in
                HostState(
                    host: host, concurrency: nil, failuresInARow: 0, coolingUntil: nil,
                    updatedAt: wall)
            }
        try cache.hosts.save(states)
        try cache.hosts.forget(olderThan: RunCoordinator.hostMemory, at: wall)
    }
}
