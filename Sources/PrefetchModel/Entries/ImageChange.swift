/// A change of one image's rows, committed together: its resource, variants and attributes.
package struct ImageChange: Sendable {
    package enum BodyChange: Sendable {
        /// A new body. The validation is that of its response.
        case new(SourceImage, ResourceValidation)
        /// The body of a stored resource stays: the origin confirmed it, variants were made from
        /// it, or it got attributes. The validation is nil without a response; `used` are the
        /// variants in use from now on.
        case kept(resource: Int64, ResourceValidation?, used: [RequestedVariant])
    }

    package var key: String
    package var body: BodyChange
    /// The rows of variants to write, with different names; at least one for a new body.
    package var variants: [VariantChange]
    /// Attributes to add; they replace attributes of the same name.
    package var attributes: [EntryAttribute]
    /// Whether a requested variant could not be made. Then the key's failure stays, so that the
    /// next failure continues its count.
    package var isIncomplete: Bool

    package init(
        key: String, body: BodyChange, variants: [VariantChange] = [],
        attributes: [EntryAttribute] = [], isIncomplete: Bool = false
    ) {
        self.key = key
        self.body = body
        self.variants = variants
        self.attributes = attributes
        self.isIncomplete = isIncomplete
    }

    package var validation: ResourceValidation? {
        switch body {
        case .new(_, let validation): validation
        case .kept(_, let validation, _): validation
        }
    }
}

/// A variant's row to write. Its file is in place and pinned.
package struct VariantChange: Hashable, Sendable {
    package var variant: RequestedVariant
    package let image: StoredImage
    package let createdAt: Timestamp
    /// Whether the file was stored before. It is pinned with the change; others are pinned by the
    /// code that stores them.
    package let isKept: Bool

    package init(
        _ variant: RequestedVariant, image: StoredImage, createdAt: Timestamp, isKept: Bool = false
    ) {
        self.variant = variant
        self.image = image
        self.createdAt = createdAt
        self.isKept = isKept
    }
}
