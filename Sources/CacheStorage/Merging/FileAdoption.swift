import Hashing
import PrefetchModel
import Threading

/// Takes over content files on threads of its own, while the rows are merged.
final class FileAdoption: Sendable {
    struct Job {
        let image: StoredImage
        /// The cache with the row that names the image.
        let source: Int
        /// Whether the bytes are compared with the digest, also of a linked file.
        let isDoubtful: Bool
    }

    private struct AdoptionQueue {
        var batches: [[Job]] = []
        var isEnded = false
        var counts = AdoptionCounts()
        var lost: [StoredImage] = []
        var failure: StorageError?
    }

    static let batchSize = 512
    /// Batches that wait at most; beyond them the merging thread takes part.
    private static let mostBatches = 64

    private let state = Monitor(AdoptionQueue())
    private let content: ContentStore
    /// All caches, the destination first.
    private let directories: [CacheDirectory]
    private let threads: Monitor<[OwnedThread]> = Monitor([])

    /// Starts `workers` threads at most; without any, the merging thread does the work.
    init(into content: ContentStore, from directories: [CacheDirectory], workers: Int) {
        self.content = content
        self.directories = directories
        for number in 0..<workers {
            // Fewer threads suffice: the merging thread takes part.
            guard
                let thread = try? OwnedThread(
                    name: "adopt-\(number)", { [self] in while takeBatch(waits: true) {} })
            else { break }
            threads.withLock { $0.append(thread) }
        }
    }

    func add(_ jobs: [Job]) throws(StorageError) {
        guard !jobs.isEmpty else { return }
        let (count, failure) = state.update { state in
            if state.failure == nil { state.batches.append(jobs) }
            return (state.batches.count, state.failure)
        }
        if let failure { throw failure }
        if count > FileAdoption.mostBatches { _ = takeBatch(waits: false) }
    }

    /// Waits for all jobs and ends the threads. Also call after a failure elsewhere. Returns the
    /// counts, and the images without a file in any cache.
    func finish(
        isAbandoned: Bool = false
    ) throws(StorageError) -> (counts: AdoptionCounts, lost: [StoredImage]) {
        state.update { state in
            if isAbandoned { state.batches = [] }
            state.isEnded = true
        }
        while takeBatch(waits: false) {}
        let started = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in started { thread.join() }
        return try state.withLock { state throws(StorageError) in
            if let failure = state.failure { throw failure }
            return (state.counts, state.lost)
        }
    }

    /// Works on one batch. Returns false without a batch; if it `waits`, none will follow.
    private func takeBatch(waits: Bool) -> Bool {
        let batch: [Job]? = state.wait { state, _ in
            if let batch = state.batches.popLast() { return .ready(batch) }
            return waits && !state.isEnded ? .wait(until: nil) : .ready(nil)
        }
        guard let batch else { return false }
        var counts = AdoptionCounts()
        var lost: [StoredImage] = []
        var failure: StorageError?
        let hasher = SHA256Hasher()
        do {
            for job in batch { try adopt(job, &counts, &lost, hasher: hasher) }
        } catch {
            failure = error
        }
        state.update(wakes: { $0.failure != nil }) { state in
            state.counts = state.counts + counts
            state.lost += lost
            if let failure, state.failure == nil {
                state.failure = failure
                state.batches = []
                state.isEnded = true
            }
        }
        return true
    }

    /// Takes a file from the cache with its row, or else from any that has it.
    private func adopt(
        _ job: Job, _ counts: inout AdoptionCounts, _ lost: inout [StoredImage],
        hasher: borrowing SHA256Hasher
    ) throws(StorageError) {
        let image = job.image
        for index in [job.source] + directories.indices.dropFirst() {
            let adoption = try content.adopt(
                image, from: directories[index], isDoubtful: job.isDoubtful, hasher: hasher)
            switch adoption {
            case .linked: counts.linked += 1
            case .cloned: counts.cloned += 1
            case .copied: counts.copied += 1
            case .present:
                counts.present += 1
                return
            case .lost:
                continue
            }
            counts.bytes += image.size.bytes
            return
        }
        lost.append(image)
    }
}
