package import PrefetchModel

/// The metrics of a run in Prometheus' text format, version 0.0.4, for a collector of text files.
///
/// All are gauges without a timestamp. Labels are outcomes and reasons, never URLs or hosts.
package struct MetricsText {
    private var lines: [String] = []

    /// `lastSuccess` is the end of the last run with exit status 0.
    package init(_ summary: RunSummary, endedAt: Timestamp, lastSuccess: Timestamp?) {
        let counters = summary.counters
        add("last_run_timestamp_seconds", "End of the last run.", MetricsText.seconds(endedAt))
        if let lastSuccess {
            add(
                "last_success_timestamp_seconds", "End of the last run with exit status 0.",
                MetricsText.seconds(lastSuccess))
        }
        add(
            "last_run_duration_seconds", "Duration of the last run.",
            secondsText(milliseconds: summary.elapsed.wholeMilliseconds))
        add("last_run_exit_status", "Exit status of the last run.", "\(summary.exitStatus)")
        add(
            "entries", "Entries of the last run by outcome.", label: "outcome",
            Outcome.allCases.map { ($0.rawValue, counters[$0]) })
        add(
            "failures", "Failed and excluded entries of the last run by reason.", label: "reason",
            FailureReason.allCases.map { ($0.rawValue, counters[$0]) })
        let lists = summary.lists ?? ListCounts()
        add("lists", "Lists by URL of the last run.", label: "source", lists.bySource)
        add("requests", "Requests of the last run.", "\(counters.requests)")
        add("received_bytes", "Bytes received by the last run.", "\(counters.bytesReceived)")
        add("stored_bytes", "Bytes stored by the last run.", "\(counters.bytesStored)")
    }

    /// The text, with a final line end.
    package var text: String { lines.joined(separator: "\n") + "\n" }

    private mutating func add(
        _ name: String, _ help: String, label: String, _ values: [(name: String, count: Int)]
    ) {
        add(name, help, values.map { ("{\(label)=\"\($0)\"}", "\($1)") })
    }

    private mutating func add(_ name: String, _ help: String, _ value: String) {
        add(name, help, [("", value)])
    }

    private mutating func add(
        _ name: String, _ help: String, _ values: [(labels: String, value: String)]
    ) {
        lines += ["# HELP prefetch_\(name) \(help)", "# TYPE prefetch_\(name) gauge"]
        lines += values.map { "prefetch_\(name)\($0) \($1)" }
    }

    private static func seconds(_ time: Timestamp) -> String {
        secondsText(milliseconds: time.milliseconds)
    }
}
