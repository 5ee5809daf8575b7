import ArgumentParser
import CacheStorage
import PrefetchModel
import Reporting

struct HistoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Show what earlier runs did.",
        discussion: """
            One line per run, latest first: start, duration, result, requests, bytes received, bytes \
            stored, entries, and their outcomes. The result is the exit status, the signal that \
            stopped the run, `running`, or `killed` if the run never finished. A failure is new if \
            the URL did not fail for the same reason before. The cache keeps the last 10000 runs.

            On a terminal the columns are aligned under a header; elsewhere they are tab-separated, \
            with durations in seconds and sizes in bytes.

            Examples:
              prefetch history -n 5
              prefetch history --failed --since 30d
              prefetch history --json | jq 'select(.new_failures > 0)'
            """)

    @OptionGroup var cache: CacheOptions

    @Option(
        name: [.customShort("n", allowingJoined: true), .customLong("limit")],
        help: .value("n", "Print only the latest N runs."))
    var limit: Int?

    @Option(help: .value("duration", "Only runs that started within this time: 12h, 30d."))
    var since: Duration?

    @Flag(
        help: """
            Only runs without exit status 0: images failed, a signal stopped the run, or it was not \
            completed.
            """)
    var failed = false

    @Flag(help: "Print JSON Lines.")
    var json = false

    private static let columns: [PrintedColumn] = [
        .text("STARTED"), .number("TOOK"), .text("RESULT"), .number("REQUESTS"),
        .number("RECEIVED"), .number("STORED"), .number("ENTRIES"), .text("OUTCOMES"),
    ]

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit (-n) must be at least 1") }
    }

    func run() throws {
        let catalog = try cache.catalog()
        var filter = CacheCatalog.RunFilter()
        filter.limit = limit
        filter.startedSince = since.map { WallClock.now().advanced(by: .zero - $0) }
        filter.onlyFailed = failed
        let runs = try catalog.runs(filter)
        var output = ColumnWriter(HistoryCommand.columns)
        for run in runs {
            if json {
                try output.write(JSONObject(run))
            } else {
                try output.write(row: cells(run, isForPeople: output.isForPeople))
            }
        }
        try output.finish()
    }

    private func cells(_ run: CacheCatalog.LoggedRun, isForPeople: Bool) -> [String] {
        func size(_ bytes: Int) -> String { isForPeople ? "\(ByteCount(bytes))" : "\(bytes)" }
        let duration = run.duration.map { isForPeople ? durationText($0) : secondsText($0) }
        guard let counters = run.counters else {
            return [run.startedAt.description, duration ?? "-", run.result]
                + Array(repeating: "-", count: 5)
        }
        return [
            run.startedAt.description, duration ?? "-", run.result, "\(counters.requests)",
            size(counters.bytesReceived), size(counters.bytesStored), "\(counters.entriesRead)",
            run.outcomes,
        ]
    }

    /// Seconds with three decimals.
    private func secondsText(_ duration: Duration) -> String {
        let milliseconds = duration.wholeMilliseconds
        let fraction = "\(1000 + milliseconds % 1000)".dropFirst()
        return "\(milliseconds / 1000).\(fraction)"
    }
}

extension CacheCatalog.LoggedRun {
    /// The wall-clock duration, at least zero; nil without an end.
    var duration: Duration? {
        guard case .ended(let time, _) = ending else { return nil }
        return max(.zero, time.timeSince(startedAt))
    }

    var signal: Int? {
        guard case .ended(_, let status) = ending, status > 128 else { return nil }
        return status - 128
    }

    /// `exit 1`, `SIGTERM`, `running` or `killed`.
    var result: String {
        switch ending {
        case .running: return "running"
        case .killed: return "killed"
        case .ended(_, let status):
            guard let signal else { return "exit \(status)" }
            return SummaryText.signalName(Int32(truncatingIfNeeded: signal))
        }
    }

    /// `12 downloaded, 2950 fresh, 38 failed (2 new)`; `-` without any entry.
    var outcomes: String {
        guard let counters else { return "-" }
        let parts = Outcome.allCases.filter { counters[$0] > 0 }.map { outcome in
            let new = outcome == .failed ? newFailures.map { " (\($0) new)" } ?? "" : ""
            return "\(counters[outcome]) \(outcome.rawValue)\(new)"
        }
        return parts.isEmpty ? "-" : parts.joined(separator: ", ")
    }
}

extension JSONObject {
    /// A run as `history` and `stats` print it. Members known only at the end may be null.
    init(_ run: CacheCatalog.LoggedRun) {
        self.init()
        add("started_at", run.startedAt)
        switch run.ending {
        case .ended(let time, let status):
            add("state", "ended")
            add("ended_at", time)
            add("exit_status", status)
        case .running, .killed:
            add("state", run.result)
            addNull("ended_at")
            addNull("exit_status")
        }
        add("signal", run.signal)
        add("duration_ms", run.duration)
        add("manifest", run.manifest)
        add("entries", run.counters?.entriesRead)
        let outcomes = run.counters.map { counters in
            var outcomes = JSONObject()
            for outcome in Outcome.allCases { outcomes.add(outcome.rawValue, counters[outcome]) }
            return outcomes
        }
        add("outcomes", outcomes)
        add("requests", run.counters?.requests)
        add("bytes_received", run.counters?.bytesReceived)
        add("bytes_stored", run.counters?.bytesStored)
        add("new_failures", run.newFailures)
    }
}
