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
        guard let opened = try RunSession(self, invocation).open() else { return }
        opened.output.conclude(opened.execute())
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
            codecWorkers: AvailableProcessors.count)
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
