import CacheStorage
import EntryLifecycle
import PrefetchModel
import Transfers

struct CodecJob: Sendable {
    enum JobInput: Sendable {
        case body(Download)
        /// The stored original, from which missing variants are made; `kept` has the existing ones
        /// by position.
        case original(StoredImage, originURL: String, kept: [StoredImage?])
        /// The images of the seed cache; their files are taken over.
        case seeded(SeededCopy)
        /// An interrupted body, which is kept as a part.
        case interrupted(InterruptedDownload)
        /// A body that was refused by its first bytes. A stored part of it is useless, too.
        case refused(Failure, part: PartKey)

        var isBody: Bool { if case .body = self { true } else { false } }
    }

    struct Download: Sendable {
        let body: Body
        /// The responding URL, without user information.
        let originURL: String
        /// Whether the transport could tell that the body was whole.
        let hasFramedBody: Bool
        /// The digest of the body of the stored variants: the same bytes are not decoded again for
        /// whole files.
        let known: CodecWork.Known?
        let expected: ContentDigest?
        /// Positions of stored variants, of any body.
        let stored: Set<Int>
        /// Variants of another body that are made again from this one.
        let others: [RequestedVariant]
        /// The source for the body's gap, if it has one.
        let part: PartKey
    }

    struct PartKey: Sendable {
        let key: String
        /// The responding URL of the part, without user information.
        let url: String
    }

    struct InterruptedDownload: Sendable {
        let body: Body
        let key: String
        /// The description of the part once it is kept.
        let part: PartialBody
        let receivedAt: Timestamp
    }

    let id: Int
    let variants: VariantSet
    let input: JobInput

    var isOfInterruptedBody: Bool {
        if case .interrupted = input { true } else { false }
    }

    /// Returns the sizes of the content files that a commit for this digest removes: those of
    /// variants made from another body.
    func sizesReplaced(by digest: ContentDigest) -> [ByteCount] {
        guard case .body(let download) = input, let known = download.known, known.source != digest
        else { return [] }
        return known.images.compactMap { $0?.size }
    }

    /// Whether it may take much longer than waking the coordinator, or has to wait for memory.
    var isLong: Bool {
        switch input {
        case .body(let download): download.body.count > 64 << 10
        case .original, .interrupted: true
        case .refused, .seeded: false
        }
    }
}

extension CodecJob {
    func ended(_ result: ProcessingResult) -> CodecCompletion {
        CodecCompletion(id: id, result: .processed(result))
    }

    /// Returns remarks on a variant: it is larger than its limit, or lacks the frames of its
    /// source.
    func remarks(on image: StoredImage, framesOfSource: Int?, _ position: Int) -> [String] {
        let variant = variants[position]
        var texts: [String] = []
        if let limit = variant.recipe.maximumStoredBytes, image.size.bytes > limit {
            texts.append("\(image.size.bytes) bytes, --max-stored-bytes asked for \(limit)")
        }
        if let framesOfSource { texts.append("frames: 1 of \(framesOfSource)") }
        return variants.count > 1 ? texts.map { "variant \(variant.name): \($0)" } : texts
    }
}

extension [VariantEnd?] {
    var onlyFailure: Failure? {
        var first: Failure?
        for end in self {
            guard case .failed(let failure)? = end else { return nil }
            first = first ?? failure
        }
        return first
    }
}

struct CodecCompletion: Sendable {
    enum JobResult: Sendable {
        case processed(ProcessingResult)
        case partSaved(PartialBody?)
        case fatal(any Error)
    }

    let id: Int
    let result: JobResult
    var decode: Duration?
    var encode: Duration?
    var remark = ""
    /// Variants of ``CodecJob/Download/others``, for the same row.
    var others: [OtherVariant] = []
}

/// A variant that a run has not requested.
struct OtherVariant: Sendable {
    let variant: RequestedVariant
    let image: StoredImage?
}
