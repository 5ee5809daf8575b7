package import PrefetchModel

/// The metrics of a run in Prometheus' text format, version 0.0.4, for a collector of text files.
///
/// All are gauges without a timestamp. Each sample has the labels of its ``MetricsJob``, as a
/// collector refuses files that share a sample. Other labels are outcomes and reasons.
package struct MetricsText {
    /// The runs over the same lists into the same cache.
    package struct MetricsJob: Sendable {
        let labels: String

        /// `list` names the lists, without secrets.
        package init(list: String, cache: String) {
            labels = "list=\"\(MetricsJob.value(list))\",cache=\"\(MetricsJob.value(cache))\""
        }

        /// As the format escapes a value: backslash, quotation mark and line feed.
        private static func value(_ text: String) -> String {
            text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map {
                printable(String($0)).replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            }.joined(separator: "\\n")
        }
    }

    private static let lastSuccessName = "last_success_timestamp_seconds"

    private var lines: [String] = []
    private let job: MetricsJob

    /// `lastSuccess` is the end of the job's last run with exit status 0; nil before the first.
    package init(
        _ summary: RunSummary, of job: MetricsJob, endedAt: Timestamp, lastSuccess: Timestamp?
    ) {
        self.job = job
        let counters = summary.counters
        add("last_run_timestamp_seconds", "End of the last run.", MetricsText.seconds(endedAt))
        add(
            MetricsText.lastSuccessName, "End of the last run with exit status 0, 0 for none.",
            lastSuccess.map(MetricsText.seconds) ?? "0")
        add(
            "last_run_duration_seconds", "Duration of the last run.",
            secondsText(milliseconds: summary.elapsed.wholeMilliseconds))
        add("last_run_exit_status", "Exit status of the last run.", "\(summary.exitStatus)")
        add(
            "entries", "Entries of the last run by outcome.", label: "outcome",
            Outcome.allCases.map { ($0.rawValue, counters[$0]) })
        add(
            "failures", "Failed, blacklisted and excluded entries of the last run by reason.",
            label: "reason",
            FailureReason.allCases.map {
                ($0.rawValue, counters[$0] + counters.blacklisted(for: $0))
            })
        add(
            "known_failures", "Failed and blacklisted entries that had failed in an earlier run.",
            "\(counters.knownFailures + counters[.blacklisted])")
        add(
            "outage_entries", "Entries that fail by an outage, reported or not; 0 without one.",
            "\(summary.outage?.failures ?? 0)")
        let lists = summary.lists ?? ListCounts()
        add("lists", "Lists by URL of the last run.", label: "source", lists.bySource)
        add("requests", "Requests of the last run.", "\(counters.requests)")
        add("received_bytes", "Bytes received by the last run.", "\(counters.bytesReceived)")
        add("stored_bytes", "Bytes stored by the last run.", "\(counters.bytesStored)")
    }

    /// The ``init(_:of:endedAt:lastSuccess:)`` argument that wrote a text for a job; nil for 0, and
    /// for any other text.
    package static func lastSuccess(of job: MetricsJob, in text: String) -> Timestamp? {
        let start = "prefetch_\(lastSuccessName){\(job.labels)} "
        let value = text.split(separator: "\n").first { $0.hasPrefix(start) }
            .flatMap { Double($0.dropFirst(start.count)) }
        guard let value, value > 0, value < 1e11 else { return nil }
        return Timestamp(milliseconds: Int64((value * 1000).rounded()))
    }

    /// The text, with a final line end.
    package var text: String { lines.joined(separator: "\n") + "\n" }

    private mutating func add(
        _ name: String, _ help: String, label: String, _ values: [(name: String, count: Int)]
    ) {
        add(name, help, values.map { (",\(label)=\"\($0)\"", "\($1)") })
    }

    private mutating func add(_ name: String, _ help: String, _ value: String) {
        add(name, help, [("", value)])
    }

    private mutating func add(
        _ name: String, _ help: String, _ values: [(labels: String, value: String)]
    ) {
        lines += ["# HELP prefetch_\(name) \(help)", "# TYPE prefetch_\(name) gauge"]
        lines += values.map { "prefetch_\(name){\(job.labels)\($0)} \($1)" }
    }

    private static func seconds(_ time: Timestamp) -> String {
        secondsText(milliseconds: time.milliseconds)
    }
}
