/// A shared cause of many failures: they have the same reason, at hosts without any success, or
/// most stored images of a host have it. So a network, proxy, captive portal or host is at fault,
/// not the URLs.
package struct Outage: Hashable, Sendable {
    /// The common reason, or the most frequent one at a host at fault. For `http-status`, any
    /// status that ``canInclude(_:httpStatus:)`` allows.
    package var reason: FailureReason
    /// Entries that failed with the reason, on all hosts.
    package var failures: Int
    /// The part of ``failures`` at hosts without any success; 1 or more.
    package var heldBack: Int
    /// Entries requested, on all hosts.
    package var asked: Int
    /// Hosts with such failures and no success in the run, 1 or more. Failures of this kind at
    /// these hosts are not blacklisted.
    package var hostCount: Int
    package let hosts: [String]
    /// Whether ``asked`` and ``failures`` count all listed entries of the hosts, fresh ones
    /// included, and not the run's requests.
    package var isOfListed = false

    /// The number of hosts up to which the description names them.
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

    /// Whether a failure may be part of an outage. 404 and 410 never are: they concern single URLs,
    /// however many there are. Neither are limits that an image exceeds.
    ///
    /// The status matters only for the reason `http-status`.
    package static func canInclude(_ reason: FailureReason, httpStatus: Int?) -> Bool {
        switch reason {
        // Limits of this run, which judge an image.
        case .tooLarge, .tooManyPixels, .unsupportedImage: false
        case .httpStatus: httpStatus != 404 && httpStatus != 410
        default: true
        }
    }

    /// Whether a failure at one of its hosts is part of it. Any is at a host at fault.
    package func includes(_ reason: FailureReason, httpStatus: Int?) -> Bool {
        isOfListed
            || reason == self.reason && Outage.canInclude(reason, httpStatus: httpStatus)
    }
}

extension Outage {
    /// One line for people, without a final stop, for example `outage at http://a: all 41 requests
    /// failed (HTTP 500); these URLs will be retried next time`.
    ///
    /// Up to three hosts are named, unescaped: the caller escapes them. If hosts with a success
    /// have such failures too, the line says how many URLs will be retried. `httpStatus` is the
    /// status of all failures if they have the same one, else nil.
    package func text(httpStatus: Int? = nil) -> String {
        let areNamed = !hosts.isEmpty && hosts.count <= Outage.namedHosts
        let unnamed = hostCount == 1 ? "1 host" : "\(hostCount) hosts"
        let place = areNamed ? hosts.joined(separator: ", ") : unnamed
        let count = failures == asked ? "all \(asked)" : "\(failures) of \(asked)"
        let requests = isOfListed ? "listed images fail" : "requests failed"
        let cause = httpStatus.map { "HTTP \($0)" } ?? reason.rawValue
        let retried =
            heldBack == failures
            ? "these URLs"
            : "the \(heldBack) URLs of \(hostCount == 1 ? "this host" : "these hosts")"
        return "outage at \(place): \(count) \(requests) (\(cause)); "
            + "\(retried) will be retried next time"
    }
}
