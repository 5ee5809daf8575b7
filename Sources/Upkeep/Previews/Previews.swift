package import CacheStorage
import Codecs
import Decoding
import Hashing
package import PrefetchModel
import Threading

/// Makes small pictures of stored images, for pages. Changes nothing in the cache.
package struct Previews: Sendable {
    package static let sidePixels = 240

    private let catalog: CacheCatalog
    private let crashes: CrashLog
    private let recipe: Recipe
    private let processor: BudgetedImageProcessor

    /// Larger images get no thumbnail: decoding them could take all memory.
    private static let mostMemory = 512 << 20

    package init(of catalog: CacheCatalog, at now: Timestamp) throws(StorageError) {
        self.catalog = catalog
        crashes = try CrashLog(directory: catalog.directory, at: now)
        var recipe = Recipe(encoding: .jpeg, quality: 60, keepsLarger: true)
        recipe.stripping = .all
        recipe.animation = .first
        recipe.transformations = [
            .resize(.fit(width: Previews.sidePixels, height: Previews.sidePixels))
        ]
        self.recipe = recipe
        processor = BudgetedImageProcessor(
            DecodingRules(
                header: HeaderRules(recipes: [recipe], memory: ByteCount(Previews.mostMemory))),
            sandbox: .auto)
    }

    /// Returns a JPEG of at most ``sidePixels``; nil for a format that is not decoded, a
    /// missing or damaged file, and an image that crashed a decoder.
    package func thumbnail(of image: StoredImage) -> [UInt8]? {
        guard image.format.isDecoded,
            let bytes = catalog.directory.bytes(of: image, hasher: SHA256Hasher()).whole
        else { return nil }
        return thumbnail(of: image, bytes: bytes)
    }

    /// Returns a thumbnail as ``thumbnail(of:)`` does, of bytes that were already read.
    package func thumbnail(of image: StoredImage, bytes: [UInt8]) -> [UInt8]? {
        guard image.format.isDecoded, crashes.crash(of: image.digest) == nil else { return nil }
        // A page is complete without the thumbnail.
        return try? bytes.withUnsafeBytes { try thumbnail(of: $0) }
    }

    private func thumbnail(of bytes: UnsafeRawBufferPointer) throws -> [UInt8]? {
        let processed = try processor.perform(.stored([recipe]), on: bytes)
        guard let result = processed.results.first,
            case .encoded(let jpeg) = try result.get().output
        else { return nil }
        return jpeg.withUnsafeBytes { [UInt8]($0) }
    }

    /// Returns a PNG of a ThumbHash; nil if memory is short.
    package static func picture(ofThumbHash hash: [UInt8]) -> [UInt8]? {
        try? ThumbHashPicture(hash).png()
    }

    /// Makes thumbnails on several threads: a result for each image, in their order.
    package func thumbnails(of images: [StoredImage], workers: Int) -> [[UInt8]?] {
        images.parallelMap(workers: workers, name: "preview") { thumbnail(of: $0) }
    }
}
