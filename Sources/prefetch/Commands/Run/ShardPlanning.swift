import CacheStorage
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import Sharding

/// `plan --shards`: counts the entries of each domain in one pass, and writes a plan.
struct ShardPlanning {
    let shards: Int
    let machines: Int?
    let path: String

    /// Reads all entries, and writes the plan.
    ///
    /// - Parameters:
    ///   - reader: the lists, opened.
    ///   - hosts: the cache that knows the pace of hosts; nil without one.
    ///   - rules: the limits of hosts, by which a domain is split.
    /// - Returns: the plan.
    /// - Throws: `UserError`.
    func run(
        over reader: inout ManifestSequence, hosts: CacheCatalog?, rules: HostRules
    ) throws -> ShardPlan {
        var planner = ShardPlanner()
        var badLines = 0
        while let batch = try reader.nextBatch() {
            badLines += batch.records.count { $0.problem >= 0 }
            batch.text.withUnsafeBytes { text in
                for record in batch.records where record.problem < 0 {
                    planner.add(UnsafeRawBufferPointer(rebasing: text[record.url]))
                }
            }
        }
        if badLines > 0 {
            StandardError.write("prefetch: \(counted(badLines, "bad line")), which shard 0 reports")
        }
        let lists = try reader.names.map {
            ShardPlan.List(name: $0, identity: try ShardPlan.List.Identity(list: $0))
        }
        let paces = try hosts.map(ShardPlanning.times) ?? [:]
        let plan = planner.plan(
            shards: shards, machines: machines, lists: lists, mostParts: rules.mostParts
        ) { domain, count in
            paces[domain].map { $0 * count }
        }
        try OutputFile.replace(path, with: plan.file)
        return plan
    }

    /// The time of a request by domain, at the slowest pace that a host of it has accepted.
    private static func times(_ catalog: CacheCatalog) throws -> [String: Duration] {
        var times: [String: Duration] = [:]
        for state in try catalog.hostStates(at: WallClock.now()) {
            let answered = state.latency.map { $0 / Double(state.concurrency ?? 1) }
            guard let time = [answered, state.interval].compactMap(\.self).max() else { continue }
            var url = state.host + "/"
            let domain = url.withUTF8 { bytes in
                ShardSelector.domain(ofURL: UnsafeRawBufferPointer(bytes))
            }
            times[domain] = max(times[domain] ?? .zero, time)
        }
        return times
    }

    /// `plan.json: 8 shards of 124990 to 125010 entries; 2 domains in several shards`
    func text(_ plan: ShardPlan) -> [String] {
        let least = plan.loads.min() ?? 0
        let most = plan.loads.max() ?? 0
        var text = "\(path): \(counted(plan.shards, "shard")) of "
        text += least == most ? "\(most) entries each" : "\(least) to \(most) entries"
        if !plan.split.isEmpty {
            text += "; \(counted(plan.split.count, "domain")) in several shards"
        }
        var lines = [text]
        if let slowest = plan.times?.max() {
            lines.append(
                "  the slowest domain takes \(durationText(slowest)) at its pace in earlier runs")
        }
        return lines
    }
}
