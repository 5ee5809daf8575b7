import CacheStorage
package import Codecs
import EntryLifecycle
import Hashing
package import PrefetchModel
import Transfers

/// Processing of bodies and stored originals.
extension CodecStage {
    func process(
        _ download: CodecJob.Download, _ job: CodecJob, hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> CodecCompletion {
        let isContinued = download.body.gap > 0
        guard try complete(download) else { return job.ended(.partDamaged) }
        return try download.body.withUnsafeBytes { body throws(StorageError) in
            guard let filter = job.variants.primary.recipe.bodyFilter else {
                return try process(download, job, body, isContinued: isContinued, hasher: hasher)
            }
            let image: ArraySlice<UInt8>
            do throws(FilterProcess.Problem) {
                image = try filters.image(of: body, by: filter) {
                    download.body.reserve(derivedBytes: $0)
                }
            } catch {
                guard !error.isCancellation else { return job.ended(.cancelled) }
                return job.ended(
                    .failed(Failure(.bodyFilter, error.message)))
            }
            let completion = image.withUnsafeBytes { bytes in
                Result { () throws(StorageError) in
                    try process(download, job, bytes, isContinued: isContinued, hasher: hasher)
                }
            }
            return try completion.get()
        }
    }

    /// Processes the image of a body.
    private func process(
        _ download: CodecJob.Download, _ job: CodecJob, _ bytes: UnsafeRawBufferPointer,
        isContinued: Bool, hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> CodecCompletion {
        if !download.hasFramedBody, !statesItsEnd(bytes) {
            return job.ended(
                .failed(
                    Failure(
                        .interrupted,
                        "the image does not say where it ends, and neither does the response"
                    )))
        }
        let digest = hasher.digest(of: bytes)
        if let expected = download.expected, digest != expected {
            return job.ended(
                .failed(
                    Failure(
                        .corruptImage, "its SHA-256 is \(digest), not the line's \(expected)")))
        }
        var kept = [StoredImage?](repeating: nil, count: job.variants.count)
        if let known = download.known, digest == known.source {
            kept = known.images.map { image in image.flatMap { whole($0, hasher: hasher) } }
            if kept.allSatisfy({ $0 != nil }) { return job.ended(.unchanged) }
        }
        return try make(
            job, of: bytes, digest: digest, originURL: download.originURL, kept: kept,
            // A body that does not yield a stored variant must not replace a good copy. A body
            // joined from two parts is trusted only if it yields every variant.
            needed: isContinued ? Set(job.variants.indices) : download.stored,
            others: download.known?.source == digest ? [] : download.others,
            hasFramedBody: download.hasFramedBody, hasher: hasher)
    }

    /// Returns an image whose file matches its digest.
    private func whole(
        _ image: StoredImage, hasher: borrowing SHA256Hasher
    ) -> StoredImage? {
        if case .whole = content.bytes(of: image, hasher: hasher) { image } else { nil }
    }

    func derive(
        _ job: CodecJob, from original: StoredImage, originURL: String, kept: [StoredImage?],
        hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> CodecCompletion {
        switch content.bytes(of: original, hasher: hasher) {
        case .whole(let bytes):
            let made = bytes.withUnsafeBytes { bytes in
                Result { () throws(StorageError) in
                    try make(
                        job, of: bytes, digest: original.digest, originURL: originURL, kept: kept,
                        needed: [], hasFramedBody: true, hasher: hasher)
                }
            }
            var completion = try made.get()
            if case .processed(.failed(let failure)) = completion.result {
                completion = job.ended(.underivable(failure))
            }
            return completion
        case .damaged:
            return job.ended(.originalDamaged)
        case .unreadable(let error):
            return job.ended(.underivable(Failure(.disk, error.description)))
        }
    }

    /// Decodes or checks the source once, then encodes and stores the missing variants. If one of
    /// the `needed` positions fails, nothing is stored.
    private func make(
        _ job: CodecJob, of bytes: UnsafeRawBufferPointer, digest: ContentDigest,
        originURL: String, kept: [StoredImage?], needed: Set<Int>,
        others: [RequestedVariant] = [], hasFramedBody: Bool, hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> CodecCompletion {
        if let crash = crashes.crash(of: digest), !retriesCrashes {
            return job.ended(.failed(Failure(.unsupportedImage, crash.description)))
        }
        let positions = kept.indices.filter { kept[$0] == nil }
        let processed: ProcessedEntry
        do throws(CodecError) {
            let outcome = crashes.whileDecoding(digest) {
                Result { () throws(CodecError) in
                    try processor.process(
                        bytes, positions.map { job.variants[$0].recipe } + others.map(\.recipe),
                        isNew: job.input.isBody, cancellation: cancellation)
                }
            }
            processed = try outcome.get()
        } catch .cancelled {
            return job.ended(.cancelled)
        } catch {
            return job.ended(
                .failed(error.failure(of: bytes, hasFramedBody: hasFramedBody)))
        }
        if !hasFramedBody, let warning = processed.warning, warning.lacksEnd {
            return job.ended(.failed(Failure(.interrupted, warning.text)))
        }
        var ends = kept.map { $0.map(VariantEnd.kept) }
        // A problem of the source is not a problem of one variant.
        let requested = Array(processed.results.prefix(positions.count))
        let names = job.variants.count > 1 && !requested.haveOneError
        for (position, result) in zip(positions, requested) {
            guard case .failure(let error) = result else { continue }
            var failure = error.failure(of: bytes, hasFramedBody: hasFramedBody)
            if names {
                failure = Failure(
                    failure.reason,
                    "variant \(job.variants[position].name): \(failure.message)")
            }
            ends[position] = .failed(failure)
            // Nothing is stored when a needed variant, or every variant, fails.
            if needed.contains(position) { return job.ended(.failed(failure)) }
        }
        if let failure = ends.onlyFailure { return job.ended(.failed(failure)) }
        let sizes = processed.results.compactMap { result -> ByteCount? in
            guard case .success(let image) = result else { return nil }
            return image.size(ofSource: bytes.count)
        }
        switch room?.reserve(sizes, replacing: job.sizesReplaced(by: digest), for: job.id) {
        case nil, .given?: break
        case .full?: return job.ended(.failed(RunStages.noRoom))
        case .tooLarge?: return job.ended(.failed(RunStages.tooLarge))
        case .closed?: return job.ended(.cancelled)
        }
        var remarks: [String] = []
        var otherEnds: [OtherVariant] = []
        do throws(StorageError) {
            for (position, result) in zip(positions, requested) {
                guard case .success(let image) = result else { continue }
                let stored = try content.store(
                    image, of: bytes, digest: digest, originURL: originURL, hasher: hasher)
                ends[position] = .made(stored)
                remarks += job.remarks(
                    on: stored, framesOfSource: image.framesOfSource, position)
            }
            for (variant, result) in zip(others, processed.results.dropFirst(positions.count)) {
                switch result {
                case .success(let image):
                    let stored = try content.store(
                        image, of: bytes, digest: digest, originURL: originURL, hasher: hasher)
                    otherEnds.append(OtherVariant(variant: variant, image: stored))
                case .failure(let error):
                    otherEnds.append(OtherVariant(variant: variant, image: nil))
                    remarks.append(
                        "variant \(variant.name) cannot be made of the new image: \(error)")
                }
            }
        } catch {
            for case .made(let image)? in ends { content.unpin(image.digest) }
            for image in otherEnds.compactMap(\.image) { content.unpin(image.digest) }
            room?.giveBack(job.id)
            guard error.isAboutOnePath else { throw error }
            return job.ended(
                .failed(
                    Failure(
                        .disk, "\(error.description); \(error.hint ?? "move it away")")))
        }
        return CodecCompletion(
            id: job.id,
            result: .processed(
                .made(
                    ends.compactMap(\.self),
                    source: SourceImage(
                        processed, digest: digest, size: ByteCount(bytes.count)))),
            decode: processed.isDecoded ? processed.decodeDuration : nil,
            encode: processed.isDecoded ? processed.encodeDuration : nil,
            remark: remarks.joined(separator: "; "), others: otherEnds)
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
    /// Whether all results are the same error.
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

    /// The reported reason and details for a body whose length is known.
    package var framedFailure: Failure {
        let (reason, message) = verdict
        return Failure(reason, message)
    }

    private var verdict: (FailureReason, String) {
        switch self {
        case .notAnImage(let message): (.notAnImage, message)
        case .unsupported(let message): (.unsupportedImage, message)
        case .tooManyPixels(let message): (.tooManyPixels, message)
        case .corrupt(let message, _): (.corruptImage, message)
        case .leftOut(let reason, let message): (reason, message)
        case .limitExceeded(let message): (.unsupportedImage, message)
        case .outOfMemory(let message), .encodingFailed(let message): (.internal, message)
        // Handled before.
        case .cancelled: (.internal, description)
        }
    }
}
