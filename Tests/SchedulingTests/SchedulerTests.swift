import PrefetchModel
import Scheduling
import SeededRandom
import Testing

extension Scheduler {
    fileprivate init(
        _ order: StartOrder, hostConcurrency: Int = 1, interval: Duration = .zero,
        storage: MemorySpill = MemorySpill(), maximumActiveHosts: Int = 0
    ) {
        self.init(
            order: order,
            rules: HostPacing.PaceRules(concurrency: hostConcurrency, interval: interval),
            storage: storage, maximumActiveHosts: maximumActiveHosts)
    }

    fileprivate mutating func add(
        _ entry: Int, _ priority: Priority = .normal, host: String = "http://a",
        _ placement: Placement = .firstTurn, notBefore: ContinuousClock.Instant? = nil,
        at now: ContinuousClock.Instant = epoch
    ) throws {
        try push(
            entry, priority: priority, host: host, placement: placement, notBefore: notBefore,
            at: now)
    }

    /// Starts and finishes all ready entries, one after the other.
    fileprivate mutating func drained(at now: ContinuousClock.Instant = epoch) throws -> [Int] {
        var order: [Int] = []
        while let start = try popReady(at: now) {
            order.append(start.entry)
            finished(start.host, .answered, at: now)
        }
        return order
    }
}

@Suite(.timeLimit(.minutes(15)))
struct SchedulerTests {
    @Test(arguments: [0, 4096])
    func hostsMayHaveRulesOfTheirOwn(maximumActiveHosts: Int) throws {
        let pattern = try #require(HostPattern("*.slow"))
        var scheduler = Scheduler(
            order: .fifo, rules: HostPacing.PaceRules(concurrency: 3),
            rulesByHost: HostTable([
                (pattern, HostPacing.PaceRules(concurrency: 1, interval: .seconds(5)))
            ]), storage: MemorySpill(), maximumActiveHosts: maximumActiveHosts)
        for entry in 0..<12 {
            try scheduler.add(entry, host: entry % 2 == 0 ? "http://a.slow:81" : "http://b")
        }
        var started: [Int] = []
        while let start = try scheduler.popReady(at: epoch) { started.append(start.entry) }
        #expect(started.sorted() == [0, 1, 3, 5])
        #expect(scheduler.pace(of: "http://a.slow:81").concurrency == 1)
        #expect(scheduler.pace(of: "http://b").concurrency == 3)
    }

    @Test func rulesOfAHostAreForgottenWithIt() throws {
        let pattern = try #require(HostPattern("a"))
        var scheduler = Scheduler(
            order: .fifo, rules: HostPacing.PaceRules(concurrency: 2),
            rulesByHost: HostTable([(pattern, HostPacing.PaceRules(concurrency: 1))]),
            storage: MemorySpill(), maximumActiveHosts: 0)
        try scheduler.add(0, host: "http://a")
        #expect(try scheduler.drained() == [0])
        #expect(scheduler.hostCount == 0)
        // The next host takes the number of the first.
        for entry in 1...3 { try scheduler.add(entry, host: "http://b") }
        var started: [Int] = []
        while let start = try scheduler.popReady(at: epoch) { started.append(start.entry) }
        #expect(started == [1, 2])
    }

    @Test(arguments: [(StartOrder.fifo, Array(0..<100)), (.lifo, (0..<100).reversed())])
    func startsInManifestOrderOrItsReverse(order: StartOrder, expected: [Int]) throws {
        var scheduler = Scheduler(order)
        for entry in 0..<100 { try scheduler.add(entry, host: "http://\(entry % 7)") }
        #expect(try scheduler.drained() == expected)
        #expect(scheduler.isEmpty)
    }

    @Test(arguments: [StartOrder.fifo, .lifo])
    func startsHigherPrioritiesFirst(order: StartOrder) throws {
        var scheduler = Scheduler(order)
        let priorities: [Priority] = [.low, .normal, .high]
        for entry in 0..<9 { try scheduler.add(entry, priorities[entry % 3]) }
        let expected = order == .fifo ? [2, 5, 8, 1, 4, 7, 0, 3, 6] : [8, 5, 2, 7, 4, 1, 6, 3, 0]
        #expect(try scheduler.drained() == expected)
    }

    @Test func lifoStartsNewestEntryFirst() throws {
        var scheduler = Scheduler(.lifo)
        for entry in 0..<3 { try scheduler.add(entry) }
        let first = try scheduler.popReady(at: epoch)
        #expect(first?.entry == 2)
        try scheduler.add(3, host: "http://b")
        #expect(try scheduler.popReady(at: epoch)?.entry == 3)
    }

    @Test func retriesFollowFreshEntriesOfTheirPriority() throws {
        var scheduler = Scheduler(.lifo)
        try scheduler.add(0, .normal, .retry)
        try scheduler.add(1, .normal, .retry)
        try scheduler.add(2)
        try scheduler.add(3, .low)
        #expect(try scheduler.drained() == [2, 0, 1, 3])
    }

    @Test func nextHopOfRedirectStartsFirst() throws {
        var scheduler = Scheduler(.fifo)
        try scheduler.add(0, .high)
        try scheduler.add(1, .low, .next)
        #expect(try scheduler.drained() == [1, 0])
    }

    /// In queues where each new operation depends on all pending ones, the backlog would drain one
    /// by one.
    @Test(arguments: [StartOrder.fifo, .lifo])
    func everyWorkerHasAnEntryWhileAnyWaits(order: StartOrder) throws {
        let workers = 8
        var scheduler = Scheduler(order, hostConcurrency: workers)
        for entry in 0..<10_000 { try scheduler.add(entry) }
        var running: [Scheduler.Start] = []
        var started = 0
        while !scheduler.isEmpty {
            while running.count < workers, let start = try scheduler.popReady(at: epoch) {
                running.append(start)
                started += 1
            }
            #expect(running.count == min(workers, 10_000 - (started - running.count)))
            // Whichever ends first: no entry waits for another.
            let ended = running.remove(at: started % running.count)
            scheduler.finished(ended.host, .answered, at: epoch)
        }
        #expect(started == 10_000)
    }

    @Test func busyHostDoesNotDelayOthers() throws {
        var scheduler = Scheduler(.fifo, hostConcurrency: 2)
        for entry in 0..<1000 { try scheduler.add(entry, .high, host: "http://busy") }
        try scheduler.add(1000, .low, host: "http://other")
        let starts = try (0..<3).compactMap { _ in try scheduler.popReady(at: epoch) }
        #expect(starts.map(\.entry) == [0, 1, 1000])
        #expect(try scheduler.popReady(at: epoch) == nil)
        scheduler.finished(starts[1].host, .answered, at: epoch)
        #expect(try scheduler.popReady(at: epoch)?.entry == 2)
    }

    @Test func removesAllWaitingEntriesAndCountsRunning() throws {
        var scheduler = Scheduler(.lifo, storage: MemorySpill(capacity: 2))
        for entry in 0..<5 { try scheduler.add(entry, host: "http://\(entry % 2)") }
        try scheduler.add(5, .normal, .retry, notBefore: at(100))
        let start = try scheduler.popReady(at: epoch)
        var removed: [Int] = []
        while let entry = try scheduler.removeNext() { removed.append(entry) }
        #expect(removed.sorted() == [0, 1, 2, 3, 5])
        #expect(scheduler.isEmpty)
        #expect(scheduler.nextWakeTime == nil)
        #expect(scheduler.running == 1)
        #expect(try scheduler.popReady(at: at(200)) == nil)
        if let start { scheduler.finished(start.host, .answered, at: at(200)) }
        #expect(scheduler.running == 0)
        let hasReady = scheduler.hasReady(at: at(200))
        #expect(!hasReady)
    }

    // MARK: Time

    @Test func intervalSeparatesStartsOfAHost() throws {
        var scheduler = Scheduler(.fifo, hostConcurrency: 8, interval: .seconds(2))
        for entry in 0..<3 { try scheduler.add(entry) }
        try scheduler.add(3, host: "http://b")
        #expect(try scheduler.popReady(at: at(0))?.entry == 0)
        #expect(try scheduler.popReady(at: at(0))?.entry == 3)
        #expect(try scheduler.popReady(at: at(1.9)) == nil)
        #expect(scheduler.nextWakeTime == at(2))
        #expect(try scheduler.popReady(at: at(2.5))?.entry == 1)
        #expect(scheduler.nextWakeTime == at(4.5))
        #expect(try scheduler.popReady(at: at(4.4)) == nil)
        #expect(try scheduler.popReady(at: at(4.5))?.entry == 2)
    }

    @Test func sleepingEntryDoesNotDelayOthers() throws {
        var scheduler = Scheduler(.fifo)
        try scheduler.add(0, .high, .retry, notBefore: at(5))
        try scheduler.add(1, .low)
        #expect(try scheduler.drained(at: at(0)) == [1])
        #expect(scheduler.count == 1)
        #expect(scheduler.nextWakeTime == at(5))
        #expect(try scheduler.drained(at: at(4.9)).isEmpty)
        #expect(try scheduler.drained(at: at(5)) == [0])
    }

    @Test func pausingHostKeepsItsPlace() throws {
        var scheduler = Scheduler(.fifo)
        for entry in 0..<3 { try scheduler.add(entry, .high) }
        for entry in 3..<6 { try scheduler.add(entry, host: "http://b") }
        let first = try #require(try scheduler.popReady(at: at(0)))
        scheduler.finished(first.host, .overloaded(retryAfter: .seconds(60)), at: at(0))
        #expect(try scheduler.drained(at: at(1)) == [3, 4, 5])
        #expect(scheduler.nextWakeTime == at(60))
        try scheduler.add(6, .low, host: "http://b", at: at(60))
        #expect(try scheduler.popReady(at: at(60))?.entry == 1)
    }

    @Test func tooLongRetryAfterGivesHostUp() throws {
        var scheduler = Scheduler(.fifo)
        for entry in 0..<3 { try scheduler.add(entry) }
        try scheduler.add(3, host: "http://b")
        let first = try #require(try scheduler.popReady(at: at(0)))
        scheduler.finished(first.host, .overloaded(retryAfter: .seconds(301)), at: at(0))
        #expect(try scheduler.drained(at: at(400)) == [3])
        #expect(scheduler.nextWakeTime == nil)
        var ended: [Int] = []
        while let (entry, _, cause) = try scheduler.popGivenUp(at: at(1)) {
            #expect(cause == .coolingDown(until: Moment(at(301))))
            ended.append(entry)
        }
        #expect(ended == [1, 2])
        #expect(scheduler.isEmpty)
        // Later entries share it.
        try scheduler.add(4, at: at(2))
        #expect(try scheduler.popReady(at: at(2)) == nil)
        #expect(try scheduler.popGivenUp(at: at(2))?.entry == 4)
    }

    @Test func hostKnowledgePassesToTheNextRun() throws {
        var scheduler = Scheduler(.fifo, hostConcurrency: 8)
        for host in ["http://slow", "http://good", "http://cooling"] {
            try scheduler.add(0, host: host)
        }
        let signals: [(String, HostPacing.Signal)] = [
            ("http://slow", .overloaded(retryAfter: nil)), ("http://good", .answered),
            ("http://cooling", .overloaded(retryAfter: .seconds(600))),
        ]
        for (host, signal) in signals {
            let start = try #require(try scheduler.popReady(at: at(0)))
            scheduler.finished(start.host, of: host, signal, at: at(0))
        }
        let (memories, forgotten) = scheduler.memories(at: at(1))
        #expect(forgotten.isEmpty)
        #expect(Set(memories.keys) == ["http://slow", "http://cooling"])
        #expect(memories["http://slow"]?.concurrency == 4)
        #expect(memories["http://cooling"]?.coolingUntil == at(600))

        var next = Scheduler(.fifo, hostConcurrency: 8)
        for (host, memory) in memories { next.recall(memory, of: host) }
        // Hosts without a request in this run keep their state.
        #expect(next.memories(at: at(100)) == ([:], []))
        try next.add(0, host: "http://cooling", at: at(100))
        #expect(try next.popReady(at: at(100)) == nil)
        #expect(try next.popGivenUp(at: at(100))?.entry == 0)
        for entry in 0..<8 { try next.add(entry, host: "http://slow", at: at(100)) }
        var uses: [Scheduler.HostTurn] = []
        while let start = try next.popReady(at: at(100)) { uses.append(start.host) }
        #expect(uses.count == 4)
        for use in uses { next.finished(use, .answered, at: at(101)) }
        for _ in 0..<30 {
            try next.add(9, host: "http://slow", at: at(101))
            _ = try next.drained(at: at(101))
        }
        // Expired knowledge is forgotten; the other host was halved too, and had no time to
        // recover.
        #expect(next.memories(at: at(1000)).forgotten == ["http://slow"])
        #expect(next.memories(at: at(1000)).known.map(\.value.coolingUntil) == [nil])
    }

    // MARK: Spilling

    @Test(arguments: [StartOrder.fifo, .lifo], [1, 7, 100])
    func orderIsExactWithSpilledEntries(order: StartOrder, capacity: Int) throws {
        let storage = MemorySpill(capacity: capacity)
        var scheduler = Scheduler(order, storage: storage)
        let priorities: [Priority] = [.low, .normal, .high]
        for entry in 0..<3000 {
            try scheduler.add(entry, priorities[entry % 3], host: "http://\(entry % 11)")
            #expect(scheduler.countInMemory <= capacity)
        }
        #expect(storage.spills >= 2900)
        let entries = order == .fifo ? Array(0..<3000) : (0..<3000).reversed()
        let expected = [2, 1, 0].flatMap { rest in entries.filter { $0 % 3 == rest } }
        #expect(try scheduler.drained() == expected)
        #expect(storage.living == 0)
    }

    @Test func spillsEachEntryAtMostOnce() throws {
        for order in [StartOrder.fifo, .lifo] {
            let storage = MemorySpill(capacity: 10)
            var scheduler = Scheduler(order, storage: storage)
            for entry in 0..<10_000 { try scheduler.add(entry, host: "http://\(entry % 3)") }
            #expect(storage.spills <= 10_000)
        }
    }

    @Test(arguments: [StartOrder.fifo, .lifo], [false, true])
    func fullDiskLosesNoEntry(order: StartOrder, isForLinks: Bool) throws {
        let storage = MemorySpill(capacity: 5)
        if isForLinks, order == .fifo { storage.linkSpace = 40 } else { storage.space = 40 }
        var scheduler = Scheduler(order, storage: storage)
        var pushed = 0
        #expect(throws: MemorySpill.Full.self) {
            for entry in 0..<100 {
                pushed += 1
                try scheduler.add(entry, host: "http://\(entry % 3)")
            }
        }
        #expect(pushed > 40)
        #expect(storage.spilled.count + scheduler.countInMemory == pushed)
        var removed: [Int] = []
        while let entry = try scheduler.removeNext() { removed.append(entry) }
        #expect(removed.sorted() == Array(0..<pushed))
        #expect(scheduler.isEmpty)
    }

    /// Only the rest of that queue is lost.
    @Test(arguments: [StartOrder.fifo, .lifo])
    func unreadableRecordLosesTheRestOfItsQueue(order: StartOrder) throws {
        let storage = MemorySpill(capacity: 30)
        var scheduler = Scheduler(order, storage: storage)
        for entry in 0..<300 { try scheduler.add(entry, host: "http://\(entry % 3)") }
        let damaged = 151
        storage.unreadable = [damaged]
        var removed: [Int] = []
        var errors = 0
        while true {
            do {
                guard let entry = try scheduler.removeNext() else { break }
                removed.append(entry)
            } catch {
                errors += 1
            }
        }
        #expect(errors == 1)
        #expect(scheduler.isEmpty)
        let lost = (0..<300).filter {
            $0 % 3 == damaged % 3 && (order == .fifo ? $0 >= damaged : $0 <= damaged)
        }
        #expect(removed.sorted() == (0..<300).filter { !lost.contains($0) })
        #expect(storage.spilled.sorted() == lost)
    }

    /// So each block of a file is read once, however many hosts there are.
    @Test(arguments: [StartOrder.fifo, .lifo])
    func removalFollowsTheOrderOfPushes(order: StartOrder) throws {
        var scheduler = Scheduler(order, storage: MemorySpill(capacity: 10))
        for entry in 0..<1000 { try scheduler.add(entry, host: "http://\(entry % 70)") }
        try scheduler.add(1000, .high, host: "http://70")
        var removed: [Int] = []
        while let entry = try scheduler.removeNext() {
            removed.append(entry)
            let isReady = scheduler.hasReady(at: at(0))
            #expect(!isReady)
        }
        let rest = order == .fifo ? Array(0..<1000) : (0..<1000).reversed()
        #expect(removed == [1000] + rest)
    }

    @Test func finishedHostsAreRemovedAfterTheirInterval() throws {
        var scheduler = Scheduler(.fifo, interval: .seconds(1))
        for entry in 0..<1000 {
            let now = at(Double(entry))
            try scheduler.add(entry, host: "http://\(entry)", at: now)
            let start = try #require(try scheduler.popReady(at: now))
            scheduler.finished(start.host, .answered, at: now)
            #expect(scheduler.hostCount <= 2)
        }
    }

    /// A list of a million hosts must leave memory for the pictures.
    @Test(arguments: [StartOrder.fifo, .lifo], [1, 2])
    func idleHostsArePacked(order: StartOrder, entriesOfEach: Int) throws {
        let hosts = 20_000
        let storage = MemorySpill(capacity: 10)
        var scheduler = Scheduler(order, storage: storage, maximumActiveHosts: 50)
        for entry in 0..<(hosts * entriesOfEach) {
            try scheduler.add(entry, host: "http://\(entry % hosts)")
            #expect(scheduler.activeHostCount <= 62)
        }
        #expect(scheduler.hostCount == hosts)
        var started: [Int] = []
        while let start = try scheduler.popReady(at: epoch) {
            started.append(start.entry)
            // Each has failed, and that must still affect the next entry.
            scheduler.finished(start.host, .unreachable(.connect), at: epoch)
            #expect(scheduler.activeHostCount <= 62)
        }
        let all = Array(0..<(hosts * entriesOfEach))
        #expect(started == (order == .fifo ? all : all.reversed()))
        #expect(scheduler.hostCount == hosts)
        // Responses end it.
        for host in 0..<hosts { try scheduler.add(host, host: "http://\(host)") }
        _ = try scheduler.drained()
        #expect(scheduler.hostCount == 0)
        #expect(scheduler.activeHostCount == 0)
    }

    @Test func packingKeepsHostKnowledge() throws {
        var packed = Scheduler(
            .fifo, hostConcurrency: 8, interval: .seconds(1), storage: MemorySpill(capacity: 0))
        var unpacked = Scheduler(
            .fifo, hostConcurrency: 8, interval: .seconds(1), maximumActiveHosts: .max)
        var random = SplitMix(seed: 1)
        let signals: [HostPacing.Signal] = [
            .answered, .brokeOff, .unreachable(.dns), .unreachable(.timeout),
            .overloaded(retryAfter: nil), .overloaded(retryAfter: .seconds(5)),
            .overloaded(retryAfter: .seconds(1000)),
        ]
        func step(_ scheduler: inout Scheduler, _ signal: HostPacing.Signal, _ now: Double) throws {
            while try scheduler.popGivenUp(at: at(now)) != nil {}
            guard let start = try scheduler.popReady(at: at(now)) else { return }
            scheduler.finished(start.host, of: "http://h", signal, at: at(now))
        }
        for entry in 0..<5000 {
            let now = Double(entry)
            try packed.add(entry, host: "http://h", at: at(now))
            try unpacked.add(entry, host: "http://h", at: at(now))
            // Times of failures and of good responses, sometimes of a given-up host.
            let isGood = entry / 40 % 2 == 0
            let signal =
                isGood || entry < 4000
                ? signals[Int.random(in: 0..<(isGood ? 3 : 6), using: &random)] : signals[6]
            try step(&packed, signal, now)
            try step(&unpacked, signal, now)
            try #require(packed.count == unpacked.count, "step \(entry)")
            try #require(packed.activeHostCount == 0)
            let (left, right) = (packed.memories(at: at(now)), unpacked.memories(at: at(now)))
            #expect(left.known == right.known, "step \(entry)")
        }
    }

    @Test func manyHostsAreDistinguished() throws {
        var scheduler = Scheduler(.fifo)
        for round in 0..<3 {
            for host in 0..<5000 where host % (round + 1) == 0 {
                try scheduler.add(host, host: "http://\(host)")
            }
            // One at a time for each: two hosts taken for one would wait.
            var starts: [Scheduler.Start] = []
            while let start = try scheduler.popReady(at: epoch) { starts.append(start) }
            #expect(starts.count == 5000 / (round + 1) + (round == 2 ? 1 : 0))
            for start in starts { scheduler.finished(start.host, .answered, at: epoch) }
            #expect(scheduler.hostCount == 0)
        }
    }

    /// The next hops of redirects to a slow host, and retries behind a long queue.
    @Test(arguments: [Scheduler.Placement.next, .retry], [false, true])
    func returningEntriesSpillInOrder(
        placement: Scheduler.Placement, sleeps: Bool
    ) throws {
        let storage = MemorySpill(capacity: 10)
        var scheduler = Scheduler(.lifo, storage: storage)
        for entry in 0..<1000 {
            try scheduler.add(
                entry, host: "http://\(entry % 3)", placement,
                notBefore: sleeps ? at(1 + Double(entry) / 1000) : nil)
        }
        _ = scheduler.hasReady(at: at(3))
        #expect(scheduler.returnedInMemory == 10)
        #expect(storage.living == 990)
        #expect(try scheduler.drained(at: at(3)) == Array(0..<1000))
        #expect(scheduler.returnedInMemory == 0)
        #expect(storage.living == 0)
    }

    @Test func fullDiskIsReportedWhenAnEntryWakes() throws {
        let storage = MemorySpill(capacity: 1)
        storage.space = 0
        var scheduler = Scheduler(.fifo, storage: storage)
        for entry in 0..<3 { try scheduler.add(entry, .normal, .retry, notBefore: at(1)) }
        #expect(throws: MemorySpill.Full.self) { try scheduler.popReady(at: at(2)) }
        #expect(scheduler.count == 3)
        #expect(try scheduler.drained(at: at(2)) == [0, 1, 2])
    }

    @Test func isAloneForTheOnlyEntryOfAHost() throws {
        var scheduler = Scheduler(.fifo, hostConcurrency: 2)
        for (entry, host) in ["a", "b", "a", "c", "c"].enumerated() {
            try scheduler.add(entry, host: "http://\(host)")
        }
        try scheduler.add(5, host: "http://d")
        try scheduler.add(6, host: "http://d", .retry, notBefore: at(9))
        var starts: [Scheduler.Start] = []
        while let start = try scheduler.popReady(at: epoch) { starts.append(start) }
        // The second entry of `a` runs beside the first, and another one of `d` follows.
        #expect(starts.map(\.isAlone) == [false, true, false, false, false, false])
        for start in starts { scheduler.finished(start.host, .answered, at: epoch) }
        #expect(try scheduler.popReady(at: at(9))?.isAlone == true)
    }

    @Test func spilledEntriesOfPausingHostDoNotDelayOthers() throws {
        var scheduler = Scheduler(.fifo, storage: MemorySpill(capacity: 100))
        for entry in 0..<20_000 { try scheduler.add(entry, host: "http://cooling") }
        for entry in 20_000..<20_010 { try scheduler.add(entry, host: "http://b") }
        let first = try #require(try scheduler.popReady(at: at(0)))
        scheduler.finished(first.host, .overloaded(retryAfter: .seconds(60)), at: at(0))
        #expect(try scheduler.drained(at: at(1)) == Array(20_000..<20_010))
    }
}
