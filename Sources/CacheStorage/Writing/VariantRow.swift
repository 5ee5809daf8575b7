package import PrefetchModel

/// A new variant; ``ContentStore`` has stored and pinned its file.
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
