import CacheStorage
package import PrefetchModel
import Reporting

/// The file `_DONE.json` of a shard: the summary of its run, with the member `database`.
package struct SinkDone: Sendable {
    package let shard: Shard
    /// The digest of the shards' plan; nil without one.
    package let plan: String?
    let digest: ContentDigest
    package let size: ByteCount
    /// Databases that are not removed yet.
    let replaced: [Replaced]

    /// A database that a later one has replaced.
    package struct Replaced: Hashable, Sendable {
        package let digest: ContentDigest
        package let at: Timestamp
    }

    /// The name of the database below the prefix.
    package var database: String { shard.database(digest) }

    /// Reads a file; nil for anything else.
    init?(_ bytes: [UInt8], of shard: Shard) {
        guard let database = ShardSummary.database(in: bytes),
            let digest = ContentDigest(hexadecimal: database.sha256),
            (0...ContentFile.largestSize).contains(database.bytes)
        else { return nil }
        self.shard = shard
        self.digest = digest
        plan = ShardSummary(bytes)?.shard.plan
        size = ByteCount(database.bytes)
        replaced = database.replaced.compactMap { sha256, at in
            ContentDigest(hexadecimal: sha256).map { Replaced(digest: $0, at: at) }
        }
    }
}

extension ObjectStorage {
    /// Larger summaries are none of this program.
    private static let largestDone = ByteCount.mebibytes(4)
    /// A million objects of shards.
    private static let mostPages = 1_000

    /// The `_DONE.json` of a shard.
    ///
    /// - Throws: an error of kind `missing` if the shard is not complete.
    package func done(of shard: Shard) throws -> SinkDone {
        let bytes = try bytes(of: shard.done, limit: ObjectStorage.largestDone)
        guard let done = SinkDone(bytes, of: shard) else {
            throw ObjectStorageError(
                .damaged, "\(location)/\(shard.done): not written by this program")
        }
        return done
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
