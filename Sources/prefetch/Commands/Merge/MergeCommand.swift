import ArgumentParser
import CacheStorage
import PrefetchModel
import Reporting
import Sharding

struct MergeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "merge",
        abstract: "Join caches, such as the shards of a list.",
        usage: """
            prefetch merge [<options>] <dest> <src> ...
                   prefetch merge [<options>] --check <plan|n> <summary> ...
            """,
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
            "cache", "The cache to merge into, and those to merge; with --check summaries."),
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

    @OptionGroup var configuration: Flags<ConfigurationFlags>

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
            let result =
                switch damage {
                case .salvaged(let report): report.text
                case .invalidRows(let count): "skipped \(counted(count, "invalid row"))"
                }
            StandardError.write("prefetch: \(printable(source)): damaged; \(result)")
        }
        let reused = report.reusedKeys
        if reused.count > 0 {
            StandardError.message(
                "\(counted(reused.count, "key")) of several URLs' images; the last validated image "
                    + "is kept; first \(redacted(reused.first))",
                hint: ReusedKeys.hint)
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

/// `merge --check`: finds the shards that have not run to their end.
struct MergeCheck {
    /// The number of shards, and the digest of their plan; nil without a plan.
    let count: Int
    let plan: String?

    /// Takes the path of a plan, or the number of shards.
    init(_ argument: String) throws {
        if let count = Int(argument), Shard.counts.contains(count) {
            (self.count, plan) = (count, nil)
        } else {
            let (plan, _, digest) = try ShardPlan.open(argument)
            (count, self.plan) = (plan.shards, "\(digest)")
        }
    }

    /// Returns the indexes of the missing shards, and the reason why a file counts for none.
    func missing(
        from paths: [String]
    ) -> (indexes: [Int], problems: [(path: String, reason: String)]) {
        var isDone = [Bool](repeating: false, count: count)
        var problems: [(String, String)] = []
        var done: [(path: String, index: Int, lines: Int)] = []
        for path in paths {
            let bytes: [UInt8]
            do {
                bytes = try MergeCheck.end(of: path)
            } catch {
                problems.append((path, error.message))
                continue
            }
            guard let summary = RunSummary.read(lastLineOf: bytes), let result = summary.shard
            else {
                problems.append((path, "no summary of a shard"))
                continue
            }
            let shard = result.shard
            if shard.count != count {
                problems.append((path, "shard \(shard.index) of \(shard.count)"))
            } else if result.plan != plan {
                problems.append((path, "shard \(shard.index) of another plan"))
            } else if let gap = MergeCheck.gap(in: summary) {
                problems.append((path, "shard \(shard.index) \(gap)"))
            } else {
                let lines = summary.counters.entriesRead + result.otherEntries
                done.append((path, shard.index, lines))
            }
        }
        // All shards have read the same lists.
        let counts = Dictionary(grouping: done, by: \.lines)
        let lines = counts.max { ($0.value.count, $1.key) < ($1.value.count, $0.key) }?.key ?? 0
        for shard in done {
            guard shard.lines != lines else {
                isDone[shard.index] = true
                continue
            }
            problems.append(
                (
                    shard.path,
                    "shard \(shard.index) ran other lists, with \(shard.lines) lines instead of "
                        + "\(lines)"
                ))
        }
        return (isDone.indices.filter { !isDone[$0] }, problems)
    }

    /// `ended with status 2`; nil if every entry of the shard had its turn.
    private static func gap(in summary: RunSummary) -> String? {
        if let limit = summary.endedBy { return "was ended by --\(limit.rawValue)" }
        guard summary.exitStatus <= 1 else { return "ended with status \(summary.exitStatus)" }
        let cancelled = summary.counters[.cancelled]
        return cancelled > 0 ? "has \(cancelled) cancelled entries" : nil
    }

    /// No summary is longer.
    private static let mostBytes = 1 << 20

    /// The last bytes of a file; a report may have millions of lines.
    private static func end(of path: String) throws(UserError) -> [UInt8] {
        var bytes: [UInt8] = []
        try InputFile(path).readPieces { piece in
            bytes += piece
            if bytes.count > 2 * mostBytes { bytes.removeFirst(bytes.count - mostBytes) }
        }
        return bytes
    }

    /// `3,17-19`, as Kubernetes, Slurm and AWS Batch take it.
    static func ranges(_ indexes: [Int]) -> String {
        var ranges: [ClosedRange<Int>] = []
        for index in indexes {
            if let last = ranges.last, last.upperBound + 1 == index {
                ranges[ranges.count - 1] = last.lowerBound...index
            } else {
                ranges.append(index...index)
            }
        }
        return ranges.map { range in
            range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
        }.joined(separator: ",")
    }
}
