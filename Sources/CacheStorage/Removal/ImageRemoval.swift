package import PrefetchModel
internal import SQLite

/// Removes images on a user's word: what is removed is as if it had never been fetched.
///
/// Rows go first, batch by batch and for good, then the files that no row names any more. A property
/// says that this is going on: after a kill in between, the next run looks for files without a row. The files of
/// one batch go while the rows of the next one do.
package final class ImageRemoval: ImageRemoving {
    private let cache: OpenCache
    private let variant: VariantSelector?
    private let now: Timestamp
    private let files: FileRemoval
    private var statements = MetadataStatements(run: 0)
    private var hasBegun = false
    /// Batches whose rows are gone and whose files may be left.
    private var unfinishedBatches = 0
    /// Whether the note that this is going on is its own.
    private var ownsNote = false
    package private(set) var totals = RemovalTotals()
    package var database: CacheDatabase { cache.database }

    /// - Parameters:
    ///   - cache: open for writing.
    ///   - variant: that goes; nil for the whole of each image.
    ///   - now: the wall clock.
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

    package func removeFailures(
        where isWanted: (FailureRecord) -> Bool
    ) throws(StorageError) {
        guard variant == nil else { return }
        totals.failures += try cache.failures.removeAll(where: isWanted)
    }

    package var usage: DiskUsage {
        get throws(StorageError) { try database.usage() }
    }

    package func removeHistory(
        before time: Timestamp, at now: Timestamp
    ) throws(StorageError) {
        try cache.checkHold()
        let counted = try HistoryRows.count(before: time, at: now, in: database)
        try HistoryRows.remove(before: time, at: now, in: database)
        try cache.partials.removeAll(olderThan: now.timeSince(time), at: now)
        totals.add(counted)
    }

    package func remove(_ batch: [RemovalCandidate]) throws(StorageError) -> [Bool] {
        try remove(batch, only: variant)
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

    package func remove(
        images ids: [Int64], only variant: VariantSelector?
    ) throws(StorageError) {
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

    /// Removes what `removeRows` does of a batch, or on a full disk of its parts, and begins with the files.
    ///
    /// Returns the images of which anything went.
    private func remove<Image>(
        _ batch: [Image], _ removeRows: ([Image], Connection) throws -> RemovedRows
    ) throws(StorageError) -> ResourceSet {
        guard !batch.isEmpty else { return ResourceSet() }
        let removed: RemovedRows
        do throws(StorageError) {
            removed = try change { try removeRows(batch, $0) }
        } catch  where error.isDiskFull {
            // All of it has to fit into the log. The files of the batch before make room, and so do those of a part.
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
        // A power cut must not bring rows back without their files. A reader of another program may keep
        // a part of the log out of the database; then the log itself has to be on the disk.
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
        // Somebody may have put another cache in this one's place.
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

    /// Waits for the files of the last batch.
    ///
    /// - Returns: how many of them were removed.
    @discardableResult
    private func finishFiles() throws(StorageError) -> Int {
        guard let removed = try files.finish() else { return 0 }
        totals.files += removed.files
        // Damaged rows may say anything.
        totals.bytes &+= removed.bytes
        unfinishedBatches -= 1
        return removed.files
    }

    package func finish() throws(StorageError) {
        try finishFiles()
        // Files that could not be removed may be next time.
        guard hasBegun, ownsNote, unfinishedBatches == 0, cache.content.untidy == nil else {
            return
        }
        // While a run goes on, its end sees to that.
        if try !cache.log.lastRunMayHaveLeftStrays() { try cache.content.synchronizeRemovals() }
        try cache.database.remove(.removalUnfinished)
    }
}
