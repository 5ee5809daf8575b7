import CacheStorage
import EntryLifecycle
import PrefetchModel
import Transfers

/// Bytes on their way through a codec worker.
struct CodecJob: Sendable {
    enum Input: Sendable {
        case body(Download)
        /// The stored original, from which what is missing is made; `kept` has by position what is there.
        case original(StoredImage, originURL: String, kept: [StoredImage?])
        /// A body that broke off, which is kept as it is.
        case broken(InterruptedDownload)
        /// A body that was refused by its beginning: of the part that there may be of another one is no
        /// use either.
        case refused(Failure, part: PartKey)

        var isBody: Bool { if case .body = self { true } else { false } }
    }

    /// A body that arrived.
    struct Download: Sendable {
        let body: Body
        /// That gave it, without user information.
        let originURL: String
        /// Whether the transport could tell that the body was whole.
        let hasFramedBody: Bool
        /// The digest of the body of which variants are stored already: the same bytes are not decoded
        /// again for those whose files are whole.
        let known: Work.Known?
        /// Positions of variants that are stored, of whatever body.
        let stored: Set<Int>
        /// Where the body's gap is filled from, if it has one.
        let part: PartKey
    }

    /// What names a part of a body.
    struct PartKey: Sendable {
        /// Of the resource.
        let key: String
        /// That the part came from, without user information.
        let url: String
    }

    /// As much of a body as came.
    struct InterruptedDownload: Sendable {
        let body: Body
        let key: String
        /// What it is when it has been kept.
        let part: PartialBody
        let receivedAt: Timestamp
    }

    let id: Int
    let variants: VariantSet
    let input: Input

    var isOfInterruptedBody: Bool {
        if case .broken = input { true } else { false }
    }

    /// Of the content files whose rows go when what a body of this digest gave is committed: those of variants that were
    /// made from another one.
    func sizesReplaced(by digest: ContentDigest) -> [ByteCount] {
        guard case .body(let download) = input, let known = download.known, known.source != digest
        else { return [] }
        return known.images.compactMap { $0?.size }
    }

    /// Whether it may take much longer than waking the coordinator, or has to wait for memory.
    var isLong: Bool {
        switch input {
        case .body(let download): download.body.count > 64 << 10
        case .original, .broken: true
        case .refused: false
        }
    }
}

extension CodecJob {
    func ended(_ result: ProcessingResult) -> CodecCompletion {
        CodecCompletion(id: id, result: .processed(result))
    }

    /// What is to be said of a variant that is larger than was asked for; nil for nothing.
    func remark(on image: StoredImage, _ position: Int) -> String? {
        let variant = variants[position]
        guard let limit = variant.recipe.maximumStoredBytes, image.size.bytes > limit else {
            return nil
        }
        let text = "\(image.size.bytes) bytes, --max-stored-bytes asked for \(limit)"
        return variants.count > 1 ? "variant \(variant.name): \(text)" : text
    }
}

extension [VariantEnd?] {
    /// The first failure, where there is nothing else.
    var onlyFailure: Failure? {
        var first: Failure?
        for end in self {
            guard case .failed(let failure)? = end else { return nil }
            first = first ?? failure
        }
        return first
    }
}
