package import CacheStorage
import PrefetchModel
import Reporting

/// Finds the databases of a sink that may have an image.
package struct SinkIndex {
    private let storage: ObjectStorage
    /// Read for the damage of its own database only.
    private let directory: CacheDirectory
    private let shards: ShardFinder

    /// Returns the shards of a URL in normal form among `count`, by the file of their plan.
    package typealias ShardFinder = (
        _ url: String, _ count: Int, _ plan: (name: String, bytes: [UInt8])?
    ) throws -> [Int]

    package init(
        _ storage: ObjectStorage, for directory: CacheDirectory, shards: @escaping ShardFinder
    ) {
        self.storage = storage
        self.directory = directory
        self.shards = shards
    }

    /// Calls `body` with the complete shards that may have a URL in normal form, or any key for
    /// nil, until it returns true.
    ///
    /// - Returns: whether it has returned true.
    /// - Throws: the errors of `body`, and when the bucket cannot be read, or libpsl is missing.
    package func find(_ url: String?, _ body: (SinkShard) throws -> Bool) throws -> Bool {
        let groups = Dictionary(grouping: try storage.shards(), by: \.count)
            .sorted { $0.key > $1.key }
        for (count, members) in groups {
            var dones: [Shard: SinkShard] = [:]
            func done(_ shard: Shard) throws -> SinkShard {
                if let known = dones[shard] { return known }
                let done = try storage.done(of: shard)
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

    private func places(of url: String, count: Int, plan digest: String?) throws -> [Int] {
        guard let digest else { return try shards(url, count, nil) }
        let name = SinkLayout.plan(digest)
        let bytes = try storage.bytes(of: name, limit: SinkIndex.largestPlan)
        return try shards(url, count, ("\(storage.location)/\(name)", bytes))
    }

    /// No plan of a million packed domains is larger.
    private static let largestPlan = ByteCount.mebibytes(256)

    /// A catalog of a shard's database, which gets only the blocks that a look-up needs.
    package func catalog(of done: SinkShard) throws -> RemoteCatalog {
        let (storage, name) = (storage, done.database)
        return try RemoteCatalog(
            path: "\(storage.location)/\(name)", size: done.size, for: directory
        ) { try storage.bytes(of: name, at: $0) }
    }
}
