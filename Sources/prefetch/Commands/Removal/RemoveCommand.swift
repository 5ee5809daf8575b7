import ArgumentParser
import CacheStorage
import Manifests
import PrefetchModel

struct RemoveCommand: SearchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove images from the cache.",
        discussion: """
            Removes files, attributes, partial downloads and failures. The next run over a list with \
            the image downloads it again. A file that several images share is kept until the last of \
            them is removed.

            With --variant only that variant is removed; an image without other variants is removed \
            with it, but its failure is kept. Images must match all of --host, --failed and --variant.

            The command can be interrupted at any time; the next run cleans up.

            Exit status: 0 done, 1 no cache, or an image is not in it (the others are removed \
            anyway), 2 the cache cannot be used, 64 wrong usage, 75 another process holds the cache.

            Examples:
              prefetch remove https://example.com/old.png
              prefetch remove --host cdn.example.com --dry-run
              prefetch remove --all --variant thumb
              prefetch failed list --urls | prefetch remove --batch
            """)

    @Argument(help: .value("url", "The images' URLs, or their cache keys."))
    var urls: [String] = []

    @Flag(help: "Read URLs or a whole manifest from standard input.")
    var batch = false

    @OptionGroup var hosts: HostFilter

    @Flag(help: "Only URLs with a failed last request, with or without an image.")
    var failed = false

    @Flag(help: "All images in the cache, or all with the --variant.")
    var all = false

    @Option(
        help: .value(
            "name|recipe",
            """
            Only the variant with this name, and variants it superseded; or the variant with this \
            recipe, as in `list --json`.
            """), completion: .storedVariants)
    var variant: String?

    @Flag(
        name: [.customShort("n"), .customLong("dry-run")],
        help: "Remove nothing; print the keys of the images, and the result.")
    var isDryRun = false

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    @OptionGroup var input: Flags<InputFlags>
    @OptionGroup var options: ChangeOptions

    func validate() throws {
        let selects = hosts.isGiven || failed
        switch (urls.isEmpty && !batch, selects, all) {
        case (true, false, false):
            throw ValidationError(
                variant == nil
                    ? "name URLs, or pick images with --host, --failed or --all"
                    : "name URLs, or pick images with --host, --failed or --all (every image)"
            )
        case (true, true, true):
            throw ValidationError("--all cannot be combined with --host or --failed")
        case (false, true, _), (false, _, true):
            throw ValidationError("URLs cannot be combined with --host, --failed or --all")
        case (true, _, _), (false, false, false):
            break
        }
        guard urls.isEmpty || !batch else {
            throw ValidationError("--batch reads URLs from standard input and takes no other URLs")
        }
    }

    func run() throws {
        // Before the cache is locked: a list may arrive slowly.
        let names = try names()
        let missing: [String]
        if isDryRun {
            let catalog = try options.cache.catalog()
            let list = RemovalList(isWanted: !quiet)
            let estimate = RemovalEstimate(
                catalog, variant: try variant.map(catalog.selector), list.add)
            missing = try remove(names, by: estimate)
            try list.finish()
        } else {
            let selector = try variant.map(options.cache.catalog().selector)
            missing = try options.changeMakingRoom(mayRepeat: false) { cache in
                let removal = ImageRemoval(cache, variant: selector, at: WallClock.now())
                return try remove(names, by: removal)
            }
        }
        guard missing.isEmpty else {
            let reason = variant.map { "not in the cache as '\($0)'" } ?? "not in the cache"
            for name in missing { StandardError.write("prefetch: \(name): \(reason)") }
            throw UserError(.incomplete, "")
        }
    }

    /// Removes the named or selected images.
    ///
    /// - Returns: the names without an image, redacted.
    private func remove(_ names: [RemovedName], by removal: some ImageRemoving) throws -> [String] {
        var line = ProgressText(isWanted: !quiet && !isDryRun)
        defer { line.clear() }
        var missing: [String] = []
        if urls.isEmpty, !batch {
            try removal.removeAll {
                hosts.includes(origin: $0.host) && (!failed || $0.hasFailed)
            } _: {
                line.show("prefetch: removed \($0.text)")
            }
            try removal.removeFailures { hosts.includes(origin: $0.host) }
        } else {
            missing = try remove(named: names, by: removal)
        }
        try removal.finish()
        line.clear()
        if !quiet, missing.isEmpty || removal.totals != RemovalTotals() {
            let verb = isDryRun ? "would remove" : "removed"
            StandardError.write("prefetch: \(verb) \(removal.totals.text)")
        }
        return missing
    }

    private func remove(
        named names: [RemovedName], by removal: some ImageRemoving
    ) throws -> [String] {
        var missing: [String] = []
        var seen: Set<String> = []
        var rest = names[...]
        while !rest.isEmpty {
            var found: [(candidate: RemovalCandidate, shown: String)] = []
            for name in rest.prefix(RemovalCandidate.batchSize) {
                if let candidate = try name.find(removal) {
                    if seen.insert(candidate.key).inserted { found.append((candidate, name.shown)) }
                } else if try name.keys.first(where: removal.removeFailure) == nil {
                    missing.append(name.shown)
                }
            }
            let results = try removal.remove(found.map(\.candidate))
            missing += zip(found, results).filter { !$1 }.map(\.0.shown)
            rest = rest.dropFirst(RemovalCandidate.batchSize)
        }
        return missing
    }

    /// A user's name for an image.
    private struct RemovedName {
        /// The possible keys, likeliest first.
        let keys: [String]
        /// The URL without user information; nil if the name isn't a URL.
        let url: String?
        /// The URL of a line with a key of its own.
        var keyedURL: RequestURL?
        let shown: String

        func find(_ removal: some ImageRemoving) throws(StorageError) -> RemovalCandidate? {
            for key in keys {
                if let candidate = try removal.candidate(key: key, of: keyedURL) {
                    return candidate
                }
            }
            return try url.flatMap { url throws(StorageError) in try removal.candidate(url: url) }
        }
    }

    private func names() throws -> [RemovedName] {
        guard batch else {
            return try urls.map { text in
                let name = ImageName(argument: text).leavingOut(input.keys)
                let key = try name.canonicalKey
                return RemovedName(
                    keys: [text] + (key == text ? [] : [key].compactMap(\.self)),
                    url: try name.url, shown: name.shown)
            }
        }
        var names: [RemovedName] = []
        var entries = try ManifestSequence(arguments: ["-"], options: input.manifestOptions())
        while let batch = try entries.nextBatch() {
            for record in batch.records {
                let key = String(decoding: batch.text[record.key], as: UTF8.self)
                // An invalid line may still be a cache key.
                let url = record.problem < 0 ? batch.url(of: record) : nil
                names.append(
                    RemovedName(
                        keys: [key], url: url?.withoutCredentials.text,
                        keyedURL: record.hasOwnKey ? url : nil,
                        shown: "-:\(record.line): \(RedactedURL(url?.text ?? key))"))
            }
        }
        return names
    }
}
