package import PrefetchModel

/// Takes images out of a cache, or finds out what that would come to. For one thread.
package protocol ImageRemoving: AnyObject {
    /// Files that are being removed are among them after ``finish()``.
    var totals: RemovalTotals { get }

    /// Where images are looked for.
    var database: CacheDatabase { get }

    /// What the content files take, without what was removed.
    var usage: DiskUsage { get throws(StorageError) }

    /// Removes images, at most a batch of different ones.
    ///
    /// - Returns: for each whether anything of it went.
    func remove(_ batch: [RemovalCandidate]) throws(StorageError) -> [Bool]

    /// The same for variants that `selector` means; nil for the whole of each image.
    func remove(
        _ batch: [RemovalCandidate], only selector: VariantSelector?
    ) throws(StorageError) -> [Bool]

    /// The same for images of which only the identifiers are known, and of which some may be gone by now; at most
    /// ``RemovalCandidate/largestBatch``.
    func remove(images ids: [Int64], only selector: VariantSelector?) throws(StorageError)

    /// Removes what is remembered of failures, hosts, runs and broken bodies from before a time, but for
    /// what holds on after `now`.
    func removeHistory(before time: Timestamp, at now: Timestamp) throws(StorageError)

    /// Removes the failure of a key without an image; with a variant chosen nothing.
    ///
    /// - Returns: whether there was one.
    func removeFailure(key: String) throws(StorageError) -> Bool

    /// Removes the failures of URLs without an image that `isWanted` picks; images first.
    func removeFailures(where isWanted: (FailureRecord) -> Bool) throws(StorageError)

    /// To be called once everything was removed; not after an error.
    func finish() throws(StorageError)
}

extension ImageRemoving {
    package func candidate(key: String) throws(StorageError) -> RemovalCandidate? {
        try RemovalCandidate.find(key: key, in: database)
    }

    /// Of an image that was asked for at a URL without user information and has another text as its key.
    package func candidate(url: String) throws(StorageError) -> RemovalCandidate? {
        try RemovalCandidate.find(url: url, in: database)
    }

    /// Removes the images that `isWanted` picks, and tells after each batch what has gone.
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
