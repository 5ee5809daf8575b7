/// An outage that a run has reported, so that later runs report only its end.
package struct OngoingOutage: Hashable, Sendable {
    package let reason: FailureReason
    /// See ``Outage/hosts``; empty for hosts without names, which are too many.
    package var hosts: [String]
    /// The time of the report.
    package var reportedAt: Timestamp

    package init(reason: FailureReason, hosts: [String], reportedAt: Timestamp) {
        self.reason = reason
        self.hosts = hosts
        self.reportedAt = reportedAt
    }

    /// One line for people about its end, without a final stop and unescaped.
    package var endText: String {
        let place =
            hosts.count == 1 ? hosts[0] : hosts.isEmpty ? "many hosts" : "\(hosts.count) hosts"
        return "the outage at \(place) is over (\(reason.rawValue))"
    }
}
