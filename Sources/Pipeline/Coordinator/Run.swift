package import CacheStorage
import EntryLifecycle
package import PrefetchModel
import Scheduling
import Threading
import Transfers

/// One run over a cache: the coordinator with real stages.
package struct Run {
    private let configuration: RunConfiguration
    private let cache: OpenCache
    private let observer: any RunObserving
    private let mailbox: Mailbox
    private let clock: RunClock

    /// Other threads stop the run through `control`; the wall clock serves freshness and the run log.
    package init(
        configuration: RunConfiguration, cache: OpenCache, observer: any RunObserving,
        control: RunControl, wallClock: @escaping @Sendable () -> Timestamp
    ) {
        self.configuration = configuration
        self.cache = cache
        self.observer = observer
        mailbox = control.mailbox
        clock = RunClock(wall: wallClock)
    }

    /// Brings the cache up to date with the entries and returns how it went.
    ///
    /// The entries are read on threads of their own. With `readsAheadOfStarts` everything is read
    /// before the first transfer starts, which LIFO order over regular files asks for.
    package func callAsFunction(
        _ entries: some EntryReading, readsAheadOfStarts: Bool
    ) -> RunSummary {
        if configuration.storing.writesFileAttributes { cache.content.writeFileAttributes() }
        let recorder = CacheRecorder(configuration: configuration, cache: cache)
        let stages = LiveStages(
            configuration: configuration, cache: cache, recorder: recorder, mailbox: mailbox,
            wallClock: clock.wall)
        let settings = RunSettings(
            configuration,
            temporaryFolder: configuration.queue.temporaryFolder ?? cache.directory.temporaryFolder,
            cacheDirectory: cache.directory.path)
        let coordinator = RunCoordinator(
            settings, clock: clock, events: mailbox, stages: stages, recorder: recorder,
            observer: observer)
        var lookup: EntryLookup?
        // What the lists name is known before anything has to make room for it.
        let readsAhead = readsAheadOfStarts || configuration.storing.maximumSize != nil
        let summary = coordinator.run(readsAheadOfStarts: readsAhead) {
            () throws(FatalError) in
            lookup = try startReading(entries, facts: settings.facts)
        }
        lookup?.finish()
        return summary
    }

    private func startReading(
        _ entries: some EntryReading, facts: RunFacts
    ) throws(FatalError) -> EntryLookup {
        let lookup: EntryLookup
        do throws(StorageError) {
            lookup = try EntryLookup(
                entries, cache: cache, configuration: configuration, facts: facts,
                wantsFreshImages: observer.wantsResults(of: .fresh),
                lineWriter: observer.warmLineWriter, mailbox: mailbox, wallClock: clock.wall)
        } catch {
            throw FatalError(error)
        }
        do throws(ThreadError) {
            try lookup.start()
        } catch {
            throw FatalError(error)
        }
        return lookup
    }
}

extension RunSettings {
    init(_ configuration: RunConfiguration, temporaryFolder: String, cacheDirectory: String) {
        var rules = EntryRules(
            freshness: { configuration.lifetimes.rules($0) },
            requestFields: { [transfers = configuration.transfers] userFields, isForeign in
                transfers.requestFields(userFields: userFields, isForeign: isForeign)
            })
        rules.maximumRedirects = configuration.limits.maximumRedirects
        rules.allowsDowngrade = configuration.limits.allowsDowngrade
        rules.isOffline = configuration.lifetimes.isOffline
        rules.usesWhatIsStored = configuration.lifetimes.refresh != .force
        rules.followsMemory = !configuration.lifetimes.refresh.asksForFresh
        rules.maximumBodyBytes = configuration.limits.maximumBodySize.bytes
        rules.smallestPartBytes = PartialStore.smallestBody.bytes
        self.init(
            rules: rules,
            limits: Dispatch.Limits(
                order: configuration.queue.order, jobs: configuration.hosts.jobs,
                queueCapacity: configuration.queue.capacity,
                retries: RetryPolicy(
                    maximumRetries: configuration.hosts.maximumRetries,
                    backoff: configuration.hosts.backoff),
                hosts: configuration.hosts.pacing),
            variants: configuration.images.variants,
            requests: RequestMaking(
                configuration.transfers, BodyJudges(configuration.images.headerRules)),
            exit: configuration.exit,
            facts: RunFacts(configuration), retriesFailed: configuration.retriesFailed,
            temporaryFolder: temporaryFolder, cacheDirectory: cacheDirectory)
    }
}
