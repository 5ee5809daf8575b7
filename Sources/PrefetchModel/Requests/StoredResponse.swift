/// What the cache keeps of a response's head: what it is validated with, and what its freshness is
/// reckoned from when a 304 says that it is good. Texts are exactly as they came.
package struct StoredResponse: Hashable, Sendable {
    package var entityTag: String?
    package var lastModified: String?
    /// Several fields are joined with commas.
    package var cacheControl: String?
    package var expires: String?
    /// The request fields that the response varies on, with the values that were sent, as lines.
    package var vary: String?
    package var date: Timestamp?
    /// Nothing depends on it: what an image is, its bytes say.
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
