package import PrefetchModel

/// The outages that a run reports at its end, and the failures that are news after all.
///
/// During the run, a failure counts as known if its host was in trouble before. Only the end
/// shows whether that trouble has been reported: an outage is new until it was reported as one,
/// and a host that has responded explains no failure that is left.
package struct OutageReport: Sendable {
    /// The outage to report; a new one first.
    package private(set) var outage: Outage?
    package private(set) var isKnown = false
    /// Reported outages that have ended.
    package private(set) var ended: [OngoingOutage] = []
    /// The troubles that the run leaves.
    package private(set) var ongoing: OngoingOutages
    /// Hosts with failures that are new after all.
    package private(set) var hostsWithNews: Set<String> = []
    /// Whether the new outage is at more hosts than have names: any failure may be new.
    package var hasNewsEverywhere: Bool { outage?.hosts.isEmpty == true && !isKnown }

    /// Takes the troubles of the earlier runs, and the rules with the run's outcomes. `failing`
    /// are hosts with a transient failure, `explained` the hosts that made a failure known.
    ///
    /// `storedListed` is that of ``HostFaultRule/share(of:storedListed:)``.
    package init(
        after earlier: OngoingOutages, _ rule: OutageRule, _ faults: HostFaultRule,
        failing: [String: FailureReason], explained: some Sequence<String>, at now: Timestamp,
        storedListed: (_ host: String, _ limit: Int) throws -> Int
    ) rethrows {
        ongoing = earlier
        let atFault = faults.faults
        var outages = rule.outages()
        outages += try OutageReport.outages(
            of: atFault.filter { fault in
                faults.hasRequest(fault.host)
                    && !outages.contains {
                        $0.hosts.contains(fault.host)
                            || $0.hosts.isEmpty && $0.reason == fault.reason
                    }
            }, faults, storedListed)
        let new = outages.filter { !earlier.include($0) }
        outage = new.first ?? outages.first
        isKnown = outage != nil && new.isEmpty
        let troubled = Set(atFault.map(\.host))
        func hasReturned(_ host: String?) -> Bool {
            rule.hasSuccess(at: host) && host.map(troubled.contains) != true
        }
        ended = ongoing.end(hasReturned)
        // Other new ones are reported by the next run.
        for outage in outages where earlier.include(outage) || outage == new.first {
            ongoing.add(outage, at: now)
        }
        if let outage, !isKnown { hostsWithNews.formUnion(outage.hosts) }
        for (host, reason) in failing.sorted(by: { $0.key < $1.key })
        where !rule.hasSuccess(at: host) {
            let isMost =
                try faults.share(of: host, storedListed: storedListed) != nil
            let wasMost = earlier.hasReportedMost(of: host)
            if isMost, !wasMost { hostsWithNews.insert(host) }
            ongoing.add(failing: host, reason, isMost || wasMost ? .most : .part, at: now)
        }
        // Failures that its trouble hid; others were reported when they began.
        hostsWithNews.formUnion(explained.filter { hasReturned($0) && earlier.concern($0) })
    }

    /// Returns the outages at hosts at fault, one for each reason.
    private static func outages(
        of atFault: [(host: String, reason: FailureReason)], _ faults: HostFaultRule,
        _ storedListed: (String, Int) throws -> Int
    ) rethrows -> [Outage] {
        var outages: [FailureReason: Outage] = [:]
        for (host, reason) in atFault {
            guard let share = try faults.share(of: host, storedListed: storedListed)
            else { continue }
            let known = outages[reason]
            var outage = Outage(
                reason: reason, failures: (known?.failures ?? 0) + share.failures,
                heldBack: (known?.heldBack ?? 0) + share.failures,
                asked: (known?.asked ?? 0) + share.listed, hostCount: (known?.hostCount ?? 0) + 1,
                hosts: (known?.hosts ?? []) + [host])
            outage.isOfListed = true
            outages[reason] = outage
        }
        return outages.values.sorted {
            ($1.failures, $0.reason.index) < ($0.failures, $1.reason.index)
        }
    }
}
