/// Many entries of one run that failed in the same way on hosts where nothing succeeded: a network,
/// proxy or portal is at fault rather than the URLs.
package struct Outage: Hashable, Sendable {
    /// Of failures with `http-status` only those are meant that ``canInclude(_:httpStatus:)``
    /// allows, whatever their statuses.
    package let reason: FailureReason
    /// Entries that failed so, on all hosts.
    package let failures: Int
    /// Those of ``failures`` that happened at ``hosts``; 1 or more.
    package let heldBack: Int
    /// Entries that were asked, on all hosts.
    package let asked: Int
    /// The hosts that failed so and had no success in the run, sorted; never empty. Failures of
    /// this kind at these hosts are not recorded as blocking.
    package let hosts: [String]
    /// The same hosts, to look one up: every failure of a run is asked about, and there may be as
    /// many hosts as failures.
    private let hostSet: Set<String>

    /// The hosts may come in any order.
    package init(
        reason: FailureReason, failures: Int, heldBack: Int, asked: Int, hosts: Set<String>
    ) {
        self.reason = reason
        self.failures = failures
        self.heldBack = heldBack
        self.asked = asked
        self.hosts = hosts.sorted()
        hostSet = hosts
    }

    /// Whether a failure may be part of any outage: not when the image is gone (404 and 410), since
    /// such answers are about one URL each, however many they are.
    ///
    /// The status counts only for the reason `http-status`.
    package static func canInclude(_ reason: FailureReason, httpStatus: Int?) -> Bool {
        reason != .httpStatus || (httpStatus != 404 && httpStatus != 410)
    }

    /// Whether a failure at `host` is part of it, for failures that are recorded at all. O(1).
    package func explains(_ reason: FailureReason, httpStatus: Int?, host: String) -> Bool {
        reason == self.reason && Outage.canInclude(reason, httpStatus: httpStatus)
            && hostSet.contains(host)
    }
}

extension Outage: CustomStringConvertible {
    /// Hosts that the description names; of more only the number is given.
    private static let namedHosts = 3

    /// One line for people, without a final stop:
    /// `an outage: 200 of 210 entries failed with not-an-image, so none of these failures blocks`.
    ///
    /// Up to three hosts are named, as they are: escaping is up to who prints it. When entries
    /// failed so at hosts that had a success too, the line says how many do not block.
    package var description: String {
        let areNamed = hosts.count <= Outage.namedHosts
        let names = hosts.joined(separator: ", ")
        let head = "an outage: \(failures) of \(asked) entries failed with \(reason.rawValue)"
        if heldBack == failures {
            return head + (areNamed ? " at \(names)" : "") + ", so none of these failures blocks"
        }
        let place = areNamed ? names : "\(hosts.count) hosts without any success"
        return head + ", so none of the \(heldBack) at \(place) blocks"
    }
}
