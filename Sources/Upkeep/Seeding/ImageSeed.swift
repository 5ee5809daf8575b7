package import CacheStorage
import Codecs
import HTTPSemantics
import Hashing
package import Pipeline
package import PrefetchModel

/// A local image file, processed as a run would if its origin had sent these bytes.
///
/// Everything is decoded and encoded before the cache is touched, so refused bytes leave it
/// unchanged.
package struct ImageSeed {
    /// The reason that the bytes are refused, without the file's name.
    package struct Refusal: Error {
        package let message: String
    }

    private let configuration: RunConfiguration
    private let bytes: [UInt8]
    private let processed: ProcessedEntry
    private let made: [(variant: RequestedVariant, image: ProcessedImage)]
    /// The optional variants that no machine can make of the file, with the reasons.
    package let missing: [(name: VariantName, message: String)]
    /// A fault of the file that loses no pixel; nil for none.
    package var warning: String? { processed.warning?.text }

    /// Makes all variants of the configuration.
    ///
    /// - Parameters:
    ///   - bytes: the file.
    ///   - configuration: limits and variants.
    ///   - optional: the variants that the image may lack.
    /// - Throws: when a run would refuse the image, or another variant cannot be made.
    package init(
        _ bytes: [UInt8], by configuration: RunConfiguration, optional: Set<VariantName> = []
    ) throws(Refusal) {
        self.configuration = configuration
        self.bytes = bytes
        let recipes = configuration.images.variants.map(\.recipe)
        do throws(CodecError) {
            let processor = BudgetedImageProcessor(configuration.images)
            let result = bytes.withUnsafeBytes { bytes in
                Result { () throws(CodecError) in
                    try processor.process(
                        bytes, recipes, isNew: true, cancellation: Cancellation())
                }
            }
            processed = try result.get()
        } catch {
            throw Refusal(message: error.framedFailure.message)
        }
        var made: [(variant: RequestedVariant, image: ProcessedImage)] = []
        var missing: [(name: VariantName, message: String)] = []
        for (variant, result) in zip(configuration.images.variants, processed.results) {
            switch result {
            case .success(let image): made.append((variant, image))
            case .failure(let error):
                let message = error.framedFailure.message
                if optional.contains(variant.name), !processed.results.haveOneError,
                    case .unsupported = error
                {
                    missing.append((variant.name, message))
                    continue
                }
                // A problem of the source is not a problem of one variant.
                throw Refusal(
                    message: processed.results.haveOneError
                        ? message : "variant \(variant.name): \(message)")
            }
        }
        self.made = made
        self.missing = missing
    }

    /// Stores the image as the response of `url`, without header fields.
    ///
    /// - Parameters:
    ///   - url: the URL of the image.
    ///   - attributes: attributes with different names.
    ///   - cache: a cache that is open for writing.
    ///   - now: the wall clock.
    /// - Returns: the stored image of each variant.
    /// - Throws: when the cache cannot be written.
    package func store(
        at url: RequestURL, attributes: [EntryAttribute], in cache: OpenCache, at now: Timestamp
    ) throws(StorageError) -> [(variant: RequestedVariant, image: StoredImage)] {
        var stored: [(variant: RequestedVariant, image: StoredImage)] = []
        let listed = url.withoutCredentials
        try cache.seed(made.map(\.variant), at: now) { () throws(StorageError) in
            let hasher = SHA256Hasher()
            let digest = bytes.withUnsafeBytes { hasher.digest(of: $0) }
            for (variant, image) in made {
                let result = bytes.withUnsafeBytes { bytes in
                    Result { () throws(StorageError) in
                        try cache.content.store(
                            image, of: bytes, digest: digest, originURL: listed.text,
                            hasher: hasher)
                    }
                }
                stored.append((variant, try result.get()))
            }
            return ImageRow(
                key: listed.text, validation: validation(of: listed, at: now),
                source: SourceImage(processed, digest: digest, size: ByteCount(bytes.count)),
                variants: stored.map { VariantRow($0.variant, image: $0.image, createdAt: now) },
                attributes: attributes)
        }
        return stored
    }

    /// Without a validator, a stale image is downloaded again completely.
    private func validation(of url: RequestURL, at now: Timestamp) -> ResourceValidation {
        let verdict = Freshness.verdict(
            fields: [], receivedAt: now, transferTime: .zero,
            rules: configuration.lifetimes.rules(nil))
        guard case .expires(let expiry) = verdict else {
            preconditionFailure("no field forbids that it is stored")
        }
        return ResourceValidation(
            location: ResourceLocation(url: url.text, finalURL: nil, host: url.origin),
            response: StoredResponse(fields: [], varyingOn: [], receivedAt: now),
            fetchedAt: now, validatedAt: now, expiresAt: expiry)
    }
}
