import PrefetchModel

/// The progress of a run for other processes, as JSON and as text.
package struct RunStatus: Sendable {
    package let json: [UInt8]
    package let text: [String]

    private static let shownHosts = 5

    init(
        _ progress: RunProgress, _ hosts: [HostPace], at now: Timestamp, process: Int32,
        line: String, rates: RateEstimator
    ) {
        let counters = progress.counters
        var object = JSONObject()
        object.add("type", "status")
        object.add("schema_version", 1)
        object.add("pid", Int(process))
        object.add("started_at", now.advanced(by: .zero - progress.elapsed))
        object.add("updated_at", now)
        object.add("elapsed_ms", progress.elapsed)
        object.add("entries_read", counters.entriesRead)
        object.add("lists_read", progress.isTotalKnown)
        object.add("entries_done", counters.entriesFinished)
        var outcomes = JSONObject()
        for outcome in Outcome.allCases { outcomes.add(outcome.rawValue, counters[outcome]) }
        object.add("outcomes", outcomes)
        object.add("in_flight", progress.inFlight)
        object.add("requests", counters.requests)
        object.add("bytes_received", counters.bytesReceived)
        object.add("entries_per_second", rates.entriesPerSecond)
        object.add("bytes_per_second", rates.bytesPerSecond)
        let left = counters.entriesRead - counters.entriesFinished
        let seconds = progress.isTotalKnown ? rates.secondsLeft(entries: left) : nil
        object.add("seconds_left", seconds)
        object.add("stopping", progress.isStopping)
        object.add("held_up_by", progress.holdUp?.host)
        object.add(
            "hosts",
            hosts.map { pace in
                var host = JSONObject()
                host.add("host", pace.host)
                host.add("responses", pace.responses)
                host.add("refusals", pace.refusals)
                host.add("concurrency", pace.concurrency)
                host.add("per_second", pace.perSecond)
                return host
            })
        json = object.bytes
        text =
            [line]
            + hosts.prefix(RunStatus.shownHosts).map {
                "  \(printable($0.host)): \(counted($0.responses, "response")), "
                    + "\(rateText($0.perSecond))/s, \(counted($0.refusals, "refusal"))"
            }
    }
}
