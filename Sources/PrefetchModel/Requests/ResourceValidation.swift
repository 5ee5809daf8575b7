/// An origin's confirmation that the stored copy is current, by 304 or by the same bytes.
package struct ResourceValidation: Sendable {
    package var location: ResourceLocation
    package var response: StoredResponse
    /// The arrival time of the body; nil for a 304.
    package var fetchedAt: Timestamp?
    package var validatedAt: Timestamp
    package var expiresAt: Timestamp

    package init(
        location: ResourceLocation, response: StoredResponse, fetchedAt: Timestamp? = nil,
        validatedAt: Timestamp, expiresAt: Timestamp
    ) {
        self.location = location
        self.response = response
        self.fetchedAt = fetchedAt
        self.validatedAt = validatedAt
        self.expiresAt = expiresAt
    }
}

/// The origin of a response; its validators are meaningless elsewhere.
package struct ResourceLocation: Hashable, Sendable {
    package var url: String
    /// The final URL after redirects; nil without redirects.
    package var finalURL: String?
    /// Nil without permanent redirects that may be used again.
    package var permanent: PermanentTarget?
    /// The number of redirects followed; 0 also if the request used the stored target of earlier
    /// permanent redirects.
    package var redirects: Int
    /// Scheme, host and port of ``url``.
    package var host: String

    /// The URL at the end of all redirects.
    package var respondingURL: String { finalURL ?? url }

    package init(
        url: String, finalURL: String?, permanent: PermanentTarget? = nil, redirects: Int = 0,
        host: String
    ) {
        self.url = url
        self.finalURL = finalURL
        self.permanent = permanent
        self.redirects = redirects
        self.host = host
    }
}

/// The target of the leading permanent redirects (301, 308) from a URL.
package struct PermanentTarget: Hashable, Sendable {
    package var url: String
    /// The earliest end of a redirect's freshness: the URL is requested again from then on.
    package var until: Timestamp

    package init(url: String, until: Timestamp) {
        self.url = url
        self.until = until
    }
}
