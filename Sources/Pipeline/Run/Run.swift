package import CacheStorage
package import PrefetchModel

/// One run over a cache: the coordinator with real stages.
package struct Run {
    private let configuration: RunConfiguration
    private let cache: OpenCache
    private let seed: SeedCache?
    private let observer: any RunObserving
    private let mailbox: Mailbox
    private let clock: RunClock

    /// Takes `control`, by which other threads stop the run, and the wall clock for freshness and
    /// the run log.
    package init(
        configuration: RunConfiguration, cache: OpenCache, seed: SeedCache? = nil,
        observer: any RunObserving,
        control: RunControl, wallClock: @escaping @Sendable () -> Timestamp
    ) {
        self.configuration = configuration
        self.cache = cache
        self.seed = seed
        self.observer = observer
        mailbox = control.mailbox
        clock = RunClock(wall: wallClock)
    }

    /// Brings the cache up to date with the entries and returns the summary.
    ///
    /// Threads of their own read the entries. With `readsAheadOfStarts` everything is read before
    /// the first transfer starts, which LIFO order over regular files requires; a size limit does,
    /// too.
    package func execute(
        _ entries: some EntryReading, readsAheadOfStarts: Bool
    ) -> RunSummary {
        if configuration.storing.writesFileAttributes { cache.content.writeFileAttributes() }
        let recorder = CacheRecorder(configuration: configuration, cache: cache)
        let stages = LiveStages(
            configuration: configuration, cache: cache, seed: seed, recorder: recorder,
            mailbox: mailbox, wallClock: clock.wall)
        let rules = RunRules(
            configuration,
            temporaryFolder: configuration.queue.temporaryFolder ?? cache.directory.temporaryFolder,
            cacheDirectory: cache.directory.path)
        let coordinator = RunCoordinator(
            rules, clock: clock, events: mailbox, stages: stages, recorder: recorder,
            observer: observer)
        var lookup: EntryLookup?
        // All listed resources must be known before anything is evicted.
        let readsAhead = readsAheadOfStarts || configuration.storing.maximumSize != nil
        let summary = coordinator.run(readsAheadOfStarts: readsAhead) {
            lookup = try startReading(entries, by: rules)
        }
        lookup?.finish()
        return summary
    }

    private func startReading(
        _ entries: some EntryReading, by rules: RunRules
    ) throws -> EntryLookup {
        let lookup = try EntryLookup(
            entries, source: CacheCatalog(cache), seed: seed, rules: rules,
            wantsFreshImages: observer.wantsResults(of: .fresh),
            lineWriter: observer.warmLineWriter, mailbox: mailbox, wallClock: clock.wall)
        try lookup.start()
        return lookup
    }
}

package final class RunControl: Sendable {
    let mailbox = Mailbox()

    package init() {}

    /// Stops the run because of a signal: nothing more starts, running work is finished or
    /// cancelled within ten seconds, and stored images are committed. Any thread may call it.
    package func stop(signal: Int32) {
        mailbox.put(.stop(signal: signal))
    }
}

/// The two clocks of a run: the monotonic one for waiting, the wall clock for stored times.
struct RunClock: Sendable {
    var monotonic: @Sendable () -> ContinuousClock.Instant = { .now }
    let wall: @Sendable () -> Timestamp

    var now: ContinuousClock.Instant { monotonic() }
}
