/// Many entries of one run that failed in the same way on hosts where nothing succeeded: a network,
/// proxy or portal is at fault rather than the URLs.
package struct Outage: Hashable, Sendable {
    /// Of failures with `http-status` only those are meant that ``canInclude(_:httpStatus:)``
    /// allows, whatever their statuses.
    package let reason: FailureReason
    /// Entries that failed so, on all hosts.
    package let failures: Int
    /// Those of ``failures`` that happened at hosts without any success; 1 or more.
    package let heldBack: Int
    /// Entries that were asked, on all hosts.
    package let asked: Int
    /// The hosts that failed so and had no success in the run, 1 or more. Failures of this kind at
    /// these hosts are not recorded as blocking.
    package let hostCount: Int
    /// Their names, sorted; empty when they are too many to be remembered.
    package let hosts: [String]

    /// Hosts that the description names; of more only the number is given.
    private static let namedHosts = 3

    package init(
        reason: FailureReason, failures: Int, heldBack: Int, asked: Int, hostCount: Int,
        hosts: [String]
    ) {
        self.reason = reason
        self.failures = failures
        self.heldBack = heldBack
        self.asked = asked
        self.hostCount = hostCount
        self.hosts = hosts
    }

    /// Whether a failure may be part of any outage: not when the image is gone (404 and 410), since
    /// such answers are about one URL each, however many they are.
    ///
    /// The status counts only for the reason `http-status`.
    package static func canInclude(_ reason: FailureReason, httpStatus: Int?) -> Bool {
        reason != .httpStatus || (httpStatus != 404 && httpStatus != 410)
    }
}

extension Outage: CustomStringConvertible {
    /// One line for people, without a final stop:
    /// `an outage: 200 of 210 entries failed with not-an-image, so none of these failures blocks`.
    ///
    /// Up to three hosts are named, as they are: escaping is up to who prints it. When entries
    /// failed so at hosts that had a success too, the line says how many do not block.
    package var description: String {
        let areNamed = !hosts.isEmpty && hosts.count <= Outage.namedHosts
        let names = hosts.joined(separator: ", ")
        let head = "an outage: \(failures) of \(asked) entries failed with \(reason.rawValue)"
        if heldBack == failures {
            return head + (areNamed ? " at \(names)" : "") + ", so none of these failures blocks"
        }
        let count = hostCount == 1 ? "1 host" : "\(hostCount) hosts"
        let place = areNamed ? names : "\(count) without any success"
        return head + ", so none of the \(heldBack) at \(place) blocks"
    }
}
