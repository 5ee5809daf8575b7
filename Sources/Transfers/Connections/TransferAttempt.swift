import PrefetchModel

/// A request on its way through libcurl.
struct TransferAttempt {
    let request: TransferRequest
    /// The origin of a request over TLS; nil for others.
    let origin: String?
    /// The position of its settings in ``TransferConfiguration/hosts``; nil for the common ones.
    let hostSettings: Int?
    /// The authorities that the origin's certificate is verified with.
    var authorities = TrustedAuthorities.ofFile
    /// Whether credentials are sent by the scheme Digest (RFC 7616) instead of Basic.
    var usesDigest = false
    /// Whether it needs a handle without the challenge of an earlier request.
    var needsNewHandle = false
    /// The number of times that the request was sent again because its shared connection ended.
    var resends = 0

    init(
        _ request: TransferRequest, _ hosts: HostTable<TransferConfiguration> = HostTable()
    ) {
        self.request = request
        hostSettings = hosts.position(ofHostIn: request.url.text)
        origin = request.url.isEncrypted ? request.url.origin : nil
    }

    func trusting(_ authorities: TrustedAuthorities) -> TransferAttempt {
        var attempt = self
        attempt.authorities = authorities
        return attempt
    }
}

/// A transfer's use of the connections of its origin.
struct ConnectionUse {
    let origin: String
    /// Whether it has opened a socket, on which its request was not sent yet.
    var isConnecting = false
    var isRefused = false
    /// Whether its request was sent, or is about to be.
    var isSent = false
    var isAnswered = false
    /// Whether the response came over HTTP/2.
    var isShared = false
}
