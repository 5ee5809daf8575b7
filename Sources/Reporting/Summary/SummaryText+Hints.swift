import PrefetchModel

// The last lines of the summary

extension SummaryText {
    private static let mostHostHints = 3

    /// Hints about hosts with failures or refusals, unless a line above or an outage explains them.
    func hostHints(_ summary: RunSummary, _ listed: [FailureGroups.CauseGroup]) -> [String] {
        guard !isQuiet, summary.outage == nil, summary.fatalMessage == nil else { return [] }
        let messages = listed.compactMap(\.sample.shownMessage)
        return summary.hosts.compactMap { pace in
            HostHint(pace).map { (printable(pace.host), $0) }
        }
        .filter { _, hint in
            hint.isAboutTrouble && !messages.contains { $0.hasSuffix(hint.advice) }
        }
        .prefix(SummaryText.mostHostHints).map { "hint: \($0): \($1.text)" }
    }

    func hints(_ summary: RunSummary, listsAllFailures: Bool) -> [String] {
        var lines = summary.fatalHint.map { ["hint: \(printable($0))"] } ?? []
        if summary.outage != nil, !(isQuiet && summary.isOutageKnown) {
            lines.append(
                "hint: `prefetch doctor --online` looks for the cause; `prefetch hosts` shows the hosts"
            )
        } else if !listsAllFailures {
            let counters = summary.counters
            if remembersFailures, SummaryText.rememberedFailures(counters) > 0 {
                lines.append("hint: `prefetch failed list` lists the failed URLs")
            } else if counters[.dns] + counters[.connect] + counters[.tls] > 0 {
                lines.append("hint: `prefetch hosts` shows the hosts that do not respond")
            } else if !hasReport {
                lines.append("hint: --report FILE writes one line per entry")
            }
        }
        // A run that did not read its lists to their end needs another one.
        if summary.unlistedKeptBy?.place.isEmpty == false { lines.append("hint: \(ListGap.hint)") }
        if hasForeignArgument { lines.append("hint: `--list URL` reads a list of images") }
        if summary.counters[.blacklisted] > 0 {
            lines.append(
                "hint: `prefetch failed list --blacklisted` lists blacklisted URLs; "
                    + "--retry-failed requests them again")
        }
        if summary.counters[.cancelled] > 0, summary.counters[.requested] == 0 {
            lines.append(
                "hint: run the same command again to resume; fresh images are not downloaded again")
        }
        return lines
    }

    /// The failures with a row of their own. Failures at unreachable hosts may have no row.
    private static func rememberedFailures(_ counters: RunCounters) -> Int {
        let others: [FailureReason] = [
            .invalidEntry, .unsupportedScheme, .refusedAddress, .bodyFilter, .disk, .internal, .dns,
            .connect, .tls,
        ]
        return counters[.failed] - others.reduce(0) { $0 + counters[$1] }
    }
}

/// The hint about a host: the cause of most failures, else refusals, else its pace's limit.
struct HostHint {
    /// The hint without its host: `28 of 30 failures are HTTP 403: access is denied; see …`.
    let text: String
    /// The part of the text that messages about single entries may have, too.
    let advice: String
    /// Whether it explains failures or refusals. Other hints are no news to the author of a list.
    let isAboutTrouble: Bool

    /// Fewer failures or refusals say nothing about a host.
    private static let leastTrouble = 3
    private static let leastResponses = 100

    init?(_ pace: HostPace) {
        // Advice is about requests, which files and `data:` URLs do not have.
        guard !RequestURL(normalized: pace.host).isLocal else { return nil }
        if pace.failures.count >= HostHint.leastTrouble, let (cause, count) = pace.failures.main,
            let advice = Advice.about(cause, isPaceRefused: pace.isPaceRefused)
        {
            let name = cause.httpStatus.map { "HTTP \($0)" } ?? cause.reason.rawValue
            text = "\(count) of \(counted(pace.failures.count, "failure")): \(name): \(advice)"
            self.advice = advice
            isAboutTrouble = true
        } else if pace.refusals >= HostHint.leastTrouble, pace.isPaceRefused {
            advice = Advice.refusals
            text =
                "\(pace.refusals) of \(counted(pace.responses, "response")) with 429 or 503: \(advice)"
            isAboutTrouble = true
        } else if let limit = pace.limit, pace.responses >= HostHint.leastResponses {
            advice = Advice.about(limit)
            text = "limited by \(limit.rawValue): \(advice)"
            isAboutTrouble = false
        } else {
            return nil
        }
    }
}
