/// A stored image that a download with other bytes has replaced.
package struct ReplacedImage: Hashable, Sendable {
    /// The time of its download.
    package let fetchedAt: Timestamp
    /// The variant; its file is removed soon after.
    package let image: StoredImage
    /// As ``Placeholder/thumbHash``; nil if it had none.
    package let thumbHash: [UInt8]?

    package init(fetchedAt: Timestamp, image: StoredImage, thumbHash: [UInt8]?) {
        self.fetchedAt = fetchedAt
        self.image = image
        self.thumbHash = thumbHash
    }
}
