package import CacheStorage
package import Codecs
package import Hashing
package import PrefetchModel

/// Processes images by the rules of a run, within its memory budget. Any thread may use it.
package struct BudgetedImageProcessor: Sendable {
    private let rules: HeaderRules
    private let makesPlaceholders: Bool
    private let overlays: Overlays
    private let pixels: MemoryBudget

    package init(_ images: ImageRules) {
        rules = images.headerRules
        makesPlaceholders = images.makesPlaceholders
        overlays = images.overlayFiles.overlays
        pixels = MemoryBudget(total: rules.memory)
    }

    /// Decodes or checks the source and makes a result for each recipe: from one decode, or one by
    /// one where that takes too much memory. Waits for its share of the memory.
    ///
    /// The filters apply only if `isNew`: stored images were wanted, and stay.
    package func process(
        _ bytes: UnsafeRawBufferPointer, _ recipes: [Recipe], isNew: Bool,
        cancellation: Cancellation
    ) throws(CodecError) -> ProcessedEntry {
        let header = try Codecs.header(
            of: bytes, limits: rules.limits, recipes: recipes, others: rules.others)
        if isNew { try rules.filter(header) }
        if let processed = try decoded(bytes, header, recipes, cancellation) { return processed }
        guard recipes.count > 1 else {
            throw .tooMuchMemory(need(of: header, recipes), of: pixels.total)
        }
        let entries = try recipes.map { recipe throws(CodecError) in
            try decoded(bytes, header, [recipe], cancellation)
                ?? ProcessedEntry(
                    header: header,
                    refusing: .tooMuchMemory(need(of: header, [recipe]), of: pixels.total))
        }
        return ProcessedEntry(header: header, joining: entries)
    }

    private func decoded(
        _ bytes: UnsafeRawBufferPointer, _ header: ImageHeader, _ recipes: [Recipe],
        _ cancellation: Cancellation
    ) throws(CodecError) -> ProcessedEntry? {
        let need = need(of: header, recipes)
        return try pixels.withReservation(of: need) { () throws(CodecError) in
            try ImageProcessor.process(
                bytes, header: header, recipes: recipes, limits: rules.limits, check: rules.check,
                memoryBytes: need, overlays: overlays, wantsPlaceholder: makesPlaceholders,
                cancellation: cancellation)
        }
    }

    private func need(of header: ImageHeader, _ recipes: [Recipe]) -> Int {
        ImageProcessor.memoryNeed(
            of: header, for: recipes, check: rules.check, within: pixels.total.bytes)
    }
}

extension SourceImage {
    package init(_ processed: ProcessedEntry, digest: ContentDigest, size: ByteCount) {
        let header = processed.header
        let (width, height) = header.displayedSize
        self.init(
            digest: digest, format: header.format, widthInPixels: width, heightInPixels: height,
            size: size, placeholder: processed.placeholder, warning: processed.warning?.text)
    }
}

extension ContentStore {
    /// Stores the result of a source with this digest as a content file, and pins it.
    package func store(
        _ image: ProcessedImage, of source: UnsafeRawBufferPointer, digest: ContentDigest,
        originURL: String, hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> StoredImage {
        func store(
            _ bytes: UnsafeRawBufferPointer, _ digest: ContentDigest
        ) throws(StorageError) -> StoredImage {
            let stored = StoredImage(
                digest: digest, format: image.format, isDecoded: image.isDecoded,
                widthInPixels: image.widthInPixels, heightInPixels: image.heightInPixels,
                orientation: image.orientation, size: ByteCount(bytes.count), colour: image.colour)
            try self.store(bytes, as: stored, originURL: originURL)
            return stored
        }
        switch image.output {
        case .source: return try store(source, digest)
        case .encoded(let encoded):
            return try encoded.withUnsafeBytes { encoded throws(StorageError) in
                try store(encoded, hasher.digest(of: encoded))
            }
        }
    }
}
