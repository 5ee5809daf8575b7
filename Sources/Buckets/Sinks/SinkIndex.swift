package import CacheStorage
import PrefetchModel
import Reporting

/// Finds the databases of a sink that may have an image.
package struct SinkIndex {
    private let client: ObjectClient
    /// Read for the damage of its own database only.
    private let directory: CacheDirectory
    private let shards: ShardFinder

    /// Returns the shards of a URL in normal form among `count`, by the file of their plan.
    package typealias ShardFinder = (
        _ url: String, _ count: Int, _ plan: (name: String, bytes: [UInt8])?
    ) throws -> [Int]

    /// - Throws: when libcurl has no memory.
    package init(
        _ storage: ObjectStorage, for directory: CacheDirectory, shards: @escaping ShardFinder
    ) throws(SinkFailure) {
        self.shards = shards
        client = try SinkFailure.ofRequests { () throws(ObjectStorageError) in
            try ObjectClient(storage)
        }
        self.directory = directory
    }

    /// Calls `body` with the complete shards that may have a URL in normal form, or any key for
    /// nil, until it returns true.
    ///
    /// - Returns: whether it has returned true.
    /// - Throws: the errors of `body`, and when the bucket cannot be read, or libpsl is missing.
    package func find(_ url: String?, _ body: (SinkDone) throws -> Bool) throws -> Bool {
        let shards = try SinkFailure.ofRequests { () throws(ObjectStorageError) in
            try client.shards()
        }
        let groups = Dictionary(grouping: shards, by: \.count).sorted { $0.key > $1.key }
        for (count, members) in groups {
            var dones: [Shard: SinkDone] = [:]
            func done(_ shard: Shard) throws(SinkFailure) -> SinkDone {
                if let known = dones[shard] { return known }
                let done = try self.done(of: shard)
                dones[shard] = done
                return done
            }
            guard let url, count > 1, let first = members.first else {
                for shard in members where try body(done(shard)) { return true }
                continue
            }
            let plan = try done(first).plan
            var visited: Set<Int> = []
            func visit(_ plan: String?) throws -> Bool {
                let places = try places(of: url, count: count, plan: plan)
                for shard in members where places.contains(shard.index) {
                    if visited.insert(shard.index).inserted, try body(done(shard)) { return true }
                }
                return false
            }
            if try visit(plan) { return true }
            // The shards of another plan may be coming in.
            for shard in members { _ = try done(shard) }
            for other in Set(dones.values.map(\.plan)) where other != plan {
                if try visit(other) { return true }
            }
        }
        return false
    }

    private func done(of shard: Shard) throws(SinkFailure) -> SinkDone {
        try SinkFailure.ofRequests { () throws(ObjectStorageError) in try client.done(of: shard) }
    }

    private func places(of url: String, count: Int, plan digest: String?) throws -> [Int] {
        guard let digest else { return try shards(url, count, nil) }
        let name = SinkLayout.plan(digest)
        let bytes = try SinkFailure.ofRequests { () throws(ObjectStorageError) in
            try client.bytes(of: name, limit: SinkIndex.largestPlan)
        }
        return try shards(url, count, ("\(client.storage.location)/\(name)", bytes))
    }

    /// No plan of a million packed domains is larger.
    private static let largestPlan = ByteCount.mebibytes(256)

    /// A catalog of a shard's database, which reads from the bucket only the blocks that a look-up
    /// needs.
    ///
    /// - Throws: ``ObjectStorageError`` or ``StorageError``.
    package func catalog(of done: SinkDone) throws -> RemoteCatalog {
        let (client, name) = (client, done.database)
        return try RemoteCatalog(
            path: "\(client.storage.location)/\(name)", size: done.size, for: directory
        ) { try client.bytes(of: name, at: $0) }
    }

    /// Gets a content file into a cache.
    ///
    /// - Returns: false if the bucket lacks it, or has other bytes under its name.
    package func get(
        _ file: ContentFile, into content: ContentStore
    ) throws(SinkFailure) -> Bool {
        try client.get(file, into: content)
    }
}
