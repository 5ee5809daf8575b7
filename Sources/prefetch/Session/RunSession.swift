import Buckets
import CacheStorage
import FileOutput
import Glibc
import Pages
import Pipeline
import PrefetchModel
import Reporting
import Threading

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
        let reused = summary.reusedKeys
        if reused.count > 0 {
            output.note(
                "\(counted(reused.count, "image")) requested to replace another URL's image with the "
                    + "same key, and its attributes; "
                    + "first \(redacted(reused.first))", ReusedKeys.hint)
        }
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
        do {
            let counts = try SinkUpload.copy(
                cache.directory, to: storage, shard: session.shard?.shard ?? .whole,
                plan: session.shard?.planFile, at: WallClock.now(), summary
            ) { [reporter] counts, files in
                guard isVerbose else { return }
                reporter.message(
                    "\(storage.location): \(counts.copied + counts.present) of \(files) files")
            }
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
        let storage = try SinkFlags.storage(location, sink, configuration)
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
        let startedAt = WallClock.now()
        let cache: OpenCache?
        do {
            cache = try held.openUnlessSkipped(
                hint: "--lock wait waits for it, --lock skip exits 0"
            ) {
                try OpenCache.openForRun(
                    path: cachePath, waiting: $0, openFolders: configuration.openFolders,
                    check: command.freshness.fileCheck, mode: command.disk.mode,
                    at: WallClock.now(), whenHeld: $1)
            }
        } catch let error as StorageError {
            if error.isDiskFull {
                UnloggedRuns.note(
                    UnloggedRuns.UnloggedRun(
                        startedAt: startedAt, endedAt: WallClock.now(), exitStatus: 2,
                        manifest: configuration.manifests.joined(separator: "\n")),
                    inCache: cachePath)
            }
            throw error
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

struct RunOutput: Sendable {
    let reporter: RunReporter
    let status: StatusFile
    let showing: Flags<ShowingFlags>
    private let directory: CacheDirectory
    /// The cache's path as the user gave it.
    let cachePath: String
    /// The files of replaced images, for the page.
    private let replaced: HeldFiles
    private let repairs: [String]
    /// Messages that a quiet run prints only if it fails.
    private let notes = Monitor<[(text: String, remedy: String?)]>([])
    private let metrics: MetricsFile?
    private let signals: SignalWatcher

    /// - Throws: also `UserError` if the report or the file of test cases can't be opened.
    init(
        _ command: RunCommand, lists: [String], _ repairs: [String], _ cache: OpenCache,
        _ signals: SignalWatcher
    ) throws {
        let showing = command.showing
        self.showing = showing
        directory = cache.directory
        cachePath = try command.cache.path()
        status = StatusFile(cache.directory)
        replaced = HeldFiles(of: cache.directory)
        var settings = RunReporter.Settings()
        settings.verbosity = showing.quiet ? .quiet : showing.verbose ? .verbose : .normal
        settings.progress = showing.shownProgress
        settings.publishing = (
            getpid(), WallClock.now, { [status] in status.write(json: $0.json, text: $0.text) }
        )
        settings.keepsRecord = showing.page != nil
        settings.remembersFailures = !command.responses.isWarmingOnly
        settings.showingReplaced = { [replaced] in replaced.hold($0) }
        if showing.ci == .auto, environment("GITHUB_ACTIONS") == "true" {
            settings.actions = GitHubActions(
                summaryPath: environment("GITHUB_STEP_SUMMARY"),
                outputPath: environment("GITHUB_OUTPUT"), ignoresKnown: showing.quiet)
        }
        let isColourWanted = StandardError.isCapableTerminal && environment("NO_COLOR") == nil
        settings.usesColor = showing.color.isOn(automatically: isColourWanted)
        let cacheDirectory = try command.cache.absolutePath()
        reporter = RunReporter(
            settings,
            report: try showing.report.map {
                try ReportWriter(
                    path: $0, pathsIn: showing.reportsAbsolutePaths ? cacheDirectory : nil)
            },
            junit: try showing.junit.map {
                try JUnitWriter(
                    path: $0, lists: lists, ignoresKnown: command.result.countedFailures == .new)
            })
        self.repairs = repairs
        self.signals = signals
        // The database is closed after the run.
        metrics = showing.metrics.map {
            MetricsFile($0, lists: lists, cacheDirectory: cacheDirectory, cache)
        }
    }

    /// Prints a message; a quiet run prints it only if it fails.
    func note(_ text: String, _ remedy: String? = nil) {
        if showing.quiet {
            notes.withLock { $0.append((text, remedy)) }
        } else {
            reporter.message(text, hint: remedy)
        }
    }

    /// Reports the run, writes the other files, and ends the process.
    func conclude(_ ended: RunSummary) -> Never {
        var summary = ended
        if showing.quiet, summary.exitStatus != 0 {
            repairs.forEach(StandardError.write)
            for note in notes.withLock({ $0 }) {
                reporter.message(note.text, hint: note.remedy)
            }
        }
        var exitStatus = summary.exitStatus
        do {
            try reporter.finish(summary, style: showing.summary)
        } catch {
            // A closed pipe ends quietly, with the run's exit status.
            if case .system = error {
                exitStatus = 2
                // The text summary names it.
                if showing.summary != .text { error.userError.report() }
            }
        }
        if !writePage() { exitStatus = 2 }
        if !runChangeCommand(&summary), exitStatus == 0 { exitStatus = 1 }
        summary.exitStatus = exitStatus
        if !writeMetrics(summary) { exitStatus = 2 }
        if let signal = summary.stoppedBySignal { ProcessEnd.die(of: signal) }
        // The database stays open: closing it would make SQLite checkpoint the log without syncing
        // files first.
        ProcessEnd.leave(exitStatus)
    }

    /// Writes the page of `--html`; returns false if it cannot be written.
    private func writePage() -> Bool {
        guard let path = showing.page, let record = reporter.record else { return true }
        return succeeds {
            let page = try ReportPage(
                record, after: nil, cache: CacheCatalog(directory: directory),
                replaced: replaced, at: WallClock.now())
            try OutputFile.replace(path, with: page.html())
        }
    }

    /// Runs the command of `--on-change` by the shell, and waits for its end; returns false if it
    /// fails.
    ///
    /// Its standard output is the standard error of this process: its standard output may be data.
    /// The variable `PREFETCH_CHANGED` has the number of new files. The next signal is passed on to
    /// the command and its children.
    private func runChangeCommand(_ summary: inout RunSummary) -> Bool {
        let count = summary.counters.variantsMade
        guard let command = showing.changeCommand, count > 0, summary.stoppedBySignal == nil else {
            return true
        }
        setenv("PREFETCH_CHANGED", "\(count)", 1)
        let problem: String?
        do {
            let child = try ChildProcess(shell: command, output: STDERR_FILENO)
            signals.hand { child.send($0) }
            problem = child.wait()
            summary.stoppedBySignal = signals.caught
        } catch {
            problem = error.description
        }
        if let problem { StandardError.message("--on-change: \(problem)") }
        return problem == nil
    }

    /// Writes the metrics; returns false if they cannot be written.
    private func writeMetrics(_ summary: RunSummary) -> Bool {
        guard let metrics else { return true }
        return succeeds { try metrics.replace(summary) }
    }

    private func succeeds(_ write: () throws -> Void) -> Bool {
        do {
            try write()
            return true
        } catch {
            StandardError.message("\(error)")
            return false
        }
    }
}

extension RunSummary {
    /// A run that a list by URL has ended before it began.
    init(_ error: UserError, startedAt: Timestamp, _ lists: ListCounts?, in directory: String) {
        self.init(
            counters: RunCounters(), startedAt: startedAt,
            elapsed: WallClock.now().timeSince(startedAt), exitStatus: error.exitStatus(of: nil),
            cacheDirectory: directory)
        (fatalMessage, fatalHint) = (error.description, error.hint)
        self.lists = lists
        guard error.kind == .cancelled else { return }
        (fatalMessage, fatalHint, endedBy) = (nil, nil, .deadline)
    }

    /// Notes that the deadline has come. Failures decide the exit status.
    mutating func endAtDeadline() {
        endedBy = .deadline
        if exitStatus == 0 { exitStatus = 3 }
    }

    /// Notes that a signal has ended the run before it began.
    mutating func stop(by signal: Int32) {
        (fatalMessage, fatalHint, endedBy) = (nil, nil, nil)
        stoppedBySignal = signal
        exitStatus = 128 + signal
    }
}
