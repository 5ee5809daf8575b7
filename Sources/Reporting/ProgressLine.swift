package import PrefetchModel

/// The one line on a terminal that shows where a run is:
/// `prefetch: 1234/3000 41%, 12.0/s, 81.2 MiB, 1.30 MiB/s, 8 in flight, 3 failed, 2 min 27 s left,
/// held up by https://example.com (8 in flight, 1758 waiting)`.
///
/// The rates are those of the last seconds. The host at the end has the most to do, and keeps the run
/// from having more transfers.
///
/// ASCII only, so that its length is its width. On a narrow terminal whole parts are left out, the
/// least needed first. The cursor is never hidden: a killed run leaves the terminal as it was.
package struct ProgressLine: Sendable {
    /// Erases the line and puts the cursor at its beginning.
    package static let clearText = "\r\u{1B}[K"

    private let interval: Duration
    private var lastRendering: ContinuousClock.Instant?
    private var rates = RateEstimator()

    /// - Parameter interval: the least time between two renderings; a tenth of a second unless told.
    package init(interval: Duration = .milliseconds(100)) {
        self.interval = interval
    }

    /// Whether it is time to render again; true counts as a rendering.
    package mutating func shouldRender(at instant: ContinuousClock.Instant) -> Bool {
        if let last = lastRendering, instant < last.advanced(by: interval) { return false }
        lastRendering = instant
        return true
    }

    /// The text to write: erases the line that is there and leaves the cursor behind the new one.
    ///
    /// The rates come from the progress's own `elapsed`. `width` is the terminal's, in columns; the
    /// last one stays free, since a terminal that has written into it may wrap, and erasing to the
    /// end of the line would take that column away.
    package mutating func render(_ progress: RunProgress, width: Int) -> String {
        observe(progress)
        return "\r" + text(progress, width: max(1, width - 1)) + "\u{1B}[K"
    }

    /// The whole text, for a line of its own.
    package mutating func line(_ progress: RunProgress) -> String {
        observe(progress)
        return text(progress, width: .max)
    }

    /// Takes note of where the run is, for the rates.
    package mutating func observe(_ progress: RunProgress) {
        rates.observe(
            seconds: progress.elapsed.secondsValue, entriesDone: progress.counters.entriesDone,
            bytesReceived: progress.counters.bytesReceived)
    }

    /// A part of the line; of those that do not fit the one with the highest rank goes first.
    private struct Part {
        let text: String
        let rank: Int
    }

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

    private func parts(_ progress: RunProgress) -> [Part] {
        let counters = progress.counters
        let done = counters.entriesDone
        var parts: [Part] = []
        if progress.isTotalKnown {
            let total = max(counters.entriesRead, done)
            // Rounded down: 100 % is said only of a run that is done.
            let percent = total > 0 ? Int(Double(done) / Double(total) * 100) : 100
            parts.append(
                Part(text: "\(done)/\(total) \(done < total ? min(percent, 99) : 100)%", rank: 0))
        } else {
            parts.append(Part(text: "\(done) done", rank: 0))
        }
        parts.append(Part(text: "\(rateText(rates.entriesPerSecond))/s", rank: 3))
        if counters.bytesReceived > 0 {
            parts.append(Part(text: ByteCount(counters.bytesReceived).description, rank: 5))
            parts.append(Part(text: byteRateText(rates.bytesPerSecond), rank: 6))
        }
        parts.append(Part(text: "\(progress.inFlight) in flight", rank: 7))
        if counters[.failed] > 0 {
            parts.append(Part(text: "\(counters[.failed]) failed", rank: 1))
        }
        let left = counters.entriesRead - done
        if progress.isTotalKnown, left > 0, let seconds = rates.secondsLeft(entries: left) {
            parts.append(Part(text: "\(wholeDurationText(seconds: seconds)) left", rank: 2))
        }
        if let holdUp = progress.holdUp { parts.append(Part(text: text(of: holdUp), rank: 4)) }
        return parts
    }

    private func text(of holdUp: HoldUp) -> String {
        var details: [String] = []
        if holdUp.inFlight > 0 { details.append("\(holdUp.inFlight) in flight") }
        if holdUp.waiting > 0 { details.append("\(holdUp.waiting) waiting") }
        if let pause = holdUp.pause {
            details.append("next request in \(wholeDurationText(seconds: pause.secondsValue))")
        }
        return "held up by \(printable(holdUp.host)) (\(details.joined(separator: ", ")))"
    }
}
