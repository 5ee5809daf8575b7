/// A copy that is fresh in another cache, which has all variants of the entry.
package struct SeededCopy: Sendable {
    package var validation: ResourceValidation
    package let source: SourceImage
    /// By position of the variant.
    package let images: [StoredImage]

    package init(validation: ResourceValidation, source: SourceImage, images: [StoredImage]) {
        self.validation = validation
        self.source = source
        self.images = images
    }
}
