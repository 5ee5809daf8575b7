package import CacheStorage
import PrefetchModel
import Reporting

// Finding the databases of a sink that may have an image.

extension ObjectStorage {
    /// Returns the shards of a URL in normal form among `count`, by the file of their plan.
    package typealias ShardFinder = (
        _ url: String, _ count: Int, _ plan: (name: String, bytes: [UInt8])?
    ) throws -> [Int]

    /// Calls `body` with the complete shards that may have a URL in normal form, or any key for
    /// nil, until it returns true.
    ///
    /// - Returns: whether it has returned true.
    /// - Throws: the errors of `body`, and when the bucket cannot be read, or libpsl is missing.
    package func findShards(
        of url: String?, by finder: ShardFinder, _ body: (SinkShard) throws -> Bool
    ) throws -> Bool {
        let groups = Dictionary(grouping: try shards(), by: \.count)
            .sorted { $0.key > $1.key }
        for (count, members) in groups {
            var dones: [Shard: SinkShard] = [:]
            func done(_ shard: Shard) throws -> SinkShard {
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
                let places = try places(of: url, count: count, plan: plan, finder)
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

    private func places(
        of url: String, count: Int, plan digest: String?, _ finder: ShardFinder
    ) throws -> [Int] {
        guard let digest else { return try finder(url, count, nil) }
        let name = SinkLayout.plan(digest)
        let bytes = try bytes(of: name, limit: ObjectStorage.largestPlan)
        return try finder(url, count, ("\(location)/\(name)", bytes))
    }

    /// No plan of a million packed domains is larger.
    private static let largestPlan = ByteCount.mebibytes(256)

    /// A catalog of a shard's database, which gets only the blocks that a look-up needs. The
    /// directory is read for the damage of its own database only.
    package func catalog(
        of done: SinkShard, for directory: CacheDirectory
    ) throws -> RemoteCatalog {
        try RemoteCatalog(
            path: "\(location)/\(done.database)", size: done.size, for: directory
        ) { [self] in try bytes(of: done.database, at: $0) }
    }
}
