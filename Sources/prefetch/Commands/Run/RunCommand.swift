import ArgumentParser
import Buckets
import CacheStorage
import Glibc
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import Threading

/// `prefetch [run] MANIFEST...`
struct RunCommand: InvokedCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Download the images of manifests into the cache.",
        discussion: """
            A manifest is a text file with one URL per line, a table (CSV), JSON lines or a sitemap. \
            In text `#` begins a comment, and fields like priority=high may follow the URL. `-` is \
            standard input; gzip is recognised. \
            Durations are written 500ms, 30s, 5m, 2h or 7d, sizes 64KiB, 2MB or 1GiB.

            Examples:
              prefetch images.txt --order lifo
              prefetch images.txt -q --fail-on new --lock skip      # in cron
              curl -s https://example.com/list | prefetch - --base-url https://example.com/
              prefetch images.txt --offline --report warm.jsonl     # which images are fresh now

            Exit status: 0 everything is warm, 1 entries failed or are blacklisted, or the lists \
            have no entry, 2 the run could not be completed, 3 a limit left work, 64 wrong usage, \
            75 another process holds the cache.
            """)

    @Argument(
        help: ArgumentHelp(
            "Manifests, read in this order; URLs among them are read last.",
            valueName: "manifest"), completion: .file())
    var manifests: [String] = []

    @OptionGroup(title: FlagGroup.input.rawValue) var named: NamedLists
    @OptionGroup(title: FlagGroup.input.rawValue) var sharding: ShardOptions
    @OptionGroup(title: FlagGroup.input.rawValue) var input: InputOptions
    @OptionGroup(title: FlagGroup.order.rawValue) var order: OrderOptions
    @OptionGroup(title: FlagGroup.hosts.rawValue) var hosts: HostOptions
    @OptionGroup(title: FlagGroup.limits.rawValue) var limits: LimitOptions
    @OptionGroup(title: FlagGroup.limits.rawValue) var runLimits: RunLimitOptions
    @OptionGroup(title: FlagGroup.filters.rawValue) var filters: FilterOptions
    @OptionGroup(title: FlagGroup.requests.rawValue) var requests: RequestOptions
    @OptionGroup(title: FlagGroup.responses.rawValue) var responses: ResponseOptions
    @OptionGroup(title: FlagGroup.freshness.rawValue) var freshness: FreshnessOptions
    @OptionGroup(title: FlagGroup.encoding.rawValue) var storing: StoringOptions
    @OptionGroup(title: FlagGroup.output.rawValue) var cache: CacheOptions
    @OptionGroup(title: FlagGroup.output.rawValue) var disk: DiskOptions
    @OptionGroup(title: FlagGroup.output.rawValue) var sink: SinkOptions
    @OptionGroup(title: FlagGroup.output.rawValue) var showing: ShowingOptions
    @OptionGroup(title: FlagGroup.result.rawValue) var result: ResultOptions

    func run(_ invocation: Invocation) throws {
        if result.isDryRun { return try plan(json: showing.summary == .json, invocation) }
        if sink.sink != nil, responses.storesNothing {
            throw RequestOptions.usage("--sink and --no-store cannot be combined")
        }
        let usedAddresses = AddressSpace.used
        let runLimits = self.runLimits.limits()
        let signals = try SignalWatcher.start()
        self.runLimits.waitForStart(runLimits) {
            if showing.verbose { StandardError.write("prefetch: \($0)") }
        }
        let shard = try sharding.choice()
        var reader = try openManifests(
            keepingColumns: showing.report != nil, shard, invocation)
        try showing.checkReplacedFiles()
        let path = try cache.path()
        try files(reader.names).check(cache)
        var configuration = try fittedConfiguration(reader, runLimits, shard, invocation)
        try AddressSpace.require(
            threads: configuration.threads, images: configuration.images.memory,
            used: usedAddresses)
        let storage = try openedSink()
        let timeLeft = runLimits.deadline.map { $0 - ContinuousClock.now }
        guard
            let opened = try openCache(
                path, lock: result.lock.limited(to: timeLeft),
                openFolders: configuration.openFolders)
        else { return }
        // An error is dropped: the run itself finds damage, and has it repaired.
        let waits = (try? opened.hosts.longWaits(at: WallClock.now())) ?? []
        let repairs = messages(about: opened.repair, in: path) + messages(about: waits)
        if !showing.quiet {
            repairs.forEach(StandardError.write)
            if opened.hasFilesOfOtherMode, let mode = disk.mode?.mode {
                StandardError.write(
                    "prefetch: \(path): new files get the mode \(mode) from now on")
                StandardError.write(
                    "hint: `prefetch chmod \(mode)` changes existing files")
            }
        }
        let seed = try disk.openedSeed(for: opened.directory, isQuiet: showing.quiet)
        let status = StatusFile(opened.directory)
        let replaced = HeldFiles(of: opened.directory)
        let reporter = try showing.reporter(
            cacheDirectory: try cache.absolutePath(), lists: reader.names,
            ignoresKnown: result.countedFailures == .new,
            showingReplaced: { replaced.hold($0) },
            publishing: RunReporter.Publishing(process: getpid(), wallClock: WallClock.now) {
                status.write(json: $0.json, text: $0.text)
            })
        configuration.setAhead(by: LookupSource(opened), at: WallClock.now())
        if showing.verbose, freshness.ahead.value?.duration == nil,
            let ahead = configuration.lifetimes.ahead
        {
            reporter.message(
                "these manifests are read every \(durationText(ahead)): images that expire "
                    + "sooner are requested now (--ahead auto)")
        }
        requests.warn()
        invocation.hosts.warn()
        if case .random(let seed) = order.order, !showing.quiet {
            reporter.message("random order, which --order random=\(seed) repeats")
        }
        // The database is closed after the run. An error is dropped: the run itself finds damage,
        // and has it repaired.
        let lastSuccess = showing.metrics.flatMap { _ in (try? opened.log.lastSuccess()) ?? nil }
        let output = Output(
            reporter: reporter, directory: opened.directory, replaced: replaced, repairs: repairs,
            lastSuccess: lastSuccess, signals: signals)
        let isQuiet = showing.quiet
        let note: @Sendable (String, String?) -> Void = { text, remedy in
            if isQuiet {
                output.notes.withLock { $0.append((text, remedy)) }
            } else {
                reporter.message(text, hint: remedy)
            }
        }
        reader.noting = { note($0, $1) }
        if showing.verbose {
            reader.findingFormat = { name, format in reporter.message("\(name): format \(format)") }
        }
        let emptyLists = Monitor<[EmptyList]>([])
        reader.findingEmpty = { list in emptyLists.withLock { $0.append(list) } }
        reader.allowsEmptyLists = result.allowsEmptyLists
        let saysHow = !isQuiet && (showing.verbose || freshness.offline)
        reader.findingList = { name, list in
            // Cron mails it once, like an outage.
            if list.isNews {
                reporter.message("\(name): \(list.text)")
            } else if saysHow || list.isFallback {
                note("\(name): \(list.text)", nil)
            }
        }
        let lists = opener(configuration, opened.directory)
        let otherEntries = Monitor(0)
        reader.findingOthers = { count in otherEntries.withLock { $0 += count } }
        let control = RunControl()
        let stop = Monitor<Int32?>(nil)
        signals.hand(to: { signal in
            stop.withLock { $0 = signal }
            control.stop(signal: signal)
            lists.cancel()
            storage?.stop()
        })
        let startedAt = WallClock.now()
        do throws(CommandFailure) {
            try reader.open(by: lists)
        } catch {
            var summary = RunSummary(error, startedAt: startedAt, lists.counts, in: path)
            if let signal = stop.withLock({ $0 }) {
                summary.stop(by: signal)
            } else if showing.summary != .text {
                error.report()
            }
            end(summary, output)
        }
        // An error is dropped, as above.
        let main = configuration.images.variants.first { $0.name == .main }
        if !showing.quiet, !responses.isWarmingOnly, let main,
            let count = try? opened.log.imagesChanged(byMain: main.recipeText), count > 0
        {
            reporter.message(
                "other flags than the last run's: listed images among \(counted(count, "image")) get "
                    + "another form, from stored originals or by a download")
        }
        let run = Run(
            configuration: configuration, cache: opened, seed: seed, observer: reporter,
            control: control,
            wallClock: WallClock.now)
        signals.onStatusRequest { reporter.showStatus() }
        var summary = run(
            reader, readsAheadOfStarts: order.order != .fifo && reader.isRegularFiles)
        status.remove()
        summary.seedCache = disk.seedCache
        if let failure = seed?.failure, !showing.quiet {
            reporter.message("--seed-cache: \(failure.description); not used any more")
        }
        if var result = shard?.result {
            result.otherEntries = otherEntries.withLock { $0 }
            result.redirectsElsewhere = summary.counters.redirectsElsewhere
            summary.shard = result
        }
        if let counts = lists.counts, counts != ListCounts() {
            summary.lists = counts
            summary.elapsed = WallClock.now().timeSince(startedAt)
            summary.startedAt = startedAt
        }
        let empty = emptyLists.withLock { $0 }
        if !empty.isEmpty, summary.exitStatus < 2 {
            let isFailure = !result.allowsEmptyLists
            if isFailure { summary.exitStatus = 1 }
            let remedy = isFailure ? "; with --allow-empty that is no failure" : ""
            if isFailure || !showing.quiet {
                let (text, hint) = EmptyList.message(empty)
                reporter.message(text + remedy, hint: hint)
            }
        }
        if let storage {
            copy(opened.directory, to: storage, of: shard, &summary, reporter)
            if let signal = stop.withLock({ $0 }) { summary.stop(by: signal) }
        }
        if let failure = summary.snapshotFailure, !showing.quiet {
            reporter.message(
                "\(failure); no database snapshot was taken; the last one is kept")
        }
        end(summary, output)
    }

    func files(_ manifests: [String]) -> WrittenFiles {
        var files = WrittenFiles()
        files.written = [
            ("--report", showing.report), ("--prometheus", showing.metrics),
            ("--junit", showing.junit), ("--html", showing.page),
            ("--cookie-jar", requests.cookieJar),
        ]
        .compactMap { name, path in path.map { WrittenFiles.Use(path: $0, name: name) } }
        files.read =
            manifests.filter { !ManifestSequence.isURL($0) }.map { WrittenFiles.Use(path: $0) }
            + requests.filesRead
            + OverlayArguments.paths.map { WrittenFiles.Use(path: $0, name: "overlay=") }
            + [sharding.plan].compactMap { $0.map { WrittenFiles.Use(path: $0, name: "--plan") } }
        files.foldersRead = requests.foldersRead
        return files
    }

    private func openCache(
        _ path: String, lock: LockArgument, openFolders: Int
    ) throws -> OpenCache? {
        let held = HeldCache(path: path, lock: lock, isQuiet: showing.quiet)
        do {
            return try held.open(hint: "--lock wait waits for it, --lock skip exits 0") {
                try OpenCache.openForRun(
                    path: path, waiting: $0, openFolders: openFolders,
                    check: freshness.fileCheck, mode: disk.mode?.mode, at: WallClock.now(),
                    whenHeld: $1)
            }
        } catch let error as StorageError {
            throw CommandFailure(error)
        }
    }

    /// Messages about damage by an unclean shutdown or the disk.
    private func messages(about repair: OpenCache.Repair, in path: String) -> [String] {
        var lines: [String] = []
        lines += SalvageText.lines(repair, path: path)
        if let untidy = repair.untidy {
            lines.append("prefetch: \(untidy.description); left in place")
            if let hint = untidy.hint { lines.append("hint: \(hint)") }
        }
        if repair.tornImages > 0 {
            lines.append(
                """
                prefetch: \(path): \(counted(repair.tornImages, "file")) \
                damaged by an unclean shutdown; will be downloaded again
                """)
        }
        if repair.missingImages > 0 {
            let count = repair.missingImages
            let state = freshness.fileCheck == .always ? "missing or truncated" : "missing"
            let rest = freshness.offline ? "" : "; listed images will be downloaded again"
            lines.append(
                "prefetch: \(path): \(count) cached \(count == 1 ? "file is" : "files are") \(state)"
                    + rest)
        }
        return lines
    }

    /// The variants to store of each image, made of filtered bodies.
    func variantSet() throws -> VariantSet {
        var variants = try storing.variantSet()
        if let filter = responses.bodyFilter?.filter { variants.filter(by: filter.name) }
        return variants
    }

    /// The configuration of the run, fitted to the files that the process may open.
    func fittedConfiguration(
        _ reader: ManifestSequence, _ runLimits: RunLimits, _ shard: ShardOptions.Choice?,
        _ invocation: Invocation
    ) throws -> RunConfiguration {
        var configuration = try configuration(manifests: reader.names, invocation, shard)
        configuration.runLimits = runLimits
        // Lists stay open, as do the files of replaced images that a page shows.
        let others = reader.unopenedLists + (showing.page == nil ? 0 : RunPictures.limit)
        try OpenFiles.require(RunConfiguration.minimumDescriptors + others) {
            configuration.fit(toDescriptors: $0 - others)
        }
        return configuration
    }

    func configuration(
        manifests: [String], _ invocation: Invocation, _ shard: ShardOptions.Choice? = nil
    ) throws -> RunConfiguration {
        var configuration = RunConfiguration(
            userAgent: requests.userAgent, manifests: manifests,
            codecWorkers: Processors.available)
        if let folder = getenv("TMPDIR"), folder.pointee != 0 {
            configuration.queue.temporaryFolder = String(cString: folder)
        }
        configuration.entries.ignoredQuery = input.ignoredQuery ?? .none
        order.apply(to: &configuration)
        hosts.apply(to: &configuration)
        limits.apply(to: &configuration)
        filters.apply(to: &configuration)
        try requests.apply(to: &configuration)
        freshness.apply(to: &configuration)
        try storing.apply(to: &configuration)
        try disk.apply(to: &configuration)
        result.apply(to: &configuration)
        responses.apply(to: &configuration)
        try invocation.hosts.apply(to: &configuration)
        if let shard {
            configuration.hosts.parts = shard.parts
            configuration.entries.leavesShard = shard.leaves
            // The entries of a list may all be in other shards.
            configuration.exit.allowsEmptyLists = true
        }
        return configuration
    }
}
