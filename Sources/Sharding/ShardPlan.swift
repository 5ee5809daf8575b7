/// The distribution of the domains of a list over shards, made by `prefetch plan --shards`.
///
/// The file is one JSON object:
///
/// - `type`: `"shard-plan"`; `version`: 1.
/// - `shards`: their number; `entries`: their number in the lists, without bad lines.
/// - `lists`: an array with an object for each list: `name`, `bytes` and `sha256` of its first and
///   last 64 KiB, both null if it is not a regular file.
/// - `split`: domains in several shards: `domain`, `entries`, `shards` (their indexes; a key
///   belongs to the one at the place of its ``ShardHash``). Each of them gets a part of the
///   domain's limits.
/// - `packed`: an object with the shard of each other large domain.
/// - `buckets`: the shards of the remaining domains, by the ``ShardHash`` of the domain.
/// - `loads`: the entries of each shard.
/// - `times_ms`: for each shard, the time that its slowest domain takes at the pace that earlier
///   runs have found; null without earlier runs.
package struct ShardPlan: Hashable, Sendable {
    package static let version = 1

    /// A domain in several shards.
    package struct Split: Hashable, Sendable {
        package let domain: String
        package let entries: Int
        package let shards: [Int]
    }

    package struct List: Hashable, Sendable {
        package let name: String
        /// Nil for a list that is not a regular file.
        package let identity: Identity?

        package struct Identity: Hashable, Sendable {
            package let bytes: Int
            package let digest: String

            package init(bytes: Int, digest: String) {
                self.bytes = bytes
                self.digest = digest
            }
        }

        package init(name: String, identity: Identity?) {
            self.name = name
            self.identity = identity
        }
    }

    package let shards: Int
    package let entries: Int
    package let lists: [List]
    package let split: [Split]
    package let packed: [String: Int]
    package let buckets: [Int]
    package let loads: [Int]
    package private(set) var times: [Duration]?

    /// The split domains with a part in a shard, and the number of their parts.
    package func parts(of shard: Int) -> [(domain: String, count: Int)] {
        split.filter { $0.shards.contains(shard) }.map { ($0.domain, $0.shards.count) }
    }
}
