/// An outage that a run has reported, so that later runs report only its end.
package struct OngoingOutage: Hashable, Sendable {
    package let reason: FailureReason
    /// See ``Outage/hosts``; empty for hosts without names, which are too many.
    package var hosts: [String]
    package var reportedAt: Timestamp
    /// Whether it was too small for an outage: the requests of a run to these hosts failed, and
    /// were reported as failures. Its end is not reported.
    package var isSmall: Bool

    package init(
        reason: FailureReason, hosts: [String], reportedAt: Timestamp, isSmall: Bool = false
    ) {
        self.reason = reason
        self.hosts = hosts
        self.reportedAt = reportedAt
        self.isSmall = isSmall
    }

    /// One line for people about its end, without a final stop and unescaped.
    package var endText: String {
        let place =
            hosts.count == 1 ? hosts[0] : hosts.isEmpty ? "many hosts" : "\(hosts.count) hosts"
        return "the outage at \(place) is over"
    }
}
