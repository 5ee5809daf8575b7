import Buckets
import CacheStorage
import Pipeline
import PrefetchModel
import Reporting

struct OpenedRun {
    let session: RunSession
    let configuration: RunConfiguration
    let cache: OpenCache
    let seed: SeedCache?
    let output: RunOutput

    private var command: RunCommand { session.command }
    private var reporter: RunReporter { output.reporter }

    /// Runs to the end, and copies the cache to the bucket.
    func execute() -> RunSummary {
        let opening: any ListOpening =
            command.freshness.offline
            ? StoredLists(cache.directory)
            : ListFetcher(configuration, in: cache.directory, wallClock: WallClock.now)
        let control = RunControl()
        session.signals.hand(to: { [storage = session.storage] signal in
            control.stop(signal: signal)
            opening.cancel()
            storage?.stop()
        })
        let log = ListLog(output, command)
        var lists = session.lists
        lists.report = log.receive
        lists.allowsEmptyLists = command.result.allowsEmptyLists
        let startedAt = WallClock.now()
        do throws(UserError) {
            try lists.open(by: opening)
        } catch {
            var summary = RunSummary(
                error, startedAt: startedAt, opening.counts, in: output.cachePath)
            if let signal = session.signals.caught {
                summary.stop(by: signal)
            } else if command.showing.summary != .text {
                error.report()
            }
            return summary
        }
        var summary = run(lists, control)
        if let counts = opening.counts, counts != ListCounts() {
            summary.lists = counts
            summary.elapsed = WallClock.now().timeSince(startedAt)
            summary.startedAt = startedAt
        }
        log.conclude(&summary, session.shard?.result)
        if let storage = session.storage {
            copy(to: storage, &summary)
            if let signal = session.signals.caught { summary.stop(by: signal) }
        }
        if let failure = summary.snapshotFailure, !command.showing.quiet {
            reporter.message("\(failure); no database snapshot was taken; the last one is kept")
        }
        return summary
    }

    private func run(_ lists: ManifestSequence, _ control: RunControl) -> RunSummary {
        tellOtherFlags()
        let run = Run(
            configuration: configuration, cache: cache, seed: seed, observer: reporter,
            control: control, wallClock: WallClock.now)
        session.signals.onStatusRequest { [reporter] in reporter.showStatus() }
        var summary = run.execute(
            lists,
            readsAheadOfStarts: command.order.order != .fifo && lists.isRegularFiles)
        output.status.remove()
        summary.seedCache = command.disk.seedCache
        if let failure = seed?.failure, !command.showing.quiet {
            reporter.message("--seed-cache: \(failure.description); not used any more")
        }
        return summary
    }

    private func tellOtherFlags() {
        // An error is dropped: the run itself finds damage, and has it repaired.
        guard !command.showing.quiet, !command.responses.isWarmingOnly,
            let main = configuration.images.variants.first(where: { $0.name == .main }),
            let count = try? cache.log.imagesChanged(byMain: main.recipeText), count > 0
        else { return }
        reporter.message(
            "flags changed since the last run: listed images among \(counted(count, "image")) "
                + "will be made again, from stored originals or by a download")
    }

    /// Copies the cache after a complete run, and notes the result in the summary.
    private func copy(to storage: ObjectStorage, _ summary: inout RunSummary) {
        var result = SinkResult(url: "\(storage.location)")
        defer { summary.sink = result }
        guard summary.exitStatus < 2, summary.endedBy == nil else {
            if summary.stoppedBySignal == nil {
                reporter.message("\(storage.location): not written, since the run is not complete")
            }
            return
        }
        let isVerbose = command.showing.verbose
        let upload = SinkUpload(to: storage, shard: session.shard?.shard ?? .whole) {
            [reporter] counts, files in
            guard isVerbose else { return }
            reporter.message(
                "\(storage.location): \(counts.copied + counts.present) of \(files) files")
        }
        do {
            let counts = try upload.copy(
                cache.directory, plan: session.shard?.planFile, at: WallClock.now(), summary)
            result.uploaded = counts.copied
            result.uploadedBytes = counts.copiedBytes
            result.present = counts.present
            result.isDone = true
        } catch let error as ObjectStorageError where error.kind == .cancelled {
            return
        } catch let error as ObjectStorageError where error.kind == .late {
            summary.endAtDeadline()
            reporter.message(error.description)
        } catch {
            let error = UserError(reporting: error)
            summary.exitStatus = 2
            summary.fatalMessage = error.description
            summary.fatalHint = error.hint
            // The text summary names it.
            if command.showing.summary != .text {
                reporter.message(error.description, hint: error.hint)
            }
        }
    }
}

/// A prepared run: its arguments are values, and the files that they name are checked.
///
/// A run has four phases. ``init(_:_:)`` prepares it, ``open()`` opens the cache and the outputs,
/// ``OpenedRun/execute()`` runs it, and ``RunOutput/conclude(_:)`` reports it and ends the process.
struct RunSession {
    let command: RunCommand
    let signals: SignalWatcher
    let shard: ShardChoice?
    let lists: ManifestSequence
    private let hosts: ConfiguredHosts
    private let configuration: RunConfiguration
    private let cachePath: String
    /// The bucket that gets a copy of the cache.
    let storage: ObjectStorage?

    init(_ command: RunCommand, _ invocation: Invocation) throws {
        self.command = command
        hosts = invocation.hosts
        let usedAddresses = AddressSpace.used
        let limits = command.runLimits.limits()
        signals = try SignalWatcher()
        command.runLimits.waitForStart(limits) {
            if command.showing.verbose { StandardError.write("prefetch: \($0)") }
        }
        shard = try command.sharding.choice()
        lists = try command.openManifests(
            keepingColumns: command.showing.report != nil, shard, invocation)
        try command.showing.checkReplacedFiles()
        cachePath = try command.cache.path()
        try command.files(lists.names).check(command.cache)
        configuration = try command.fittedConfiguration(lists, limits, shard, invocation)
        try AddressSpace.require(
            threads: configuration.threads, images: configuration.images.memory,
            used: usedAddresses)
        storage = try RunSession.openedSink(command.sink, configuration)
    }

    /// The bucket, after a first request: wrong names and keys must fail before a run of hours.
    private static func openedSink(
        _ sink: Flags<SinkFlags>, _ configuration: RunConfiguration
    ) throws -> ObjectStorage? {
        guard let location = sink.sink else { return nil }
        let storage = try SinkFlags.storage(location, sink.credentials, configuration)
        _ = try storage.list("", after: "", limit: 1)
        return storage
    }

    /// Opens the cache, the seed cache and the report.
    ///
    /// - Returns: nil if another process holds the cache and `--lock skip` was given.
    func open() throws -> OpenedRun? {
        let timeLeft = configuration.runLimits.deadline.map { $0 - ContinuousClock.now }
        let held = HeldCache(
            path: cachePath, lock: command.result.lock.limited(to: timeLeft),
            isQuiet: command.showing.quiet)
        let cache = try held.openUnlessSkipped(
            hint: "--lock wait waits for it, --lock skip exits 0"
        ) {
            try OpenCache.openForRun(
                path: cachePath, waiting: $0, openFolders: configuration.openFolders,
                check: command.freshness.fileCheck, mode: command.disk.mode,
                at: WallClock.now(), whenHeld: $1)
        }
        guard let cache else { return nil }
        let repairs = repairMessages(cache)
        let seed = try command.disk.openedSeed(for: cache.directory, isQuiet: command.showing.quiet)
        let output = try RunOutput(command, lists: lists.names, repairs, cache, signals)
        var fitted = configuration
        fitted.setAhead(by: CacheCatalog(cache), at: WallClock.now())
        tellSettings(fitted, output.reporter)
        return OpenedRun(
            session: self, configuration: fitted, cache: cache, seed: seed, output: output)
    }

    /// Lines about damage and long waits, which are printed unless the run is quiet.
    private func repairMessages(_ cache: OpenCache) -> [String] {
        // An error is dropped: the run itself finds damage, and has it repaired.
        let waits = (try? cache.hosts.longWaits(at: WallClock.now())) ?? []
        let repairs =
            cache.repair.messages(in: cachePath, command.freshness)
            + HostLog.messages(about: waits)
        guard !command.showing.quiet else { return repairs }
        repairs.forEach(StandardError.write)
        if cache.hasFilesOfOtherMode, let mode = command.disk.mode {
            StandardError.message(
                "\(cachePath): new files get the mode \(mode) from now on",
                hint: "`prefetch chmod \(mode)` changes existing files")
        }
        return repairs
    }

    private func tellSettings(_ configuration: RunConfiguration, _ reporter: RunReporter) {
        if command.showing.verbose, command.freshness.ahead.value == nil,
            let ahead = configuration.lifetimes.ahead
        {
            reporter.message(
                "these manifests are read every \(durationText(ahead)): images that expire "
                    + "sooner are requested now (--ahead auto)")
        }
        command.requests.warn()
        hosts.warn()
        if case .random(let seed) = command.order.order, !command.showing.quiet {
            reporter.message("random order, which --order random=\(seed) repeats")
        }
    }
}
