package import PrefetchModel
import Reporting

extension ShardPlan {
    /// No plan of a million packed domains is larger.
    package static let mostFileBytes = 256 << 20

    private static let type = "shard-plan"

    /// The plan's file, with a final line end.
    package var file: [UInt8] {
        var object = JSONObject()
        object.add("type", ShardPlan.type)
        object.add("version", ShardPlan.version)
        object.add("shards", shards)
        object.add("entries", entries)
        object.add(
            "lists",
            lists.map { list in
                var object = JSONObject()
                object.add("name", list.name)
                object.add("bytes", list.identity?.bytes)
                object.add("sha256", list.identity?.digest)
                return object
            })
        object.add(
            "split",
            split.map { split in
                var object = JSONObject()
                object.add("domain", split.domain)
                object.add("entries", split.entries)
                object.add("shards", split.shards)
                return object
            })
        var domains = JSONObject()
        for (domain, shard) in packed.sorted(by: { $0.key < $1.key }) {
            domains.add(domain, shard)
        }
        object.add("packed", domains)
        object.add("buckets", buckets)
        object.add("loads", loads)
        if let times = times {
            object.add("times_ms", times.map { Int($0 / .milliseconds(1)) })
        } else {
            object.addNull("times_ms")
        }
        return object.bytes + [UInt8(ascii: "\n")]
    }

    /// Reads a plan's file; `name` is its name in messages.
    package init(file bytes: [UInt8], name: String) throws(UserError) {
        func problem(_ text: String) -> UserError {
            UserError(.failed, name, text, hint: "`prefetch plan --shards N -o FILE` makes a plan")
        }
        let reader = JSONMembers()
        let members = bytes.withUnsafeBytes(reader.object)
        guard members["type"]?.text == ShardPlan.type else { throw problem("not a shard plan") }
        guard members["version"]?.integer == ShardPlan.version else {
            throw problem("a plan of another version of prefetch")
        }
        let damaged = problem("a damaged plan")
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
        self.init(
            shards: shards, entries: entries, lists: lists, split: split, packed: packed,
            buckets: buckets, loads: loads, times: times?.count == shards ? times : nil)
    }
}
