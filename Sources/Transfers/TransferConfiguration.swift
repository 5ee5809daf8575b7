package import PrefetchModel

/// The limits of each transfer, and how requests introduce themselves.
package struct TransferConfiguration: Sendable {
    /// Name resolution, connecting and the TLS handshake together.
    package var connectTimeout: Duration = .seconds(10)
    /// The longest time without a byte.
    package var stallTimeout: Duration = .seconds(15)
    /// One whole transfer. Waiting in our queue never counts.
    package var totalTimeout: Duration = .seconds(300)
    /// The largest body, checked against the announced length and counted as it arrives, after
    /// content decoding: libcurl 7.88's own limit misses chunked, close-delimited and compressed
    /// bodies.
    package var maximumBodySize: ByteCount = .mebibytes(64)
    /// What all bodies in memory may take together, those included that wait for a codec worker.
    package var bodyBudget: ByteCount = .mebibytes(64)
    /// Connections kept open for reuse. libcurl's own number is four for each transfer that runs at
    /// the moment, which closes good connections whenever few run.
    package var maximumIdleConnections = 64
    /// Sends listed requests to link-local and metadata addresses, too.
    package var allowsLinkLocal = false
    /// Refuses every address that is not public, also for listed requests.
    package var deniesPrivate = false
    package var userAgent: String
    /// The value of `Accept`.
    package var accept: String = "image/jpeg, image/png, image/*;q=0.5, */*;q=0.1"

    /// The fields of every request that a response may vary on (`Vary`), as they are sent.
    package var requestFields: [HeaderField] {
        [
            HeaderField(name: "Accept", value: accept),
            HeaderField(name: "Accept-Encoding", value: TransferConfiguration.acceptedEncodings),
            HeaderField(name: "User-Agent", value: userAgent),
        ]
    }

    /// Images gain nothing from a content encoding.
    static let acceptedEncodings = "identity"

    package init(userAgent: String) {
        self.userAgent = userAgent
    }
}
