import PrefetchModel
import SeededRandom
import Testing

@testable import Scheduling

/// A scheduler with one list of waiting entries, which it searches completely.
private struct Model {
    struct Item {
        let entry: Int
        let host: Int
        let priority: Priority
        /// 0 next, 1 fresh, 2 retry.
        let rank: Int
        /// The place within its priority and rank; set again when it wakes.
        var position: Int
        var wakeTime: ContinuousClock.Instant?
    }

    let order: StartOrder
    let rules: HostPacing.PaceRules
    var waiting: [Item] = []
    var running: [Int: Int] = [:]
    var pacing: [Int: HostPacing] = [:]
    var positions = 0

    mutating func push(_ item: Item) {
        positions += 1
        var item = item
        item.position = item.rank == 1 && order == .lifo ? -positions : positions
        if pacing[item.host]?.giveUpCause != nil { item.wakeTime = nil }
        waiting.append(item)
    }

    /// Gives entries their place when their time has arrived, in the order of their times.
    mutating func wake(at now: ContinuousClock.Instant) {
        wake { item in item.wakeTime.map { $0 <= now } ?? false }
    }

    /// Notes the end of a request; entries of a host that is given up sleep no longer.
    mutating func finished(
        _ signal: HostPacing.Signal, _ observation: HostPacing.Observation, _ item: Item,
        start: HostPacing.NumberedStart, at now: ContinuousClock.Instant
    ) -> Bool {
        let host = item.host
        running[host, default: 0] -= 1
        let cause = pacing[host]?.finished(
            signal, observation, start: start, running: running[host] ?? 0, at: now, rules)
        if pacing[host]?.giveUpCause != nil { wake { $0.host == host && $0.wakeTime != nil } }
        return cause == .pace
    }

    private mutating func wake(_ isDue: (Item) -> Bool) {
        let due = waiting.indices
            .filter { isDue(waiting[$0]) }
            .sorted {
                guard let first = waiting[$0].wakeTime, let second = waiting[$1].wakeTime else {
                    return false
                }
                return (first, waiting[$0].position) < (second, waiting[$1].position)
            }
        for index in due {
            positions += 1
            waiting[index].position = positions
            waiting[index].wakeTime = nil
        }
    }

    private func isFirst(_ left: Item, _ right: Item) -> Bool {
        if (left.rank == 0) != (right.rank == 0) { return left.rank == 0 }
        if left.rank == 0 { return left.position < right.position }
        return (-Int(left.priority.value), left.rank, left.position)
            < (-Int(right.priority.value), right.rank, right.position)
    }

    func first(at now: ContinuousClock.Instant) -> Item? {
        waiting.filter { item in
            guard item.wakeTime == nil else { return false }
            let pacing = pacing[item.host] ?? HostPacing(rules)
            return pacing.giveUpCause == nil && pacing.hasRoom(running: running[item.host] ?? 0)
                && (pacing.wakeTime.map { $0 <= now } ?? true)
        }.min(by: isFirst)
    }

    func firstGivenUp() -> Item? {
        waiting.filter { $0.wakeTime == nil && pacing[$0.host]?.giveUpCause != nil }
            .min(by: isFirst)
    }
}

@Suite(.timeLimit(.minutes(15)))
struct SchedulerModelTests {
    /// Random pushes, starts and ends over random hosts, times and signals. After each step the
    /// scheduler agrees with the model: order, limits, cool-downs and giving up are exact, and no
    /// worker is idle while an entry is ready.
    @Test(arguments: [StartOrder.fifo, .lifo], [UInt64](1...30))
    func agreesWithASimpleModel(order: StartOrder, seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let isAdaptive = seed % 2 == 0
        let rules = HostPacing.PaceRules(
            concurrency: Int.random(in: 1...(isAdaptive ? 12 : 3), using: &random),
            firstConcurrency: isAdaptive ? 3 : nil, isAdaptive: isAdaptive,
            interval: [.zero, .seconds(1)].randomElement(using: &random) ?? .zero,
            longestCoolDown: .seconds(20), patience: .seconds(Int.random(in: 0...8, using: &random))
        )
        let capacity = [0, 5, .max].randomElement(using: &random) ?? 0
        // An entry that is put back does not wait for newer ones that have been spilled.
        let storage = MemorySpill(capacity: isAdaptive && order == .lifo ? .max : capacity)
        var scheduler = Scheduler(
            order: order, rules: rules, storage: storage,
            // Packed hosts lose the present round of adaptive pacing.
            maximumActiveHosts: isAdaptive ? .max : Int.random(in: 0...3, using: &random))
        var model = Model(order: order, rules: rules)
        var running:
            [(start: Scheduler.Start, number: HostPacing.NumberedStart, item: Model.Item)] = []
        var now = ContinuousClock.now
        let hosts = Int.random(in: 1...6, using: &random)
        // An entry that sleeps throughout keeps its host; its pace would be forgotten otherwise.
        for host in 0..<(isAdaptive ? hosts : 0) {
            let item = Model.Item(
                entry: -1 - host, host: host, priority: .normal, rank: 2, position: 0,
                wakeTime: now + .seconds(1_000_000))
            try scheduler.push(
                item.entry, priority: .normal, host: "http://\(host)", placement: .retry,
                notBefore: item.wakeTime, at: now)
            model.push(item)
        }
        for entry in 0..<1500 {
            switch Int.random(in: 0..<8, using: &random) {
            case 0...2:
                let rank = [1, 1, 1, 2, 0].randomElement(using: &random) ?? 1
                let item = Model.Item(
                    entry: entry, host: Int.random(in: 0..<hosts, using: &random),
                    priority: [.low, .normal, .high].randomElement(using: &random) ?? .normal,
                    rank: rank, position: 0,
                    wakeTime: rank == 2 && Bool.random(using: &random)
                        ? now + .seconds(Double.random(in: 0.5...9, using: &random)) : nil)
                let placements: [Scheduler.Placement] = [.next, .firstTurn, .retry]
                try scheduler.push(
                    entry, priority: item.priority, host: "http://\(item.host)",
                    placement: placements[rank], notBefore: item.wakeTime, at: now)
                model.push(item)
            case 3, 4:
                model.wake(at: now)
                let expected = model.first(at: now)
                let start = try scheduler.popReady(at: now)
                #expect(start?.entry == expected?.entry, "seed \(seed), step \(entry)")
                guard let start, let expected else { continue }
                var pacing = model.pacing[expected.host] ?? HostPacing(rules)
                let number = pacing.started(
                    at: now, running: model.running[expected.host] ?? 0, rules)
                model.pacing[expected.host] = pacing
                model.running[expected.host, default: 0] += 1
                running.append((start, number, expected))
                model.waiting.removeAll { $0.entry == expected.entry }
                #expect((model.running[expected.host] ?? 0) <= rules.concurrency)
            case 5, 6:
                guard !running.isEmpty else { continue }
                let ended = running.remove(at: Int.random(in: 0..<running.count, using: &random))
                let signals: [HostPacing.Signal] = [
                    .answered, .answered, .nothing, .unreachable(.connect), .unreachable(.connect),
                    .overloaded(retryAfter: nil),
                    .overloaded(retryAfter: .seconds(Int.random(in: 0...30, using: &random))),
                ]
                // Some hosts always fail, otherwise ten failures in a row never occur.
                let signal =
                    ended.item.host % 3 == 2
                    ? .unreachable(.connect) : signals.randomElement(using: &random) ?? .nothing
                let observation = HostPacing.Observation(
                    latency: .milliseconds(Int.random(in: 1...200, using: &random)),
                    quota: Bool.random(using: &random)
                        ? nil
                        : (
                            remaining: Int.random(in: 0...50, using: &random), reset: .seconds(5)
                        ),
                    isRepeated: Bool.random(using: &random))
                let isForPace =
                    scheduler.finished(ended.start.host, of: "", signal, observation, at: now)
                    == .pace
                #expect(
                    isForPace
                        == model.finished(
                            signal, observation, ended.item, start: ended.number, at: now))
                if isForPace {
                    scheduler.putBack(ended.start, at: now)
                    model.waiting.append(ended.item)
                }
            default:
                now += .seconds(Double.random(in: 0...3, using: &random))
                model.wake(at: now)
                _ = scheduler.hasReady(at: now)
                while let expected = model.firstGivenUp() {
                    let given = try scheduler.popGivenUp(at: now)
                    #expect(given?.entry == expected.entry, "seed \(seed), step \(entry)")
                    model.waiting.removeAll { $0.entry == expected.entry }
                }
                #expect(try scheduler.popGivenUp(at: now)?.entry == nil)
            }
            #expect(scheduler.count == model.waiting.count, "seed \(seed), step \(entry)")
            #expect(scheduler.running == running.count, "seed \(seed), step \(entry)")
            #expect(storage.living <= scheduler.count)
            if !isAdaptive { #expect(scheduler.returnedInMemory <= max(0, storage.capacity)) }
        }
        scheduler.dropSpilled()
        let isReady = scheduler.hasReady(at: now)
        #expect(!isReady)
        var removed: [Int] = []
        while let entry = try scheduler.removeNext() { removed.append(entry) }
        #expect(
            removed.sorted()
                == model.waiting.map(\.entry).filter { !storage.spilled.contains($0) }.sorted())
        #expect(scheduler.isEmpty && scheduler.running == running.count)
    }

    /// Entries that sleep or wait for their host: nothing is ready before the scheduler's wake
    /// time, and from one wake time to the next all start.
    @Test(arguments: [UInt64](1...20))
    func nothingIsReadyBeforeTheWakeTime(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var scheduler = Scheduler(
            order: .fifo,
            rules: HostPacing.PaceRules(concurrency: 2, interval: .milliseconds(700)),
            storage: MemorySpill())
        var now = ContinuousClock.now
        for entry in 0..<200 {
            let isSleeping = Bool.random(using: &random)
            try scheduler.push(
                entry, priority: .normal, host: "http://\(entry % 5)",
                placement: isSleeping ? .retry : .firstTurn,
                notBefore: isSleeping
                    ? now + .seconds(Double.random(in: 0...100, using: &random)) : nil,
                at: now)
        }
        var started = 0
        while started < 200 {
            while let start = try scheduler.popReady(at: now) {
                scheduler.finished(start.host, .answered, at: now)
                started += 1
            }
            guard started < 200 else { break }
            let wakeTime = try #require(scheduler.nextWakeTime, "seed \(seed)")
            #expect(wakeTime > now, "seed \(seed)")
            let isReady = scheduler.hasReady(at: wakeTime - .nanoseconds(1))
            #expect(!isReady, "seed \(seed)")
            now = wakeTime
        }
        #expect(scheduler.nextWakeTime == nil)
    }
}
