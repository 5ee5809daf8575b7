import PrefetchModel
import Scheduling
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SchedulerTests {
    private func drained(_ scheduler: inout Scheduler<Int>) -> [Int] {
        var order: [Int] = []
        while let start = scheduler.popReady() {
            order.append(start.entry)
            scheduler.finished(start.host)
        }
        return order
    }

    @Test(arguments: [(StartOrder.fifo, Array(0..<100)), (.lifo, (0..<100).reversed())])
    func startsInManifestOrderOrItsReverse(order: StartOrder, expected: [Int]) {
        var scheduler = Scheduler<Int>(order: order, hostConcurrency: 1)
        for entry in 0..<100 {
            scheduler.push(entry, priority: .normal, host: "http://\(entry % 7)")
        }
        #expect(drained(&scheduler) == expected)
        #expect(scheduler.isEmpty)
    }

    @Test(arguments: StartOrder.allCases)
    func startsHigherPrioritiesFirst(order: StartOrder) {
        var scheduler = Scheduler<Int>(order: order, hostConcurrency: 1)
        let priorities: [Priority] = [.low, .normal, .high]
        for entry in 0..<9 {
            scheduler.push(entry, priority: priorities[entry % 3], host: "http://a")
        }
        let expected = order == .fifo ? [2, 5, 8, 1, 4, 7, 0, 3, 6] : [8, 5, 2, 7, 4, 1, 6, 3, 0]
        #expect(drained(&scheduler) == expected)
    }

    @Test func startsTheNewestEntryNextThoughOlderOnesWait() {
        var scheduler = Scheduler<Int>(order: .lifo, hostConcurrency: 1)
        for entry in 0..<3 { scheduler.push(entry, priority: .normal, host: "http://a") }
        let first = scheduler.popReady()
        #expect(first?.entry == 2)
        scheduler.push(3, priority: .normal, host: "http://b")
        #expect(scheduler.popReady()?.entry == 3)
    }

    @Test func putsRetriesBehindFreshEntriesOfTheirPriority() {
        var scheduler = Scheduler<Int>(order: .lifo, hostConcurrency: 1)
        scheduler.push(0, priority: .normal, host: "http://a", standing: .retry)
        scheduler.push(1, priority: .normal, host: "http://a", standing: .retry)
        scheduler.push(2, priority: .normal, host: "http://a")
        scheduler.push(3, priority: .low, host: "http://a")
        #expect(drained(&scheduler) == [2, 0, 1, 3])
    }

    @Test func startsTheNextHopOfARedirectBeforeAllOthers() {
        var scheduler = Scheduler<Int>(order: .fifo, hostConcurrency: 1)
        scheduler.push(0, priority: .high, host: "http://a")
        scheduler.push(1, priority: .low, host: "http://a", standing: .next)
        #expect(drained(&scheduler) == [1, 0])
    }

    /// The fault of queues in which each new operation depends on all pending ones: the backlog
    /// would drain one by one.
    @Test(arguments: StartOrder.allCases)
    func givesEveryWorkerAnEntryWhileAnyWaits(order: StartOrder) {
        let workers = 8
        var scheduler = Scheduler<Int>(order: order, hostConcurrency: workers)
        for entry in 0..<10_000 { scheduler.push(entry, priority: .normal, host: "http://a") }
        var running: [Scheduler<Int>.Start] = []
        var started = 0
        while !scheduler.isEmpty {
            while running.count < workers, let start = scheduler.popReady() {
                running.append(start)
                started += 1
            }
            #expect(running.count == min(workers, 10_000 - (started - running.count)))
            // Whichever ends first: nothing waits for another entry.
            let ended = running.remove(at: started % running.count)
            scheduler.finished(ended.host)
        }
        #expect(started == 10_000)
    }

    @Test func entriesOfABusyHostDoNotHoldUpOthers() {
        var scheduler = Scheduler<Int>(order: .fifo, hostConcurrency: 2)
        for entry in 0..<1000 { scheduler.push(entry, priority: .high, host: "http://busy") }
        scheduler.push(1000, priority: .low, host: "http://other")
        let starts = (0..<3).compactMap { _ in scheduler.popReady() }
        #expect(starts.map(\.entry) == [0, 1, 1000])
        #expect(scheduler.popReady() == nil)
        #expect(!scheduler.hasReady)
        scheduler.finished(starts[1].host)
        #expect(scheduler.popReady()?.entry == 2)
    }

    @Test func removesEverythingThatWaitsAndKeepsCountOfWhatRuns() {
        var scheduler = Scheduler<Int>(order: .lifo, hostConcurrency: 1)
        for entry in 0..<5 { scheduler.push(entry, priority: .normal, host: "http://\(entry % 2)") }
        let start = scheduler.popReady()
        #expect(scheduler.removeAll().sorted() == [0, 1, 2, 3])
        #expect(scheduler.isEmpty)
        #expect(scheduler.running == 1)
        #expect(scheduler.popReady() == nil)
        if let start { scheduler.finished(start.host) }
        #expect(scheduler.running == 0)
        #expect(!scheduler.hasReady)
    }

    /// Against a model that keeps one list and looks through all of it.
    @Test(arguments: StartOrder.allCases, [UInt64](1...20))
    func agreesWithASimpleModel(order: StartOrder, seed: UInt64) {
        struct Item {
            let entry: Int
            let priority: Priority
            let standing: Int
            let host: Int
            let position: Int
        }
        var random = SplitMix(state: seed)
        let limit = Int.random(in: 1...3, using: &random)
        var scheduler = Scheduler<Int>(order: order, hostConcurrency: limit)
        var waiting: [Item] = []
        var running: [(start: Scheduler<Int>.Start, host: Int)] = []
        for entry in 0..<2000 {
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                let priority = [Priority.low, .normal, .high].randomElement(using: &random)!
                let standing = [1, 1, 1, 2, 0].randomElement(using: &random)!
                let host = Int.random(in: 0..<5, using: &random)
                let standings: [Scheduler<Int>.Standing] = [.next, .fresh, .retry]
                scheduler.push(
                    entry, priority: priority, host: "http://\(host)",
                    standing: standings[standing])
                let isReversed = standing == 1 && order == .lifo
                waiting.append(
                    Item(
                        entry: entry, priority: standing == 0 ? .high : priority,
                        standing: standing, host: host, position: isReversed ? -entry : entry))
            case 1:
                let ready = waiting.filter { item in
                    running.count { $0.host == item.host } < limit
                }
                let expected = ready.min { left, right in
                    let isNext = (left.standing == 0, right.standing == 0)
                    if isNext.0 != isNext.1 { return isNext.0 }
                    return (-Int(left.priority.value), left.standing, left.position)
                        < (-Int(right.priority.value), right.standing, right.position)
                }
                let start = scheduler.popReady()
                #expect(start?.entry == expected?.entry, "seed \(seed)")
                if let start, let expected {
                    running.append((start, expected.host))
                    waiting.removeAll { $0.entry == expected.entry }
                }
            default:
                guard !running.isEmpty else { continue }
                let ended = running.remove(at: Int.random(in: 0..<running.count, using: &random))
                scheduler.finished(ended.start.host)
            }
            #expect(scheduler.count == waiting.count, "seed \(seed)")
            #expect(scheduler.running == running.count, "seed \(seed)")
        }
    }
}
