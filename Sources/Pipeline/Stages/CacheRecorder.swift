import CacheStorage
import EntryLifecycle
import PrefetchModel
import Scheduling

final class CacheRecorder: RunRecording {
    private let configuration: RunConfiguration
    private let cache: OpenCache
    /// The run's row in the log, or the error of writing it.
    private var noted: Result<Int64, any Error>?
    private var startedAt = Timestamp.distantPast
    /// The writer of this run, once it stores anything.
    var writer: MetadataWriter?

    private static let hostMemory = Duration.seconds(30 * 86400)

    init(configuration: RunConfiguration, cache: OpenCache) {
        self.configuration = configuration
        self.cache = cache
    }

    func begin(at time: Timestamp) throws {
        startedAt = time
        do {
            noted = .success(
                try cache.log.begin(
                    manifests: configuration.manifests
                        // Such a run only reports what is fresh; --ahead auto does not count it.
                        + (configuration.lifetimes.isOffline ? ["--offline"] : []),
                    at: time, bootID: BootID.current(),
                    syncsFiles: configuration.storing.durability != .off,
                    variants: Array(configuration.images.variants)))
            try cache.partials.removeAll(olderThan: PartialStore.longestAge, at: time)
        } catch {
            guard error.isDiskFull else { throw error }
            if noted == nil { noted = .failure(error) }
        }
    }

    /// Returns the run's row, which failures refer to; from here on a full disk is an error.
    func runForStoring() throws -> Int64 {
        guard let noted else {
            throw UserError("the run has not been noted")
        }
        return try noted.get()
    }

    func ongoingOutages() throws -> OngoingOutages {
        let text = try cache.log.outages()
        return OngoingOutages(text: text ?? "", at: startedAt)
    }

    func fullness(listed: RunListing) throws -> CacheFullness? {
        guard let limit = configuration.sizeLimit else { return nil }
        return try cache.fullness(
            within: limit, listed: listed.isWhole ? listed.resources : nil)
    }

    func note(_ full: FullCache?) throws {
        guard case .success? = noted, configuration.sizeLimit != nil else { return }
        try cache.note(full)
    }

    func forEachHost(at now: Timestamp, _ body: (HostState) -> Void) throws {
        try cache.hosts.forEach(at: now, body)
    }

    func part(of key: String) throws -> PartialBody? { try cache.partials.part(key: key) }

    func discardPart(of key: String) throws { try cache.partials.discard(key: key) }

    func hasWholeFile(_ image: StoredImage) -> Bool { cache.directory.hasWholeFile(image) }

    func pin(_ image: StoredImage) { cache.content.pin(image.digest) }

    func checkHold() throws {
        guard case .success? = noted else { return }
        try cache.checkHold()
    }

    func settleFailures(
        isOver: ((FailureRecord) -> Bool)?, isOfFault: ((FailureRecord) -> Timestamp?)?,
        _ decide: (FailureRecord) -> FailureLog.Settlement?
    ) throws {
        guard case .success(let run)? = noted else { return }
        try cache.failures.settle(run: run, isOver: isOver, isOfFault: isOfFault, decide)
    }

    func countStored(of host: String, in listed: ResourceSet, upTo limit: Int) throws -> Int {
        try cache.listings.countStored(of: host, in: listed, upTo: limit)
    }

    func save(_ hosts: [HostState]) throws {
        guard case .success? = noted else { return }
        try cache.hosts.save(hosts)
    }

    func end(
        at time: Timestamp, exitStatus: Int32, _ counters: RunCounters, mayRemove: Bool,
        outages: OngoingOutages, listed: RunListing, isStopped: () -> Bool
    ) throws -> RemovalTotals? {
        guard case .success(let run)? = noted else {
            noteUnlogged(at: time, exitStatus: exitStatus)
            return nil
        }
        var resources = listed.resources
        if let writer { resources.formUnion(writer.stored) }
        // If the clock was set or the machine slept meanwhile, new listings must not look old.
        let isOneTime = (.zero ... .seconds(86_400)).contains(time.timeSince(startedAt))
        try cache.listings.note(
            resources, isWhole: listed.isWhole, startedAt: isOneTime ? startedAt : time, at: time)
        var evicted = writer?.evicted ?? RemovalTotals()
        // A list without any stored image may be the work of a broken program, so nothing is
        // removed for it.
        let mayRemove =
            mayRemove && listed.isWhole && exitStatus <= 1 && !resources.isEmpty
        // Runs that store nothing keep the limit too.
        if mayRemove, let limit = configuration.storing.maximumSize {
            evicted.add(try keep(limit, sparing: resources, at: time, until: isStopped))
        }
        try cache.hosts.forget(olderThan: CacheRecorder.hostMemory, at: time)
        try cache.log.end(
            run, at: time, exitStatus: exitStatus, counters: counters, outages: outages.text)
        let pruned = mayRemove ? try prune(at: time, until: isStopped) : nil
        guard pruned != nil || evicted != RemovalTotals() else { return nil }
        evicted.add(pruned ?? RemovalTotals())
        return evicted
    }

    func noteUnlogged(at time: Timestamp, exitStatus: Int32) {
        UnloggedRuns(cache.directory).add(
            UnloggedRuns.UnloggedRun(
                startedAt: startedAt, endedAt: time, exitStatus: exitStatus,
                manifest: configuration.manifests.joined(separator: "\n")))
    }

    private func keep(
        _ limit: ByteCount, sparing listed: ResourceSet, at time: Timestamp,
        until isStopped: () -> Bool
    ) throws -> RemovalTotals {
        let removal = ImageRemoval(cache, variant: nil, at: time)
        _ = try withoutActuallyEscaping(isStopped) { isStopped in
            try CachePruning(
                PruneRules(maximumSize: limit), at: time, until: isStopped,
                protecting: listed.contains, protectsSuperseded: { _ in false }
            ).run(removal) { _ in }
        }
        return removal.totals
    }

    private func prune(at time: Timestamp, until isStopped: () -> Bool) throws -> RemovalTotals? {
        guard let rules = configuration.storing.pruning else { return nil }
        try cache.store(rules)
        guard try cache.isTimeToPrune(at: time) else { return nil }
        let removal = ImageRemoval(cache, variant: nil, at: time)
        let isComplete = try withoutActuallyEscaping(isStopped) { isStopped in
            // Listings and uses of this run count as of its start.
            try CachePruning(rules, at: startedAt, until: isStopped).run(removal) { _ in }
        }
        if isComplete { try cache.notePruning(at: time) }
        return removal.totals
    }

    func takeSnapshot(
        at time: Timestamp, _ counters: RunCounters, isStopped: () -> Bool
    ) -> String? {
        guard case .success? = noted, configuration.storing.snapshots == .daily,
            // Otherwise only the log of runs has changed.
            counters.requests > 0 || counters.bytesStored > 0
        else { return nil }
        do {
            try cache.takeSnapshot(at: time, isStopped: isStopped)
            return nil
        } catch {
            // The next run checks the whole database.
            if error.isDamage { cache.directory.suspectDatabase() }
            return error.description
        }
    }

    func close() throws {
        guard case .success? = noted else { return }
        try cache.close()
    }

    func makeRoom(at now: Timestamp) {
        do {
            // Removed rows must not reappear after a power cut.
            try cache.database.synchronizeLog()
            try cache.log.removeOrphans(scansContent: true)
            try cache.partials.removeAll(olderThan: .zero, at: now)
        } catch {
            // The next run tries again: this one ends with status 2.
        }
    }

    func noteDamage() -> String? {
        do {
            return try cache.noteDamage()
                ? "run again: readable rows are salvaged, and files are kept"
                : "run again: a check found no damage, so the disk may be at fault"
        } catch {
            // The next run finds the damage too.
            return nil
        }
    }
}
