import ArgumentParser
import CacheStorage
import PrefetchModel
import Reporting

struct MergeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "merge",
        abstract: "Join caches, such as the shards of a list.",
        discussion: """
            Merges the caches SRC into the cache DEST, which is created if it is missing. The result \
            is the same in any order and when it is repeated. Sources are not changed.

            Of two copies of an image, the one validated later is kept, if its files exist. A failed \
            URL stays blacklisted until the later date, unless another cache has validated the image \
            since. Hosts keep the stricter limits. Content files become hard links, or copies \
            on another file system. Partial downloads are dropped. Images that \
            were removed from DEST return if a source has them.

            A merge that was interrupted leaves the rows of DEST as they were, or with the first of \
            each 64 sources; the next one continues.

            --check lists the shards of a plan without a complete run, as ranges of indexes for the \
            engine: 3,17-19. It takes the output of `run --summary json`, or reports.

            Exit status: 0 merged, 1 a source is damaged or lacks files, and everything readable was \
            merged, or shards are missing (--check), 2 a cache cannot be used, 64 wrong usage, 75 \
            another process holds one of the caches.

            Examples:
              prefetch merge all shard-0 shard-1 shard-2
              prefetch merge ~/.cache/prefetch shards/*
              prefetch merge --check plan.json summaries/*
            """)

    @Argument(
        help: .value(
            "dest> <src", "The cache to merge into, and those to merge; with --check summaries."),
        completion: .directory)
    var caches: [String] = []

    @Option(
        help: .value(
            "plan|n", "Print the missing shards of this plan, or of this number of shards."),
        completion: .file())
    var check: String?

    @Option(
        help: .value(
            "what",
            "If another process holds one of the caches: fail (exit 75), wait, or wait=DURATION."))
    var lock: LockArgument = .fail

    @Flag(help: "Print the result as one JSON object.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print nothing but problems.")
    var quiet = false

    func validate() throws {
        // Exit status 0 would claim a merge that wasn't made.
        if lock == .skip { throw ValidationError("--lock takes fail, wait or wait=DURATION here") }
        if check != nil, json { throw ValidationError("--check and --json cannot be combined") }
        guard caches.allSatisfy({ !$0.isEmpty }) else {
            throw ValidationError("a cache has an empty name")
        }
        guard caches.count >= (check == nil ? 2 : 1) else {
            throw ValidationError(
                check == nil
                    ? "name the caches to merge" : "--check needs the summaries of the shards")
        }
    }

    private var destination: String { caches[0] }
    private var sources: [String] { Array(caches.dropFirst()) }

    func run() throws {
        if let check { return try run(MergeCheck(check)) }
        let start = ContinuousClock.now
        let report = try merge()
        MergeText.tellDamage(report)
        if report.lostFiles > 0 {
            let files = counted(report.lostFiles, "file")
            StandardError.message(
                "\(files) of the sources \(report.lostFiles == 1 ? "is" : "are") missing or damaged",
                hint: "`prefetch run` downloads these images again")
        }
        if json {
            try LineWriter.print(JSONObject(report, elapsed: .now - start))
        } else if !quiet {
            let text = MergeText.text(report, sources: sources.count)
            StandardError.write("prefetch: \(printable(destination)): \(text)")
        }
        if !report.isComplete { throw UserError(.incomplete, "") }
    }

    private func run(_ check: MergeCheck) throws {
        let (missing, problems) = check.missing(from: caches)
        for (path, reason) in problems {
            StandardError.write("prefetch: \(printable(path)): \(reason)")
        }
        let shards = counted(check.count, "shard")
        guard !missing.isEmpty else {
            if !quiet {
                StandardError.write("prefetch: \(shards) \(check.count == 1 ? "has" : "have") run")
            }
            return
        }
        try LineWriter.print([MergeCheck.ranges(missing)])
        throw UserError(
            .incomplete,
            "\(missing.count) of \(shards) \(missing.count == 1 ? "is" : "are") missing")
    }

    private func merge() throws -> MergeReport {
        let now = WallClock.now()
        // First: a wrong name must not leave a new cache.
        try OpenCache.checkSources(sources, of: destination, waiting: lock.waiting)
        let opened = try HeldCache(path: destination, lock: lock, isQuiet: quiet)
            .openForMerge(at: now)
        return try opened.merge(
            sources, workers: max(1, AvailableProcessors.count - 1), waiting: lock.waiting, at: now)
    }
}

/// The result of a merge, for people and as JSON.
enum MergeText {
    /// `8 caches merged: 1000 images (990 new), 3 failed URLs; files: 990 linked (3.2 MiB)`
    static func text(_ report: MergeReport, sources: Int) -> String {
        var changes: [String] = []
        if report.added > 0 { changes.append("\(report.added) new") }
        if report.updated > 0 { changes.append("\(report.updated) newer") }
        var text = "\(counted(sources, "cache")) merged: \(counted(report.images, "image"))"
        text += " (\(changes.isEmpty ? "unchanged" : changes.joined(separator: ", ")))"
        if report.failures > 0 { text += ", \(counted(report.failures, "failed URL"))" }
        let files = report.files
        let ways = [(files.linked, "linked"), (files.cloned, "cloned"), (files.copied, "copied")]
            .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if !ways.isEmpty {
            text += "; files: \(ways.joined(separator: ", ")) (\(ByteCount(files.bytes)))"
        }
        return text
    }

    static func tellDamage(_ report: MergeReport) {
        for (source, damage) in report.damaged {
            StandardError.write("prefetch: \(printable(source)): damaged; \(text(damage))")
        }
    }

    private static func text(_ damage: MergeReport.SourceDamage) -> String {
        switch damage {
        case .salvaged(let report): SalvageText.text(report)
        case .invalidRows(let count): "skipped \(counted(count, "invalid row"))"
        }
    }
}

extension JSONObject {
    init(_ report: MergeReport, elapsed: Duration) {
        self.init()
        add("type", "summary")
        add("images", report.images)
        add("added", report.added)
        add("updated", report.updated)
        add("failures", report.failures)
        add("linked", report.files.linked)
        add("cloned", report.files.cloned)
        add("copied", report.files.copied)
        add("bytes", report.files.bytes)
        add("removed", report.removedFiles)
        add("lost", report.lostFiles)
        add("damaged", report.damaged.map(\.path))
        add("elapsed_ms", elapsed)
    }
}
