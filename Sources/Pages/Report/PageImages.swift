package import PrefetchModel

/// A small image for a page.
package struct PageImage: Sendable {
    package enum MediaType: String, Sendable {
        case png = "image/png"
        case jpeg = "image/jpeg"
    }

    let type: MediaType
    let bytes: [UInt8]
    package let isBlurred: Bool

    package init(_ type: MediaType, _ bytes: [UInt8], isBlurred: Bool) {
        self.type = type
        self.bytes = bytes
        self.isBlurred = isBlurred
    }

    /// The `data:` URL (RFC 2397).
    var dataURL: String {
        "data:\(type.rawValue);base64,\(String(decoding: bytes.base64, as: UTF8.self))"
    }
}

/// The images of a page by the digests of the files they show, up to a total size.
package struct PageImages: Sendable {
    /// Room for the rest of the page stays within its limit.
    private static let mostBytes = 900_000

    private var images: [ContentDigest: PageImage] = [:]
    private var byteCount = 0

    package init() {}

    package subscript(digest: ContentDigest) -> PageImage? { images[digest] }

    package mutating func add(_ image: PageImage, for digest: ContentDigest) {
        guard images[digest] == nil, byteCount + image.bytes.count <= PageImages.mostBytes else {
            return
        }
        byteCount += image.bytes.count
        images[digest] = image
    }
}
