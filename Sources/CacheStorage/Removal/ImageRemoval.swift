package import PrefetchModel
internal import SQLite
import Threading

/// Removes images as if they had never been fetched: rows permanently, batch by batch, then, during
/// the next batch, the files that no row names any more. A property notes the unfinished removal:
/// after a kill the next run collects files without a row.
package final class ImageRemoval: ImageRemoving {
    private let cache: OpenCache
    package let variant: VariantSelector?
    private let now: Timestamp
    private let files: FileRemoval
    private var statements = MetadataStatements(run: 0)
    private var hasBegun = false
    /// Batches of removed rows with files that may remain.
    private var unfinishedBatches = 0
    /// Whether this removal wrote the note of an unfinished removal.
    private var ownsNote = false
    package private(set) var totals = RemovalTotals()
    package var database: CacheDatabase { cache.database }

    /// `cache` is open for writing. Without a `variant`, whole images are removed.
    package init(_ cache: OpenCache, variant: VariantSelector?, at now: Timestamp) {
        self.cache = cache
        self.variant = variant
        self.now = now
        files = FileRemoval(of: cache.content)
    }

    package func removeFailure(key: String) throws(StorageError) -> Bool {
        guard variant == nil else { return false }
        try cache.partials.discard(key: key)
        guard try cache.failures.remove(key: key) else { return false }
        totals.failures += 1
        return true
    }

    package func removeFailures(where isWanted: (FailureRecord) -> Bool) throws(StorageError) {
        guard variant == nil else { return }
        totals.failures += try cache.failures.removeAll(where: isWanted)
    }

    package var usage: DiskUsage {
        get throws(StorageError) { try database.usage() }
    }

    package func removeHistory(before time: Timestamp, at now: Timestamp) throws(StorageError) {
        try cache.checkHold()
        let counted = try HistoryRows.count(before: time, at: now, in: database)
        try HistoryRows.remove(before: time, at: now, in: database)
        try cache.partials.removeAll(olderThan: now.timeSince(time), at: now)
        totals.add(counted)
    }

    package func remove(
        _ batch: [RemovalCandidate], only variant: VariantSelector?
    ) throws(StorageError) -> [Bool] {
        let gone: ResourceSet
        if let variant {
            gone = try remove(batch) { candidates, database in
                try statements.remove(candidates, variant, in: database)
            }
        } else {
            gone = try removeWhole(batch.map(\.id))
        }
        return batch.map { gone.contains($0.id) }
    }

    package func remove(images ids: [Int64], only variant: VariantSelector?) throws(StorageError) {
        if let variant {
            _ = try remove(RemovalCandidate.find(ids: ids, in: database), only: variant)
        } else {
            _ = try removeWhole(ids)
        }
    }

    private func removeWhole(_ ids: [Int64]) throws(StorageError) -> ResourceSet {
        try remove(ids) { ids, database in
            try statements.remove(images: ids, in: database)
        }
    }

    /// Removes the rows of a batch, on a full disk in halves, and starts removing the files.
    /// Returns the images with any removed variant.
    private func remove<Image>(
        _ batch: [Image], _ removeRows: ([Image], Connection) throws -> RemovedRows
    ) throws(StorageError) -> ResourceSet {
        guard !batch.isEmpty else { return ResourceSet() }
        let removed: RemovedRows
        do {
            removed = try change { try removeRows(batch, $0) }
        } catch  where error.isDiskFull {
            // The transaction must fit into the log. Removed files free space, a half needs less.
            if try finishFiles() > 0 { return try remove(batch, removeRows) }
            guard batch.count > 1 else { throw error }
            let half = batch.count / 2
            var gone = try remove(Array(batch[..<half]), removeRows)
            gone.formUnion(try remove(Array(batch[half...]), removeRows))
            return gone
        }
        hasBegun = true
        unfinishedBatches += 1
        totals.variants += removed.variants
        totals.images += removed.wholeImages
        for key in removed.keysOfParts { try cache.partials.discard(key: key) }
        // After a power cut, rows must not reappear without their files. If a reader keeps part of
        // the log out of the database, the log itself must be synchronised.
        if !removed.files.isEmpty, try !cache.database.checkpoint(truncates: false) {
            try cache.content.synchronize()
        }
        try finishFiles()
        files.begin(removed.files)
        return removed.gone
    }

    private func change(
        _ removeRows: (Connection) throws -> RemovedRows
    ) throws(StorageError) -> RemovedRows {
        // Another cache may have been moved to this path.
        try cache.checkHold()
        if !hasBegun { try cache.database.holdMorePages() }
        return try cache.database.write("removing images") { database in
            statements.beginTransaction()
            if !hasBegun {
                ownsNote = try Schema.Property.noteUnfinishedRemoval(at: now, in: database)
            }
            return try removeRows(database)
        }
    }

    /// Waits for the files of the last batch. Returns the number of files removed.
    @discardableResult
    private func finishFiles() throws(StorageError) -> Int {
        guard let removed = try files.finish() else { return 0 }
        totals.files += removed.files
        // Damaged rows may hold any number.
        totals.bytes &+= removed.bytes
        unfinishedBatches -= 1
        return removed.files
    }

    package func finish() throws(StorageError) {
        try finishFiles()
        // The next run retries files that could not be removed.
        guard hasBegun, ownsNote, unfinishedBatches == 0, cache.content.untidy == nil else {
            return
        }
        // A run in progress synchronises at its end.
        if try !cache.log.lastRunMayHaveLeftOrphans() { try cache.content.synchronizeRemovals() }
        try cache.database.remove(.removalUnfinished)
    }
}

/// Removes content files on a thread of its own, while SQLite removes the next batch of rows.
final class FileRemoval {
    typealias RemovedFiles = (files: Int, bytes: Int)

    private let content: ContentStore
    private var pending:
        (thread: OwnedThread?, outcome: Monitor<Result<RemovedFiles, StorageError>>)?

    /// Smaller batches are not worth a thread.
    private static let fewFiles = 32

    init(of content: ContentStore) { self.content = content }

    deinit { pending?.thread?.join() }

    /// Starts removing files that no row names any more. Call only if nothing is pending.
    func begin(_ files: [NamedFile]) {
        precondition(pending == nil, "the files of the last batch are still being removed")
        let outcome = Monitor<Result<RemovedFiles, StorageError>>(.success((0, 0)))
        let work: @Sendable () -> Void = { [content] in
            let result = Result { () throws(StorageError) in
                try FileRemoval.remove(files, from: content)
            }
            outcome.withLock { $0 = result }
        }
        var thread: OwnedThread?
        if files.count > FileRemoval.fewFiles {
            // Without a free thread, this one removes the files.
            thread = try? OwnedThread(name: "file removal", work)
        }
        if thread == nil { work() }
        pending = (thread, outcome)
    }

    /// Waits for the pending files. Returns the files that existed and were removed; nil if nothing
    /// was pending.
    ///
    /// - Throws: when a file could not be removed; the following files remain.
    func finish() throws(StorageError) -> RemovedFiles? {
        guard let (thread, outcome) = pending else { return nil }
        thread?.join()
        pending = nil
        return try outcome.withLock { $0 }.get()
    }

    private static func remove(
        _ files: [NamedFile], from content: ContentStore
    ) throws(StorageError) -> RemovedFiles {
        var removed: RemovedFiles = (0, 0)
        for file in files {
            guard let format = file.format, try content.remove(file.digest, format: format) else {
                continue
            }
            removed.files += 1
            removed.bytes &+= file.bytes
        }
        return removed
    }
}
