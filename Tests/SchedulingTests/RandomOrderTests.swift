import PrefetchModel
import Scheduling
import Testing

@Suite(.timeLimit(.minutes(15)))
struct RandomOrderTests {
    private func starts(
        seed: UInt64, entries: Int, hosts: Int, capacity: Int = .max
    ) throws -> (order: [Int], spill: MemorySpill) {
        let storage = MemorySpill(capacity: capacity)
        var scheduler = Scheduler(
            order: .random(seed: seed), rules: HostPacing.PaceRules(concurrency: 1),
            storage: storage,
            maximumActiveHosts: 0)
        // Sorted by host, as many lists are.
        for entry in 0..<entries {
            try scheduler.push(
                entry, priority: .normal, host: "http://\(entry * hosts / entries)", at: epoch)
            #expect(scheduler.countInMemory <= capacity)
        }
        #expect(scheduler.count == entries)
        var order: [Int] = []
        while let start = try scheduler.popReady(at: epoch) {
            order.append(start.entry)
            scheduler.finished(start.host, .answered, at: epoch)
        }
        return (order, storage)
    }

    @Test(arguments: [1, 7, 64], [1, 10, 1000, Int.max])
    func startsEachEntryOnce(hosts: Int, capacity: Int) throws {
        let (order, storage) = try starts(
            seed: 3, entries: 2000, hosts: hosts, capacity: capacity)
        #expect(order.sorted() == Array(0..<2000))
        #expect(storage.living == 0)
        #expect(order != Array(0..<2000))
    }

    @Test func seedsDecideTheOrder() throws {
        let first = try starts(seed: 1, entries: 500, hosts: 5, capacity: 100).order
        #expect(try starts(seed: 1, entries: 500, hosts: 5, capacity: 100).order == first)
        #expect(try starts(seed: 2, entries: 500, hosts: 5, capacity: 100).order != first)
    }

    /// The first starts are a sample of the whole list: each tenth of it has a tenth of them.
    @Test(arguments: [Int.max, 1000])
    func firstStartsAreSpreadOverTheList(capacity: Int) throws {
        let entries = 20_000
        let order = try starts(seed: 5, entries: entries, hosts: 10, capacity: capacity).order
        var counts = [Int](repeating: 0, count: 10)
        for entry in order.prefix(400) { counts[entry * 10 / entries] += 1 }
        // 40 each; six standard deviations are 36.
        #expect(counts.allSatisfy { (4...76).contains($0) }, "\(counts)")
    }

    @Test func prioritiesComeFirst() throws {
        var scheduler = Scheduler(
            order: .random(seed: 1), rules: HostPacing.PaceRules(concurrency: 1),
            storage: MemorySpill(capacity: 10), maximumActiveHosts: 0)
        for entry in 0..<90 {
            try scheduler.push(
                entry, priority: entry % 3 == 0 ? .high : .normal, host: "http://a", at: epoch)
        }
        var order: [Int] = []
        while let start = try scheduler.popReady(at: epoch) {
            order.append(start.entry)
            scheduler.finished(start.host, .answered, at: epoch)
        }
        #expect(order.prefix(30).allSatisfy { $0 % 3 == 0 })
        #expect(order.sorted() == Array(0..<90))
    }

    /// A full disk loses the order, but no entry.
    @Test func everyEntryStaysWhenNothingCanBeSpilled() throws {
        let storage = MemorySpill(capacity: 20)
        var scheduler = Scheduler(
            order: .random(seed: 1), rules: HostPacing.PaceRules(concurrency: 1), storage: storage,
            maximumActiveHosts: 0)
        storage.space = 30
        var failures = 0
        for entry in 0..<100 {
            do {
                try scheduler.push(
                    entry, priority: .normal, host: "http://\(entry % 3)", at: epoch)
            } catch {
                failures += 1
            }
        }
        #expect(failures > 0)
        var order: [Int] = []
        while let start = try scheduler.popReady(at: epoch) {
            order.append(start.entry)
            scheduler.finished(start.host, .answered, at: epoch)
        }
        #expect(order.sorted() == Array(0..<100))
    }
}
