package import PrefetchModel

/// A host of a run, as the summary describes it.
package struct HostRow: Hashable, Sendable {
    /// Scheme, host and port.
    package var host: String
    package var requests: Int
    /// Responses with 429 or 503; nil if unknown.
    package var refusals: Int?
    package var failures: Int
    /// Nil without a complete response.
    package var times: HostPace.TransferTimes?
    /// Nil if the list had too few entries to find one.
    package var limit: HostPace.Limit?
    package var hint: String?
}

extension HostRow {
    init(_ pace: HostPace) {
        self.init(
            host: pace.host, requests: pace.requests, refusals: pace.refusals,
            failures: pace.failures.count, times: pace.times, limit: pace.limit,
            hint: HostHint(pace)?.text)
    }
}

/// The hosts of requested entries, for the page of a run that was killed before its summary.
struct RequestedHosts: Sendable {
    private struct Tally {
        var attempts = 0
        var failures = 0
        var times = DurationHistogram()

        mutating func note(_ result: EntryResult) {
            attempts.addReported(result.attempts)
            if result.outcome == .failed { failures += 1 }
            if let time = result.stages.transfer { times.note(time) }
        }
    }

    private var tallies: [String: Tally] = [:]

    /// Entries of further hosts are not counted.
    private static let mostHosts = 256
    private static let shownHosts = 10

    mutating func note(_ result: EntryResult) {
        let host = RequestURL(normalized: result.url).origin
        guard tallies[host] != nil || tallies.count < RequestedHosts.mostHosts else { return }
        tallies[host, default: Tally()].note(result)
    }

    var largest: [HostRow] {
        let sorted = tallies.sorted { ($1.value.attempts, $0.key) < ($0.value.attempts, $1.key) }
        return sorted.prefix(RequestedHosts.shownHosts).map { host, tally in
            var times: HostPace.TransferTimes?
            if let median = tally.times.quantile(0.5), let slow = tally.times.quantile(0.95) {
                times = HostPace.TransferTimes(median: median, percentile95: slow)
            }
            return HostRow(
                host: host, requests: tally.attempts, failures: tally.failures, times: times)
        }
    }
}

/// Failures with one cause, for a page.
package struct FailureRow: Hashable, Sendable {
    /// Scheme, host and port; nil for several hosts, and for failures without one.
    package let host: String?
    package let reason: FailureReason
    package let httpStatus: Int?
    package let count: Int
    /// `m.txt:12: URL` of the first entry, printable and redacted.
    package let sample: String
    package let message: String?

    init(_ group: FailureGroups.CauseGroup) {
        if case .host(let name) = group.cause.place {
            host = RedactedURL(name).description
        } else {
            host = nil
        }
        reason = group.cause.reason
        httpStatus = group.cause.httpStatus
        count = group.count
        sample = group.sample.shownEntry
        message = group.sample.shownMessage
    }
}
