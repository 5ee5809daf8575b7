internal import DequeModule
internal import HeapModule
package import PrefetchModel

/// Decides which waiting entry starts next: by priority, order and the readiness of its host.
///
/// A value type without clock or I/O; entries are identifiers whose contents lie elsewhere. Every
/// host keeps its own queues, one for each priority and standing. A heap holds the hosts that are
/// ready (something waits, fewer than the limit run, nothing to wait for), ordered by what each
/// would start; another one holds those that have to wait for a time. So a start or a push costs
/// O(log hosts) however many entries wait, entries of a busy or cooling host keep their place
/// without standing in anybody's way, and no entry ever depends on another: in LIFO order as in
/// FIFO all workers have work while any ready entry waits.
///
/// When memory has no room, the far end of a queue (what starts last) goes to a ``QueueSpilling``.
/// A queue in memory and its spilled rest are one list, and the scheduler knows the position of
/// the first spilled entry; so the order is exact at any length, and memory grows with the number
/// of hosts only.
package struct Scheduler {
    package typealias Instant = ContinuousClock.Instant

    /// Where an entry stands among those of its priority.
    package enum Standing: Sendable {
        /// In manifest order.
        case fresh
        /// Behind all fresh entries of the priority, in the order in which they came back.
        case retry
        /// Before everything else of its host: the next hop of a redirect, whose entry has had
        /// its turn already.
        case next
    }

    /// What starts, or is given up.
    package struct Start: Sendable {
        package let entry: Int
        /// Hand it back with ``finished(_:_:at:)`` when the entry is done with its host.
        package let host: HostUse
    }

    /// One entry's use of a host.
    package struct HostUse: Hashable, Sendable {
        fileprivate let host: Int
        /// The number of the start at its host.
        fileprivate let start: Int
    }

    private struct Waiting: Sendable {
        let entry: Int
        let position: Int
    }

    /// The waiting entries of one host with one level, the next to start first.
    private struct Queue: Sendable {
        let level: Int
        /// The near end.
        var memory: Deque<Waiting> = []
        /// The far end, which starts after everything in memory.
        var spilled = SpillLink.end
        var lastSpilled: SpillPlace?
        var spilledCount = 0

        var isEmpty: Bool { memory.isEmpty && spilled.place == nil }
        var front: Int? {
            memory.first?.position ?? (spilled.place == nil ? nil : spilled.position)
        }
    }

    private struct Host: Sendable {
        let name: String
        /// Ascending by level, never holding an empty one; few, since few priorities are in use.
        var queues: [Queue] = []
        var running = 0
        /// Entries that sleep until their own time.
        var sleeping = 0
        var pacing: HostPacing
        /// Whether an earlier run left something about it.
        var isRemembered = false

        var front: Rank? {
            guard let first = queues.first, let position = first.front else { return nil }
            return Rank(level: first.level, position: position)
        }
    }

    /// A position in the start order of all hosts; the smaller starts first.
    private struct Rank: Comparable, Sendable {
        /// The level above 54 bits of position.
        private let value: UInt64

        init(level: Int, position: Int) {
            value = UInt64(level) << 54 | UInt64(position + 1 << 53)
        }

        static func < (left: Rank, right: Rank) -> Bool { left.value < right.value }
    }

    /// An entry that waits for a time of its own.
    private struct Sleeper: Comparable, Sendable {
        let wakeTime: Instant
        let position: Int
        let entry: Int
        let level: Int
        let host: Int

        static func < (left: Sleeper, right: Sleeper) -> Bool {
            (left.wakeTime, left.position) < (right.wakeTime, right.position)
        }

        static func == (left: Sleeper, right: Sleeper) -> Bool { left.position == right.position }
    }

    private let order: StartOrder
    package let rules: HostPacing.Rules
    private let storage: any QueueSpilling
    private var hosts: [Host] = []
    /// Indices of `hosts` that nobody uses.
    private var freeHosts: [Int] = []
    private var indices: [String: Int] = [:]
    private var remembered: [String: HostPacing.Memory] = [:]
    private var ready = IndexedHeap<Rank>()
    /// Hosts that could start something but for the time.
    private var waitingForTime = IndexedHeap<Instant>()
    /// Hosts that are given up while something of them waits, by what they would start.
    private var givenUp = IndexedHeap<Rank>()
    /// What ``removeNext()`` goes through, by what each host would start; nil before it is called.
    private var removal: IndexedHeap<Rank>?
    private var sleepers = Heap<Sleeper>()
    private var pushes = 0

    /// Entries that wait.
    package private(set) var count = 0
    /// Fresh entries that wait in memory.
    package private(set) var countInMemory = 0
    /// Entries that were started and not yet finished.
    package private(set) var running = 0
    /// Entries that wait for a time of their own.
    package var sleepingCount: Int { sleepers.count }
    /// Hosts of which something is known or waited for.
    package var hostCount: Int { indices.count }

    package init(
        order: StartOrder, rules: HostPacing.Rules, storage: any QueueSpilling
    ) {
        self.order = order
        self.rules = rules
        self.storage = storage
    }

    package var isEmpty: Bool { count == 0 }

    /// Goes on from what earlier runs have found out about hosts.
    package mutating func recall(_ hosts: [String: HostPacing.Memory]) {
        remembered = hosts
    }

    /// Adds an entry; with standing `fresh` it comes after all pushed before it in FIFO order and
    /// before them in LIFO order. The host is scheme, host and port, as one text.
    ///
    /// It does not start before `wakeTime`, and keeps nobody waiting until then.
    ///
    /// - Throws: what the storage throws. The entry waits in memory then.
    package mutating func push(
        _ entry: Int, priority: Priority, host name: String, standing: Standing = .fresh,
        notBefore wakeTime: Instant? = nil, at now: Instant
    ) throws {
        pushes += 1
        count += 1
        let host = hostIndex(name, now)
        let level = Scheduler.level(priority, standing)
        if let wakeTime, wakeTime > now {
            hosts[host].sleeping += 1
            sleepers.insert(
                Sleeper(
                    wakeTime: wakeTime, position: pushes, entry: entry, level: level, host: host))
            return
        }
        defer { update(host, at: now) }
        guard standing == .fresh else {
            let queue = queueIndex(level, of: host)
            hosts[host].queues[queue].memory.append(Waiting(entry: entry, position: pushes))
            return
        }
        let queue = queueIndex(level, of: host)
        switch order {
        case .fifo: try append(entry, to: queue, of: host)
        case .lifo: try prepend(entry, to: queue, of: host)
        }
    }

    /// Takes the entry that starts next, or nil when nothing is ready.
    ///
    /// - Throws: what the storage throws.
    package mutating func popReady(at now: Instant) throws -> Start? {
        wake(at: now)
        guard let host = ready.first?.host else { return nil }
        let entry = try removeFirst(of: host)
        hosts[host].running += 1
        running += 1
        let start = hosts[host].pacing.started(at: now, rules)
        update(host, at: now)
        return Start(entry: entry, host: HostUse(host: host, start: start))
    }

    /// Takes an entry whose host is given up in this run, or nil when there is none.
    ///
    /// - Throws: what the storage throws.
    package mutating func popGivenUp(
        at now: Instant
    ) throws -> (entry: Int, host: String, cause: HostPacing.Surrender)? {
        guard let host = givenUp.first?.host, let cause = hosts[host].pacing.surrender else {
            return nil
        }
        let name = hosts[host].name
        let entry = try removeFirst(of: host)
        update(host, at: now)
        return (entry, name, cause)
    }

    /// Whether ``popReady(at:)`` would give an entry.
    package mutating func hasReady(at now: Instant) -> Bool {
        wake(at: now)
        return !ready.isEmpty
    }

    package var hasGivenUp: Bool { !givenUp.isEmpty }

    /// The earliest time at which something may become ready that is not now, unless something
    /// finishes before; nil when nothing waits for a time.
    package var nextWakeTime: Instant? {
        guard !isEmpty else { return nil }
        return switch (sleepers.min?.wakeTime, waitingForTime.first?.key) {
        case (let first?, let second?): min(first, second)
        case (let time, nil), (nil, let time): time
        }
    }

    /// Tells that a started entry has not asked its host for anything after all.
    package mutating func withdrew(_ use: HostUse, at now: Instant) {
        hosts[use.host].running -= 1
        running -= 1
        hosts[use.host].pacing.withdrew(start: use.start)
        update(use.host, at: now)
    }

    /// Tells that a started entry no longer uses its host, and what it has found out about it.
    package mutating func finished(
        _ use: HostUse, _ signal: HostPacing.Signal, at now: Instant
    ) {
        hosts[use.host].running -= 1
        running -= 1
        hosts[use.host].pacing.finished(signal, start: use.start, at: now, rules)
        update(use.host, at: now)
    }

    /// Takes an entry whatever its host and its time, to end everything that waits; nil when nothing
    /// does. From the first call on nothing gets ready any more.
    ///
    /// Entries come about in the order in which they were spilled, so that each block is read once.
    ///
    /// - Throws: what the storage throws; the rest of that queue, which nobody can find any more,
    ///   waits no longer then.
    package mutating func removeNext() throws -> Int? {
        if let sleeper = sleepers.popMin() {
            hosts[sleeper.host].sleeping -= 1
            count -= 1
            return sleeper.entry
        }
        if removal == nil {
            removal = IndexedHeap()
            ready.removeAll()
            waitingForTime.removeAll()
            givenUp.removeAll()
            for host in hosts.indices where !hosts[host].queues.isEmpty { updateRemoval(host) }
        }
        guard let host = removal?.first?.host else { return nil }
        defer { updateRemoval(host) }
        do {
            return try removeFirst(of: host)
        } catch {
            count -= hosts[host].queues[0].spilledCount
            hosts[host].queues.removeFirst()
            throw error
        }
    }

    private mutating func updateRemoval(_ host: Int) {
        if let front = hosts[host].front {
            removal?.set(host, to: front)
        } else {
            removal?.remove(host)
        }
    }

    /// What the next run should know of the hosts, and which have nothing left to be known.
    package func memories(
        at now: Instant
    ) -> (known: [(host: String, memory: HostPacing.Memory)], forgotten: [String]) {
        var known: [(host: String, memory: HostPacing.Memory)] = []
        var forgotten: [String] = []
        for (index, host) in hosts.enumerated() where indices[host.name] == index {
            if let memory = host.pacing.memory(rules, at: now) {
                known.append((host.name, memory))
            } else if host.isRemembered {
                forgotten.append(host.name)
            }
        }
        return (known, forgotten)
    }

    // MARK: Queues

    /// 0 for the next hop of a redirect, then two for each priority from the highest to the lowest.
    private static func level(_ priority: Priority, _ standing: Standing) -> Int {
        let base = 1 + 2 * (Priority.range.upperBound - Int(priority.value))
        return switch standing {
        case .next: 0
        case .fresh: base
        case .retry: base + 1
        }
    }

    private static func isFresh(level: Int) -> Bool { level % 2 == 1 }

    private mutating func queueIndex(_ level: Int, of host: Int) -> Int {
        var place = 0
        while place < hosts[host].queues.count, hosts[host].queues[place].level < level {
            place += 1
        }
        if place == hosts[host].queues.count || hosts[host].queues[place].level != level {
            hosts[host].queues.insert(Queue(level: level), at: place)
        }
        return place
    }

    /// FIFO: what comes now is the far end.
    private mutating func append(_ entry: Int, to queue: Int, of host: Int) throws {
        let waiting = Waiting(entry: entry, position: pushes)
        if hosts[host].queues[queue].spilled.place == nil,
            storage.hasRoom(beside: countInMemory)
        {
            hosts[host].queues[queue].memory.append(waiting)
            countInMemory += 1
            return
        }
        do {
            let last = hosts[host].queues[queue].lastSpilled
            let link = try storage.spill(entry, position: pushes, next: .end, behind: last)
            if last == nil { hosts[host].queues[queue].spilled = link }
            hosts[host].queues[queue].lastSpilled = link.place
            hosts[host].queues[queue].spilledCount += 1
        } catch {
            // The order is lost with the disk, the entry is not.
            hosts[host].queues[queue].memory.append(waiting)
            countInMemory += 1
            throw error
        }
    }

    /// LIFO: what comes now starts next, and what the queue has in memory is the far end.
    private mutating func prepend(_ entry: Int, to queue: Int, of host: Int) throws {
        if !storage.hasRoom(beside: countInMemory) {
            while let oldest = hosts[host].queues[queue].memory.last {
                try spillFirst(oldest, to: queue, of: host, isNew: entry)
                hosts[host].queues[queue].memory.removeLast()
                countInMemory -= 1
            }
        }
        let waiting = Waiting(entry: entry, position: -pushes)
        if storage.hasRoom(beside: countInMemory) {
            hosts[host].queues[queue].memory.prepend(waiting)
            countInMemory += 1
        } else {
            try spillFirst(waiting, to: queue, of: host, isNew: entry)
        }
    }

    /// Spills an entry in front of what is spilled of its queue; when that fails, the new entry
    /// goes where it does no harm.
    private mutating func spillFirst(
        _ waiting: Waiting, to queue: Int, of host: Int, isNew entry: Int
    ) throws {
        do {
            hosts[host].queues[queue].spilled = try storage.spill(
                waiting.entry, position: waiting.position,
                next: hosts[host].queues[queue].spilled, behind: nil)
            hosts[host].queues[queue].spilledCount += 1
        } catch {
            hosts[host].queues[queue].memory.prepend(Waiting(entry: entry, position: -pushes))
            countInMemory += 1
            throw error
        }
    }

    private mutating func removeFirst(of host: Int) throws -> Int {
        let entry: Int
        let isFresh = Scheduler.isFresh(level: hosts[host].queues[0].level)
        if let waiting = hosts[host].queues[0].memory.popFirst() {
            entry = waiting.entry
            if isFresh { countInMemory -= 1 }
        } else {
            guard let place = hosts[host].queues[0].spilled.place else {
                preconditionFailure("a queue that is kept holds something")
            }
            let (loaded, next) = try storage.load(place)
            entry = loaded
            hosts[host].queues[0].spilled = next
            hosts[host].queues[0].spilledCount -= 1
            if next.place == nil { hosts[host].queues[0].lastSpilled = nil }
        }
        if hosts[host].queues[0].isEmpty { hosts[host].queues.removeFirst() }
        count -= 1
        return entry
    }

    // MARK: Hosts

    private mutating func hostIndex(_ name: String, _ now: Instant) -> Int {
        if let index = indices[name] { return index }
        var pacing = HostPacing(rules)
        let memory = remembered[name]
        if let memory { pacing = HostPacing(rules, remembered: memory, now: now) }
        var host = Host(name: name, pacing: pacing)
        host.isRemembered = memory != nil
        if let index = freeHosts.popLast() {
            hosts[index] = host
            indices[name] = index
            return index
        }
        hosts.append(host)
        indices[name] = hosts.count - 1
        return hosts.count - 1
    }

    /// Wakes what has waited for a time that has come.
    private mutating func wake(at now: Instant) {
        while let sleeper = sleepers.min, sleeper.wakeTime <= now {
            sleepers.removeMin()
            hosts[sleeper.host].sleeping -= 1
            let queue = queueIndex(sleeper.level, of: sleeper.host)
            pushes += 1
            hosts[sleeper.host].queues[queue].memory.append(
                Waiting(entry: sleeper.entry, position: pushes))
            update(sleeper.host, at: now)
        }
        while let (time, host) = waitingForTime.first, time <= now { update(host, at: now) }
    }

    /// Puts a host where it belongs after its front, its running entries or its pacing changed.
    private mutating func update(_ host: Int, at now: Instant) {
        guard removal == nil else { return updateRemoval(host) }
        guard let front = hosts[host].front else {
            ready.remove(host)
            givenUp.remove(host)
            // One that may not be asked yet is forgotten when its time has come.
            if let time = hosts[host].pacing.wakeTime, time > now,
                hosts[host].pacing.isAsNew(rules, at: time)
            {
                waitingForTime.set(host, to: time)
            } else {
                waitingForTime.remove(host)
                recycle(host, at: now)
            }
            return
        }
        if hosts[host].pacing.surrender != nil {
            ready.remove(host)
            waitingForTime.remove(host)
            givenUp.set(host, to: front)
            return
        }
        givenUp.remove(host)
        guard hosts[host].pacing.hasRoom(running: hosts[host].running) else {
            ready.remove(host)
            waitingForTime.remove(host)
            return
        }
        if let time = hosts[host].pacing.wakeTime, time > now {
            ready.remove(host)
            waitingForTime.set(host, to: time)
        } else {
            waitingForTime.remove(host)
            ready.set(host, to: front)
        }
    }

    /// Forgets a host that nobody uses and of which nothing has to be known, so that memory does
    /// not grow with the hosts that are done.
    private mutating func recycle(_ host: Int, at now: Instant) {
        guard hosts[host].running == 0, hosts[host].sleeping == 0, !hosts[host].isRemembered,
            hosts[host].pacing.isAsNew(rules, at: now),
            indices.removeValue(forKey: hosts[host].name) != nil
        else { return }
        freeHosts.append(host)
    }
}
