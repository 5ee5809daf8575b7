package import CacheStorage
package import Codecs
package import Decoding
import EntryLifecycle
package import Hashing
package import PrefetchModel
import Transfers

/// Processing of bodies and stored originals.
///
/// The methods throw a ``PrefetchModel/Failure`` of the image, ``Codecs/CodecError/cancelled`` when
/// the run is cancelled, and any other error when the cache cannot be written.
extension CodecStage {
    private struct SourceBytes {
        let bytes: UnsafeRawBufferPointer
        /// See ``Transfers/Body/sealedDescriptor``.
        var descriptor: Int32?
        let digest: ContentDigest
        let originURL: String
        let isFramed: Bool
    }

    func process(
        _ download: CodecJob.Download, _ job: CodecJob, hasher: borrowing SHA256Hasher
    ) throws -> CodecCompletion {
        let isContinued = download.body.gap > 0
        guard try complete(download) else { return job.ended(.partDamaged) }
        return try download.body.withUnsafeBytes { body in
            guard let filter = job.variants.primary.recipe.bodyFilter else {
                return try process(
                    download, job, body, download.body.sealedDescriptor, isContinued: isContinued,
                    hasher: hasher)
            }
            let image = try filters.image(of: body, by: filter) {
                download.body.reserve(derivedBytes: $0)
            }
            return try image.withUnsafeBytes { bytes in
                try process(download, job, bytes, isContinued: isContinued, hasher: hasher)
            }
        }
    }

    private func process(
        _ download: CodecJob.Download, _ job: CodecJob, _ bytes: UnsafeRawBufferPointer,
        _ descriptor: Int32? = nil, isContinued: Bool, hasher: borrowing SHA256Hasher
    ) throws -> CodecCompletion {
        guard download.hasFramedBody || statesItsEnd(bytes) else {
            throw Failure(
                .interrupted, "the image does not say where it ends, and neither does the response")
        }
        let digest = hasher.digest(of: bytes)
        if let expected = download.expected, digest != expected {
            throw Failure(.corruptImage, "its SHA-256 is \(digest), not the line's \(expected)")
        }
        var kept = [StoredImage?](repeating: nil, count: job.variants.count)
        if let known = download.known, digest == known.source {
            kept = known.images.map { image in image.flatMap { whole($0, hasher: hasher) } }
            if kept.allSatisfy({ $0 != nil }) { return job.ended(.unchanged) }
        }
        return try make(
            job,
            of: SourceBytes(
                bytes: bytes, descriptor: descriptor, digest: digest,
                originURL: download.originURL,
                isFramed: download.hasFramedBody),
            kept: kept,
            // A body that does not yield a stored variant must not replace a good copy. A body
            // joined from two parts is trusted only if it yields every variant.
            needed: isContinued
                ? Set(job.variants.indices)
                : Set(download.stored.indices.filter { download.stored[$0] != nil }),
            others: download.known?.source == digest ? [] : download.others, hasher: hasher)
    }

    private func whole(_ image: StoredImage, hasher: borrowing SHA256Hasher) -> StoredImage? {
        if case .whole = content.directory.bytes(of: image, hasher: hasher) { image } else { nil }
    }

    func derive(
        _ job: CodecJob, from original: StoredImage, originURL: String, kept: [StoredImage?],
        hasher: borrowing SHA256Hasher
    ) throws -> CodecCompletion {
        switch content.directory.bytes(of: original, hasher: hasher) {
        case .whole(let bytes):
            do {
                return try bytes.withUnsafeBytes { bytes in
                    try make(
                        job,
                        of: SourceBytes(
                            bytes: bytes, digest: original.digest, originURL: originURL,
                            isFramed: true),
                        kept: kept, needed: [], others: [], hasher: hasher)
                }
            } catch let failure as Failure {
                return job.ended(.underivable(failure))
            }
        case .damaged:
            return job.ended(.originalDamaged)
        case .unreadable(let error):
            return job.ended(.underivable(Failure(.disk, error.description)))
        }
    }

    /// Decodes or checks the source once, then encodes and stores the missing variants. If one of
    /// the `needed` positions fails, nothing is stored.
    private func make(
        _ job: CodecJob, of source: SourceBytes, kept: [StoredImage?], needed: Set<Int>,
        others: [RequestedVariant], hasher: borrowing SHA256Hasher
    ) throws -> CodecCompletion {
        let positions = kept.indices.filter { kept[$0] == nil }
        let processed = try decode(
            source, positions.map { job.variants[$0].recipe } + others.map(\.recipe),
            isNew: job.input.isBody)
        let requested = Array(processed.results.prefix(positions.count))
        var ends = kept.map { $0.map(VariantEnd.kept) }
        for (position, failure) in failures(of: requested, at: positions, source, job) {
            // Nothing is stored when a needed variant, or every variant, fails.
            if needed.contains(position) { throw failure }
            ends[position] = .failed(failure)
        }
        if let failure = ends.onlyFailure { throw failure }
        try reserve(
            processed.results.compactMap { result in
                guard case .success(let image) = result else { return nil }
                return image.size(ofSource: source.bytes.count)
            },
            replacing: job.sizesReplaced(by: source.digest), for: job.id)
        var made = MadeFiles()
        do {
            for (position, result) in zip(positions, requested) {
                guard case .success(let image) = result else { continue }
                let stored = try store(image, of: source, hasher: hasher)
                made.images.append(stored)
                ends[position] = .made(stored)
                made.remarks += job.remarks(
                    on: stored, framesOfSource: image.framesOfSource, position)
            }
            for (variant, result) in zip(others, processed.results.dropFirst(positions.count)) {
                try makeOther(variant, result, of: source, &made, hasher: hasher)
            }
        } catch {
            for image in made.images { content.unpin(image.digest) }
            room?.giveBack(job.id)
            guard let storage = error as? StorageError, storage.isAboutOnePath else { throw error }
            throw Failure(.disk, "\(storage.description); \(storage.hint ?? "move it away")")
        }
        return CodecCompletion(
            id: job.id,
            result: .processed(
                .made(
                    ends.compactMap(\.self),
                    source: SourceImage(
                        processed, digest: source.digest, size: ByteCount(source.bytes.count)))),
            decode: processed.isDecoded ? processed.decodeDuration : nil,
            encode: processed.isDecoded ? processed.encodeDuration : nil,
            remark: made.remarks.joined(separator: "; "), others: made.others)
    }

    private func decode(
        _ source: SourceBytes, _ recipes: [Recipe], isNew: Bool
    ) throws -> ProcessedEntry {
        if let crash = crashes.crash(of: source.digest), !retriesCrashes {
            throw Failure(.unsupportedImage, crash.description)
        }
        let result = Result {
            try processor.perform(
                isNew ? .new(recipes) : .stored(recipes), on: source.bytes,
                at: source.descriptor, cancellation: cancellation)
        }
        try crashes.note(result, of: source.digest)
        do {
            let processed = try result.get()
            if !source.isFramed, let warning = processed.warning, warning.lacksEnd {
                throw Failure(.interrupted, warning.text)
            }
            return processed
        } catch let error as CodecError {
            if case .cancelled = error { throw error }
            throw error.failure(of: source.bytes, hasFramedBody: source.isFramed)
        }
    }

    /// Returns the failures of variants by position. Each names its variant, unless all have the
    /// same: then the source is at fault.
    private func failures(
        of results: [Result<ProcessedImage, CodecError>], at positions: [Int],
        _ source: SourceBytes, _ job: CodecJob
    ) -> [(Int, Failure)] {
        let names = job.variants.count > 1 && !results.haveOneError
        return zip(positions, results).compactMap { position, result in
            guard case .failure(let error) = result else { return nil }
            let failure = error.failure(of: source.bytes, hasFramedBody: source.isFramed)
            let prefix = names ? "variant \(job.variants[position].name): " : ""
            return (position, Failure(failure.reason, prefix + failure.message))
        }
    }

    private struct MadeFiles {
        var images: [StoredImage] = []
        var others: [OtherVariant] = []
        var remarks: [String] = []
    }

    private func makeOther(
        _ variant: RequestedVariant, _ result: Result<ProcessedImage, CodecError>,
        of source: SourceBytes, _ made: inout MadeFiles, hasher: borrowing SHA256Hasher
    ) throws {
        switch result {
        case .success(let image):
            let stored = try store(image, of: source, hasher: hasher)
            made.images.append(stored)
            made.others.append(OtherVariant(variant: variant, image: stored))
        case .failure(let error):
            made.others.append(OtherVariant(variant: variant, image: nil))
            made.remarks.append("variant \(variant.name) cannot be made of the new image: \(error)")
        }
    }

    private func store(
        _ image: ProcessedImage, of source: SourceBytes, hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> StoredImage {
        try content.store(
            image, of: source.bytes, digest: source.digest, originURL: source.originURL,
            hasher: hasher)
    }
}

extension ProcessedImage {
    fileprivate func size(ofSource count: Int) -> ByteCount {
        switch output {
        case .source: ByteCount(count)
        case .encoded(let bytes): ByteCount(bytes.count)
        }
    }
}

extension [Result<ProcessedImage, CodecError>] {
    package var haveOneError: Bool {
        guard case .failure(let first)? = first else { return false }
        return allSatisfy { if case .failure(first) = $0 { true } else { false } }
    }
}

extension CodecError {
    /// Returns the reported reason and details.
    ///
    /// Where the transport could not see where the body ends, data that simply ends is a cut of
    /// the connection and not the origin's fault.
    package func failure(of body: UnsafeRawBufferPointer, hasFramedBody: Bool) -> Failure {
        switch self {
        case .notAnImage(let message) where !hasFramedBody && mayBecomeImage(body):
            Failure(.interrupted, message)
        case .corrupt(let message, isTruncated: true) where !hasFramedBody:
            Failure(.interrupted, message)
        default: framedFailure
        }
    }

    /// The reported reason and details for a body of known length.
    package var framedFailure: Failure {
        switch self {
        case .notAnImage(let message): Failure(.notAnImage, message)
        case .unsupported(let message), .limitExceeded(let message), .crashed(let message, _):
            Failure(.unsupportedImage, message)
        case .tooManyPixels(let message): Failure(.tooManyPixels, message)
        case .corrupt(let message, _): Failure(.corruptImage, message)
        case .leftOut(let reason, let message): Failure(reason, message)
        case .outOfMemory(let message), .encodingFailed(let message): Failure(.internal, message)
        // Handled before.
        case .cancelled: Failure(.internal, description)
        }
    }
}

extension BudgetedImageProcessor {
    package convenience init(_ images: ImageRules) {
        self.init(
            DecodingRules(
                header: images.headerRules, makesPlaceholders: images.makesPlaceholders,
                overlays: images.overlayFiles.overlays),
            sandbox: images.sandbox)
    }
}

extension SourceImage {
    package init(_ processed: ProcessedEntry, digest: ContentDigest, size: ByteCount) {
        let source = processed.source
        self.init(
            digest: digest, format: source.format, widthInPixels: source.widthInPixels,
            heightInPixels: source.heightInPixels, size: size, placeholder: processed.placeholder,
            warning: processed.warning?.text)
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
