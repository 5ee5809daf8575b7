import ArgumentParser
import Buckets
import CacheStorage
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import Sharding
import Threading

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
        help: .value("manifest", "Manifests, read in this order; URLs among them are read last."),
        completion: .lists)
    var manifests: [String] = []

    @OptionGroup(title: FlagHeading.input.rawValue) var sharding: Flags<ShardFlags>
    @OptionGroup(title: FlagHeading.input.rawValue) var input: Flags<InputFlags>
    @OptionGroup(title: FlagHeading.order.rawValue) var order: Flags<OrderFlags>
    @OptionGroup(title: FlagHeading.hosts.rawValue) var hosts: Flags<HostFlags>
    @OptionGroup(title: FlagHeading.limits.rawValue) var limits: Flags<TransferLimitFlags>
    @OptionGroup(title: FlagHeading.limits.rawValue) var imageLimits: Flags<ImageLimitFlags>
    @OptionGroup(title: FlagHeading.limits.rawValue) var runLimits: Flags<RunLimitFlags>
    @OptionGroup(title: FlagHeading.filters.rawValue) var filters: Flags<FilterFlags>
    @OptionGroup(title: FlagHeading.requests.rawValue) var requests: Flags<RequestFlags>
    @OptionGroup(title: FlagHeading.responses.rawValue) var responses: Flags<ResponseFlags>
    @OptionGroup(title: FlagHeading.freshness.rawValue) var freshness: Flags<FreshnessFlags>
    @OptionGroup(title: FlagHeading.encoding.rawValue) var storing: Flags<EncodingFlags>
    @OptionGroup(title: FlagHeading.output.rawValue) var cache: CacheOptions
    @OptionGroup(title: FlagHeading.output.rawValue) var disk: Flags<DiskFlags>
    @OptionGroup(title: FlagHeading.output.rawValue) var sink: Flags<SinkFlags>
    @OptionGroup(title: FlagHeading.output.rawValue) var showing: Flags<ShowingFlags>
    @OptionGroup(title: FlagHeading.result.rawValue) var result: Flags<ResultFlags>

    func run(_ invocation: Invocation) throws {
        if result.isDryRun { return try plan(json: showing.summary == .json, invocation) }
        if sink.sink != nil, responses.storesNothing {
            throw UserError(.usage, "--sink and --no-store cannot be combined")
        }
        guard let opened = try RunSession(self, invocation).open() else { return }
        opened.output.conclude(opened.execute())
    }

    func files(_ manifests: [String]) -> WrittenFiles {
        var files = WrittenFiles()
        files.written = WrittenFiles.uses([
            ("--report", showing.report), ("--prometheus", showing.metrics),
            ("--junit", showing.junit), ("--html", showing.page),
            ("--cookie-jar", requests.sender.cookieJar),
        ])
        files.read =
            manifests.filter { !ManifestSequence.isURL($0) }.map { WrittenFiles.Use(path: $0) }
            + requests.filesRead
            + storing.combined.overlays.paths.map { WrittenFiles.Use(path: $0, name: "overlay=") }
            + WrittenFiles.uses([("--plan", sharding.plan)])
        files.foldersRead = requests.foldersRead
        return files
    }

    /// The configuration of the run, fitted to the files that the process may open.
    func fittedConfiguration(
        _ reader: ManifestSequence, _ runLimits: RunLimits, _ shard: ShardChoice?,
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
        manifests: [String], _ invocation: Invocation, _ shard: ShardChoice? = nil
    ) throws -> RunConfiguration {
        var settings = RunSettings(manifests: manifests)
        if let folder = environment("TMPDIR") { settings.run.queue.temporaryFolder = folder }
        try input.apply(to: &settings)
        try order.apply(to: &settings)
        try hosts.apply(to: &settings)
        try limits.apply(to: &settings)
        try imageLimits.apply(to: &settings)
        try runLimits.apply(to: &settings)
        try filters.apply(to: &settings)
        settings.run.entries.objection = filters.combined.ofRedirects
        try requests.applyWithEnvironment(to: &settings)
        try freshness.apply(to: &settings)
        try storing.applyVariants(to: &settings)
        // They change variants and freshness.
        try responses.apply(to: &settings)
        try disk.apply(to: &settings)
        try result.apply(to: &settings)
        try invocation.hosts.apply(to: &settings.run)
        if let shard {
            settings.run.hosts.parts = shard.parts
            settings.run.entries.leavesShard = shard.leaves
            // The entries of a list may all be in other shards.
            settings.run.exit.allowsEmptyLists = true
        }
        return settings.run
    }

    func validate() throws {
        if responses.isWarmingOnly, freshness.offline || freshness.refresh == .none {
            throw ValidationError(
                "--no-store and --method head request every image, and cannot be combined with "
                    + "--offline or --refresh none")
        }
        guard manifests.isEmpty, sharding.lists.isEmpty else { return }
        throw ValidationError("Missing expected argument '<manifest> ...'")
    }

    /// Opens the lists of the command line, except for lists by URL.
    ///
    /// - `selects`: whether filters, and rows without a picture, leave out entries.
    /// - Throws: also when the plan of the shard is one of other lists.
    func openManifests(
        keepingColumns keepsColumns: Bool, _ shard: ShardChoice?, _ invocation: Invocation,
        selects: Bool = true
    ) throws -> ManifestSequence {
        var variants = try storing.combined.variantSet()
        if let filter = responses.bodyFilter?.filter { variants.filter(by: filter.name) }
        var options = input.manifestOptions(
            variants: variants, keepsColumns: keepsColumns,
            selection: selects ? filters.combined : EntrySelection())
        options.hostDefaults = invocation.hosts.defaults
        options.followsIndexes = true
        options.shard = shard?.filter
        options.keepsEmptyRows = !selects
        let reader = try ManifestSequence(
            arguments: manifests, lists: sharding.lists, options: options,
            configured: invocation.lists)
        if let name = try shard?.plan?.difference(from: reader.names) {
            throw UserError(
                "\(printable(name)): \(sharding.plan ?? "") is a plan of other lists",
                hint: "`prefetch plan --shards N -o FILE` makes one of these lists")
        }
        return reader
    }

    /// Prints the plan of the run, and ends the process with the exit status of such a run.
    func plan(json: Bool, _ invocation: Invocation) throws {
        let shard = try sharding.choice()
        var reader = try openManifests(keepingColumns: false, shard, invocation)
        var configuration = try fittedConfiguration(reader, runLimits.limits(), shard, invocation)
        let source = try cache.existingCatalog()
        if let source { configuration.setAhead(by: source, at: WallClock.now()) }
        let isQuiet = showing.quiet
        let lists = Monitor((empty: [EmptyList](), skipped: SkippedRows()))
        reader.report = { event in
            switch event {
            case .empty(let list): lists.withLock { $0.empty.append(list) }
            case .skipped(let rows, let place):
                lists.withLock { $0.skipped.add(rows, place: place) }
            default:
                if !isQuiet { ListEvent.tellOfCopies(event) }
            }
        }
        try reader.open(by: StoredLists(source?.directory))
        let output = PlanOutput(json: json)
        var planner = RunPlanner(
            configuration, source: source,
            seed: try disk.openedSeed(for: source?.directory, isQuiet: isQuiet),
            temporaryFolder: environment("TMPDIR") ?? "/tmp", at: WallClock.now(),
            receive: showing.verbose ? output.write : nil)
        let plan = try planner.plan(reader)
        let (empty, skipped) = lists.withLock { $0 }
        let fails = !empty.isEmpty && !result.allowsEmptyLists
        if !empty.isEmpty, fails || !isQuiet {
            let (text, hint) = EmptyList.message(empty)
            StandardError.message(text, hint: hint)
        }
        let status = fails ? 1 : plan.exitStatus
        try output.finish(plan, skipped, exitStatus: status, isQuiet: isQuiet)
        ProcessEnd.leave(status)
    }

    /// Prints the shard of each entry among `count`, as `--shard I/N` chooses it.
    func printShards(_ count: Int, _ invocation: Invocation) throws {
        try RegistrableDomain.load(for: "--shards")
        var reader = try openManifests(keepingColumns: false, nil, invocation, selects: false)
        // Machines that only count lines may have no cache directory. An index may name URLs.
        let directory =
            reader.unopenedLists > 0
            ? try cache.existingDirectory() : try? cache.existingDirectory()
        try reader.open(by: StoredLists(directory))
        let selector = ShardSelector(count: count)
        var lines = LineWriter.standardOutput()
        while let batch = try reader.nextBatch() {
            let shards = batch.text.withUnsafeBytes { text in
                batch.records.map { record -> Int in
                    // Shard 0 reports bad lines.
                    guard record.problem < 0 else { return 0 }
                    let url = UnsafeRawBufferPointer(rebasing: text[record.url])
                    return selector.shards(of: url)[0]
                }
            }
            for shard in shards { try lines.write(line: "\(shard)") }
        }
        try lines.finish()
    }

    func plan(_ planning: ShardPlanning, _ invocation: Invocation) throws -> ShardPlan {
        try RegistrableDomain.load(for: "--shards")
        var reader = try openManifests(keepingColumns: false, nil, invocation)
        var files = self.files(reader.names)
        files.written.append(WrittenFiles.Use(path: planning.path, name: "-o"))
        try files.check(cache)
        let source = try cache.existingCatalog()
        try reader.open(by: StoredLists(source?.directory))
        return try planning.run(
            over: &reader, hosts: source,
            rules: try configuration(manifests: reader.names, invocation).hosts)
    }
}
