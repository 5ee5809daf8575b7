internal import CJSON
package import Sharding

/// Reads and writes the file of a ``ShardPlan``.
package enum ShardPlanFile {
    /// A file that is no plan; the text has no subject.
    package struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// No plan of a million packed domains is larger.
    package static let mostBytes = 256 << 20

    /// The file, with a final line end.
    package static func bytes(of plan: ShardPlan) -> [UInt8] {
        var object = JSONObject()
        object.add("type", type)
        object.add("version", ShardPlan.version)
        object.add("shards", plan.shards)
        object.add("entries", plan.entries)
        object.add(
            "lists",
            plan.lists.map { list in
                var object = JSONObject()
                object.add("name", list.name)
                object.add("bytes", list.identity?.bytes)
                object.add("sha256", list.identity?.digest)
                return object
            })
        object.add(
            "split",
            plan.split.map { split in
                var object = JSONObject()
                object.add("domain", split.domain)
                object.add("entries", split.entries)
                object.add("shards", split.shards)
                return object
            })
        var packed = JSONObject()
        for (domain, shard) in plan.packed.sorted(by: { $0.key < $1.key }) {
            packed.add(domain, shard)
        }
        object.add("packed", packed)
        object.add("buckets", plan.buckets)
        object.add("loads", plan.loads)
        if let times = plan.times {
            object.add("times_ms", times.map { Int($0 / .milliseconds(1)) })
        } else {
            object.addNull("times_ms")
        }
        return object.bytes + [UInt8(ascii: "\n")]
    }

    private static let type = "shard-plan"

    /// Reads a file.
    ///
    /// - Throws: ``Problem`` for anything but a plan of this version.
    package static func read(_ bytes: [UInt8]) throws(Problem) -> ShardPlan {
        let reader = JSONMembers()
        let members = bytes.withUnsafeBytes(reader.object)
        guard members["type"]?.text == type else {
            throw Problem(description: "not a plan of shards")
        }
        guard members["version"]?.integer == ShardPlan.version else {
            throw Problem(description: "a plan of another version of prefetch")
        }
        func integers(_ member: JSONMember?) -> [Int]? {
            let elements = member?.elements(by: reader)
            let numbers = elements?.compactMap(\.integer)
            return numbers?.count == elements?.count ? numbers : nil
        }
        guard let shards = members["shards"]?.integer, Shard.counts.contains(shards),
            let entries = members["entries"]?.integer, entries >= 0,
            let buckets = integers(members["buckets"]), !buckets.isEmpty,
            let loads = integers(members["loads"]), loads.count == shards,
            let packedMember = members["packed"]
        else { throw damaged }
        var packed: [String: Int] = [:]
        for (domain, shard) in packedMember.members(by: reader) {
            guard let shard = shard.integer else { throw damaged }
            packed[domain] = shard
        }
        var split: [ShardPlan.Split] = []
        for element in members["split"]?.elements(by: reader) ?? [] {
            let part = element.members(by: reader)
            guard let domain = part["domain"]?.text, let entries = part["entries"]?.integer,
                let shards = integers(part["shards"]), shards.count > 1
            else { throw damaged }
            split.append(ShardPlan.Split(domain: domain, entries: entries, shards: shards))
        }
        let all = (0..<shards)
        guard
            (buckets + packed.values + split.flatMap(\.shards)).allSatisfy({ all.contains($0) })
        else { throw damaged }
        let lists = (members["lists"]?.elements(by: reader) ?? []).map { element in
            let list = element.members(by: reader)
            let identity: ShardPlan.List.Identity?
            if let bytes = list["bytes"]?.integer, let digest = list["sha256"]?.text {
                identity = ShardPlan.List.Identity(bytes: bytes, digest: digest)
            } else {
                identity = nil
            }
            return ShardPlan.List(name: list["name"]?.text ?? "", identity: identity)
        }
        let times = integers(members["times_ms"]).map { $0.map { Duration.milliseconds($0) } }
        return ShardPlan(
            shards: shards, entries: entries, lists: lists, split: split, packed: packed,
            buckets: buckets, loads: loads, times: times?.count == shards ? times : nil)
    }

    private static var damaged: Problem { Problem(description: "a damaged plan") }
}
