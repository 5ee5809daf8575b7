/// An origin's TLS settings and the protocol inside.
package struct OriginSecurity: Sendable {
    /// Settings of HTTP/2; by default no other protocol is spoken.
    package struct HTTP2: Sendable {
        /// SETTINGS_MAX_CONCURRENT_STREAMS of each connection.
        package var maximumConcurrentStreams = 100
        /// The number of requests after which the connection sends GOAWAY, serves them and ends.
        package var requestsBeforeGoAway: Int?
        /// Whether clients without HTTP/2 get HTTP/1.1 (ALPN, RFC 7301).
        package var alsoSpeaksHTTP1: Bool

        package init(
            maximumConcurrentStreams: Int = 100, requestsBeforeGoAway: Int? = nil,
            alsoSpeaksHTTP1: Bool = false
        ) {
            self.maximumConcurrentStreams = maximumConcurrentStreams
            self.requestsBeforeGoAway = requestsBeforeGoAway
            self.alsoSpeaksHTTP1 = alsoSpeaksHTTP1
        }
    }

    /// Paths of PEM files.
    var chain: String
    var key: String
    /// Nil for HTTP/1.1.
    package var http2: HTTP2?
    /// A file of authorities; clients need a certificate of one. Nil for no such requirement.
    package var clientAuthority: String?
    /// The only version spoken; nil for 1.2 and 1.3.
    package var version: Version?

    package enum Version: Sendable {
        /// Refused by OpenSSL's security level in Debian.
        case tls1
        case tls12
        case tls13
    }

    init(chain: String, key: String, http2: HTTP2?) {
        self.chain = chain
        self.key = key
        self.http2 = http2
    }

    func makeContext() throws(TLSContext.Invalid) -> TLSContext {
        let (minimum, maximum): (TLSContext.Version, TLSContext.Version?) =
            switch version {
            case nil: (.tls12, nil)
            case .tls1: (.tls1, .tls1)
            case .tls12: (.tls12, .tls12)
            case .tls13: (.tls13, nil)
            }
        return try TLSContext(
            chain: chain, key: key, minimum: minimum, maximum: maximum,
            protocols: [
                http2.map { _ in "h2" }, http2?.alsoSpeaksHTTP1 ?? true ? "http/1.1" : nil,
            ].compactMap(\.self), clientAuthority: clientAuthority)
    }
}
