import ArgumentParser
import CacheStorage
import PrefetchModel
import Reporting
import Upkeep

struct StatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Summarise the cache and the last run.",
        discussion: """
            Examples:
              prefetch stats
              prefetch stats --json | jq .last_run.exit_status
            """)

    @OptionGroup var cache: CacheOptions

    @Flag(help: "Print a JSON object.")
    var json = false

    func run() throws {
        let path = try cache.path()
        let catalog = try cache.catalog()
        let now = WallClock.now()
        let statistics = try catalog.statistics(at: now)
        // A damaged rule must not hide the statistics.
        let pruning = Result { () throws(StorageError) in try catalog.nextPruning(at: now) }
        if json {
            var object = JSONObject(statistics, path: path)
            object.add("next_prune", (try? pruning.get()).map { JSONObject($0) })
            try LineWriter.print(object)
        } else {
            var lines = statistics.lines(path: path)
            if case .success(let pruning?) = pruning { lines.append("next prune  \(pruning.text)") }
            try LineWriter.print(lines)
        }
        _ = try pruning.get()
    }
}

extension CacheCatalog.Statistics {
    /// The statistics as text, except for the next pruning.
    fileprivate func lines(path: String) -> [String] {
        let free = space.freeSize.map { ", \($0) free)" } ?? ")"
        let superseded = variants.superseded > 0 ? " (\(variants.superseded) superseded)" : ""
        var lines = [
            row("cache", printable(path)),
            row("images", "\(resources) (\(expired) expired)"),
            row("variants", "\(variants.count)" + superseded),
            row(
                "content",
                "\(counted(space.contentFiles, "file")), \(ByteCount(space.contentBytes)) (\(space.diskSize) on disk"
                    + free),
            row("sources", "\(ByteCount(sourceBytes))"),
            row("database", "\(ByteCount(space.databaseBytes))"),
        ]
        if variants.names.contains(where: { $0.name != VariantName.main.text }) {
            lines += variants.names.map { row("", "\($0.name): \(share($0.variants, $0.bytes))") }
        }
        lines += variants.formats.map { row($0.format, share($0.variants, $0.bytes)) }
        if let unlisted, unlisted > 0 {
            lines.append(row("unlisted", "\(counted(unlisted, "image")) not listed for 30 days"))
        }
        if hosts.count > 1 {
            let largest = hosts.count > hosts.largest.count ? ", largest:" : ""
            lines.append(row("hosts", "\(hosts.count)" + largest))
            lines += hosts.largest.map { host, variants, bytes in
                printable(row("", "\(host): \(share(variants, bytes))"))
            }
        }
        return lines + linesOfRuns
    }

    private var linesOfRuns: [String] {
        var lines: [String] = []
        if runs.storedByWeek.contains(where: { $0 > 0 }) {
            let weeks = runs.storedByWeek.map { "\(ByteCount($0))" }.joined(separator: ", ")
            lines.append(row("stored", "\(weeks) in the last 4 weeks, latest first"))
        }
        if let freshShare = runs.freshShare {
            let percent = Int((freshShare * 1000).rounded(.down))
            lines.append(
                row(
                    "fresh",
                    "\(percent / 10).\(percent % 10) % of the entries of the last 10 runs"))
        }
        lines.append(row("failures", "\(failures.failures) (\(failures.blacklisted) blacklisted)"))
        if failures.exclusions > 0 {
            lines.append(row("excluded", counted(failures.exclusions, "image")))
        }
        guard let run = runs.last else { return lines }
        let duration = run.duration.map { ", took \(durationText($0))" } ?? ""
        lines.append(row("last run", "\(run.startedAt)\(duration), \(run.result)"))
        guard let counters = run.counters else { return lines }
        let bytes = (ByteCount(counters.bytesReceived), ByteCount(counters.bytesStored))
        return lines + [
            row("", run.outcomes),
            row(
                "",
                "\(counted(counters.requests, "request")), \(bytes.0) received, \(bytes.1) stored"),
        ]
    }

    private func row(_ name: String, _ text: String) -> String {
        name + String(repeating: " ", count: max(1, 12 - name.count)) + text
    }

    private func share(_ variants: Int, _ bytes: Int) -> String {
        "\(counted(variants, "variant")), \(ByteCount(bytes))"
    }
}

extension NextPruning {
    /// `3 images (3 variants), 3 files (1.20 MiB), then 4.00 MiB of the oldest,
    /// by unlisted-for=30d,max-size=20MiB,…`
    fileprivate var text: String {
        var excesses: [String] = []
        if excess.files > 0 {
            excesses.append("\(counted(excess.files, "file"))")
        }
        if excess.blocks > 0 { excesses.append("\(excess.size)") }
        let oldest = excesses.joined(separator: " and ") + " of the oldest"
        let removal =
            switch (picked == RemovalTotals(), excesses.isEmpty) {
            case (true, true): "nothing"
            case (true, false): oldest
            case (false, true): picked.text
            case (false, false): "\(picked.text), then \(oldest)"
            }
        return "\(removal), by \(rules.specification)"
    }
}

extension JSONObject {
    fileprivate init(_ statistics: CacheCatalog.Statistics, path: String) {
        self.init()
        add("cache_dir", path)
        add("resources", statistics.resources)
        add("expired", statistics.expired)
        add("variants", statistics.variants.count)
        add("superseded", statistics.variants.superseded)
        add("content_files", statistics.space.contentFiles)
        add("content_bytes", statistics.space.contentBytes)
        add("disk_bytes", statistics.space.diskSize)
        add("free_bytes", statistics.space.freeSize)
        add("source_bytes", statistics.sourceBytes)
        add("database_bytes", statistics.space.databaseBytes)
        add("formats", JSONObject(counts: statistics.variants.formats.map { ($0, $1, $2) }))
        add("variant_names", JSONObject(counts: statistics.variants.names))
        add("host_count", statistics.hosts.count)
        add("largest_hosts", JSONObject(counts: statistics.hosts.largest.map { ($0, $1, $2) }))
        add("unlisted_for_30_days", statistics.unlisted)
        add("fresh_share", statistics.runs.freshShare)
        add("stored_bytes_by_week", statistics.runs.storedByWeek)
        var failures = JSONObject()
        failures.add("total", statistics.failures.failures)
        failures.add("blacklisted", statistics.failures.blacklisted)
        add("failures", failures)
        add("excluded", statistics.failures.exclusions)
        add("last_run", statistics.runs.last.map { JSONObject($0) })
    }

    fileprivate init(_ pruning: NextPruning) {
        self.init()
        add("rules", pruning.rules.specification)
        add(pruning.picked)
        add("excess_files", pruning.excess.files)
        add("excess_bytes", pruning.excess.size)
    }

    private init(counts: [(name: String, variants: Int, bytes: Int)]) {
        self.init()
        for (name, variants, bytes) in counts {
            var object = JSONObject()
            object.add("variants", variants)
            object.add("bytes", bytes)
            add(name, object)
        }
    }
}
