import CacheStorage
import PrefetchModel
import Threading

/// The content files of an upload or a download so far.
package struct SinkCounts: Hashable, Sendable {
    package var copied = 0
    package var copiedBytes = 0
    /// Files that were there.
    package var present = 0
    /// Missing files, and files with bytes that differ from their names.
    package var unusable = 0
}

/// Copies content files on several threads, to a sink or from it.
final class SinkCopying: Sendable {
    private struct CopyProgress {
        var counts: SinkCounts
        var last: ContentDigest?
        var isEnded = false
        var failure: (any Error)?
        var lastTold = ContinuousClock.now
    }

    private let files: ContentFiles
    private let batchSize: Int
    private let tell: @Sendable (SinkCounts, _ files: Int) -> Void
    private let progress: Monitor<CopyProgress>

    /// Threads that each wait for one file's request most of the time.
    private static let workers = 32
    private static let largestBatch = 256
    private static let tellingInterval = Duration.seconds(10)

    /// Begins with the first of `files`; `tell` is called now and then, from several threads.
    init(
        _ files: ContentFiles, counts: SinkCounts = SinkCounts(),
        telling tell: @escaping @Sendable (SinkCounts, _ files: Int) -> Void
    ) {
        self.files = files
        self.tell = tell
        batchSize = max(
            16, min(SinkCopying.largestBatch, files.count / (2 * SinkCopying.workers)))
        progress = Monitor(CopyProgress(counts: counts))
    }

    /// Copies all files. A failure stops the storage, and is thrown after all threads have ended.
    ///
    /// `present` returns the files that need no copy, and `copy` false for an unusable one.
    func run(
        in storage: ObjectStorage,
        present: @escaping @Sendable ([ContentFile]) throws -> Set<ContentDigest>,
        copy: @escaping @Sendable (ContentFile) throws -> Bool
    ) throws -> SinkCounts {
        let workers = min(SinkCopying.workers, files.count / batchSize + 1)
        _ = Array(0..<workers).parallelMap(workers: workers, name: "sink") { [self] _ in
            do {
                while let files = try next() {
                    let present = try present(files)
                    count { $0.present += present.count }
                    for file in files where !present.contains(file.digest) {
                        let isCopied = try copy(file)
                        count { counts in
                            counts.copied += isCopied ? 1 : 0
                            counts.copiedBytes += isCopied ? file.size.bytes : 0
                            counts.unusable += isCopied ? 0 : 1
                        }
                    }
                }
            } catch {
                progress.withLock { $0.failure = $0.failure ?? error }
                // The others would go on for as long as their retries take.
                storage.stop()
            }
        }
        let end = progress.withLock { $0 }
        if let failure = end.failure { throw failure }
        return end.counts
    }

    private func count(_ change: (inout SinkCounts) -> Void) {
        let due = progress.withLock { progress -> SinkCounts? in
            change(&progress.counts)
            guard .now - progress.lastTold > SinkCopying.tellingInterval else { return nil }
            progress.lastTold = .now
            return progress.counts
        }
        if let due { tell(due, files.count) }
    }

    /// The next files; nil at the end or after a failure.
    private func next() throws -> [ContentFile]? {
        try progress.withLock { progress in
            guard !progress.isEnded, progress.failure == nil else { return nil }
            let batch = try files.next(after: progress.last, limit: batchSize)
            progress.last = batch.last?.digest
            progress.isEnded = batch.count < batchSize
            return batch.isEmpty ? nil : batch
        }
    }
}
