/// The limits of one transfer. Waiting in a queue never counts.
package struct TransferLimits: Sendable {
    /// Name resolution, connecting and the TLS handshake together.
    package var connectTimeout = Duration.seconds(10)
    /// The longest time without a byte.
    package var stallTimeout = Duration.seconds(15)
    /// The longest time for all.
    package var totalTimeout = Duration.seconds(300)
    /// The largest body, checked against the announced length and counted as it arrives, after
    /// content decoding: libcurl 7.88's own limit misses chunked, close-delimited and compressed
    /// bodies.
    package var maximumBodySize = ByteCount.mebibytes(64)

    package init() {}
}

/// The redirects that a request follows.
package struct RedirectRules: Sendable {
    package var maximum = 10
    package var allowsDowngrade = false
    /// Whether cookies are kept, so that a request after one is another request.
    package var keepsCookies = false
    package var followsMemory = true

    package init() {}

    /// Whether a redirect keeps the encryption that the user requires.
    package func mayLead(from url: RequestURL, to target: RequestURL) -> Bool {
        allowsDowngrade || target.isEncrypted || !url.isEncrypted
    }
}
