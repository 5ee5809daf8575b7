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
    /// The URL of the list's line, if it is another one: ``url`` may be a mirror's.
    package var listedURL: String?
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
        url: String, listedURL: String? = nil, finalURL: String?,
        permanent: PermanentTarget? = nil, redirects: Int = 0, host: String
    ) {
        self.url = url
        self.listedURL = listedURL
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

/// The URLs of a stored image, without user information.
package struct StoredURLs: Hashable, Sendable {
    package let requested: String
    /// The URL of the list's line; another one if a mirror was requested.
    package let listed: String

    package init(requested: String, listed: String) {
        self.requested = requested
        self.listed = listed
    }

    package init(_ location: ResourceLocation) {
        self.init(requested: location.url, listed: location.listedURL ?? location.url)
    }

    /// Whether the image is that of an entry with its key: a key alone does not make it one. The
    /// query may differ, as with signatures, and a mirror may have delivered it.
    package func areOfImage(at url: RequestURL, mirrors: [RequestURL] = []) -> Bool {
        isAnyOf(url.withoutCredentials.text)
            || mirrors.contains { isAnyOf($0.withoutCredentials.text) }
    }

    /// Whether two images of a key are the same line's.
    package func areOfImage(at other: StoredURLs) -> Bool {
        isAnyOf(other.requested) || isAnyOf(other.listed)
    }

    private func isAnyOf(_ url: String) -> Bool {
        func path(_ text: String) -> Substring { text.prefix { $0 != "?" } }
        return url == listed || path(url) == path(listed)
            || requested != listed && path(url) == path(requested)
    }
}
