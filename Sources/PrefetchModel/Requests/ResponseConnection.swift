/// The connection of a response, and the response's latency.
package struct ResponseConnection: Hashable, Sendable {
    package var version: HTTPVersion
    package var isReused: Bool
    package var timeToFirstByte: Duration
    /// The peer's address as text, the proxy's if there is one; empty if unknown.
    package var address: String
    /// The steps that opened the connection; nil for a reused one.
    package var setup: Setup?

    package struct Setup: Hashable, BitwiseCopyable, Sendable {
        package var nameLookup: Duration
        package var connecting: Duration
        package var handshake: Duration?

        package init(nameLookup: Duration, connecting: Duration, handshake: Duration?) {
            self.nameLookup = nameLookup
            self.connecting = connecting
            self.handshake = handshake
        }
    }

    package init(
        version: HTTPVersion, isReused: Bool, timeToFirstByte: Duration, address: String = "",
        setup: Setup? = nil
    ) {
        self.version = version
        self.isReused = isReused
        self.timeToFirstByte = timeToFirstByte
        self.address = address
        self.setup = setup
    }
}

/// A version of HTTP, with its name in reports.
package enum HTTPVersion: String, CaseIterable, BitwiseCopyable, Sendable {
    case http1_0 = "http/1.0"
    case http1_1 = "http/1.1"
    case http2 = "h2"
    case http3 = "h3"
}

/// The reports of caches on a response's way.
package struct CacheStatus: Hashable, Sendable {
    /// Seconds, by `Age`; nil without a number.
    package let age: Int?
    /// The value of `X-Cache`, at most ``longestText`` characters; nil without the field.
    package let text: String?

    package static let longestText = 100

    package init(age: Int?, text: String?) {
        self.age = age
        self.text = text
    }

    /// Whether a cache on the way had the response.
    package var isHit: Bool { age ?? 0 > 0 || text?.lowercased().contains("hit") == true }
}
