import CacheStorage
import Codecs
import PrefetchModel
import Transfers

/// A body on its way through a codec worker.
struct CodecJob: Sendable {
    let id: Int
    let body: Body
    /// The row as far as the response tells it; the worker adds what it finds in the body.
    let origin: ResponseMetadata
    /// Whether the transport could tell that the body was whole.
    let hasFramedBody: Bool
}

/// What the coordinator hears of a job.
struct CodecCompletion: Sendable {
    enum Result: Sendable {
        /// The file is in place and pinned; the row is for the writer.
        case stored(ImageRow)
        case failed(FailureReason, message: String)
        /// The cache cannot be written.
        case fatal(FatalError)
    }

    let id: Int
    let result: Result
    let decode: Duration?
    let encode: Duration?
}

/// The codec workers: threads that decode, encode, hash and store one image each.
///
/// Bodies wait here until a worker is free, and a worker waits for its share of the pixel budget
/// before it allocates anything.
final class CodecStage: Sendable {
    private struct State {
        var jobs: [CodecJob] = []
        var isFinished = false
    }

    private let state = Monitor(State())
    private let recipe: Recipe
    private let limits: CodecLimits
    private let pixels: MemoryBudget
    private let content: ContentStore
    private let mailbox: Mailbox

    init(
        configuration: RunConfiguration, content: ContentStore, mailbox: Mailbox
    ) {
        recipe = configuration.recipe
        limits = CodecLimits(maximumPixels: configuration.maximumPixels)
        pixels = MemoryBudget(total: configuration.pixelBudget)
        self.content = content
        self.mailbox = mailbox
    }

    func enqueue(_ job: CodecJob) {
        state.update { $0.jobs.append(job) }
    }

    /// Drops jobs that no worker has begun, and returns their entries.
    func dropWaiting() -> [Int] {
        state.update { state in
            defer { state.jobs = [] }
            return state.jobs.map(\.id)
        }
    }

    /// Lets the workers return when no job is left.
    func finish() {
        state.update { $0.isFinished = true }
    }

    /// A worker's thread: takes jobs until ``finish()``.
    func work() {
        let hasher = SHA256Hasher()
        while true {
            let job = state.wait { state, _ -> Monitor<State>.Decision<CodecJob?> in
                if !state.jobs.isEmpty { return .ready(state.jobs.removeFirst()) }
                return state.isFinished ? .ready(nil) : .wait(until: nil)
            }
            guard let job else { return }
            let completion = job.body.withUnsafeBytes { process(job, $0, hasher: hasher) }
            mailbox.put(.processed(completion))
        }
    }

    private func process(
        _ job: CodecJob, _ source: UnsafeRawBufferPointer, hasher: borrowing SHA256Hasher
    ) -> CodecCompletion {
        let header: ImageHeader
        let image: ProcessedImage
        do throws(CodecError) {
            header = try Codecs.header(of: source, limits: limits)
            image = try decoded(source, header)
        } catch {
            let (reason, message) = error.failure(
                sourceBytes: source.count, hasFramedBody: job.hasFramedBody)
            return CodecCompletion(
                id: job.id, result: .failed(reason, message: message), decode: nil, encode: nil)
        }
        let result: CodecCompletion.Result
        do throws(StorageError) {
            result = .stored(try store(image, job, source, header, hasher: hasher))
        } catch {
            result = .fatal(FatalError(error))
        }
        return CodecCompletion(
            id: job.id, result: result, decode: image.decodeDuration, encode: image.encodeDuration)
    }

    private func decoded(
        _ source: UnsafeRawBufferPointer, _ header: ImageHeader
    ) throws(CodecError) -> ProcessedImage {
        let need = header.decodeMemoryBytes(for: recipe)
        let result = pixels.withReservation(of: need) { () -> Result<ProcessedImage, CodecError> in
            do throws(CodecError) {
                return .success(
                    try Codecs.process(source, header: header, recipe: recipe, limits: limits))
            } catch {
                return .failure(error)
            }
        }
        guard let result else {
            throw .tooManyPixels(
                "decoding takes \(ByteCount(need)), of which --memory leaves \(pixels.total)")
        }
        return try result.get()
    }

    /// Puts the content file in place and makes its row.
    private func store(
        _ image: ProcessedImage, _ job: CodecJob, _ source: UnsafeRawBufferPointer,
        _ header: ImageHeader, hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> ImageRow {
        let stored: StoredImage
        let sourceDigest: ContentDigest
        switch image.output {
        case .source:
            stored = try store(source, image, job, hasher: hasher)
            sourceDigest = stored.digest
        case .encoded(let bytes):
            stored = try bytes.withUnsafeBytes { bytes throws(StorageError) in
                try store(bytes, image, job, hasher: hasher)
            }
            sourceDigest = hasher.digest(of: source)
        }
        return job.origin.row(
            image: stored, recipe: recipe, header: header, sourceSize: source.count,
            sourceDigest: sourceDigest)
    }

    private func store(
        _ bytes: UnsafeRawBufferPointer, _ image: ProcessedImage, _ job: CodecJob,
        hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> StoredImage {
        let stored = StoredImage(
            digest: hasher.digest(of: bytes), format: image.format,
            widthInPixels: image.widthInPixels, heightInPixels: image.heightInPixels,
            size: ByteCount(bytes.count))
        try content.store(bytes, as: stored, originURL: job.origin.finalURL)
        return stored
    }
}

extension CodecError {
    /// The reason that entries are reported with, and the details.
    ///
    /// Where the transport could not see where the body ends, data that simply ends is a cut of
    /// the connection and not the origin's fault.
    fileprivate func failure(
        sourceBytes: Int, hasFramedBody: Bool
    ) -> (FailureReason, String) {
        switch self {
        case .notAnImage(let message) where !hasFramedBody && sourceBytes < 16:
            // Too short for a signature.
            (.interrupted, message)
        case .notAnImage(let message): (.notAnImage, message)
        case .unsupported(let message): (.unsupportedImage, message)
        case .tooManyPixels(let message): (.tooManyPixels, message)
        case .corrupt(let message, let isTruncated):
            (isTruncated && !hasFramedBody ? .interrupted : .corruptImage, message)
        case .limitExceeded(let message): (.unsupportedImage, message)
        case .outOfMemory(let message), .encodingFailed(let message): (.internal, message)
        }
    }
}

extension FatalError {
    init(_ error: StorageError) {
        self.init(
            message: error.description, hint: error.hint, reason: .disk,
            isDiskFull: error.isDiskFull)
    }
}
