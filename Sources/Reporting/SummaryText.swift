package import PrefetchModel

/// The end of a run for people: a few lines for a terminal, or for the mail that cron sends.
///
/// ```
/// prefetch: 3000 entries: 2950 downloaded, 40 fresh, 10 failed
///   failed: 6 http-status, 3 dns, 1 corrupt-image
///   m.txt:12: https://example.org/a.jpg: http-status: 404 Not Found
///   ... and 9 more
///   an outage: 200 of 210 entries failed with connect, so none of these failures blocks
///   received 225 MiB in 2961 requests, stored 180 MiB (80.0 % of received)
///   took 4.2 s: 714 entries/s, 53.6 MiB/s
///   cache: /var/cache/prefetch
/// hint: --report FILE writes one line for each entry
/// ```
/// The first line says how the run went; lines with nothing to say are left out. With colour the
/// first line is bold, and red when something failed; the words are the same without.
package struct SummaryText: Sendable {
    /// Failing entries that are listed; of the others only the number is kept.
    package static let listedFailures = 10

    /// Whether the report was written to a file, so that the advice to write one is left out.
    package var hasReport = false
    package var usesColor = false
    private var failures: [String] = []

    package init() {}

    /// Takes note of an entry; of the outcome `failed`, the first ten are kept as lines.
    package mutating func note(_ result: EntryResult) {
        guard result.outcome == .failed, failures.count < SummaryText.listedFailures else { return }
        failures.append(SummaryText.line(result))
    }

    /// `m.txt:12: URL: reason: message`, printable and redacted.
    static func line(_ result: EntryResult) -> String {
        var text = "\(result.manifest):\(result.line): \(RedactedURL(result.url)): "
        text += result.reason?.rawValue ?? result.outcome.rawValue
        if let message = result.message { text += ": \(redacted(message))" }
        return printable(text)
    }

    /// The lines, each with its line end.
    package func render(_ summary: RunSummary) -> String {
        var lines: [String] = []
        if let message = summary.fatalMessage {
            lines.append(styled("prefetch: \(printable(redacted(message)))", isBad: true))
        }
        if let signal = summary.stoppedBySignal {
            lines.append("prefetch: stopped by \(SummaryText.signalName(signal))")
        }
        let hasFailures = summary.counters[.failed] > 0
        let hasNothing = summary.counters.entriesRead == 0
        if !hasNothing || summary.fatalMessage == nil {
            lines.append(styled(headline(summary.counters), isBad: hasFailures))
        }
        lines += failureLines(summary.counters)
        if let outage = summary.outage { lines.append("  \(printable(outage.description))") }
        lines += costLines(summary)
        lines.append("  cache: \(printable(summary.cacheDirectory))")
        lines += hints(summary)
        return lines.map { $0 + "\n" }.joined()
    }

    private func headline(_ counters: RunCounters) -> String {
        let entries = counters.entriesRead
        guard entries > 0 else { return "prefetch: 0 entries: there was nothing to do" }
        let counts = Outcome.allCases.filter { counters[$0] > 0 }
            .map { "\(counters[$0]) \($0.rawValue)" }
        let head = "prefetch: \(entries) \(entries == 1 ? "entry" : "entries")"
        return counts.isEmpty ? head : "\(head): \(counts.joined(separator: ", "))"
    }

    private func failureLines(_ counters: RunCounters) -> [String] {
        guard counters[.failed] > 0 else { return [] }
        let order = FailureReason.allCases.enumerated()
            .filter { counters[$0.element] > 0 }
            .sorted { (-counters[$0.element], $0.offset) < (-counters[$1.element], $1.offset) }
        let counts = order.map { "\(counters[$0.element]) \($0.element.rawValue)" }
        var lines = counts.isEmpty ? [] : ["  failed: \(counts.joined(separator: ", "))"]
        lines += failures.map { "  \($0)" }
        let others = counters[.failed] - failures.count
        if others > 0, !failures.isEmpty { lines.append("  ... and \(others) more") }
        return lines
    }

    private func costLines(_ summary: RunSummary) -> [String] {
        let counters = summary.counters
        var lines: [String] = []
        if counters.requests > 0 || counters.bytesReceived > 0 || counters.bytesStored > 0 {
            let requests = "\(counters.requests) \(counters.requests == 1 ? "request" : "requests")"
            var line = "  received \(ByteCount(max(0, counters.bytesReceived))) in \(requests)"
            line += ", stored \(ByteCount(max(0, counters.bytesStored)))"
            if counters.bytesReceived > 0, counters.bytesStored > 0 {
                let ratio = Double(counters.bytesStored) / Double(counters.bytesReceived) * 100
                line += " (\(decimal(ratio, places: 1)) % of received)"
            }
            lines.append(line)
        }
        var line = "  took \(durationText(summary.elapsed))"
        if let rate = summary.perSecond(counters.entriesDone), counters.entriesDone > 0 {
            line += ": \(rateText(rate)) entries/s"
            if let bytes = summary.perSecond(counters.bytesReceived), counters.bytesReceived > 0 {
                line += ", \(byteRateText(bytes))"
            }
        }
        lines.append(line)
        return lines
    }

    private func hints(_ summary: RunSummary) -> [String] {
        var lines = summary.fatalHint.map { ["hint: \(printable($0))"] } ?? []
        if summary.counters[.failed] > failures.count, !hasReport {
            lines.append("hint: --report FILE writes one line for each entry")
        }
        if summary.counters[.blacklisted] > 0 {
            lines.append("hint: --retry-failed asks blacklisted URLs again")
        }
        if summary.counters[.cancelled] > 0 {
            lines.append("hint: the same command goes on from here; what is fresh is not fetched")
        }
        return lines
    }

    private func styled(_ text: String, isBad: Bool) -> String {
        guard usesColor else { return text }
        return "\u{1B}[\(isBad ? "1;31" : "1")m\(text)\u{1B}[0m"
    }

    /// `SIGTERM`, or `signal 44` for one without a common name (numbers of Linux).
    package static func signalName(_ number: Int32) -> String {
        switch number {
        case 1: "SIGHUP"
        case 2: "SIGINT"
        case 3: "SIGQUIT"
        case 13: "SIGPIPE"
        case 15: "SIGTERM"
        default: "signal \(number)"
        }
    }
}
