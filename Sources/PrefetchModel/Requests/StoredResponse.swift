/// The part of a response's head that the cache stores, to validate the copy and to compute its
/// freshness after a 304. Texts are unchanged.
package struct StoredResponse: Hashable, Sendable {
    package var entityTag: String?
    package var lastModified: String?
    /// Several fields are joined with commas.
    package var cacheControl: String?
    package var expires: String?
    /// The request fields that the response varies on, with the values sent, one per line.
    package var vary: String?
    package var date: Timestamp?
    /// Informational: the format is determined from the image's bytes.
    package var contentType: String?

    package init(
        entityTag: String? = nil, lastModified: String? = nil, cacheControl: String? = nil,
        expires: String? = nil, vary: String? = nil, date: Timestamp? = nil,
        contentType: String? = nil
    ) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.cacheControl = cacheControl
        self.expires = expires
        self.vary = vary
        self.date = date
        self.contentType = contentType
    }
}

/// The stored part of a body.
package struct PartialBody: Hashable, Sendable {
    /// The URL after all redirects, without user information.
    package let url: String
    package let count: Int
    package let validator: PartialValidator
    /// The size of the whole body; nil if the response did not say.
    package let total: Int?

    package init(url: String, count: Int, validator: PartialValidator, total: Int?) {
        self.url = url
        self.count = count
        self.validator = validator
        self.total = total
    }
}

/// The validator of a partial body, sent unchanged in `If-Range` to resume it (RFC 9110 §13.1.5).
package enum PartialValidator: Hashable, Sendable {
    case entityTag(String)
    /// A `Last-Modified` that is strong by RFC 9110 §8.8.2.2, from a response without entity tag.
    case lastModified(String)
}
