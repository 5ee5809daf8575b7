package import PrefetchModel

/// Removes images from a cache, or estimates a removal. For one thread.
package protocol ImageRemoving: AnyObject {
    /// The totals so far. They include files still being removed only after ``finish()``.
    var totals: RemovalTotals { get }

    var database: CacheDatabase { get }

    /// The disk usage of the content files without the removed ones.
    var usage: DiskUsage { get throws(StorageError) }

    /// The variants to remove; nil for whole images.
    var variant: VariantSelector? { get }

    /// Removes the selected variants of images, at most one batch, without duplicates. Returns for
    /// each image whether any of it was removed.
    func remove(
        _ batch: [RemovalCandidate], only selector: VariantSelector?
    ) throws(StorageError) -> [Bool]

    /// Removes variants of images by identifier. Some may no longer exist. At most
    /// ``RemovalCandidate/largestBatch``.
    func remove(images ids: [Int64], only selector: VariantSelector?) throws(StorageError)

    /// Removes old failures, hosts, runs and partial downloads that are not in force at `now`.
    func removeHistory(before time: Timestamp, at now: Timestamp) throws(StorageError)

    /// Removes a failure without an image, unless a variant is selected. Returns whether any.
    func removeFailure(key: String) throws(StorageError) -> Bool

    /// Removes the selected failures of URLs without an image. Call after removing images.
    func removeFailures(where isWanted: (FailureRecord) -> Bool) throws(StorageError)

    func finish() throws(StorageError)
}

extension ImageRemoving {
    package func remove(_ batch: [RemovalCandidate]) throws(StorageError) -> [Bool] {
        try remove(batch, only: variant)
    }

    package func candidate(key: String) throws(StorageError) -> RemovalCandidate? {
        try RemovalCandidate.find(key: key, in: database)
    }

    /// Finds an image by its URL without user information, for images with another text as key.
    package func candidate(url: String) throws(StorageError) -> RemovalCandidate? {
        let key = try database.read("looking up") { try CacheCatalog.key(ofURL: url, in: $0) }
        return try key.flatMap { key throws(StorageError) in try candidate(key: key) }
    }

    /// Removes the selected images and reports the totals after each batch.
    package func removeAll(
        where isWanted: (RemovalCandidate) -> Bool, _ report: (RemovalTotals) -> Void
    ) throws(StorageError) {
        var last: RemovalCandidate?
        while true {
            let candidates = try RemovalCandidate.next(after: last, in: database)
            guard !candidates.isEmpty else { return }
            last = candidates.last
            _ = try remove(candidates.filter(isWanted))
            report(totals)
        }
    }
}
