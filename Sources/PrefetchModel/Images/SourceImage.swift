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
/// The images are by position of the variant.
package typealias SeededCopy = (
    validation: ResourceValidation, source: SourceImage, images: [StoredImage]
)
