/// The image as fetched.
package struct SourceImage: Hashable, Sendable {
    package var digest: ContentDigest
    package var format: ImageFormat
    /// As displayed, with the orientation applied; 0 if unknown.
    package var widthInPixels: Int
    package var heightInPixels: Int
    package var size: ByteCount
    /// Nil if not requested, or if nothing was decoded.
    package var placeholder: Placeholder?
    /// A fault that loses no pixel, for the report; nil for none.
    package var warning: String?

    package init(
        digest: ContentDigest, format: ImageFormat, widthInPixels: Int, heightInPixels: Int,
        size: ByteCount, placeholder: Placeholder? = nil, warning: String? = nil
    ) {
        self.digest = digest
        self.format = format
        self.widthInPixels = widthInPixels
        self.heightInPixels = heightInPixels
        self.size = size
        self.placeholder = placeholder
        self.warning = warning
    }
}

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
