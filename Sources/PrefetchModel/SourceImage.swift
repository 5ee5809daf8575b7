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
