import CacheStorage
import Codecs
import PrefetchModel
import Transfers

/// Bytes on their way through a codec worker.
struct CodecJob: Sendable {
    enum Input: Sendable {
        case body(Download)
        /// The stored original, from which another variant is made.
        case original(StoredImage, originURL: String)
        /// A body that broke off, which is kept as it is.
        case broken(BrokenDownload)
        /// A body that was refused by its beginning: of the part that there may be of another one is no
        /// use either.
        case refused(BodyRefusal, part: PartKey)
    }

    /// A body that arrived.
    struct Download: Sendable {
        let body: Body
        /// The row as far as the response tells it; the worker adds what it finds in the body.
        let origin: ResponseMetadata
        /// Whether the transport could tell that the body was whole.
        let hasFramedBody: Bool
        /// The digest of the body of which this run's variant is stored already, and that variant: the
        /// same bytes are not decoded again as long as its file is whole.
        let known: (source: ContentDigest, image: StoredImage)?
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
    struct BrokenDownload: Sendable {
        let body: Body
        let part: PartKey
        /// With which the rest can be asked for.
        let validator: PartialValidator
        /// Bytes of the whole body, if the response told.
        let total: Int?
        let receivedAt: Timestamp
    }

    let id: Int
    let input: Input

    fileprivate var isOfBrokenBody: Bool {
        if case .broken = input { true } else { false }
    }

    /// Whether it may take much longer than waking the coordinator, or has to wait for memory.
    fileprivate var isLong: Bool {
        switch input {
        case .body(let download): download.body.count > 64 << 10
        case .original, .broken: true
        case .refused: false
        }
    }
}

/// What the coordinator hears of a job.
struct CodecCompletion: Sendable {
    enum Result: Sendable {
        /// The file is in place and pinned; the row is for the writer.
        case stored(ImageRow)
        /// The same of a variant made from the stored original.
        case derived(StoredImage)
        /// The body has the digest that was known.
        case unchanged
        /// The stored original is gone, or its bytes are not what they were.
        case originalDamaged
        /// The part that the body continues is gone or damaged.
        case partDamaged
        /// A body that broke off has been dealt with.
        case kept
        /// By ``CodecStage/cancel()``: nothing of it is stored.
        case cancelled
        case failed(FailureReason, message: String)
        /// The stored original is whole, and no variant could be made of it: by our limits, or since its
        /// recipe does not fit.
        case underivable(FailureReason, message: String)
        /// The cache cannot be written.
        case fatal(FatalError)
    }

    let id: Int
    let result: Result
    var decode: Duration?
    var encode: Duration?
    /// What is to be said of an image that is stored.
    var remark: String?
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
    private let rules: HeaderRules
    private let recipe: Recipe
    private var check: SourceCheck { rules.check }
    private var limits: CodecLimits { rules.limits }
    private let cancellation = Cancellation()
    private let pixels: MemoryBudget
    /// For stored originals in memory. Taken before a share of ``pixels`` and given back after it.
    private let originals: MemoryBudget
    private let content: ContentStore
    private let partials: PartialStore
    private let crashes: CrashLog
    /// Whether images are decoded again that ended a run.
    private let retriesCrashes: Bool
    private let mailbox: Mailbox

    init(
        configuration: RunConfiguration, cache: OpenCache, crashes: CrashLog, mailbox: Mailbox
    ) {
        self.crashes = crashes
        retriesCrashes = configuration.retriesFailed
        rules = configuration.headerRules
        recipe = configuration.recipe
        pixels = MemoryBudget(total: rules.memory)
        originals = MemoryBudget(total: configuration.bodyBudget)
        content = cache.content
        partials = cache.partials
        self.mailbox = mailbox
    }

    func enqueue(_ job: CodecJob) {
        state.updateForOne { $0.jobs.append(job) }
    }

    /// Drops images that no worker has begun, and returns their entries; bodies that broke off are
    /// kept all the same.
    func dropWaiting() -> [Int] {
        state.update { state in
            let dropped = state.jobs.filter { !$0.isOfBrokenBody }.map(\.id)
            state.jobs.removeAll { !$0.isOfBrokenBody }
            return dropped
        }
    }

    /// Ends the images that workers are at, which takes them a few tenths of a second.
    func cancel() {
        cancellation.cancel()
    }

    /// Lets the workers return when no job is left.
    func finish() {
        state.update { $0.isFinished = true }
    }

    /// A worker's thread: takes jobs until ``finish()``.
    func work() {
        let hasher = SHA256Hasher()
        var done: [CodecCompletion] = []
        var firstDone = ContinuousClock.now
        while true {
            switch nextJob(waits: done.isEmpty) {
            case .job(let job):
                if job.isLong { deliver(&done) }
                let completion = process(job, hasher: hasher)
                let now = ContinuousClock.now
                if done.isEmpty { firstDone = now }
                done.append(completion)
                // A small image takes less than waking the coordinator does. What took longer is
                // told at once.
                if now - firstDone < CodecStage.deliveryDelay { continue }
            case .none: break
            case .ended: return
            }
            deliver(&done)
        }
    }

    private func deliver(_ done: inout [CodecCompletion]) {
        guard !done.isEmpty else { return }
        mailbox.put(done.map(Mailbox.Event.processed))
        done.removeAll(keepingCapacity: true)
    }

    /// The longest time between two completions that the coordinator hears of together; the last
    /// of them may come the time of a short job later.
    private static let deliveryDelay: Duration = .milliseconds(1)

    private enum NextJob {
        case job(CodecJob)
        case none
        /// There is none, and none will come.
        case ended
    }

    private func nextJob(waits: Bool) -> NextJob {
        state.wait { state, _ -> Monitor<State>.Decision<NextJob> in
            if !state.jobs.isEmpty { return .ready(.job(state.jobs.removeFirst())) }
            guard waits else { return .ready(.none) }
            return state.isFinished ? .ready(.ended) : .wait(until: nil)
        }
    }

    private func process(
        _ job: CodecJob, hasher: borrowing SHA256Hasher
    ) -> CodecCompletion {
        switch job.input {
        case .body(let download):
            do throws(StorageError) {
                guard try complete(download) else {
                    return CodecCompletion(id: job.id, result: .partDamaged)
                }
            } catch {
                return CodecCompletion(id: job.id, result: .fatal(FatalError(error)))
            }
            return download.body.withUnsafeBytes { bytes in
                let digest = hasher.digest(of: bytes)
                if let known = download.known, digest == known.source,
                    case .whole = content.bytes(of: known.image, hasher: hasher)
                {
                    return CodecCompletion(id: job.id, result: .unchanged)
                }
                let origin = download.origin
                return process(
                    job.id, bytes, digest: digest,
                    originURL: origin.location.finalURL ?? origin.location.url,
                    hasFramedBody: download.hasFramedBody, hasher: hasher
                ) { image, source in
                    .stored(origin.row(image: image, recipe: recipe, source: source))
                }
            }
        case .original(let image, let originURL):
            return originals.withReservation(of: image.size.bytes) {
                derive(job.id, from: image, originURL: originURL, hasher: hasher)
            }
                ?? CodecCompletion(
                    id: job.id,
                    result: .underivable(
                        .tooLarge,
                        message:
                            "its original has \(image.size), but --memory leaves \(originals.total) for it"
                    ))
        case .broken(let broken):
            return CodecCompletion(id: job.id, result: keep(broken))
        case .refused(let refusal, let part):
            do throws(StorageError) {
                try partials.discard(key: part.key)
            } catch {
                return CodecCompletion(id: job.id, result: .fatal(FatalError(error)))
            }
            return CodecCompletion(
                id: job.id, result: .failed(refusal.reason, message: refusal.message))
        }
    }

    /// Puts the part that was there in front of its rest.
    ///
    /// - Returns: false when there is none.
    private func complete(_ download: CodecJob.Download) throws(StorageError) -> Bool {
        guard download.body.gap > 0 else {
            // A whole body has come: what there may be of another is of no use.
            try partials.discard(key: download.part.key)
            return true
        }
        return try fillGap(of: download.body, download.part)
    }

    private func fillGap(
        of body: Body, _ part: CodecJob.PartKey
    ) throws(StorageError) -> Bool {
        try body.fillGap { (buffer) throws(StorageError) in
            try partials.take(key: part.key, url: part.url, into: buffer)
        }
    }

    private func keep(_ broken: CodecJob.BrokenDownload) -> CodecCompletion.Result {
        do throws(StorageError) {
            // Without its beginning the rest is worth nothing.
            guard try fillGap(of: broken.body, broken.part) else { return .kept }
            try broken.body.withUnsafeBytes { bytes throws(StorageError) in
                _ = try partials.store(
                    key: broken.part.key, url: broken.part.url, validator: broken.validator,
                    total: broken.total, bytes: bytes, at: broken.receivedAt)
            }
            return .kept
        } catch {
            // A full disk ends the run when an image finds no room; smaller ones may.
            return error.isDiskFull ? .kept : .fatal(FatalError(error))
        }
    }

    private func derive(
        _ id: Int, from original: StoredImage, originURL: String, hasher: borrowing SHA256Hasher
    ) -> CodecCompletion {
        switch content.bytes(of: original, hasher: hasher) {
        case .whole(let bytes):
            let completion = bytes.withUnsafeBytes { bytes in
                process(
                    id, bytes, digest: original.digest, originURL: originURL,
                    hasFramedBody: true, hasher: hasher
                ) { image, _ in .derived(image) }
            }
            guard case .failed(let reason, let message) = completion.result else {
                return completion
            }
            return CodecCompletion(id: id, result: .underivable(reason, message: message))
        case .damaged:
            return CodecCompletion(id: id, result: .originalDamaged)
        case .unreadable(let error):
            return CodecCompletion(id: id, result: .underivable(.disk, message: error.description))
        }
    }

    /// Decodes or checks, encodes and stores; `result` makes what the coordinator hears of it.
    private func process(
        _ id: Int, _ bytes: UnsafeRawBufferPointer, digest: ContentDigest, originURL: String,
        hasFramedBody: Bool, hasher: borrowing SHA256Hasher,
        result: (StoredImage, SourceImage) -> CodecCompletion.Result
    ) -> CodecCompletion {
        if let crash = crashes.crash(of: digest), !retriesCrashes {
            return CodecCompletion(
                id: id, result: .failed(.unsupportedImage, message: crash.description))
        }
        let header: ImageHeader
        let image: ProcessedImage
        do throws(CodecError) {
            let outcome = crashes.whileDecoding(digest) { decoded(bytes) }
            (header, image) = try outcome.get()
        } catch .cancelled {
            return CodecCompletion(id: id, result: .cancelled)
        } catch {
            let (reason, message) = error.failure(
                sourceBytes: bytes.count, hasFramedBody: hasFramedBody)
            return CodecCompletion(id: id, result: .failed(reason, message: message))
        }
        let source = SourceImage(
            digest: digest, format: header.format, widthInPixels: header.widthInPixels,
            heightInPixels: header.heightInPixels, size: ByteCount(bytes.count))
        let completion: CodecCompletion.Result
        let storedBytes: Int
        do throws(StorageError) {
            switch image.output {
            case .source:
                storedBytes = bytes.count
                completion = result(
                    try store(bytes, digest: digest, image, originURL: originURL), source)
            case .encoded(let encoded):
                storedBytes = encoded.count
                let stored = try encoded.withUnsafeBytes { encoded throws(StorageError) in
                    try store(
                        encoded, digest: hasher.digest(of: encoded), image, originURL: originURL)
                }
                completion = result(stored, source)
            }
        } catch  where error.isAboutOnePath {
            return CodecCompletion(
                id: id,
                result: .failed(
                    .disk, message: "\(error.description); \(error.hint ?? "move it away")"))
        } catch {
            return CodecCompletion(id: id, result: .fatal(FatalError(error)))
        }
        var remark: String?
        if let limit = recipe.maximumStoredBytes, storedBytes > limit {
            remark = "\(storedBytes) bytes, --max-stored-bytes asked for \(limit)"
        }
        guard check == .decode else {
            return CodecCompletion(id: id, result: completion, remark: remark)
        }
        return CodecCompletion(
            id: id, result: completion, decode: image.decodeDuration,
            encode: image.encodeDuration, remark: remark)
    }

    private func decoded(
        _ bytes: UnsafeRawBufferPointer
    ) -> Result<(ImageHeader, ProcessedImage), CodecError> {
        Result { () throws(CodecError) in
            let header = try Codecs.header(of: bytes, limits: limits)
            return (header, try decoded(bytes, header))
        }
    }

    private func decoded(
        _ source: UnsafeRawBufferPointer, _ header: ImageHeader
    ) throws(CodecError) -> ProcessedImage {
        let need = rules.memoryBytes(of: header)
        let result = pixels.withReservation(of: need) {
            Result { () throws(CodecError) in
                try ImageProcessor.process(
                    source, header: header, recipes: rules.recipes, limits: limits, check: check,
                    memoryBytes: need, cancellation: cancellation)
            }
        }
        guard let result else { throw .tooMuchMemory(need, of: pixels.total) }
        guard let image = try result.get().results.first else {
            preconditionFailure("no result of a recipe")
        }
        return try image.get()
    }

    /// Puts the content file in place.
    private func store(
        _ bytes: UnsafeRawBufferPointer, digest: ContentDigest, _ image: ProcessedImage,
        originURL: String
    ) throws(StorageError) -> StoredImage {
        let stored = StoredImage(
            digest: digest, format: image.format, widthInPixels: image.widthInPixels,
            heightInPixels: image.heightInPixels, size: ByteCount(bytes.count))
        try content.store(bytes, as: stored, originURL: originURL)
        return stored
    }
}

extension CodecError {
    /// The reason that entries are reported with, and the details.
    ///
    /// Where the transport could not see where the body ends, data that simply ends is a cut of
    /// the connection and not the origin's fault.
    func failure(
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
        // Told apart before.
        case .cancelled: (.internal, description)
        }
    }
}

extension FatalError {
    init(_ error: StorageError) {
        self.init(
            message: error.description, hint: error.hint, reason: .disk,
            isDiskFull: error.isDiskFull, isDamage: error.isDamage)
    }
}
