/// The connection of a response, and the response's latency.
package struct ResponseConnection: Hashable, Sendable {
    package var version = HTTPVersion.http1_1
    package var isReused = false
    package var timeToFirstByte = Duration.zero
    /// The peer's address as text, the proxy's if there is one; empty if unknown.
    package var address = ""
    /// The steps that opened the connection; nil for a reused one.
    package var setup: Setup?

    package struct Setup: Hashable, BitwiseCopyable, Sendable {
        package var nameLookup = Duration.zero
        package var connecting = Duration.zero
        package var handshake: Duration?

        package init() {}
    }

    package init() {}
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
    /// The value of `X-Cache`, cut to ``longestText`` characters; nil without the field.
    package let text: String?

    private static let longestText = 100

    /// Whether a cache on the way had the response.
    package var isHit: Bool { age ?? 0 > 0 || text?.lowercased().contains("hit") == true }
}

extension CacheStatus {
    package init?(_ fields: [HeaderField]) {
        let age = fields.first("age").flatMap { Int($0) }
        let text = fields.first("x-cache").map { String($0.prefix(CacheStatus.longestText)) }
        guard age != nil || text != nil else { return nil }
        self.init(age: age, text: text)
    }
}
