/// The origin said that the copy is good: with 304, or with the same bytes again.
package struct ResourceValidation: Sendable {
    /// Where it said so.
    package var location: ResourceLocation
    package var response: StoredResponse
    /// When the body came again; nil with a 304.
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

/// Where a response came from; its validators mean nothing elsewhere.
package struct ResourceLocation: Hashable, Sendable {
    /// What was asked for, without user information.
    package var url: String
    /// Where redirects led; nil without any.
    package var finalURL: String?
    /// Where the permanent redirects (301, 308) led that came first, from ``url`` on and before any
    /// other one; nil without such.
    package var permanentURL: String?
    /// Redirects that were followed to the response: 0 also when the request went straight to where
    /// earlier permanent ones led.
    package var redirects: Int
    /// Scheme, host and port of ``url``.
    package var host: String

    package init(
        url: String, finalURL: String?, permanentURL: String? = nil, redirects: Int = 0,
        host: String
    ) {
        self.url = url
        self.finalURL = finalURL
        self.permanentURL = permanentURL
        self.redirects = redirects
        self.host = host
    }
}
