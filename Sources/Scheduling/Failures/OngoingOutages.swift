package import PrefetchModel

/// The troubles of hosts that the last run over a cache left. An outage is one fact: once it has
/// been reported as one, its failures are known until one of its hosts responds.
///
/// Stored as text: one line for each, with the reason (behind the mark of its
/// ``OngoingOutage/ReportedExtent``), the time of the report in milliseconds, and the hosts,
/// separated by spaces. The latest ``maximumCount`` are kept for ``longestAge``, each with at most
/// ``maximumHosts``.
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
            let extent = OngoingOutage.ReportedExtent(
                rawValue: String(words.first?.prefix(1) ?? ""))
            guard words.count > 1,
                let reason = FailureReason(
                    rawValue: String(words[0].dropFirst(extent == nil ? 0 : 1))),
                let milliseconds = Int64(words[1])
            else { return nil }
            let outage = OngoingOutage(
                reason: reason, hosts: Array(words.dropFirst(2)),
                reportedAt: Timestamp(milliseconds: milliseconds), extent: extent ?? .outage)
            return now.timeSince(outage.reportedAt) < OngoingOutages.longestAge ? outage : nil
        }
    }

    package var text: String? {
        guard !outages.isEmpty else { return nil }
        return outages.map { outage in
            ([
                outage.extent.rawValue + outage.reason.rawValue,
                "\(outage.reportedAt.milliseconds)",
            ] + outage.hosts)
            .joined(separator: " ")
        }.joined(separator: "\n")
    }

    /// Whether a trouble explains a failure at a host. The status counts only for `http-status`.
    /// A host at fault explains any failure of a stored image.
    ///
    /// Trouble that was not reported as an outage explains no failure of a URL that has
    /// `failedBefore`: that one tells whether it is new.
    package func explain(
        _ reason: FailureReason, httpStatus: Int?, host: String, failedBefore: Bool = false,
        isStored: Bool = false
    ) -> Bool {
        outages.contains { outage in
            (outage.hosts.isEmpty || outage.hosts.contains(host))
                && (isStored && outage.extent == .fault
                    || outage.reason == reason
                        && Outage.canInclude(reason, httpStatus: httpStatus))
                && !(failedBefore && !outage.isReported)
        }
    }

    /// Whether a run's outage was reported before, at all of its hosts. One of hosts at fault may
    /// have another reason in each run.
    package func include(_ outage: Outage) -> Bool {
        outages.contains { known in
            known.isReported && (known.reason == outage.reason || outage.isOfListed)
                && (known.hosts.isEmpty
                    || !outage.hosts.isEmpty && outage.hosts.allSatisfy(known.hosts.contains))
        }
    }

    /// Whether an outage of a host was reported, with any reason.
    package func isOut(_ host: String) -> Bool {
        outages.contains { $0.isReported && ($0.hosts.isEmpty || $0.hosts.contains(host)) }
    }

    /// Whether the last run left any trouble of a host.
    func concern(_ host: String) -> Bool {
        outages.contains { $0.hosts.isEmpty || $0.hosts.contains(host) }
    }

    /// Whether an earlier run has reported that most listed entries of a host fail.
    func hasReportedMost(of host: String) -> Bool {
        outages.contains { $0.extent != .part && ($0.hosts.isEmpty || $0.hosts.contains(host)) }
    }

    /// Removes the hosts that have responded in a run, where an entry succeeded at the host, or at
    /// any host for nil. Returns the reported outages that have ended, with these hosts.
    package mutating func end(_ hasAnswered: (String?) -> Bool) -> [OngoingOutage] {
        var ended: [OngoingOutage] = []
        var others: [OngoingOutage] = []
        for var outage in outages {
            var end = outage
            end.hosts.removeAll { !hasAnswered($0) }
            outage.hosts.removeAll(where: hasAnswered)
            let isOver = end.hosts.isEmpty && outage.hosts.isEmpty && hasAnswered(nil)
            if isOver || !end.hosts.isEmpty, outage.isReported { ended.append(end) }
            if !isOver, end.hosts.isEmpty || !outage.hosts.isEmpty { others.append(outage) }
        }
        outages = others
        return ended
    }

    /// Adds a run's outage, in place of known ones with the same reason at the same hosts.
    package mutating func add(_ outage: Outage, at now: Timestamp) {
        add(
            OngoingOutage(
                reason: outage.reason, hosts: outage.hosts, reportedAt: now,
                extent: outage.isOfListed ? .fault : .outage))
    }

    /// Adds a host without any success in a run, unless an outage explains its failures. `reason`
    /// is that of one of them.
    package mutating func add(
        failing host: String, _ reason: FailureReason, _ extent: OngoingOutage.ReportedExtent,
        at now: Timestamp
    ) {
        let isKnown = outages.contains {
            ($0.isReported || $0.extent == extent) && $0.reason == reason
                && ($0.hosts.isEmpty || $0.hosts.contains(host))
        }
        guard !isKnown else { return }
        add(OngoingOutage(reason: reason, hosts: [host], reportedAt: now, extent: extent))
    }

    private mutating func add(_ outage: OngoingOutage) {
        var reportedAt = outage.reportedAt
        var hosts = Set(outage.hosts)
        var others: [OngoingOutage] = []
        for var known in outages {
            let overlaps =
                known.hosts.isEmpty || hosts.isEmpty
                || known.hosts.contains(where: outage.hosts.contains)
            let isSame =
                known.isReported == outage.isReported
                && (known.isReported ? overlaps : known.extent == outage.extent)
            let areFaults = known.extent == .fault && outage.extent == .fault
            if known.reason == outage.reason || areFaults, isSame {
                if !hosts.isEmpty { hosts.formUnion(known.hosts) }
                reportedAt = min(reportedAt, known.reportedAt)
                continue
            }
            // A host has one entry for each reason.
            if known.reason == outage.reason, !known.isReported {
                known.hosts.removeAll(where: outage.hosts.contains)
                if known.hosts.isEmpty || outage.hosts.isEmpty { continue }
            }
            others.append(known)
        }
        others.append(
            OngoingOutage(
                reason: outage.reason,
                hosts: Array(hosts.sorted().prefix(OngoingOutages.maximumHosts)),
                reportedAt: reportedAt, extent: outage.extent))
        outages = others.suffix(OngoingOutages.maximumCount)
    }
}

/// The trouble of hosts, as far as runs have reported it.
package struct OngoingOutage: Hashable, Sendable {
    /// The raw value is the mark of the stored line.
    package enum ReportedExtent: String, Sendable {
        /// An outage of the run that reported it.
        case outage = ""
        /// An outage by the stored images of its hosts, of failures with any status.
        case fault = "*"
        /// Most listed entries of the hosts failed, too few for an outage. They were reported as
        /// failures, and their end is not reported.
        case most = "="
        /// The same for a part of the listed entries. That most of them fail is news.
        case part = "~"
    }

    package let reason: FailureReason
    /// See ``Outage/hosts``; empty for hosts without names, which are too many.
    package var hosts: [String]
    package var reportedAt: Timestamp
    package var extent = ReportedExtent.outage

    /// Whether it was reported as an outage, so that later runs report only its end.
    package var isReported: Bool { extent == .outage || extent == .fault }

    /// One line for people about its end, without a final stop and unescaped.
    package var endText: String { "the outage at \(place) is over" }

    package var place: String {
        hosts.count == 1 ? hosts[0] : hosts.isEmpty ? "many hosts" : "\(hosts.count) hosts"
    }
}
