package import PrefetchModel

/// The work of a run over the lists, by the cache as it is now.
package struct RunPlan: Sendable {
    package enum LineState: String, CaseIterable, Sendable {
        case fresh
        case new
        case stale
        /// Stored without one of its variants, which needs a request.
        case incomplete
        /// Its missing variants can be made from stored files.
        case derivable
        case seeded
        case blacklisted
        /// An earlier line has its key.
        case duplicate
        case excluded
        /// The line is not an entry, or contradicts an earlier one.
        case invalid

        /// Whether the first line of a key in this state leads to a request.
        var isRequested: Bool {
            switch self {
            case .new, .stale, .incomplete: true
            case .fresh, .derivable, .seeded, .blacklisted, .duplicate, .excluded, .invalid: false
            }
        }
    }

    package struct PlannedHost: Sendable {
        package let name: String
        /// Without redirects and retries.
        package internal(set) var requests = 0
        /// Requests for images that are not stored yet; others may bring a 304.
        package internal(set) var new = 0
        /// The size of the new images, if they are like the stored ones of the host; nil if none is
        /// stored.
        package internal(set) var expectedBytes: Int?
        /// The time at the pace that the host accepted last; nil for an unknown host.
        package internal(set) var expectedTime: Duration?
        /// The earliest time of a request; nil if nothing delays it.
        package internal(set) var coolingUntil: Timestamp?
    }

    package struct PlannedLine: Sendable {
        package let manifest: String
        package let line: Int
        /// May hold secrets.
        package let url: String
        package let key: String
        package let state: LineState
        /// The reason for the state; nil for fresh and new entries.
        package let message: String?
    }

    package internal(set) var entries = 0
    private var counts = [LineState: Int]()
    /// The earliest end of a blacklisting; nil without any.
    package internal(set) var nextRetry: Timestamp?
    /// The hosts with requests, by falling number, then by name.
    package internal(set) var hosts: [PlannedHost] = []
    /// Requests beyond the limit of the run, which it would leave.
    package internal(set) var left = 0
    /// The run's exit status if every transfer succeeded.
    package internal(set) var exitStatus: Int32 = 0

    package var requests: Int { hosts.reduce(0) { $0 + $1.requests } }

    package subscript(state: LineState) -> Int { counts[state, default: 0] }

    mutating func count(_ state: LineState) {
        entries += 1
        counts[state, default: 0] += 1
    }
}
