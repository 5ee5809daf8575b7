import ArgumentParser
import CacheStorage
import Pages
import PrefetchModel
import Reporting

struct ReportCommand: ParsableCommand {
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

    func run() throws {
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
            cache: try catalog(of: record), at: WallClock.now())
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

    /// The cache that a flag names, else the default one if it is the run's; nil without it.
    private func catalog(of record: RunRecord) throws -> CacheCatalog? {
        if cache.place.directory != nil { return try cache.catalog() }
        let paths = [try cache.path(), try cache.absolutePath()]
        guard let named = record.ending?.summary.cacheDirectory, paths.contains(named),
            let directory = try cache.existingDirectory()
        else { return nil }
        return try CacheCatalog(directory: directory)
    }
}
