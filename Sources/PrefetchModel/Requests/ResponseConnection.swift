/// The connection of a response, and the response's latency.
package struct ResponseConnection: Hashable, Sendable {
    package var version: HTTPVersion
    /// Whether an earlier transfer had opened the connection.
    package var isReused: Bool
    /// From the sent request to the first byte of the response.
    package var timeToFirstByte: Duration

    package init(version: HTTPVersion, isReused: Bool, timeToFirstByte: Duration) {
        self.version = version
        self.isReused = isReused
        self.timeToFirstByte = timeToFirstByte
    }
}

/// A version of HTTP, with its name in reports.
package enum HTTPVersion: String, CaseIterable, Sendable {
    case http1_0 = "http/1.0"
    case http1_1 = "http/1.1"
    case http2 = "h2"
    case http3 = "h3"
}
