import ArgumentParser
import CacheStorage
import Glibc
import PrefetchModel
import Reporting
import Upkeep

/// `prefetch stats`
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
        var output = LineWriter.standardOutput()
        let now = WallClock.now()
        let statistics = try catalog.statistics(at: now)
        // A damaged rule must not hide the statistics.
        let pruning = Result { () throws(StorageError) in try catalog.nextPruning(at: now) }
        if json {
            var object = JSONObject(statistics, path: path)
            if case .success(let pruning?) = pruning {
                object.add("next_prune", JSONObject(pruning))
            } else {
                object.addNull("next_prune")
            }
            try output.write(object)
        } else {
            for line in lines(statistics, path: path) { try output.write(line: line) }
            if case .success(let pruning?) = pruning {
                try output.write(line: "next prune  \(pruning.text)")
            }
        }
        try output.finish()
        _ = try pruning.get()
    }

    private func lines(_ statistics: CacheCatalog.Statistics, path: String) -> [String] {
        var lines = [
            "cache       \(printable(path))",
            "images      \(statistics.resources) (\(statistics.expired) expired)",
            "variants    \(statistics.variants.count)"
                + (statistics.variants.superseded > 0
                    ? " (\(statistics.variants.superseded) superseded)" : ""),
            "content     \(counted(statistics.space.contentFiles, "file")), \(ByteCount(statistics.space.contentBytes))"
                + " (\(statistics.space.diskSize) on disk"
                + (statistics.space.freeSize.map { ", \($0) free)" } ?? ")"),
            "sources     \(ByteCount(statistics.sourceBytes))",
            "database    \(ByteCount(statistics.space.databaseBytes))",
        ]
        if statistics.variants.names.contains(where: { $0.name != VariantName.main.text }) {
            for (name, variants, bytes) in statistics.variants.names {
                lines.append(
                    "            \(name): \(counted(variants, "variant")), \(ByteCount(bytes))")
            }
        }
        for (format, variants, bytes) in statistics.variants.formats {
            let name = format + String(repeating: " ", count: max(1, 12 - format.count))
            lines.append("\(name)\(counted(variants, "variant")), \(ByteCount(bytes))")
        }
        if let unlisted = statistics.unlisted, unlisted > 0 {
            lines.append(
                "unlisted    \(counted(unlisted, "image")) not listed for 30 days"
            )
        }
        if statistics.hosts.count > 1 {
            lines.append(
                statistics.hosts.count > statistics.hosts.largest.count
                    ? "hosts       \(statistics.hosts.count), largest:"
                    : "hosts       \(statistics.hosts.count)")
            for (host, variants, bytes) in statistics.hosts.largest {
                lines.append(
                    printable(
                        "            \(host): \(counted(variants, "variant")), \(ByteCount(bytes))")
                )
            }
        }
        if statistics.runs.storedByWeek.contains(where: { $0 > 0 }) {
            let weeks = statistics.runs.storedByWeek.map { "\(ByteCount($0))" }
            lines.append(
                "stored      \(weeks.joined(separator: ", ")) in the last 4 weeks, latest first")
        }
        if let share = statistics.runs.freshShare {
            let percent = Int((share * 1000).rounded(.down))
            lines.append(
                "fresh       \(percent / 10).\(percent % 10) % of the entries of the last 10 runs"
            )
        }
        lines.append(
            "failures    \(statistics.failures.failures) (\(statistics.failures.blacklisted) blacklisted)"
        )
        if statistics.failures.exclusions > 0 {
            lines.append("excluded    \(counted(statistics.failures.exclusions, "image"))")
        }
        if let run = statistics.runs.last {
            let duration = run.duration.map { ", took \(durationText($0))" } ?? ""
            lines.append("last run    \(run.startedAt)\(duration), \(run.result)")
            if let counters = run.counters {
                lines.append("            \(run.outcomes)")
                lines.append(
                    """
                                \(counted(counters.requests, "request")), \
                    \(ByteCount(counters.bytesReceived)) received, \
                    \(ByteCount(counters.bytesStored)) stored
                    """)
            }
        }
        return lines
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
        if let run = statistics.runs.last {
            add("last_run", JSONObject(run))
        } else {
            addNull("last_run")
        }
    }

    fileprivate init(_ pruning: NextPruning) {
        self.init()
        add("rules", pruning.rules.specification)
        add(pruning.picked)
        add("excess_files", pruning.excess.files)
        add("excess_bytes", pruning.excess.size)
    }

    /// Variants and bytes by name.
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
