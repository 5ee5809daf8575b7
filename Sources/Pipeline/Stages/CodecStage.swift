import CacheStorage
import Codecs
import Decoding
import EntryLifecycle
import Hashing
import PrefetchModel
import Threading
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
        /// The stored variants by position, of any body.
        let stored: [StoredImage?]
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
    /// variants that are made again, from another body or because all are. The same file again
    /// takes no room either.
    func sizesReplaced(by digest: ContentDigest) -> [ByteCount] {
        guard case .body(let download) = input, download.known?.source != digest else { return [] }
        return download.stored.compactMap { $0?.size }
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

/// The codec workers: threads that decode, encode, hash and store one image each.
///
/// Bodies wait here for a free worker, and a worker waits for its share of the pixel budget before
/// it allocates.
final class CodecStage: ImageProcessing, Sendable {
    private struct JobQueue {
        var jobs: [CodecJob] = []
        var isFinished = false
        var threads: [OwnedThread] = []
    }

    private let state = Monitor(JobQueue())
    let processor: BudgetedImageProcessor
    let cancellation = Cancellation()
    /// The budget for stored originals in memory. Taken before a share of the pixel budget and
    /// returned after it.
    let originals: MemoryBudget
    let content: ContentStore
    private let partials: PartialStore
    private let seed: SeedCache?
    let crashes: CrashLog
    /// Whether images that ended a run are decoded again.
    let retriesCrashes: Bool
    let filters: BodyFilters
    let room: RoomBudget?
    private let mailbox: Mailbox

    init(
        configuration: RunConfiguration, cache: OpenCache, seed: SeedCache?, crashes: CrashLog,
        room: RoomBudget?, mailbox: Mailbox
    ) {
        self.room = room
        self.crashes = crashes
        retriesCrashes = configuration.retriesFailed
        processor = BudgetedImageProcessor(configuration.images)
        filters = BodyFilters(configuration, cancellation)
        originals = MemoryBudget(total: configuration.images.bodyBudget)
        content = cache.content
        partials = cache.partials
        self.seed = seed
        self.mailbox = mailbox
    }

    /// Starts the workers, or fewer where the system has no room for more.
    func start(_ count: Int) throws {
        for number in 0..<count {
            do {
                let thread = try OwnedThread(name: "codec \(number)") { [self] in
                    work(isFirst: number == 0)
                }
                state.withLock { $0.threads.append(thread) }
            } catch {
                if number == 0 { throw error }
                return
            }
        }
    }

    var workers: Int { state.withLock { $0.threads.count } }
    var sandbox: SandboxState { processor.sandbox }

    func enqueue(_ job: CodecJob) {
        state.updateForOne { $0.jobs.append(job) }
    }

    /// Drops jobs that no worker has begun, and returns their entries; broken bodies are still
    /// kept.
    func dropWaiting() -> [Int] {
        state.update { state in
            let dropped = state.jobs.filter { !$0.isOfInterruptedBody }.map(\.id)
            state.jobs.removeAll { !$0.isOfInterruptedBody }
            return dropped
        }
    }

    /// Cancels the jobs of the workers, which takes a few tenths of a second.
    func cancel() {
        room?.close()
        cancellation.cancel()
    }

    func finish() {
        let threads = state.update { state in
            state.isFinished = true
            return state.threads
        }
        for thread in threads { thread.join() }
        filters.finish()
        processor.finish()
    }

    /// Takes jobs until the end. The first thread starts a decoder while the first response is on
    /// its way; the others start theirs with a job.
    private func work(isFirst: Bool) {
        // An error ends the run with the first image.
        if isFirst { try? processor.prepare() }
        let hasher = SHA256Hasher()
        var done: [CodecCompletion] = []
        var firstDone = ContinuousClock.now
        while true {
            switch nextJob(waits: done.isEmpty) {
            case .job(let job):
                // Deliver first: this job may block until the coordinator, which is waiting for
                // these completions, frees space.
                if job.isLong || room != nil { deliver(&done) }
                let completion = process(job, hasher: hasher)
                let now = ContinuousClock.now
                if done.isEmpty { firstDone = now }
                done.append(completion)
                // A small image takes less time than waking the coordinator. Longer jobs are
                // delivered at once.
                if now - firstDone < CodecStage.deliveryDelay { continue }
            case .none: break
            case .ended: return
            }
            deliver(&done)
        }
    }

    private func deliver(_ done: inout [CodecCompletion]) {
        guard !done.isEmpty else { return }
        mailbox.put(done.map(Mailbox.StageEvent.processed))
        done.removeAll(keepingCapacity: true)
    }

    /// The longest time between completions that are delivered together; the last one may be later
    /// by one short job.
    private static let deliveryDelay: Duration = .milliseconds(1)

    private enum NextJob {
        case job(CodecJob)
        case none
        /// No job is left, and no other will follow.
        case ended
    }

    private func nextJob(waits: Bool) -> NextJob {
        state.wait { state, _ -> Monitor<JobQueue>.Decision<NextJob> in
            if !state.jobs.isEmpty { return .ready(.job(state.jobs.removeFirst())) }
            guard waits else { return .ready(.none) }
            return state.isFinished ? .ready(.ended) : .wait(until: nil)
        }
    }

    private func process(_ job: CodecJob, hasher: borrowing SHA256Hasher) -> CodecCompletion {
        do {
            switch job.input {
            case .body(let download):
                return try process(download, job, hasher: hasher)
            case .original(let image, let originURL, let kept):
                let completion = try originals.withReservation(of: image.size.bytes) {
                    try derive(job, from: image, originURL: originURL, kept: kept, hasher: hasher)
                }
                return completion
                    ?? job.ended(
                        .underivable(
                            Failure(
                                .tooLarge,
                                "its original has \(image.size), but --memory leaves \(originals.total) for it"
                            )))
            case .seeded(let copy):
                return job.ended(try adopt(copy, for: job.id, hasher: hasher))
            case .interrupted(let download):
                return CodecCompletion(id: job.id, result: .partSaved(try keep(download)))
            case .refused(let refusal, let part):
                try partials.discard(key: part.key)
                return job.ended(.failed(refusal))
            }
        } catch let failure as Failure {
            return job.ended(.failed(failure))
        } catch CodecError.cancelled {
            return job.ended(.cancelled)
        } catch {
            return CodecCompletion(id: job.id, result: .fatal(error))
        }
    }

    func reserve(_ sizes: [ByteCount], replacing old: [ByteCount] = [], for job: Int) throws {
        switch room?.reserve(sizes, replacing: old, for: job) {
        case nil, .given?: break
        case .full?: throw RunStages.noRoom
        case .tooLarge?: throw RunStages.tooLarge
        case .closed?: throw CodecError.cancelled
        }
    }

    // MARK: The seed cache

    /// Takes the files of a copy over; all or none.
    private func adopt(
        _ copy: SeededCopy, for job: Int, hasher: borrowing SHA256Hasher
    ) throws -> ProcessingResult {
        guard let seed else { preconditionFailure("a seeded copy comes from a seed cache") }
        if cancellation.isCancelled { return .cancelled }
        try reserve(copy.images.map(\.size), for: job)
        var taken: [StoredImage] = []
        defer {
            if taken.count < copy.images.count {
                for image in taken { content.unpin(image.digest) }
                room?.giveBack(job)
            }
        }
        for image in copy.images {
            guard try content.take(image, from: seed, hasher: hasher) else {
                return .originalDamaged
            }
            taken.append(image)
        }
        return .made(taken.map(VariantEnd.made), source: copy.source)
    }

    // MARK: Parts

    /// Puts the kept part in front of its rest; returns false without one.
    func complete(_ download: CodecJob.Download) throws -> Bool {
        guard download.body.gap > 0 else {
            // A whole body has arrived: a kept part of another one is useless.
            try partials.discard(key: download.part.key)
            return true
        }
        return try fillGap(of: download.body, download.part)
    }

    private func fillGap(of body: Body, _ part: CodecJob.PartKey) throws(StorageError) -> Bool {
        try body.fillGap { (buffer) throws(StorageError) in
            try partials.take(key: part.key, url: part.url, into: buffer)
        }
    }

    private func keep(_ broken: CodecJob.InterruptedDownload) throws(StorageError) -> PartialBody? {
        let part = broken.part
        do {
            // The rest is useless without its beginning.
            guard
                try fillGap(of: broken.body, CodecJob.PartKey(key: broken.key, url: part.url))
            else { return nil }
            let isKept = try broken.body.withUnsafeBytes { bytes throws(StorageError) in
                try partials.store(part, key: broken.key, bytes: bytes, at: broken.receivedAt)
            }
            return isKept ? part : nil
        } catch {
            // A full disk ends the run when an image finds no room; smaller ones may still fit.
            if error.isDiskFull { return nil }
            throw error
        }
    }
}
