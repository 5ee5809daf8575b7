package import PrefetchModel

/// The outages that the last run over a cache left. An outage is one fact: its failures are known
/// until one of its hosts responds.
///
/// Stored as text: one line for each outage, with the reason (behind `~` for a small one), the time
/// of the report in milliseconds, and the hosts, separated by spaces. The latest ``maximumCount``
/// outages are kept for ``longestAge``, each with at most ``maximumHosts``.
package struct OngoingOutages: Hashable, Sendable {
    package static let maximumCount = 8
    package static let maximumHosts = 64
    /// An outage that lasts longer is reported again.
    package static let longestAge = Duration.seconds(30 * 86400)

    package private(set) var outages: [OngoingOutage] = []

    package init() {}

    /// Lines that are not outages are ignored.
    package init(text: String, at now: Timestamp) {
        outages = text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ").map(String.init)
            let isSmall = words.first?.hasPrefix("~") == true
            guard words.count > 1,
                let reason = FailureReason(rawValue: String(words[0].dropFirst(isSmall ? 1 : 0))),
                let milliseconds = Int64(words[1])
            else { return nil }
            let outage = OngoingOutage(
                reason: reason, hosts: Array(words.dropFirst(2)),
                reportedAt: Timestamp(milliseconds: milliseconds), isSmall: isSmall)
            return now.timeSince(outage.reportedAt) < OngoingOutages.longestAge ? outage : nil
        }
    }

    package var text: String? {
        guard !outages.isEmpty else { return nil }
        return outages.map { outage in
            ([
                (outage.isSmall ? "~" : "") + outage.reason.rawValue,
                "\(outage.reportedAt.milliseconds)",
            ] + outage.hosts)
            .joined(separator: " ")
        }.joined(separator: "\n")
    }

    /// Whether an outage explains a failure at a host. The status counts only for `http-status`.
    ///
    /// A small outage explains no failure of a URL that has `failedBefore`: that one tells whether
    /// it is new.
    package func explain(
        _ reason: FailureReason, httpStatus: Int?, host: String, failedBefore: Bool = false
    ) -> Bool {
        Outage.canInclude(reason, httpStatus: httpStatus)
            && outages.contains {
                $0.reason == reason && ($0.hosts.isEmpty || $0.hosts.contains(host))
                    && !($0.isSmall && failedBefore)
            }
    }

    /// Whether a run's outage was reported before, at all of its hosts.
    package func include(_ outage: Outage) -> Bool {
        outages.contains { known in
            known.reason == outage.reason
                && (known.hosts.isEmpty
                    || !outage.hosts.isEmpty && outage.hosts.allSatisfy(known.hosts.contains))
        }
    }

    /// Removes the hosts that have responded in a run, where an entry succeeded at the host, or at
    /// any host for nil. Returns the outages that have ended, with these hosts.
    package mutating func end(_ hasAnswered: (String?) -> Bool) -> [OngoingOutage] {
        var ended: [OngoingOutage] = []
        var others: [OngoingOutage] = []
        for var outage in outages {
            var end = outage
            end.hosts.removeAll { !hasAnswered($0) }
            outage.hosts.removeAll(where: hasAnswered)
            let isOver = end.hosts.isEmpty && outage.hosts.isEmpty && hasAnswered(nil)
            if isOver || !end.hosts.isEmpty, !outage.isSmall { ended.append(end) }
            if !isOver, end.hosts.isEmpty || !outage.hosts.isEmpty { others.append(outage) }
        }
        outages = others
        return ended
    }

    /// Adds a run's outage, in place of known ones with the same reason at the same hosts.
    package mutating func add(_ outage: Outage, at now: Timestamp) {
        add(OngoingOutage(reason: outage.reason, hosts: outage.hosts, reportedAt: now))
    }

    /// Adds hosts where all requests failed, unless they are known; `failing` has the reason of one
    /// failure of each.
    package mutating func add(failing: [String: FailureReason], at now: Timestamp) {
        for (reason, hosts) in Dictionary(grouping: failing.keys, by: { failing[$0] }) {
            guard let reason else { continue }
            let new = hosts.filter { !explain(reason, httpStatus: nil, host: $0) }
            guard !new.isEmpty else { continue }
            add(OngoingOutage(reason: reason, hosts: new, reportedAt: now, isSmall: true))
        }
    }

    private mutating func add(_ outage: OngoingOutage) {
        var reportedAt = outage.reportedAt
        var hosts = Set(outage.hosts)
        outages.removeAll { known in
            guard known.reason == outage.reason else { return false }
            let isSame =
                known.hosts.isEmpty || hosts.isEmpty || known.isSmall && outage.isSmall
                || known.hosts.contains(where: outage.hosts.contains)
            if isSame {
                if !hosts.isEmpty { hosts.formUnion(known.hosts) }
                reportedAt = min(reportedAt, known.reportedAt)
            }
            return isSame
        }
        outages.append(
            OngoingOutage(
                reason: outage.reason,
                hosts: Array(hosts.sorted().prefix(OngoingOutages.maximumHosts)),
                reportedAt: reportedAt, isSmall: outage.isSmall))
        if outages.count > OngoingOutages.maximumCount { outages.removeFirst() }
    }
}

/// An outage that a run has reported, so that later runs report only its end.
package struct OngoingOutage: Hashable, Sendable {
    package let reason: FailureReason
    /// See ``Outage/hosts``; empty for hosts without names, which are too many.
    package var hosts: [String]
    package var reportedAt: Timestamp
    /// Whether it was too small for an outage: the requests of a run to these hosts failed, and
    /// were reported as failures. Its end is not reported.
    package var isSmall = false

    /// One line for people about its end, without a final stop and unescaped.
    package var endText: String {
        let place =
            hosts.count == 1 ? hosts[0] : hosts.isEmpty ? "many hosts" : "\(hosts.count) hosts"
        return "the outage at \(place) is over"
    }
}
