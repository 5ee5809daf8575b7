import CacheStorage
package import PrefetchModel
import Reporting

/// A complete shard of a sink, by its `_DONE.json`.
package struct SinkShard: Sendable {
    let shard: Shard
    let done: SinkDone

    /// The digest of the plan of the shards; nil without one.
    var plan: String? { done.summary.shard?.plan }
    var digest: ContentDigest { done.database.digest }
    var size: ByteCount { done.database.size }
    /// The name of the database below the prefix.
    package var database: String { shard.database(digest) }
}

extension ObjectStorage {
    /// This program writes no larger summaries.
    private static let largestDone = ByteCount.mebibytes(4)
    /// A million objects of shards.
    private static let mostPages = 1_000

    /// The `_DONE.json` of a shard; an error of kind `missing` means that it is not complete.
    package func done(of shard: Shard) throws -> SinkShard {
        let bytes = try bytes(of: shard.done, limit: ObjectStorage.largestDone)
        guard let done = SinkDone(file: bytes), done.database.size.bytes <= ContentFile.largestSize
        else {
            throw ObjectStorageError(
                .damaged, "\(location)/\(shard.done): not written by this program")
        }
        return SinkShard(shard: shard, done: done)
    }

    /// The complete shards of a sink, by number of shards and index.
    package func shards() throws -> [Shard] {
        var shards: [Shard] = []
        var last = SinkLayout.shards
        for number in 1... {
            guard number <= ObjectStorage.mostPages else {
                throw ObjectStorageError(
                    .other, "\(location)/\(SinkLayout.shards): too many objects")
            }
            let page = try list(SinkLayout.shards, after: last, limit: 1_000)
            shards += page.objects.compactMap { Shard(done: $0.name) }
            guard !page.isLast, let next = page.objects.last else { break }
            last = next.name
        }
        return shards.sorted { ($0.count, $0.index) < ($1.count, $1.index) }
    }
}
