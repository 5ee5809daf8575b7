import PrefetchModel

/// The text summary of a run, for a terminal or cron's mail.
///
/// ```
/// prefetch: 3000 entries: 2950 downloaded, 28 fresh, 12 blacklisted, 10 failed
///   failed: 6 http-status, 3 dns, 1 corrupt-image
///   6 at https://example.org: http-status, first m.txt:12: https://example.org/a.jpg: HTTP 404
///   m.txt:9: https://example.net/b.jpg: corrupt-image: Premature end of JPEG file
///   m.txt:3: https://example.org/c.jpg: blacklisted: failed with HTTP 410; next try after …
///   ... and 11 more blacklisted
///   received 225 MiB in 2961 requests, stored 180 MiB (80.0 % of received)
///   took 4.2 s: 714 entries/s, 53.6 MiB/s
///   cache: /var/cache/prefetch
/// hint: `prefetch failed list` lists the failed URLs
/// ```
/// The first line has the counts. Outages that have ended, and one that explains most failures,
/// follow. Empty lines are omitted. Failures with one cause are one line, see ``FailureGroups``.
/// With colour the first line is bold, and red if something failed.
package struct SummaryText: Sendable {
    /// The limits of lines about failures, and about blacklisted entries; the rest is only counted.
    static let listedFailures = 10
    /// Shorter and smaller runs get no rates, which would be meaningless.
    private static let leastRatedTime = Duration.seconds(1)
    private static let leastRatedEntries = 100

    /// Whether a report was written, so that no hint suggests one.
    var hasReport = false
    /// Whether the cache has the failures, so that a hint names `prefetch failed`.
    var remembersFailures = true
    var usesColor = false
    /// Whether known failures are only counted.
    var isQuiet = false
    private var failures = FailureGroups()
    /// Whether a URL among the arguments was not an image.
    private(set) var hasForeignArgument = false
    /// The first lines about entries that were neither warm nor requested.
    private var blacklisted: [String] = []
    private var excluded: [String] = []

    mutating func note(_ result: EntryResult) {
        switch result.outcome {
        case .failed:
            failures.note(result)
            if result.reason == .notAnImage, result.manifest == EntryBatch.nameOfArguments {
                hasForeignArgument = true
            }
        case .blacklisted: SummaryText.note(result, in: &blacklisted)
        case .excluded where !isQuiet || result.reason?.isExclusion != true:
            SummaryText.note(result, in: &excluded)
        default: break
        }
    }

    private static func lines(of shard: ShardResult) -> [String] {
        let others = entries(shard.otherEntries)
        let place = shard.shard
        var lines = ["  shard \(place.index) of \(place.count); \(others) are in others"]
        if shard.redirectsElsewhere > 0 {
            lines.append(
                "  \(entries(shard.redirectsElsewhere)) redirected to hosts of other shards")
        }
        return lines
    }

    private static func note(_ result: EntryResult, in lines: inout [String]) {
        guard lines.count < SummaryText.listedFailures else { return }
        lines.append(
            "\(result.shownEntry): \(result.outcome.rawValue)"
                + (result.shownMessage.map { ": \($0)" } ?? ""))
    }

    private static func text(of limit: RunLimit) -> String {
        switch limit {
        case .entries: "ended at the number of requests (--limit)"
        case .deadline: "ended at its deadline"
        case .failure: "ended at a failure (--fail-fast)"
        }
    }

    func render(_ summary: RunSummary) -> String {
        var lines: [String] = []
        if let message = summary.fatalMessage {
            lines.append(styled("prefetch: \(printable(redacted(message)))", isBad: true))
        }
        if let signal = summary.stoppedBySignal {
            lines.append("prefetch: stopped by \(SummaryText.signalName(signal))")
        }
        if let limit = summary.endedBy {
            lines.append("prefetch: \(SummaryText.text(of: limit)); the rest is left")
        }
        let hasFailures = summary.counters[.failed] > 0
        let hasNothing = summary.counters.entriesRead == 0
        let hasEnd =
            summary.fatalMessage != nil || summary.endedBy != nil
            || summary.stoppedBySignal != nil
        if !hasNothing || !hasEnd {
            lines.append(styled(headline(summary.counters), isBad: hasFailures))
        }
        lines += summary.endedOutages.map { "  \(printable($0))" }
        if let outage = summary.outage, !(isQuiet && summary.isOutageKnown) {
            let text = outage.text(httpStatus: failures.commonStatus(of: outage))
            lines.append("  \(printable(text))")
        }
        let listed = listedGroups(summary)
        lines += failureLines(summary, listed)
        let exclusions =
            summary.counters[.excluded] - (isQuiet ? summary.counters.excludedImages : 0)
        lines += SummaryText.lines(of: excluded, .excluded, count: exclusions)
        if summary.skipped.count > 0 {
            let rows = counted(summary.skipped.count, "row")
            let first = printable(summary.skipped.first)
            lines.append("  skipped: \(rows) without a URL, first \(first)")
        }
        lines += imageLines(summary.counters)
        lines += summary.lostVariants.sorted { $0.key < $1.key }.map { name, count in
            "  variant \(name) of \(counted(count, "changed image")) cannot be made again"
        }
        lines += knownLines(summary.counters)
        lines += costLines(summary)
        if summary.sandbox.isLess, let text = summary.sandbox.text {
            lines.append("  sandbox: \(printable(text))")
        }
        if let sink = summary.sink, sink.isDone {
            let (files, size) = (counted(sink.uploaded, "file"), ByteCount(sink.uploadedBytes))
            lines.append("  \(sink.url): \(files) copied (\(size)), \(sink.present) there")
        }
        if let shard = summary.shard { lines += SummaryText.lines(of: shard) }
        lines += hostLines(summary)
        lines.append("  cache: \(printable(summary.cacheDirectory))")
        let named = listed.count { $0.count == 1 }
        lines += hostHints(summary, listed)
        lines += hints(summary, listsAllFailures: named >= listableFailures(summary))
        return lines.map { $0 + "\n" }.joined()
    }

    private func headline(_ counters: RunCounters) -> String {
        let entries = counters.entriesRead
        guard entries > 0 else { return "prefetch: 0 entries: nothing to do" }
        let counts = Outcome.allCases.filter { counters[$0] > 0 }
            .map { "\(counters[$0]) \($0.rawValue)" }
        let head = "prefetch: \(SummaryText.entries(entries))"
        return counts.isEmpty ? head : "\(head): \(counts.joined(separator: ", "))"
    }

    static func entries(_ count: Int) -> String { "\(count) \(count == 1 ? "entry" : "entries")" }

    func listedGroups(_ summary: RunSummary) -> [FailureGroups.CauseGroup] {
        let groups = failures.ordered(
            outage: summary.outage, isNews: { $0.isNews(in: summary) }
        ) { cause in
            // The first line has the cause that ended the run, such as a full disk.
            !(cause.reason == .disk && summary.fatalMessage != nil) && !(isQuiet && cause.isKnown)
        }
        return Array(groups.prefix(SummaryText.listedFailures))
    }

    /// The number of failures to list, before any limit.
    private func listableFailures(_ summary: RunSummary) -> Int {
        let counters = summary.counters
        return counters[.failed] - (summary.fatalMessage == nil ? 0 : counters[.disk])
            - (isQuiet ? counters.knownFailures : 0)
    }

    private func failureLines(
        _ summary: RunSummary, _ listed: [FailureGroups.CauseGroup]
    ) -> [String] {
        let counters = summary.counters
        guard counters[.failed] > 0 else { return [] }
        let order = FailureReason.allCases.enumerated()
            .filter { counters[$0.element] > 0 && !$0.element.isExclusion }
            .sorted { (-counters[$0.element], $0.offset) < (-counters[$1.element], $1.offset) }
        let counts = order.map { "\(counters[$0.element]) \($0.element.rawValue)" }
        var lines = counts.isEmpty ? [] : ["  failed: \(counts.joined(separator: ", "))"]
        lines += listed.map { "  \($0.line)" }
        let others = listableFailures(summary) - listed.reduce(0) { $0 + $1.count }
        if others > 0, !listed.isEmpty { lines.append("  ... and \(others) more") }
        return lines
    }

    /// Lines about images that were excluded, stored without decoding, or not stored.
    private func imageLines(_ counters: RunCounters) -> [String] {
        var lines: [String] = []
        let reasons = FailureReason.allCases.filter { $0.isExclusion && counters[$0] > 0 }
        if !reasons.isEmpty {
            let counts = reasons.map { "\(counters[$0]) \($0.rawValue)" }
            lines.append("  excluded: \(counts.joined(separator: ", "))")
        }
        if counters[.requested] > 0 {
            lines.append("  from caches on the way: \(counters.edgeHits) (Age, X-Cache)")
        }
        if counters.seeded > 0 {
            lines.append("  taken from the seed cache: \(counters.seeded)")
        }
        if counters.notDecoded > 0 {
            lines.append("  stored unchanged, not decoded: \(counters.notDecoded)")
        }
        return lines
    }

    /// Blacklisted entries; for a quiet run, the number of known failures.
    private func knownLines(_ counters: RunCounters) -> [String] {
        if isQuiet {
            let count = counters[.blacklisted] + counters.knownFailures
            guard count > 0 else { return [] }
            return ["  \(counted(count, "known failure")) not listed"]
        }
        return SummaryText.lines(
            of: blacklisted, .blacklisted, count: counters[.blacklisted])
    }

    private static func lines(
        of samples: [String], _ outcome: Outcome, count: Int
    ) -> [String] {
        let others = count - samples.count
        return samples.map { "  \($0)" }
            + (others > 0 && !samples.isEmpty
                ? ["  ... and \(others) more \(outcome.rawValue)"] : [])
    }

    private func costLines(_ summary: RunSummary) -> [String] {
        let counters = summary.counters
        var lines: [String] = []
        if counters.requests > 0 || counters.bytesReceived > 0 || counters.bytesStored > 0 {
            var line = "  received \(ByteCount(max(0, counters.bytesReceived))) in "
            line += "\(counted(counters.requests, "request")), "
            line += "stored \(ByteCount(max(0, counters.bytesStored)))"
            if summary.hasSeveralVariants {
                line += " in \(counted(counters.variantsMade, "variant"))"
            }
            // The ratio is meaningless unless every stored image was downloaded.
            if counters[.downloaded] > 0, counters[.derived] == 0, counters[.revalidated] == 0,
                counters.bytesReceived > 0, counters.bytesStored > 0
            {
                let ratio = Double(counters.bytesStored) / Double(counters.bytesReceived) * 100
                line += " (\(decimal(ratio, places: 1)) % of received)"
            }
            lines.append(line)
        }
        if let gap = summary.unlistedKeptBy {
            lines.append("  nothing removed: \(printable(redacted(gap.description)))")
        }
        if let pruned = summary.pruned, pruned.variants > 0 {
            let variants = counted(pruned.variants, "variant")
            lines.append(
                "  pruned \(counted(pruned.images, "image")) (\(variants)), "
                    + "\(ByteCount(pruned.bytes))")
        }
        var line = "  took \(durationText(summary.elapsed))"
        if summary.elapsed >= SummaryText.leastRatedTime,
            counters.entriesFinished >= SummaryText.leastRatedEntries,
            let rate = summary.perSecond(counters.entriesFinished)
        {
            line += ": \(rateText(rate)) entries/s"
            if let bytes = summary.perSecond(counters.bytesReceived), counters.bytesReceived > 0 {
                line += ", \(byteRateText(bytes))"
            }
        }
        lines.append(line)
        return lines
    }

    private func hostLines(_ summary: RunSummary) -> [String] {
        guard !isQuiet, summary.elapsed >= SummaryText.leastRatedTime else { return [] }
        return summary.hosts.filter { $0.requests >= SummaryText.leastRatedEntries }.map { pace in
            var line = "  \(printable(pace.host)): \(counted(pace.requests, "request")), "
            if let times = pace.times {
                line += "p50 \(durationText(times.median)), "
                line += "p95 \(durationText(times.percentile95)), "
            }
            if pace.failures.count > 0 { line += "\(counted(pace.failures.count, "failure")), " }
            line += "\(pace.concurrency) at once, \(rateText(pace.perSecond))/s, "
            line += pace.version.rawValue
            if pace.refusals > 0 { line += ", \(counted(pace.refusals, "refusal"))" }
            if let limit = pace.limit { line += ", limited by \(limit.rawValue)" }
            return line
        }
    }

    private func styled(_ text: String, isBad: Bool) -> String {
        guard usesColor else { return text }
        return "\u{1B}[\(isBad ? "1;31" : "1")m\(text)\u{1B}[0m"
    }

    /// `SIGTERM`, or `signal 44` for a signal without a common name (Linux numbers).
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
