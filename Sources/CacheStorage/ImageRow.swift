package import PrefetchModel

/// Everything that one stored download writes: its resource and one variant.
package struct ImageRow: Sendable {
    package var key: String
    /// Without user information, like every URL here.
    package var url: String
    package var finalURL: String?
    package var host: String
    package var entityTag: String?
    package var lastModified: String?
    package var cacheControl: String?
    package var vary: String?
    package var date: Timestamp?
    package var fetchedAt: Timestamp
    package var expiresAt: Timestamp
    package var sourceSize: ByteCount
    package var sourceFormat: ImageFormat
    package var sourceDigest: ContentDigest
    package var sourceWidthInPixels: Int
    package var sourceHeightInPixels: Int
    package var recipe: Recipe
    package var image: StoredImage

    package init(
        key: String, url: String, finalURL: String?, host: String, entityTag: String?,
        lastModified: String?, cacheControl: String?, vary: String?, date: Timestamp?,
        fetchedAt: Timestamp, expiresAt: Timestamp, sourceSize: ByteCount,
        sourceFormat: ImageFormat, sourceDigest: ContentDigest, sourceWidthInPixels: Int,
        sourceHeightInPixels: Int, recipe: Recipe, image: StoredImage
    ) {
        self.key = key
        self.url = url
        self.finalURL = finalURL
        self.host = host
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.cacheControl = cacheControl
        self.vary = vary
        self.date = date
        self.fetchedAt = fetchedAt
        self.expiresAt = expiresAt
        self.sourceSize = sourceSize
        self.sourceFormat = sourceFormat
        self.sourceDigest = sourceDigest
        self.sourceWidthInPixels = sourceWidthInPixels
        self.sourceHeightInPixels = sourceHeightInPixels
        self.recipe = recipe
        self.image = image
    }
}
