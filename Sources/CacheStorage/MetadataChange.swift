package import PrefetchModel

/// What a run changes in the metadata, one change for each entry.
package enum MetadataChange: Sendable {
    /// A body was stored.
    case image(ImageRow)
    /// Something new is known of a resource whose body stays.
    case resource(ResourceChange)
    /// An entry failed in a way that is remembered.
    case failure(FailureRecord)
    /// A content file is gone or damaged: no variant may name it any more, whosever it is, and what
    /// is left of it goes.
    case lost(StoredImage)
    /// A run uses the variants of this recipe, which are stored, where an earlier one used others.
    case used(resources: [Int64], recipe: Recipe)
}

/// The image as fetched.
package struct SourceImage: Hashable, Sendable {
    package var digest: ContentDigest
    package var format: ImageFormat
    package var widthInPixels: Int
    package var heightInPixels: Int
    package var size: ByteCount

    package init(
        digest: ContentDigest, format: ImageFormat, widthInPixels: Int, heightInPixels: Int,
        size: ByteCount
    ) {
        self.digest = digest
        self.format = format
        self.widthInPixels = widthInPixels
        self.heightInPixels = heightInPixels
        self.size = size
    }
}

/// Everything that one stored download writes: its resource, one variant and its attributes.
package struct ImageRow: Sendable {
    package var key: String
    /// Without user information, like every URL here.
    package var url: String
    package var finalURL: String?
    /// See ``ResourceLocation/permanentURL``.
    package var permanentURL: String?
    /// See ``ResourceLocation/redirects``.
    package var redirects: Int
    package var host: String
    package var response: StoredResponse
    package var fetchedAt: Timestamp
    package var expiresAt: Timestamp
    package var source: SourceImage
    package var recipe: Recipe
    package var image: StoredImage
    package var attributes: [EntryAttribute]

    package init(
        key: String, url: String, finalURL: String?, permanentURL: String? = nil,
        redirects: Int = 0, host: String, response: StoredResponse, fetchedAt: Timestamp,
        expiresAt: Timestamp, source: SourceImage, recipe: Recipe, image: StoredImage,
        attributes: [EntryAttribute] = []
    ) {
        self.key = key
        self.url = url
        self.finalURL = finalURL
        self.permanentURL = permanentURL
        self.redirects = redirects
        self.host = host
        self.response = response
        self.fetchedAt = fetchedAt
        self.expiresAt = expiresAt
        self.source = source
        self.recipe = recipe
        self.image = image
        self.attributes = attributes
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

/// What becomes of a resource whose body stays: the origin confirmed it, another variant was made
/// from it, or it got attributes.
package struct ResourceChange: Sendable {
    /// The origin said that the copy is good: with 304, or with the same bytes again.
    package struct Validation: Sendable {
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

    /// A new variant of the change's recipe, whose file ``ContentStore`` has put in place and pinned.
    package struct Variant: Sendable {
        package var image: StoredImage
        package var createdAt: Timestamp

        package init(image: StoredImage, createdAt: Timestamp) {
            self.image = image
            self.createdAt = createdAt
        }
    }

    package var resourceID: Int64
    package var key: String
    /// Of the variant in use from now on.
    package var recipe: Recipe
    package var validation: Validation?
    package var variant: Variant?
    /// Added to those that the resource has, or put in their place where the name is the same.
    package var attributes: [EntryAttribute]

    package init(
        resourceID: Int64, key: String, recipe: Recipe, validation: Validation? = nil,
        variant: Variant? = nil, attributes: [EntryAttribute] = []
    ) {
        self.resourceID = resourceID
        self.key = key
        self.recipe = recipe
        self.validation = validation
        self.variant = variant
        self.attributes = attributes
    }
}
