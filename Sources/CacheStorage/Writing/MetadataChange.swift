package import PrefetchModel

/// A change of the metadata; each entry of a run makes one.
package enum MetadataChange: Sendable {
    /// A body was stored.
    case image(ImageRow)
    /// A resource whose body is unchanged got new metadata.
    case resource(ResourceChange)
    /// An entry failed, and the failure may be blacklisted by the rules at the end of the run.
    case failure(FailureRecord)
    /// An entry failed in a way that is stored for the next run but never blacklisted.
    case harmlessFailure(FailureRecord)
    /// A content file is missing or damaged: removes all variants that name it, and the remains of
    /// the file.
    case lost(StoredImage)
    /// The variants of resources in use changed to others that are stored.
    case used(resources: [Int64], [RequestedVariant])

    /// The key of the one resource or failure that changes, if the change contains it.
    var key: String? {
        switch self {
        case .image(let row): row.key
        case .resource(let change): change.key
        case .failure(let record), .harmlessFailure(let record): record.key
        case .lost, .used: nil
        }
    }
}

/// A new variant, whose file ``ContentStore`` has stored and pinned.
package struct VariantRow: Sendable {
    package var variant: RequestedVariant
    package var image: StoredImage
    package var createdAt: Timestamp

    package init(_ variant: RequestedVariant, image: StoredImage, createdAt: Timestamp) {
        self.variant = variant
        self.image = image
        self.createdAt = createdAt
    }
}

/// The rows of one stored download, committed together: resource, variants and attributes.
package struct ImageRow: Sendable {
    package var key: String
    /// The metadata of the response that delivered the body.
    package var validation: ResourceValidation
    package var source: SourceImage
    /// The variants that could be made, at least one, with different names.
    package var variants: [VariantRow]
    package var attributes: [EntryAttribute]
    /// Whether a requested variant could not be made. Then the key's failure stays, so that the
    /// next failure continues its count.
    package var isIncomplete: Bool

    package init(
        key: String, validation: ResourceValidation, source: SourceImage, variants: [VariantRow],
        attributes: [EntryAttribute] = [], isIncomplete: Bool = false
    ) {
        self.key = key
        self.validation = validation
        self.source = source
        self.variants = variants
        self.attributes = attributes
        self.isIncomplete = isIncomplete
    }
}

/// A change of a resource whose body is unchanged: the origin confirmed it, variants were made from
/// it, or it got attributes.
package struct ResourceChange: Sendable {
    package var resourceID: Int64
    package var key: String
    /// The variants in use from now on.
    package var used: [RequestedVariant]
    /// The origin's response; nil if it was not asked.
    package var validation: ResourceValidation?
    /// The new variants.
    package var variants: [VariantRow]
    /// Attributes to add; they replace attributes of the same name.
    package var attributes: [EntryAttribute]
    /// See ``ImageRow/isIncomplete``.
    package var isIncomplete: Bool

    package init(
        resourceID: Int64, key: String, used: [RequestedVariant],
        validation: ResourceValidation? = nil, variants: [VariantRow] = [],
        attributes: [EntryAttribute] = [], isIncomplete: Bool = false
    ) {
        self.resourceID = resourceID
        self.key = key
        self.used = used
        self.validation = validation
        self.variants = variants
        self.attributes = attributes
        self.isIncomplete = isIncomplete
    }
}
