/// A stored image that a download with other bytes has replaced.
package struct ReplacedImage: Hashable, Sendable {
    /// The time of its download.
    package let fetchedAt: Timestamp
    /// The variant's bytes; their file is removed soon after.
    package let digest: ContentDigest
    /// As ``Placeholder/thumbHash``; nil if it had none.
    package let thumbHash: [UInt8]?

    package init(fetchedAt: Timestamp, digest: ContentDigest, thumbHash: [UInt8]?) {
        self.fetchedAt = fetchedAt
        self.digest = digest
        self.thumbHash = thumbHash
    }
}
