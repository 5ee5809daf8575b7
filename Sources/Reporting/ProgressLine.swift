internal import Glibc
package import PrefetchModel

/// The progress line on a terminal:
/// `prefetch: 1234/3000 41%, 12.0/s, 81.2 MiB, 1.30 MiB/s, 8 in flight, 3 failed, 2 min 27 s left,
/// held up by https://example.com (24 at once, 310/s, 1758 waiting)`.
///
/// The rates cover the last seconds. The host at the end has most entries left, and its limit keeps
/// the run from using more transfers.
///
/// ASCII only, so that the length is the width. A narrow terminal gets fewer parts, most important
/// first. The cursor is never hidden, so a killed run leaves the terminal usable.
package struct ProgressLine: Sendable {
    /// Erases the line and puts the cursor at its beginning.
    package static let clearText = "\r\u{1B}[K"

    /// The shortest time between two renderings.
    private static let interval = Duration.milliseconds(100)
    private var lastRendering: ContinuousClock.Instant?
    private var rates = RateEstimator()

    package mutating func shouldRender(at instant: ContinuousClock.Instant) -> Bool {
        if let lastRendering, instant < lastRendering + ProgressLine.interval { return false }
        lastRendering = instant
        return true
    }

    /// The text to write: erases the current line and leaves the cursor behind the new one.
    ///
    /// The rates are based on the progress's own `elapsed`. `width` is the terminal's, in columns.
    /// The last column stays empty, since a terminal may wrap after writing into it.
    package mutating func render(_ progress: RunProgress, width: Int) -> String {
        observe(progress)
        return "\r" + text(progress, width: max(1, width - 1)) + "\u{1B}[K"
    }

    package mutating func line(_ progress: RunProgress) -> String {
        observe(progress)
        return text(progress, width: .max)
    }

    package mutating func observe(_ progress: RunProgress) {
        rates.observe(
            seconds: progress.elapsed.secondsValue, entriesDone: progress.counters.entriesFinished,
            bytesReceived: progress.counters.bytesReceived)
    }

    /// A part of the line. If the line is too long, the part with the highest rank is removed.
    private typealias LinePart = (text: String, rank: Int)

    private func text(_ progress: RunProgress, width: Int) -> String {
        var parts = parts(progress)
        func joined() -> String { parts.map(\.text).joined(separator: ", ") }
        let prefix = "prefetch: "
        var line = joined()
        while line.utf8.count > width,
            let index = parts.indices.max(by: { parts[$0].rank < parts[$1].rank }),
            parts[index].rank > 0
        {
            parts.remove(at: index)
            line = joined()
        }
        if prefix.utf8.count + line.utf8.count <= width { line = prefix + line }
        return String(line.prefix(width))
    }

    private func parts(_ progress: RunProgress) -> [LinePart] {
        let counters = progress.counters
        let done = counters.entriesFinished
        var parts: [LinePart] = []
        if progress.isTotalKnown {
            let total = max(counters.entriesRead, done)
            // Rounded down: 100 % means that the run is done.
            let percent = total > 0 ? Int(Double(done) / Double(total) * 100) : 100
            let shown = done < total ? min(percent, 99) : 100
            parts.append(("\(done)/\(total) \(shown)%", 0))
        } else {
            parts.append(("\(done) done", 0))
        }
        parts.append(("\(rateText(rates.entriesPerSecond))/s", 3))
        if counters.bytesReceived > 0 {
            parts.append((ByteCount(counters.bytesReceived).description, 5))
            parts.append((byteRateText(rates.bytesPerSecond), 6))
        }
        parts.append(("\(progress.inFlight) in flight", 7))
        if counters[.failed] > 0 {
            parts.append(("\(counters[.failed]) failed", 1))
        }
        if progress.isStopping {
            parts.append(("stopping, ^C again to quit now", 0))
            return parts
        }
        let left = counters.entriesRead - done
        if progress.isTotalKnown, left > 0, let seconds = rates.secondsLeft(entries: left) {
            parts.append(("\(wholeDurationText(seconds: seconds)) left", 2))
        }
        if let holdUp = progress.holdUp { parts.append((text(of: holdUp), 4)) }
        return parts
    }

    private func text(of holdUp: HoldUp) -> String {
        var details: [String] = []
        if holdUp.inFlight > 0 { details.append("\(holdUp.inFlight) at once") }
        if let rate = holdUp.perSecond { details.append("\(rateText(rate))/s") }
        if holdUp.waiting > 0 { details.append("\(holdUp.waiting) waiting") }
        if let pause = holdUp.pause {
            details.append("next request in \(wholeDurationText(seconds: pause.secondsValue))")
        }
        return "held up by \(printable(holdUp.host)) (\(details.joined(separator: ", ")))"
    }
}

/// Smoothed rates of a run, for the progress line.
///
/// Two exponentially weighted means, over about 3 and 15 seconds. If they agree, the rate is steady
/// enough for a prediction. After a series of fresh entries, or when an origin stalls, the short
/// mean departs from the long one at once.
struct RateEstimator: Sendable {
    /// A mean of rates; their weights fall by a factor of e every `timeConstant` seconds. Dividing
    /// by the sum of weights keeps the first seconds from being too low.
    private struct Mean {
        let timeConstant: Double
        var sum = 0.0
        var weight = 0.0

        mutating func observe(_ amount: Double, over seconds: Double) {
            let kept = exp(-seconds / timeConstant)
            sum = sum * kept + amount / seconds * (1 - kept)
            weight = weight * kept + (1 - kept)
        }

        var value: Double { weight > 0 ? sum / weight : 0 }
    }

    private var shortEntries = Mean(timeConstant: 3)
    private var longEntries = Mean(timeConstant: 15)
    private var shortBytes = Mean(timeConstant: 3)
    private var lastSeconds = 0.0
    private var lastEntries = 0
    private var lastBytes = 0

    /// Adds the totals at `seconds` since the run's start, on its monotonic clock. An observation
    /// that isn't later than the previous one is ignored.
    mutating func observe(seconds: Double, entriesDone: Int, bytesReceived: Int) {
        let span = seconds - lastSeconds
        guard span > 0 else { return }
        let entries = Double(max(0, entriesDone - lastEntries))
        shortEntries.observe(entries, over: span)
        longEntries.observe(entries, over: span)
        shortBytes.observe(Double(max(0, bytesReceived - lastBytes)), over: span)
        lastSeconds = seconds
        lastEntries = entriesDone
        lastBytes = bytesReceived
    }

    var entriesPerSecond: Double { shortEntries.value }
    var bytesPerSecond: Double { shortBytes.value }

    /// Predicted seconds; nil in a run's first 3 seconds, and while the means differ by over half.
    func secondsLeft(entries: Int) -> Double? {
        let (short, long) = (shortEntries.value, longEntries.value)
        guard lastSeconds >= 3, short > 0, long > 0, short < long * 1.5, long < short * 1.5 else {
            return nil
        }
        return Double(entries) / long
    }
}

/// The progress of a run for other processes, as JSON and as text.
package struct RunStatus: Sendable {
    package let json: [UInt8]
    package let text: [String]
}

extension ProgressLine {
    private static let shownHosts = 5

    /// The progress with its hosts, after it was observed.
    func status(
        _ progress: RunProgress, _ hosts: [HostPace], at now: Timestamp, process: Int32
    ) -> RunStatus {
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
        let lines = hosts.prefix(ProgressLine.shownHosts).map {
            "  \(printable($0.host)): \(counted($0.responses, "response")), "
                + "\(rateText($0.perSecond))/s, \(counted($0.refusals, "refusal"))"
        }
        let line = parts(progress).map(\.text).joined(separator: ", ")
        return RunStatus(json: object.bytes, text: [line] + lines)
    }
}
