package import PrefetchModel
package import Reporting

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
        package fileprivate(set) var domain: String
        package fileprivate(set) var entries: Int
        package fileprivate(set) var shards: [Int]
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

extension ShardPlan {
    /// No plan of a million packed domains is larger.
    package static let mostFileBytes = 256 << 20

    private static let fileType = "shard-plan"

    /// The plan's file, with a final line end.
    package var file: [UInt8] { json + [UInt8(ascii: "\n")] }

    /// Reads a plan's file; `name` is its name in messages.
    package init(file: [UInt8], name: String) throws(UserError) {
        func problem(_ text: String) -> UserError {
            UserError(.failed, name, text, hint: "`prefetch plan --shards N -o FILE` makes a plan")
        }
        guard let (draft, isDamaged) = ShardPlan.read(file, type: ShardPlan.fileType) else {
            throw problem("not a shard plan")
        }
        guard draft.version == ShardPlan.version else {
            throw problem("a plan of another version of prefetch")
        }
        guard !isDamaged, let plan = draft.plan else { throw problem("a damaged plan") }
        self = plan
    }
}

extension ShardPlan: JSONRecord {
    package struct PlanDraft {
        fileprivate(set) var version: Int?
        fileprivate var shards = 0
        fileprivate var entries: Int?
        fileprivate var lists: [List.Draft]?
        fileprivate var split: [Split]?
        fileprivate var packed: [String: Int]?
        fileprivate var buckets: [Int] = []
        fileprivate var loads: [Int] = []
        fileprivate var times: [Int]?

        /// Nil if members are missing or contradict one another.
        fileprivate var plan: ShardPlan? {
            guard Shard.counts.contains(shards), let entries, let packed, !buckets.isEmpty,
                loads.count == shards, times.map({ $0.count == shards }) ?? true,
                let lists = lists?.compactMap(\.list), lists.count == self.lists?.count,
                let split, split.allSatisfy(\.isWhole)
            else { return nil }
            let places = buckets + packed.values + split.flatMap(\.shards)
            guard places.allSatisfy({ (0..<shards).contains($0) }) else { return nil }
            return ShardPlan(
                shards: shards, entries: entries, lists: lists, split: split, packed: packed,
                buckets: buckets, loads: loads, times: times?.map { .milliseconds($0) })
        }
    }

    package static var emptyDraft: PlanDraft { PlanDraft() }

    package static let sample = ShardPlan(
        shards: 1, entries: 0, lists: [], split: [], packed: [:], buckets: [], loads: [])

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout PlanDraft) {
        members.add("type", ShardPlan.fileType)
        members.add("version", ShardPlan.version) { draft.version = $0 }
        members.add("shards", shards) { draft.shards = $0 }
        members.add("entries", entries) { draft.entries = $0 }
        members.records("lists", lists) { draft.lists = $0 }
        members.records("split", split) { draft.split = $0 }
        members.counts(
            "packed", packed.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        ) { draft.packed = $0 }
        members.add("buckets", buckets) { draft.buckets = $0 }
        members.add("loads", loads) { draft.loads = $0 }
        members.add("times_ms", times?.map { Int($0 / .milliseconds(1)) }) { draft.times = $0 }
    }
}

extension ShardPlan.List: JSONRecord {
    package struct ListDraft {
        fileprivate var name: String?
        fileprivate var bytes: Int?
        fileprivate var digest: String?

        fileprivate var list: ShardPlan.List? {
            guard let name, (bytes == nil) == (digest == nil) else { return nil }
            let identity = bytes.flatMap { bytes in
                digest.map { Identity(bytes: bytes, digest: $0) }
            }
            return ShardPlan.List(name: name, identity: identity)
        }
    }

    package static var emptyDraft: ListDraft { ListDraft() }
    package static let sample = ShardPlan.List(name: "", identity: nil)

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout ListDraft) {
        members.add("name", name) { draft.name = $0 }
        members.add("bytes", identity?.bytes) { draft.bytes = $0 }
        members.add("sha256", identity?.digest) { draft.digest = $0 }
    }
}

extension ShardPlan.Split: JSONRecord {
    package static var emptyDraft: ShardPlan.Split { sample }
    package static let sample = ShardPlan.Split(domain: "", entries: -1, shards: [])

    /// Whether all members were read.
    fileprivate var isWhole: Bool { !domain.isEmpty && entries >= 0 && shards.count > 1 }

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout Self) {
        members.add("domain", domain) { draft.domain = $0 }
        members.add("entries", entries) { draft.entries = $0 }
        members.add("shards", shards) { draft.shards = $0 }
    }
}
