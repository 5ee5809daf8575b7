import CacheStorage
import PrefetchModel
import Threading

/// The content files that wait for the threads of an upload or a download, and their counts.
final class SinkWork<Counts: Sendable>: Sendable {
    private struct State {
        var counts: Counts
        var last: ContentDigest?
        var isEnded = false
        var failure: SinkFailure?
    }

    private let files: ContentFiles
    private let batchSize: Int
    private let state: Monitor<State>

    /// Threads that each send or get one file: most of the time a thread waits for an answer.
    private static var workers: Int { 32 }
    /// The most files that a thread takes at a time.
    private static var largestBatch: Int { 256 }

    /// Begins with the first of `files`.
    init(_ files: ContentFiles, counts: Counts) {
        self.files = files
        batchSize = max(16, min(SinkWork.largestBatch, files.count / (2 * SinkWork.workers)))
        state = Monitor(State(counts: counts))
    }

    var counts: Counts { state.withLock { $0.counts } }

    func count(_ change: (inout Counts) -> Void) { state.withLock { change(&$0.counts) } }

    /// Calls `body` with batches of files until there are none, on several threads.
    ///
    /// Each thread has its own client. A failure stops the storage.
    ///
    /// - Throws: the first failure, after all threads have ended.
    func run(
        in storage: ObjectStorage,
        _ body: @escaping @Sendable ([ContentFile], ObjectClient) throws(SinkFailure) -> Void
    ) throws(SinkFailure) {
        let workers = min(SinkWork.workers, files.count / batchSize + 1)
        _ = Array(0..<workers).parallelMap(workers: workers, name: "sink") { [self] _ in
            do throws(SinkFailure) {
                let client = try SinkFailure.ofRequests { () throws(ObjectStorageError) in
                    try ObjectClient(storage)
                }
                while let files = try next() { try body(files, client) }
            } catch {
                state.withLock { $0.failure = $0.failure ?? error }
                // The others would go on for as long as their retries take.
                if !error.isStop { storage.stop() }
            }
        }
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// The next files; nil when there are none or a thread has failed.
    private func next() throws(SinkFailure) -> [ContentFile]? {
        let (files, batchSize) = (files, batchSize)
        return try state.withLock { state throws(SinkFailure) in
            guard !state.isEnded, state.failure == nil else { return nil }
            let last = state.last
            let batch = try SinkFailure.ofCache { () throws(StorageError) in
                try files.next(after: last, limit: batchSize)
            }
            state.last = batch.last?.digest
            state.isEnded = batch.count < batchSize
            return batch.isEmpty ? nil : batch
        }
    }
}
