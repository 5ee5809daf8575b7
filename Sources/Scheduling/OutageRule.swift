package import PrefetchModel

/// Finds the failures of a run that must not block, since an outage explains them.
///
/// "When in one run more than half of at least 20 asked entries fail for one reason other than 404
/// or 410 and no entry of that host succeeds, nothing of it is recorded as blocking." App-side
/// loaders are full of reports where a captive portal or a broken proxy blocked everything for
/// good; 404 and 410 are left out, since a list of removed images gives just that. The other
/// statuses are one reason: a broken proxy answers 400 to one request and 405 to the next.
///
/// A value type that hears how each entry of the run ended which was asked (at least one transfer
/// was begun), once per entry and not per attempt; entries that were cancelled, or needed no
/// request, are not told of. The host is scheme, host and port of the entry's own URL, as one
/// text: through a captive portal all entries end up at the portal's host, and a redirect's target
/// must not speak for the hosts that never answered.
///
/// What is held back is no evidence against a URL. Besides not blocking, such a failure should not
/// be counted as a run in a row either: five daily runs behind a captive portal would else have the
/// first true failure after them block for 30 days.
///
/// Each entry costs O(1). Memory grows with hosts × reasons, not with entries.
package struct OutageRule: Sendable {
    /// In runs with fewer asked entries nothing counts as an outage.
    package static let minimumAsked = 20

    private struct Host {
        var hasSuccess = false
        /// Empty once something succeeded: such a host has no part in an outage.
        var failures: [FailureReason: Int] = [:]

        mutating func noteSuccess() {
            hasSuccess = true
            failures = [:]
        }

        mutating func note(_ reason: FailureReason) {
            if !hasSuccess { failures[reason, default: 0] += 1 }
        }
    }

    private var hosts: [String: Host] = [:]
    /// Failures that may be part of an outage, on all hosts.
    private var failures: [FailureReason: Int] = [:]
    private var asked = 0

    package init() {}

    /// An asked entry of the host ended well: it was stored, or its stored copy confirmed.
    package mutating func succeeded(host: String) {
        asked += 1
        hosts[host, default: Host()].noteSuccess()
    }

    /// An asked entry of the host ended in `failed`, after all its attempts. The status counts
    /// only for the reason `http-status`.
    package mutating func failed(host: String, reason: FailureReason, httpStatus: Int?) {
        asked += 1
        guard OutageRule.mayBeOutage(reason, httpStatus: httpStatus) else { return }
        failures[reason, default: 0] += 1
        hosts[host, default: Host()].note(reason)
    }

    private static func mayBeOutage(_ reason: FailureReason, httpStatus: Int?) -> Bool {
        // Nothing is recorded of failures that are ours, so there is nothing to hold back, and
        // a full disk or a wrong password is not to be told as an outage.
        Outage.canInclude(reason, httpStatus: httpStatus)
            && FailurePolicy.failureClass(of: reason, httpStatus: httpStatus) != .ours
    }

    /// What the run's failures amount to, asked for at its end: one outage or none, since only
    /// one reason can make up more than half of the entries.
    ///
    /// O(h log h) in the hosts.
    package func outages() -> [Outage] {
        guard asked >= OutageRule.minimumAsked,
            let (reason, count) = failures.first(where: { 2 * $0.value > asked })
        else { return [] }
        let affected = hosts.compactMap { name, host in
            host.failures[reason].map { (name: name, failures: $0) }
        }
        // Where every host that failed so had a success too, all of them block.
        guard !affected.isEmpty else { return [] }
        return [
            Outage(
                reason: reason, failures: count,
                heldBack: affected.reduce(0) { $0 + $1.failures }, asked: asked,
                hosts: Set(affected.map(\.name)))
        ]
    }
}
