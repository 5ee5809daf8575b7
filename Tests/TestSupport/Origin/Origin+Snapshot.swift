extension Origin {
    /// One request, recorded at the arrival of its last byte.
    package struct Request: Sendable {
        package let method: String
        /// As sent, query included.
        package let target: String
        package let headers: [(name: String, value: String)]
        /// Empty over HTTP/2.
        package let body: [UInt8]
        /// 1 for the first accepted connection.
        package let connection: Int
        /// 1 for the first request of its connection.
        package let ordinal: Int
        /// By the monotonic clock.
        package let arrivedAt: ContinuousClock.Instant
        /// The lower-case host name in the field `Host` (`:authority` over HTTP/2), without port.
        package let host: String

        init(
            method: String, target: String, headers: [(name: String, value: String)],
            body: [UInt8] = [], connection: Int, ordinal: Int
        ) {
            self.method = method
            self.target = target
            self.headers = headers
            self.body = body
            self.connection = connection
            self.ordinal = ordinal
            arrivedAt = .now
            let authority = headers.first { ["host", ":authority"].contains($0.name.lowercased()) }
            host = Request.name(in: authority?.value ?? "")
        }

        /// Keeps the brackets and colons of an IPv6 address.
        private static func name(in authority: String) -> String {
            let end =
                authority.hasSuffix("]")
                ? authority.endIndex : authority.lastIndex(of: ":") ?? authority.endIndex
            return authority[..<end].lowercased()
        }

        /// Whether it arrived over HTTP/2, where requests have pseudo-header fields (RFC 9113
        /// §8.3).
        package var isHTTP2: Bool { headers.contains { $0.name.hasPrefix(":") } }

        /// The target without its query.
        package var path: String {
            String(target.prefix { $0 != "?" })
        }

        /// The value of the first field of this name, case-insensitive.
        package func header(_ name: String) -> String? {
            let name = name.lowercased()
            return headers.first { $0.name.lowercased() == name }?.value
        }
    }

    /// The requests to one of several host names of the same origin.
    package struct HostSnapshot: Sendable {
        /// The arrival time of each request, in order.
        package internal(set) var arrivals: [ContinuousClock.Instant] = []
        /// Requests without a complete response.
        package internal(set) var inFlight = 0
        package internal(set) var peakInFlight = 0

        package var requests: Int { arrivals.count }

        /// The time between consecutive arrivals.
        package var intervals: [Duration] {
            zip(arrivals, arrivals.dropFirst()).map { $1 - $0 }
        }
    }

    /// The origin's record up to one moment.
    package struct Snapshot: Sendable {
        /// In order of arrival.
        package internal(set) var requests: [Request] = []
        /// Requests without a complete response.
        package internal(set) var inFlight = 0
        package internal(set) var peakInFlight = 0
        /// Responses that were sent completely, or cut by ending the connection on purpose.
        package internal(set) var answered = 0
        /// Connections accepted so far.
        package internal(set) var connections = 0
        /// The largest number of connections that were open at one time.
        package internal(set) var peakConnections = 0
        /// TLS handshakes that resumed a session.
        package internal(set) var resumedSessions = 0
        /// By ``Request/host``.
        package internal(set) var hosts: [String: HostSnapshot] = [:]

        package var paths: [String] { requests.map(\.path) }

        package func count(of path: String) -> Int { requests.count { $0.path == path } }

        /// All zero for a host name without requests.
        package subscript(host: String) -> HostSnapshot { hosts[host, default: HostSnapshot()] }

        mutating func begin(_ request: Request) {
            requests.append(request)
            inFlight += 1
            peakInFlight = max(peakInFlight, inFlight)
            update(&hosts[request.host, default: HostSnapshot()]) { host in
                host.arrivals.append(request.arrivedAt)
                host.inFlight += 1
                host.peakInFlight = max(host.peakInFlight, host.inFlight)
            }
        }

        mutating func end(_ request: Request, isAnswered: Bool) {
            inFlight -= 1
            hosts[request.host]?.inFlight -= 1
            if isAnswered { answered += 1 }
        }

        /// In place, without copying the arrivals for each request.
        private func update(_ host: inout HostSnapshot, _ body: (inout HostSnapshot) -> Void) {
            body(&host)
        }
    }
}
