/// The image as fetched.
package struct SourceImage: Hashable, Sendable {
    package var digest: ContentDigest
    package var format: ImageFormat
    package var widthInPixels: Int
    package var heightInPixels: Int
    package var size: ByteCount
    /// Nil if not requested, or if nothing was decoded.
    package var placeholder: Placeholder?

    package init(
        digest: ContentDigest, format: ImageFormat, widthInPixels: Int, heightInPixels: Int,
        size: ByteCount, placeholder: Placeholder? = nil
    ) {
        self.digest = digest
        self.format = format
        self.widthInPixels = widthInPixels
        self.heightInPixels = heightInPixels
        self.size = size
        self.placeholder = placeholder
    }
}
