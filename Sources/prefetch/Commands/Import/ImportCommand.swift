import ArgumentParser
import CacheStorage
import Decoding
import Exporting
import Glibc
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import Threading
import Upkeep

extension ImportLayout: ExpressibleByArgument {}

struct ImportCommand: HostedCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Adopt files of earlier downloads, without a request.",
        discussion: """
            Looks for the file of each entry of the lists, and stores it as `put` does: decoded, \
            encoded by the same flags as a run's, and fresh from now on. Images that are fresh in the \
            cache already are kept. Files that no line names are not read.

            Layouts: mirror (as `wget -x`, or `export --layout mirror`), sdwebimage, curl (as \
            `curl -O`, in one folder), webdataset (a tar shard or a folder of them, which name the \
            URLs).

            Exit status: 0 every entry is in the cache, 1 a file is missing or is no image that a \
            run would store, 2 the cache, a list or the source cannot be used, 64 wrong usage, 75 \
            another process holds the cache.

            Examples:
              prefetch import mirror/ images.txt --layout mirror
              prefetch import downloads/ images.txt --layout curl --encode original
              prefetch import 00000.tar urls.csv --layout webdataset --ttl 30d
            """)

    @Argument(help: .value("source", "The folder, or a tar archive."), completion: .file())
    var source: String

    @Argument(help: .value("list", "Lists, as for `run`."), completion: .lists)
    var lists: [String] = []

    @Option(help: .value("layout", "The arrangement of the files."))
    var layout: ImportLayout

    @Flag(help: "Print the result as one JSON object.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    @OptionGroup var listURLs: Flags<ListSourceFlags>
    @OptionGroup var input: Flags<InputFlags>
    @OptionGroup var options: ChangeOptions
    @OptionGroup var storing: StoringOptions

    func validate() throws {
        guard !lists.isEmpty || !listURLs.lists.isEmpty else {
            throw ValidationError("name a list of the images")
        }
    }

    func run(_ invocation: Invocation) throws {
        var rules = input.manifestOptions(variants: try storing.variants)
        rules.keepsSpelling = true
        rules.hostDefaults = invocation.hosts.defaults.map(\.lifetimeOnly)
        let entries = try ManifestSequence(
            arguments: lists, lists: listURLs.lists, options: rules, configured: invocation.lists,
            copiesIn: options.cache, isQuiet: quiet)
        let now = WallClock.now()
        let progress = try options.change(creates: true) { cache in
            var importing = try FileImport(self, into: cache, at: now)
            try importing.run(over: entries)
            return importing.counts
        }
        if json {
            var object = JSONObject()
            object.add("type", "summary")
            object.add("entries", progress.entries)
            object.add("imported", progress.imported)
            object.add("kept", progress.kept)
            object.add("duplicates", progress.duplicates)
            object.add("missing", progress.missing)
            object.add("refused", progress.refused)
            object.add("invalid", progress.invalid)
            try LineWriter.print(object)
        } else if !quiet {
            StandardError.write("prefetch: \(progress.text)")
        }
        guard progress.lost == 0 else {
            throw UserError(
                .incomplete, "\(progress.lost) of \(progress.entries) entries are not in the cache",
                hint: "`prefetch run` over the same lists downloads them")
        }
    }
}

/// Stores the files of entries batch by batch: finished batches are kept when it is stopped.
struct FileImport {
    struct ImportCounts {
        var entries = 0
        var imported = 0
        /// Fresh in the cache already, or named by an earlier line.
        var kept = 0
        var duplicates = 0
        var missing = 0
        var refused = 0
        var invalid = 0

        var lost: Int { missing + refused + invalid }

        var text: String {
            let others = [
                (kept, "kept"), (duplicates, "duplicate"), (missing, "missing"),
                (refused, "refused"), (invalid, "invalid"),
            ].filter { $0.0 > 0 }.map { ", \($0.0) \($0.1)" }.joined()
            return
                "\(entries == 1 ? "1 entry" : "\(entries) entries"): \(imported) imported\(others)"
        }
    }

    private struct ImportEntry: Sendable {
        let place: String
        let url: RequestURL
        let key: String
        let extras: EntryExtras?
    }

    /// An entry with a file to store.
    private struct ImportItem: Sendable {
        enum ImportFile: Sendable {
            case paths([String])
            case bytes([UInt8], name: String)
        }

        let entry: ImportEntry
        let file: ImportFile
    }

    private let command: ImportCommand
    private let cache: OpenCache
    private let catalog: CacheCatalog
    private let configuration: RunConfiguration
    private let processor: BudgetedImageProcessor
    private let now: Timestamp
    private(set) var counts = ImportCounts()
    /// The URLs of the keys so far.
    private var seen: [String: StoredURLs] = [:]
    private var batch: [ImportItem] = []
    /// The entries by the names of their files, in a layout in which several can have one.
    private var named: [String: [ImportItem]] = [:]
    private var printed = 0
    private var line: ProgressText

    /// The images of one commit, and the bytes of archives that wait for it.
    private static let batchSize = 64
    private static let batchBytes = 64 << 20
    private static let mostPrinted = 20

    init(_ command: ImportCommand, into cache: OpenCache, at now: Timestamp) throws {
        self.command = command
        self.cache = cache
        self.now = now
        catalog = try CacheCatalog(directory: cache.directory)
        configuration = try command.storing.configuration()
        processor = BudgetedImageProcessor(configuration.images)
        try processor.checkWalls()
        line = ProgressText(isWanted: !command.quiet)
    }

    /// Imports the files of all entries. After an error, earlier images stay imported.
    mutating func run(over lists: ManifestSequence) throws {
        defer { line.clear() }
        var lists = lists
        var status = stat()
        guard stat(command.source, &status) == 0 else {
            throw UserError(
                "\(command.source): \(String(cString: strerror(errno)))",
                hint: "name the folder of the files; with --layout webdataset also a tar archive")
        }
        let isFolder = status.st_mode & S_IFMT == S_IFDIR
        if command.layout == .webdataset {
            try importShards(isFolder ? shards() : [command.source], &lists)
        } else {
            guard isFolder else {
                throw UserError(
                    "\(command.source): not a folder",
                    hint: "only --layout webdataset takes an archive")
            }
            try forEachEntry(&lists) { importing, entry in
                let url = entry.url.withoutCredentials.text
                let paths = importing.command.layout.paths(
                    of: entry.extras?.spelling ?? url, normalized: url)
                let item = ImportItem(entry: entry, file: .paths(paths))
                if importing.command.layout.sharesNames, let path = paths.first {
                    importing.named[path, default: []].append(item)
                } else {
                    try importing.add(item)
                }
            }
            try addNamed()
        }
        try commit()
    }

    /// Adds the entries that share their file with no other entry.
    private mutating func addNamed() throws {
        let groups = named.map { (path: $0, items: $1) }
            .sorted { $0.items[0].entry.place < $1.items[0].entry.place }
        for (path, items) in groups {
            guard items.count > 1 else {
                try add(items[0])
                continue
            }
            let entries = items.map(\.entry)
            for entry in entries {
                counts.refused += 1
                let rival = entry.place == entries[0].place ? entries[1] : entries[0]
                say(entry, "\(RedactedURL(path)) is also the file of \(rival.place)")
            }
        }
        named = [:]
    }

    /// Calls `body` for each valid entry without a fresh image.
    private mutating func forEachEntry(
        _ lists: inout ManifestSequence,
        _ body: (inout FileImport, ImportEntry) throws -> Void
    ) throws {
        while let entries = try lists.nextBatch() {
            let keys = entries.records.map { String(decoding: entries.text[$0.key], as: UTF8.self) }
            let stored = try catalog.variants(ofKeys: keys)
            for (index, record) in entries.records.enumerated() {
                counts.entries += 1
                let place = "\(entries.manifest):\(record.line)"
                guard record.problem < 0 else {
                    counts.invalid += 1
                    let message = entries.problems[record.problem].failure.message
                    say("\(place): \(redacted(message))")
                    continue
                }
                let extras = entries.extras(of: record)
                let url = entries.url(of: record)
                let listed = url.withoutCredentials.text
                let known = seen.updateValue(
                    seen[keys[index]] ?? StoredURLs(requested: listed, listed: listed),
                    forKey: keys[index])
                if let known {
                    if record.hasOwnKey, !entries.isImage(of: record, at: known) {
                        counts.refused += 1
                        say("\(place): \(url): same key as \(RedactedURL(known.listed))")
                    } else {
                        counts.duplicates += 1
                    }
                    continue
                }
                let own = stored[index].filter {
                    !record.hasOwnKey || entries.isImage(of: record, at: $0.resource.urls)
                }
                guard !isWarm(own, extras) else {
                    counts.kept += 1
                    continue
                }
                let entry = ImportEntry(
                    place: place, url: url, key: keys[index], extras: extras)
                try body(&self, entry)
            }
        }
    }

    /// Whether all variants of an entry are stored and fresh.
    private func isWarm(_ stored: [CacheCatalog.Item], _ extras: EntryExtras?) -> Bool {
        configuration.images.variants.applying(extras).allSatisfy { variant in
            stored.contains { item in
                !item.isSuperseded && item.standing(at: now) == .fresh
                    && item.isMade(asBy: variant.recipeText)
            }
        }
    }

    // MARK: Shards

    private func shards() throws -> [String] {
        let names = try InputFile.names(in: command.source)
            .filter { $0.hasSuffix(".tar") || $0.hasSuffix(".tar.gz") }
        guard !names.isEmpty else {
            throw UserError(
                "\(command.source): no tar archive in it", hint: "name another folder or archive")
        }
        return names.sorted().map { "\(command.source)/\($0)" }
    }

    private mutating func importShards(_ shards: [String], _ lists: inout ManifestSequence) throws {
        var wanted: [String: ImportEntry] = [:]
        // Exports mask signatures; nil for entries that differ in these alone.
        var masked: [String: ImportEntry?] = [:]
        try forEachEntry(&lists) { _, entry in
            let urls = [entry.url.withoutCredentials.text, entry.extras?.spelling]
            for url in urls.compactMap(\.self) {
                wanted[url] = entry
                let shown = RedactedURL.maskingSecrets(in: url)
                guard shown != url else { continue }
                let isShared = masked[shown].map { $0?.key != entry.key } ?? false
                masked.updateValue(isShared ? nil : entry, forKey: shown)
            }
        }
        var found: Set<String> = []
        for shard in shards {
            let name = String(shard.dropFirst(command.source.count + 1))
            let file = try reporting(as: { $0.subject = shard }) {
                shard == command.source
                    ? try InputFile.openRegular(shard)
                    : try InputFile.openRegular(name, in: command.source)
            }
            defer { close(file) }
            do {
                var samples = try ArchivedSamples(
                    file, limit: configuration.limits.maximumBodySize.bytes)
                while let sample = try samples.next() {
                    guard let url = sample.url, let entry = wanted[url] ?? masked[url] ?? nil,
                        found.insert(entry.key).inserted
                    else { continue }
                    let name = "\(shard): \(RedactedURL(sample.name))"
                    try add(ImportItem(entry: entry, file: .bytes(sample.image, name: name)))
                }
            } catch let damage as UserError where damage.kind == .incomplete {
                // The other shards are not affected, nor are the samples before the damage.
                say("\(shard): \(redacted(damage.message))")
            }
        }
        var reported: Set<String> = []
        for entry in wanted.values.sorted(by: { $0.place < $1.place })
        where !found.contains(entry.key) && reported.insert(entry.key).inserted {
            counts.missing += 1
            say(entry, "no sample of \(command.source) has this URL")
        }
    }

    // MARK: Commits

    private mutating func add(_ item: ImportItem) throws {
        batch.append(item)
        let waiting = batch.reduce(0) { sum, item in
            if case .bytes(let bytes, _) = item.file { sum + bytes.count } else { sum }
        }
        if batch.count >= FileImport.batchSize || waiting >= FileImport.batchBytes { try commit() }
    }

    private enum SeedResult: Sendable {
        case seed(ImageSeed)
        case missing
        case refused(String)
    }

    private mutating func commit() throws {
        let items = batch
        batch = []
        let results = items.parallelMap(workers: configuration.codecWorkers, name: "import") {
            [configuration, processor, source = command.source] item in
            FileImport.seed(of: item, in: source, configuration, processor)
        }
        var entries: [ImageSeed.Entry] = []
        for (item, result) in zip(items, results) {
            switch result {
            case .seed(let seed):
                let attributes = item.entry.extras?.attributes ?? []
                entries.append((seed, item.entry.url, item.entry.key, attributes))
            case .missing:
                counts.missing += 1
                let paths =
                    if case .paths(let paths) = item.file {
                        paths.first ?? "its name is empty"
                    } else { "" }
                say(item.entry, "no file \(command.source)/\(RedactedURL(paths))")
            case .refused(let message):
                counts.refused += 1
                say(item.entry, message)
            }
        }
        try cache.checkHold()
        try ImageSeed.store(
            entries, naming: Array(configuration.images.variants), in: cache, at: now)
        counts.imported += entries.count
        line.show("prefetch: importing: \(counts.imported) of \(counts.entries)")
    }

    private static func seed(
        of item: ImportItem, in source: String, _ configuration: RunConfiguration,
        _ processor: BudgetedImageProcessor
    ) -> SeedResult {
        var configuration = configuration
        configuration.images.variants = configuration.images.variants.applying(item.entry.extras)
        if let time = item.entry.extras?.timeToLive { configuration.lifetimes.forced = time }
        let limit = configuration.limits.maximumBodySize
        var found: (bytes: [UInt8], name: String)?
        switch item.file {
        case .bytes(let bytes, let name): found = (bytes, name)
        case .paths(let paths):
            for path in paths {
                let shown = "\(source)/\(RedactedURL(path))"
                do throws(InputFileError) {
                    let file = try InputFile.openRegular(path, in: source)
                    defer { close(file) }
                    found = (try InputFile.read(file, limit: limit.bytes + 1), shown)
                    break
                } catch {
                    switch error {
                    case .system(ENOENT), .system(ENOTDIR), .system(ENAMETOOLONG), .notRegular:
                        continue
                    default: return .refused("\(shown): \(error.message)")
                    }
                }
            }
        }
        guard let found else { return .missing }
        guard found.bytes.count <= limit.bytes else {
            return .refused("\(found.name): larger than --max-filesize (\(limit))")
        }
        do throws(Failure) {
            return .seed(try ImageSeed(found.bytes, by: configuration, processor: processor))
        } catch {
            return .refused("\(found.name): \(error.message)")
        }
    }

    private mutating func say(_ entry: ImportEntry, _ message: String) {
        say("\(entry.place): \(entry.url): \(message)")
    }

    private mutating func say(_ message: String) {
        printed += 1
        if printed <= FileImport.mostPrinted {
            line.clear()
            StandardError.write("prefetch: \(message)")
        } else if printed == FileImport.mostPrinted + 1 {
            StandardError.write("prefetch: … the other entries are only counted")
        }
    }
}
