import ArgumentParser
import CacheStorage
import Hashing
import Pages
import PrefetchModel
import Reporting
import Upkeep

struct ReportCommand: InvokedCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Make an HTML page of reports.",
        discussion: """
            Reads reports that `run --report` wrote, and makes a page about the latest run: its \
            outcomes, the outcomes of the previous run, throughput, hosts, failures with remedies, the \
            slowest and largest images, expiries, and new or changed images. Reports are ordered by \
            the start of their runs, or as given if one of them is from a killed run.

            The page is one file of at most 2 MB, without scripts, that fetches nothing. With the \
            cache of the run it has thumbnails and the growth of the cache: that of --cache-dir, \
            else the default one if the report names it.

            Examples:
              prefetch report run.jsonl -o run.html
              prefetch report yesterday.jsonl today.jsonl > today.html

            Exit status: 0 done, 1 a report has damaged lines, 2 a report cannot be read or the page \
            cannot be written, 64 wrong usage.
            """)

    @Argument(help: .value("report", "Reports; `-` is standard input."), completion: .file())
    var reports: [String]

    @Option(
        name: [.customShort("o", allowingJoined: true), .customLong("output")],
        help: .value("file", "Replace this file; - is standard output."),
        completion: .file())
    var output = "-"

    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard reports.count(where: { $0 == "-" }) <= 1 else {
            throw ValidationError("only one report can be standard input")
        }
    }

    func run(_ invocation: Invocation) throws {
        var files = WrittenFiles()
        files.written = [WrittenFiles.Use(path: output, name: "--output")]
        files.read = reports.map { WrittenFiles.Use(path: $0) }
        try files.check(cache)
        let records = ReportCommand.ordered(try reports.map(read))
        guard let record = records.last else { return }
        // Nil for a run that was killed.
        let previous = records.dropLast().last?.ending?.summary
        let page = try ReportPage(
            record, after: previous.map { ($0.startedAt, $0.elapsed, $0.counters) },
            cache: try catalog(of: record, invocation), at: WallClock.now())
        try OutputFile.replace(output, with: page.html())
        if records.contains(where: { $0.damage.lines > 0 }) {
            throw UserError(.incomplete, "")
        }
    }

    private func read(_ path: String) throws -> RunRecord {
        let file = InputFile(path)
        let reader = ReportReader()
        try file.readPieces { reader.read($0) }
        let record = reader.finish()
        guard record.counters.entriesRead > 0 || record.ending != nil else {
            throw UserError(
                printable("\(file.name): no line of a report"),
                hint: "`prefetch run --report FILE` writes reports")
        }
        if record.damage.lines > 0, let first = record.damage.first {
            StandardError.message("\(file.name): \(first)", hint: hint(about: record))
        }
        return record
    }

    private func hint(about record: RunRecord) -> String {
        let lines = record.damage.lines
        return lines == 1
            ? "the page is about the other lines"
            : "\(lines) damaged lines in all; the page is about the others"
    }

    /// The reports by the start of their runs, earliest first; as given if a start is unknown.
    private static func ordered(_ records: [RunRecord]) -> [RunRecord] {
        let starts = records.compactMap { $0.ending?.summary.startedAt }
        guard starts.count == records.count else { return records }
        return zip(starts, records).enumerated().sorted {
            ($0.element.0, $0.offset) < ($1.element.0, $1.offset)
        }.map(\.element.1)
    }

    /// The cache that the command line names, else the usual one if it is the run's; nil without
    /// it.
    private func catalog(of record: RunRecord, _ invocation: Invocation) throws -> CacheCatalog? {
        let isSetting = invocation.configured.contains(CacheFlags.flags.directory.row.name)
        if cache.place.directory != nil, !isSetting { return try cache.catalog() }
        let paths = [try cache.path(), try cache.absolutePath()]
        guard let named = record.ending?.summary.cacheDirectory, paths.contains(named),
            let directory = try cache.existingDirectory()
        else { return nil }
        return try CacheCatalog(directory: directory)
    }
}

extension ReportPage {
    /// Makes the page of a run. Without `previous`, the run before it is looked for in the cache's
    /// log. `replaced` are the files of images that the run has replaced; nil after the run.
    init(
        _ record: RunRecord, after previous: PreviousRun?, cache catalog: CacheCatalog?,
        replaced: HeldFiles? = nil, at now: Timestamp
    ) throws(StorageError) {
        self.init(record, at: now)
        self.previous = previous
        var previews: Previews?
        if let catalog {
            let start = now.advanced(by: .zero - .seconds(ReportPage.growthDays * 86400))
            cache = try catalog.outlook(ofRunsSince: start)
            if previous == nil { self.previous = try ReportPage.run(before: record, in: catalog) }
            previews = try Previews(of: catalog, at: now)
        }
        for result in record.pictures.changed + record.pictures.new {
            addImages(of: result, previews, replaced)
        }
    }

    private mutating func addImages(
        of result: EntryResult, _ previews: Previews?, _ held: HeldFiles?
    ) {
        if let image = result.stored {
            add(
                previews?.thumbnail(of: image), orThumbHash: result.placeholder?.thumbHash,
                for: image.digest)
        }
        guard let replaced = result.replaced else { return }
        let bytes = held?.bytes(of: replaced.image, hasher: SHA256Hasher())
        let thumbnail =
            bytes.flatMap { previews?.thumbnail(of: replaced.image, bytes: $0) }
            ?? previews?.thumbnail(of: replaced.image)
        add(thumbnail, orThumbHash: replaced.thumbHash, for: replaced.image.digest)
    }

    private mutating func add(
        _ thumbnail: [UInt8]?, orThumbHash hash: [UInt8]?, for digest: ContentDigest
    ) {
        if let thumbnail {
            images.add(PageImage(thumbnail, isBlurred: false), for: digest)
        } else if let picture = hash.flatMap({ Previews.picture(ofThumbHash: $0) }) {
            images.add(PageImage(picture, isBlurred: true), for: digest)
        }
    }

    /// The last earlier run of the same lists that ended; nil if the log has none.
    private static func run(
        before record: RunRecord, in catalog: CacheCatalog
    ) throws(StorageError) -> PreviousRun? {
        guard let start = record.ending?.summary.startedAt else { return nil }
        // Whole seconds: a report has no milliseconds.
        let runs = try catalog.runs().drop {
            $0.startedAt.milliseconds / 1000 > start.milliseconds / 1000
        }
        guard let own = runs.first else { return nil }
        for run in runs.dropFirst() where run.manifest == own.manifest {
            if let counters = run.counters { return (run.startedAt, run.duration, counters) }
        }
        return nil
    }
}
