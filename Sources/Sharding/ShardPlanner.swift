import Hashing
import HeapModule

/// Counts the entries of each domain, and packs the domains into shards.
package struct ShardPlanner {
    private var entries = 0
    private var domains: [String: Int] = [:]
    /// The domain of the last entry: entries of a host often follow one another.
    private var last: (host: [UInt8], domain: String, count: Int)?

    /// Buckets for each shard: enough that each is a small part of it.
    private static let bucketsPerShard = 16
    private static let leastBuckets = 4096
    /// The largest domain in a bucket, as a part of a shard.
    private static let smallPart = 64

    /// - Precondition: ``RegistrableDomain/load(for:)`` has succeeded.
    package init() {}

    package mutating func add(_ url: UnsafeRawBufferPointer) {
        entries += 1
        let host = ShardSelector.host(in: url)
        if let known = last, known.host.elementsEqual(host) {
            last?.count += 1
            return
        }
        settle()
        last = (Array(host), ShardSelector.domain(ofURL: url), 1)
    }

    private mutating func settle() {
        if let last { domains[last.domain, default: 0] += last.count }
        last = nil
    }

    /// A domain, or a part of one, or a bucket of small domains.
    private struct Item {
        let entries: Int
        let target: Target

        enum Target {
            case domain(String)
            case part(Int)
            case bucket(Int)
        }
    }

    /// Packs the domains: the largest first, each into the shard with the fewest entries so far
    /// (Graham, 1969: at most 4/3 of the best possible).
    ///
    /// - Parameters:
    ///   - shards: their number.
    ///   - machines: the shards that run at the same time. A domain is split into as many parts as
    ///     fill them: parts that run one after another would have a part of the limits for nothing.
    ///   - lists: the counted lists, for the file.
    ///   - mostParts: into how many shards a domain may be split at most: beyond the limit of its
    ///     simultaneous transfers, a part would have none. Below 1 counts as 1.
    ///   - time: the time that earlier runs suggest for a number of requests to a domain; nil if
    ///     unknown.
    /// - Returns: the plan; the planner may count on.
    package mutating func plan(
        shards: Int, machines: Int? = nil, lists: [ShardPlan.List],
        mostParts: (String) -> Int,
        time: (String, Int) -> Duration? = { _, _ in nil }
    ) -> ShardPlan {
        settle()
        let items = items(shards: shards, machines: min(machines ?? shards, shards), mostParts)
        var packing = Packing(shards: shards)
        var (packed, buckets) = ([String: Int](), [Int](repeating: 0, count: items.buckets))
        var split = items.split.map { _ in [Int]() }
        var shardDomains = [[(String, Int)]](repeating: [], count: shards)
        // `sorted` is stable.
        for item in items.all.sorted(by: { $0.entries > $1.entries }) {
            switch item.target {
            case .domain(let domain):
                let shard = packing.place(item.entries)
                packed[domain] = shard
                shardDomains[shard].append((domain, item.entries))
            case .part(let number):
                // Two parts in one shard would have twice the limits there.
                let shard = packing.place(item.entries, except: split[number])
                split[number].append(shard)
                shardDomains[shard].append((items.split[number].domain, item.entries))
            case .bucket(let bucket):
                buckets[bucket] = packing.place(item.entries)
            }
        }
        return ShardPlan(
            shards: shards, entries: entries, lists: lists,
            split: zip(items.split, split).map {
                ShardPlan.Split(domain: $0.domain, entries: $0.entries, shards: $1.sorted())
            }, packed: packed, buckets: buckets, loads: packing.loads,
            times: ShardPlanner.times(
                shardDomains, items.split.map { ($0.domain, $0.parts) }, time))
    }

    private struct Items {
        var all: [Item] = []
        var split: [(domain: String, entries: Int, parts: Int)] = []
        let buckets: Int
    }

    private func items(shards: Int, machines: Int, _ mostParts: (String) -> Int) -> Items {
        let share = max(1, (entries + shards - 1) / shards)
        let machineShare = max(1, (entries + machines - 1) / machines)
        let small = max(1, share / ShardPlanner.smallPart)
        var items = Items(
            buckets: max(ShardPlanner.leastBuckets, ShardPlanner.bucketsPerShard * shards))
        var bucketSizes = [Int](repeating: 0, count: items.buckets)
        let hasher = SHA256Hasher()
        // In a fixed order, so that the plan depends on the lists alone.
        for (domain, count) in domains.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            var parts = min((count + machineShare - 1) / machineShare, shards)
            if parts > 1 { parts = min(parts, mostParts(domain)) }
            if parts > 1 {
                let part = Item(
                    entries: (count + parts - 1) / parts, target: .part(items.split.count))
                items.all += repeatElement(part, count: parts)
                items.split.append((domain, count, parts))
            } else if count > small {
                items.all.append(Item(entries: count, target: .domain(domain)))
            } else {
                var name = domain
                let bucket = name.withUTF8 {
                    ShardHash.place(
                        of: UnsafeRawBufferPointer($0), among: bucketSizes.count, hasher: hasher)
                }
                bucketSizes[bucket] += count
            }
        }
        for (bucket, count) in bucketSizes.enumerated() {
            items.all.append(Item(entries: count, target: .bucket(bucket)))
        }
        return items
    }

    /// The time of the slowest known domain of each shard; nil if none is known.
    private static func times(
        _ domains: [[(String, Int)]], _ parts: [(String, Int)], _ time: (String, Int) -> Duration?
    ) -> [Duration]? {
        let parts = Dictionary(uniqueKeysWithValues: parts)
        var isKnown = false
        let times = domains.map { domains in
            domains.reduce(Duration.zero) { slowest, domain in
                // A part has a part of the limits, so it takes as long as the whole domain would.
                guard let alone = time(domain.0, domain.1 * parts[domain.0, default: 1]) else {
                    return slowest
                }
                isKnown = true
                return max(slowest, alone)
            }
        }
        return isKnown ? times : nil
    }
}

private struct Packing {
    private struct Load: Comparable {
        var entries: Int
        let shard: Int

        static func < (left: Load, right: Load) -> Bool {
            (left.entries, left.shard) < (right.entries, right.shard)
        }
    }

    private var heap: Heap<Load>
    private(set) var loads: [Int]

    init(shards: Int) {
        heap = Heap((0..<shards).map { Load(entries: 0, shard: $0) })
        loads = [Int](repeating: 0, count: shards)
    }

    /// Adds entries to the shard with the fewest, and returns it; of several, the first.
    ///
    /// - Precondition: not all shards are `taken`.
    mutating func place(_ entries: Int, except taken: [Int] = []) -> Int {
        var skipped: [Load] = []
        var best = heap.removeMin()
        while taken.contains(best.shard) {
            skipped.append(best)
            best = heap.removeMin()
        }
        best.entries += entries
        loads[best.shard] = best.entries
        heap.insert(best)
        heap.insert(contentsOf: skipped)
        return best.shard
    }
}
