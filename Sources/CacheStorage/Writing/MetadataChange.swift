package import PrefetchModel

/// What a run changes in the metadata, one change for each entry.
package enum MetadataChange: Sendable {
    /// A body was stored.
    case image(ImageRow)
    /// Something new is known of a resource whose body stays.
    case resource(ResourceChange)
    /// An entry failed in a way that is remembered, and which blocks by the rules of the run's end.
    case failure(FailureRecord)
    /// An entry failed in a way that the next run knows by, and which never blocks.
    case harmlessFailure(FailureRecord)
    /// A content file is gone or damaged: no variant may name it any more, whosever it is, and what
    /// is left of it goes.
    case lost(StoredImage)
    /// A run uses these variants of resources, which are stored, where an earlier one used others.
    case used(resources: [Int64], [RequestedVariant])

    /// Of the one resource or failure that it changes, if that is known by it.
    var key: String? {
        switch self {
        case .image(let row): row.key
        case .resource(let change): change.key
        case .failure(let record), .harmlessFailure(let record): record.key
        case .lost, .used: nil
        }
    }
}

/// A variant that was made, whose file ``ContentStore`` has put in place and pinned.
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

/// Everything that one stored download writes: its resource, its variants and its attributes, together.
package struct ImageRow: Sendable {
    package var key: String
    /// What the response said; the body came with it.
    package var validation: ResourceValidation
    package var source: SourceImage
    /// Those that could be made, at least one, with different names.
    package var variants: [VariantRow]
    package var attributes: [EntryAttribute]
    /// Whether something that was asked for could not be made: a failure of the key stays, which the
    /// next one is counted by.
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

/// What becomes of a resource whose body stays: the origin confirmed it, other variants were made
/// from it, or it got attributes.
package struct ResourceChange: Sendable {
    package var resourceID: Int64
    package var key: String
    /// The variants in use from now on.
    package var used: [RequestedVariant]
    /// What the origin said; nil when it was not asked.
    package var validation: ResourceValidation?
    /// Those that were made.
    package var variants: [VariantRow]
    /// Added to those that the resource has, or put in their place where the name is the same.
    package var attributes: [EntryAttribute]
    /// As in ``ImageRow``.
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
