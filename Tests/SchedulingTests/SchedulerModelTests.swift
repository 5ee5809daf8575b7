import PrefetchModel
import Scheduling
import SeededRandom
import Testing

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
    let rules: HostPacing.Rules
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
        _ signal: HostPacing.Signal, host: Int, start: Int, at now: ContinuousClock.Instant
    ) {
        running[host, default: 0] -= 1
        pacing[host]?.finished(signal, start: start, at: now, rules)
        guard pacing[host]?.giveUpCause != nil else { return }
        wake { $0.host == host && $0.wakeTime != nil }
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

@Suite(.timeLimit(.minutes(5)))
struct SchedulerModelTests {
    /// Random pushes, starts and ends over random hosts, times and signals. After each step the
    /// scheduler agrees with the model: order, limits, cool-downs and giving up are exact, and no
    /// worker is idle while an entry is ready.
    @Test(arguments: StartOrder.allCases, [UInt64](1...30))
    func agreesWithASimpleModel(order: StartOrder, seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let rules = HostPacing.Rules(
            concurrency: Int.random(in: 1...3, using: &random),
            interval: [.zero, .seconds(1)].randomElement(using: &random) ?? .zero,
            longestCoolDown: .seconds(20), patience: .seconds(Int.random(in: 0...8, using: &random))
        )
        let storage = MemorySpill(capacity: [0, 5, .max].randomElement(using: &random) ?? 0)
        var scheduler = Scheduler(
            order: order, rules: rules, storage: storage,
            maximumActiveHosts: Int.random(in: 0...3, using: &random))
        var model = Model(order: order, rules: rules)
        var running: [(start: Scheduler.Start, number: Int, host: Int)] = []
        var now = ContinuousClock.now
        let hosts = Int.random(in: 1...6, using: &random)
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
                let number = pacing.started(at: now, rules)
                model.pacing[expected.host] = pacing
                model.running[expected.host, default: 0] += 1
                running.append((start, number, expected.host))
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
                    ended.host % 3 == 2
                    ? .unreachable(.connect) : signals.randomElement(using: &random) ?? .nothing
                scheduler.finished(ended.start.host, signal, at: now)
                model.finished(signal, host: ended.host, start: ended.number, at: now)
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
            #expect(scheduler.returnedInMemory <= max(0, storage.capacity))
        }
    }

    /// Entries that sleep or wait for their host: nothing is ready before the scheduler's wake
    /// time, and from one wake time to the next all start.
    @Test(arguments: [UInt64](1...20))
    func nothingIsReadyBeforeTheWakeTime(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var scheduler = Scheduler(
            order: .fifo,
            rules: HostPacing.Rules(concurrency: 2, interval: .milliseconds(700)),
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
