import PrefetchModel
import SeededRandom
import TestSupport
import Testing

@testable import Sharding

@Suite(.timeLimit(.minutes(15)))
struct ShardPlannerTests {
    init() throws {
        try RegistrableDomain.load()
    }

    private func add(_ url: String, to planner: inout ShardPlanner) {
        var url = url
        url.withUTF8 { planner.add(UnsafeRawBufferPointer($0)) }
    }

    /// The number of URLs of each shard, by the selector.
    private func loads(_ urls: [String], _ plan: ShardPlan) throws -> [Int] {
        let selector = ShardSelector(count: plan.shards, plan: plan)
        var loads = [Int](repeating: 0, count: plan.shards)
        for var url in urls {
            let shard = url.withUTF8 { bytes in
                let url = UnsafeRawBufferPointer(bytes)
                return selector.shard(of: url) { url }
            }
            loads[shard] += 1
        }
        return loads
    }

    /// Sizes of domains as in the web: the nth largest has 1/n of the largest.
    private func zipf(_ count: Int, domains: Int, seed: UInt64) -> [String] {
        var random = SplitMix(seed: seed)
        var urls: [String] = []
        for rank in 1...domains {
            let size = max(1, count / (rank * 8))
            urls += (0..<size).map { "https://img\($0 % 3).site\(rank).com/\($0).jpg" }
        }
        return urls.shuffled(using: &random)
    }

    @Test(arguments: [1, 3, 8, 50])
    func packsDomainsEvenly(_ shards: Int) throws {
        let urls = zipf(40_000, domains: 3_000, seed: 3)
        var planner = ShardPlanner()
        for url in urls { add(url, to: &planner) }
        let plan = planner.plan(shards: shards, lists: [], mostParts: { _ in 64 })
        #expect(plan.entries == urls.count)
        #expect(plan.loads.reduce(0, +) == urls.count + rounding(plan))
        let real = try loads(urls, plan)
        #expect(real.reduce(0, +) == urls.count)
        let share = Double(urls.count) / Double(shards)
        let largest = Double(real.max() ?? 0)
        // Parts of a domain are as even as a hash makes them.
        #expect(largest < share * 1.15 + 50, "\(real)")
    }

    /// Parts are rounded up.
    private func rounding(_ plan: ShardPlan) -> Int {
        plan.split.reduce(0) { sum, split in
            let parts = split.shards.count
            return sum + (split.entries + parts - 1) / parts * parts - split.entries
        }
    }

    @Test func splitsLargeDomainsIntoDifferentShards() throws {
        var planner = ShardPlanner()
        let urls =
            (0..<800).map { "https://big.com/\($0)" }
            + (0..<200).map { "https://small\($0).com/" }
        for url in urls { add(url, to: &planner) }
        var copy = planner
        let plan = planner.plan(shards: 10, lists: [], mostParts: { _ in 64 })
        let split = try #require(plan.split.first)
        #expect(plan.split.count == 1)
        #expect(split.domain == "big.com")
        #expect(split.entries == 800)
        #expect(split.shards.count == 8)
        #expect(Set(split.shards).count == 8)
        for shard in split.shards {
            #expect(plan.parts(of: shard).map(\.domain) == ["big.com"])
            #expect(plan.parts(of: shard).map(\.count) == [8])
        }
        let other = try #require((0..<10).first { !split.shards.contains($0) })
        #expect(plan.parts(of: other).isEmpty)
        // A host that takes two transfers has nothing for a third part.
        #expect(
            copy.plan(shards: 10, lists: [], mostParts: { _ in 2 }).split.first?.shards.count == 2)
        var whole = copy
        #expect(whole.plan(shards: 10, lists: [], mostParts: { _ in 1 }).split.isEmpty)
    }

    @Test func planDependsOnTheListsAlone() {
        let urls = zipf(2_000, domains: 200, seed: 9)
        let plans = [urls, urls.reversed(), urls.sorted()].map { urls in
            var planner = ShardPlanner()
            for url in urls { add(url, to: &planner) }
            return planner.plan(shards: 6, lists: [], mostParts: { _ in 6 })
        }
        #expect(plans[0] == plans[1])
        #expect(plans[0] == plans[2])
    }

    /// Parts that run one after another would have a part of the limits for nothing.
    @Test func fewerMachinesMakeFewerParts() {
        var planner = ShardPlanner()
        for index in 0..<500 { add("https://big.com/\(index)", to: &planner) }
        for index in 0..<500 { add("https://small\(index).com/", to: &planner) }
        var copy = planner
        let all = planner.plan(shards: 40, lists: [], mostParts: { _ in 64 })
        #expect(all.split.map(\.shards.count) == [20])
        let few = copy.plan(shards: 40, machines: 4, lists: [], mostParts: { _ in 64 })
        #expect(few.split.map(\.shards.count) == [2])
    }

    /// A part of a domain takes as long as the whole: it has a part of the limits.
    @Test func timeIsThatOfTheSlowestDomain() {
        var planner = ShardPlanner()
        for index in 0..<100 { add("https://slow.com/\(index)", to: &planner) }
        for index in 0..<900 { add("https://fast.com/\(index)", to: &planner) }
        let plan = planner.plan(
            shards: 2, lists: [], mostParts: { _ in 6 },
            time: { $0 == "slow.com" ? .seconds($1) : .milliseconds($1) })
        #expect(plan.split.map(\.domain) == ["fast.com"])
        #expect(plan.times?.max() == .seconds(100))
        #expect(plan.times?.min() == .milliseconds(900))
    }

    @Test func damagedPlansAreRefused() throws {
        let plan = ShardPlan(
            shards: 2, entries: 9,
            lists: [ShardPlan.List(name: "m", identity: .init(bytes: 9, digest: "ab"))],
            split: [ShardPlan.Split(domain: "big.com", entries: 4, shards: [0, 1])],
            packed: ["small.com": 1], buckets: [0, 1], loads: [4, 5],
            times: [.seconds(1), .seconds(2)])
        #expect(try ShardPlan(file: plan.file, name: "p") == plan)
        let text = String(decoding: plan.file, as: UTF8.self)
        let copies = DamagedJSON.copies(of: text)
        #expect(copies.count > 50)
        for copy in copies {
            #expect(throws: UserError.self, "\(copy)") {
                try ShardPlan(file: Array(copy.text.utf8), name: "p")
            }
        }
        for name in ["lists", "split", "packed", "buckets", "loads", "entries"] {
            let damaged = text.replacing("\"\(name)\":", with: "\"other\":")
            #expect(throws: UserError.self, "without \(name)") {
                try ShardPlan(file: Array(damaged.utf8), name: "p")
            }
        }
    }

    @Test func emptyListsHaveAPlan() throws {
        var planner = ShardPlanner()
        let plan = planner.plan(shards: 3, lists: [], mostParts: { _ in 6 })
        #expect(plan.loads == [0, 0, 0])
        #expect(try loads(["https://a.com/"], plan).reduce(0, +) == 1)
    }
}
