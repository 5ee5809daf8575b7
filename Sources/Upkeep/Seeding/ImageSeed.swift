package import CacheStorage
import Codecs
package import Decoding
import HTTPSemantics
import Hashing
package import Pipeline
package import PrefetchModel

/// A local image file, processed as a run would if its origin had sent these bytes. Everything is
/// decoded and encoded before the cache is touched, so refused bytes leave it unchanged.
package struct ImageSeed {
    private let configuration: RunConfiguration
    private let bytes: [UInt8]
    private let digest: ContentDigest
    private let processed: ProcessedEntry
    private let made: [(variant: RequestedVariant, image: ProcessedImage)]
    /// The optional variants that no machine can make of the file, with the reasons.
    package let missing: [(name: VariantName, message: String)]
    /// A fault of the file that loses no pixel; nil for none.
    package var warning: String? { processed.warning?.text }

    /// Makes all variants of the configuration. Without a `processor`, it makes one, with memory of
    /// its own; the image may lack the `optional` variants.
    ///
    /// - Throws: the failure if a run would refuse the image, or another variant cannot be made;
    ///   its message lacks the file's name.
    package init(
        _ bytes: [UInt8], by configuration: RunConfiguration,
        processor: BudgetedImageProcessor? = nil, optional: Set<VariantName> = []
    ) throws(Failure) {
        self.configuration = configuration
        self.bytes = bytes
        let hasher = SHA256Hasher()
        digest = bytes.withUnsafeBytes { hasher.digest(of: $0) }
        let recipes = configuration.images.variants.map(\.recipe)
        let processor = processor ?? BudgetedImageProcessor(configuration.images)
        do {
            processed = try bytes.withUnsafeBytes { bytes in
                try processor.perform(.new(recipes), on: bytes)
            }
        } catch {
            throw (error as? CodecError)?.framedFailure ?? Failure(.internal, "\(error)")
        }
        var made: [(variant: RequestedVariant, image: ProcessedImage)] = []
        var missing: [(name: VariantName, message: String)] = []
        for (variant, result) in zip(configuration.images.variants, processed.results) {
            switch result {
            case .success(let image): made.append((variant, image))
            case .failure(let error):
                let failure = error.framedFailure
                if optional.contains(variant.name), !processed.results.haveOneError,
                    case .unsupported = error
                {
                    missing.append((variant.name, failure.message))
                    continue
                }
                // A problem of the source is not a problem of one variant.
                throw processed.results.haveOneError
                    ? failure
                    : Failure(failure.reason, "variant \(variant.name): \(failure.message)")
            }
        }
        self.made = made
        self.missing = missing
    }

    /// An image to store. `key` is nil for the URL without credentials; the attributes have
    /// different names.
    package typealias Entry = (
        seed: ImageSeed, url: RequestURL, key: String?, attributes: [EntryAttribute]
    )

    /// Stores images as the responses of their URLs, without header fields: all of them or none.
    /// Their keys differ. The names of `variants`, by default of the first image's variants, are
    /// recorded as in a run. Returns the stored image of each variant of each entry.
    @discardableResult
    package static func store(
        _ entries: [Entry], naming variants: [RequestedVariant]? = nil, in cache: OpenCache,
        at now: Timestamp
    ) throws(StorageError) -> [[(variant: RequestedVariant, image: StoredImage)]] {
        guard let first = entries.first else { return [] }
        var stored: [[(variant: RequestedVariant, image: StoredImage)]] = []
        let variants = variants ?? first.seed.made.map(\.variant)
        try cache.seed(variants, at: now) { () throws(StorageError) in
            var rows: [ImageChange] = []
            for entry in entries {
                let images = try entry.seed.storeFiles(of: entry.url, in: cache)
                stored.append(images)
                rows.append(entry.seed.row(of: entry, images, at: now))
            }
            return rows
        }
        return stored
    }

    private func storeFiles(
        of url: RequestURL, in cache: OpenCache
    ) throws(StorageError) -> [(variant: RequestedVariant, image: StoredImage)] {
        let hasher = SHA256Hasher()
        let origin = url.withoutCredentials.text
        var stored: [(variant: RequestedVariant, image: StoredImage)] = []
        for (variant, image) in made {
            let image = try bytes.span.withUnsafeBytes { bytes throws(StorageError) in
                try cache.content.store(
                    image, of: bytes, digest: digest, originURL: origin, hasher: hasher)
            }
            stored.append((variant, image))
        }
        return stored
    }

    private func row(
        of entry: Entry, _ stored: [(variant: RequestedVariant, image: StoredImage)],
        at now: Timestamp
    ) -> ImageChange {
        let url = entry.url.withoutCredentials
        return ImageChange(
            key: entry.key ?? url.text,
            body: .new(
                SourceImage(processed, digest: digest, size: ByteCount(bytes.count)),
                validation(of: url, at: now)),
            variants: stored.map { VariantChange($0.variant, image: $0.image, createdAt: now) },
            attributes: entry.attributes)
    }

    /// Without a validator, a stale image is downloaded again completely.
    private func validation(of url: RequestURL, at now: Timestamp) -> ResourceValidation {
        let expiry = Freshness.expiry(
            fields: [], receivedAt: now, transferTime: .zero,
            rules: configuration.lifetimes.rules(nil))
        guard let expiry else { preconditionFailure("no field forbids that it is stored") }
        return ResourceValidation(
            location: ResourceLocation(url: url.text, finalURL: nil, host: url.origin),
            response: StoredResponse(fields: [], varyingOn: [], receivedAt: now),
            fetchedAt: now, validatedAt: now, expiresAt: expiry)
    }
}
