import ArgumentParser
import CacheStorage
import Hashing
import Manifests
import Pipeline
import PrefetchModel
import Reporting

struct PruneCommand: InvokedCommand, SearchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "prune",
        abstract: "Remove images by rules: age, size, lists.",
        discussion: """
            Removes images that match any rule. If the cache exceeds --max-size or --max-files, evicts \
            superseded variants first, then the images least recently listed by a run or printed by \
            `get`, down to --low-water of the limit.

            Sizes are disk usage of content files, in blocks of 4 KiB. A run over a list with a removed \
            image downloads it again.

            Other commands may read at the same time. An interrupted command continues at the next call.

            Exit status: 0 done, 1 no cache, or the time limit was reached, 2 the cache or a list \
            cannot be used, 64 wrong usage, 75 another process holds the cache.

            Examples:
              prefetch prune --max-size 20GiB
              prefetch prune --unlisted-for 30d --variants-unused-for 30d --history 90d
              prefetch prune --unlisted images.txt thumbnails.txt --dry-run
            """)

    @OptionGroup var rules: PruneOptions

    @Option(help: .value("duration", "Stop after this time; the next call continues."))
    var timeLimit: Duration?

    @Flag(
        name: [.customShort("n"), .customLong("dry-run")],
        help: "Remove nothing; print the keys of the images, and the result.")
    var isDryRun = false

    @Flag(
        help: """
            Print the result as one JSON object, with --dry-run after one for each image.
            """)
    var json = false

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    @Flag(DiskFlags.flags.allowsPartialLists) var allowsPartialLists: Bool

    @OptionGroup var input: Flags<InputFlags>
    @OptionGroup var options: ChangeOptions

    func validate() throws {
        guard rules.isAnyGiven else {
            throw ValidationError("name a rule, for example --max-size 20GiB or --unlisted-for 30d")
        }
    }

    func run(_ invocation: Invocation) throws {
        let deadline = timeLimit.map { ContinuousClock.now + $0 }
        // Before the cache is locked: a list may arrive slowly.
        let wanted = try wantedKeys(invocation.lists)
        let catalog = try options.cache.catalog()
        var rules = try rules.rules(in: catalog)
        rules.wanted = wanted
        let pruning = CachePruning(rules, at: WallClock.now()) {
            deadline.map { .now >= $0 } ?? false
        }
        let result: (totals: RemovalTotals, usage: DiskUsage, isComplete: Bool)
        if isDryRun {
            let list = RemovalList(isWanted: json || !quiet, json: json)
            result = try prune(pruning, by: RemovalEstimate(catalog, variant: nil, list.add))
            try list.finish()
        } else {
            result = try options.changeMakingRoom(mayRepeat: true) { [rules] cache in
                // Before anything is removed: a time limit must not affect them.
                try cache.store(rules)
                return try prune(
                    pruning, by: ImageRemoval(cache, variant: nil, at: WallClock.now()))
            }
        }
        try say(result.totals, result.usage, isComplete: result.isComplete)
        guard result.isComplete else {
            throw UserError(
                .incomplete, "time limit reached before the end",
                hint: "run it again to continue")
        }
    }

    private func prune(
        _ pruning: CachePruning, by removal: some ImageRemoving
    ) throws -> (totals: RemovalTotals, usage: DiskUsage, isComplete: Bool) {
        var line = ProgressText(isWanted: !quiet && !isDryRun)
        defer { line.clear() }
        let isComplete = try pruning.run(removal) { line.show("prefetch: pruning: \($0.text)") }
        return (removal.totals, try removal.usage, isComplete)
    }

    private func say(_ totals: RemovalTotals, _ usage: DiskUsage, isComplete: Bool) throws {
        if json {
            try LineWriter.print(
                JSONObject(totals, usage, isComplete: isComplete, isDryRun: isDryRun))
        } else if !quiet {
            let verb = isDryRun ? "would remove" : "removed"
            let left = isDryRun ? "would be" : usage.files == 1 ? "is" : "are"
            StandardError.write(
                """
                prefetch: \(verb) \(totals.text); \(counted(usage.files, "file")) \
                (\(usage.size) on disk) \(left) left
                """)
        }
    }

    /// The keys in the manifests of `--unlisted`; nil without any. A list that is not whole, and
    /// lists without an entry, are errors: listed images must be kept.
    private func wantedKeys(_ configured: ConfiguredLists) throws -> Set<KeyFingerprint>? {
        guard !rules.unlisted.isEmpty else { return nil }
        if let url = rules.unlisted.first(where: ManifestSequence.isURL) {
            throw UserError(
                .usage,
                "--unlisted \(RedactedURL(url)): not a list; all other images would be removed",
                hint: "write the URLs to keep into a file, and name that file")
        }
        var entries = try ManifestSequence(
            arguments: rules.unlisted, options: input.manifestOptions(),
            configured: configured, copiesIn: options.cache, isQuiet: quiet)
        let hasher = SHA256Hasher()
        var keys: Set<KeyFingerprint> = []
        while let batch = try entries.nextBatch() {
            batch.text.withUnsafeBytes { text in
                for record in batch.records where record.problem < 0 {
                    let key = UnsafeRawBufferPointer(rebasing: text[record.key])
                    keys.insert(KeyFingerprint(key, hasher: hasher))
                }
            }
        }
        let names = entries.names.joined(separator: ", ")
        // An empty list is more often a mistake than intended.
        guard !keys.isEmpty else {
            throw UserError(
                "\(names): no image is listed, so every image would be removed",
                hint: "`prefetch remove --all` removes every image")
        }
        if let gap = entries.gap, !allowsPartialLists {
            throw UserError("\(redacted(gap.description)); nothing was removed", hint: ListGap.hint)
        }
        return keys
    }
}

extension JSONObject {
    fileprivate init(
        _ totals: RemovalTotals, _ usage: DiskUsage, isComplete: Bool, isDryRun: Bool
    ) {
        self.init()
        add("type", "summary")
        add("dry_run", isDryRun)
        add("complete", isComplete)
        add(totals)
        add("files_left", usage.files)
        add("disk_bytes_left", usage.size)
    }
}

/// The images that a dry run would remove, on standard output.
///
/// A line is the image's key; with variants of an image that is kept, their recipes follow, each
/// after a tab. Keys have any secrets in their query strings, as for `list`.
struct RemovalList {
    private let output = CallbackOutput()
    let isWanted: Bool
    var json = false

    func add(_ removed: RemovalEstimate.Removal) {
        guard isWanted else { return }
        if json {
            var object = JSONObject()
            object.add("type", "image")
            object.add("key", removed.key)
            object.add("whole", removed.isWhole)
            object.add("recipes", removed.recipes)
            object.add("bytes", removed.bytes)
            output.write(object)
        } else {
            let recipes = removed.isWhole ? [] : removed.recipes
            let fields = [removed.key] + recipes
            output.write(
                fields.map { printable($0, shortensData: false) }.joined(separator: "\t"))
        }
    }

    func finish() throws { try output.finish() }
}

extension RemovalTotals {
    /// `3 images (5 variants), 4 files (1.20 MiB), 1 failure`
    var text: String {
        var parts = [
            "\(counted(images, "image")) (\(counted(variants, "variant")))",
            "\(counted(files, "file")) (\(ByteCount(max(0, bytes))))",
        ]
        for (number, noun) in [
            (failures, "failure"), (hosts, "host"), (runs, "run"), (self.parts, "partial download"),
        ] where number > 0 {
            parts.append(counted(number, noun))
        }
        return parts.joined(separator: ", ")
    }
}

extension JSONObject {
    mutating func add(_ totals: RemovalTotals) {
        add("images", totals.images)
        add("variants", totals.variants)
        add("files", totals.files)
        add("bytes", totals.bytes)
        add("failures", totals.failures)
        add("hosts", totals.hosts)
        add("runs", totals.runs)
        add("partial_downloads", totals.parts)
    }
}
