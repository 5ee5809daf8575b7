internal import DequeModule
internal import HeapModule
package import PrefetchModel

/// Decides which waiting entry starts next: by priority, order and the readiness of its host.
///
/// A value type without clock or I/O; entries are identifiers, with their contents elsewhere. Every
/// host keeps its own queues, one for each priority and placement. One heap holds the ready hosts,
/// ordered by the entry that each would start: an entry waits, and the host is below its limit and
/// not cooling. Another heap holds the hosts that wait for a time. A start or a push costs
/// O(log hosts), whatever the number of entries. Entries of a busy or cooling host keep their place
/// and delay no other host. No entry depends on another, so in LIFO as in FIFO order all workers
/// are busy while any ready entry waits.
///
/// In random order the position of an entry on its first turn is a random number; see
/// ``RandomDraw``.
///
/// Without room in memory, the far end of a queue (the last to start) is moved to a
/// ``QueueSpilling``. A queue in memory and its spilled rest are one list, and the scheduler knows
/// the position of the first spilled entry; so the order is exact at any length.
///
/// Memory grows with the number of hosts only: a host is removed when none of its entries waits or
/// runs and nothing is known of it. Beyond some thousands, idle hosts are packed, see
/// ``HostStore``.
package struct Scheduler {
    package typealias Instant = ContinuousClock.Instant

    /// The place of an entry within its priority.
    package enum Placement: Sendable {
        case firstTurn
        /// After all entries of the priority on their first turn, in the order of their return.
        case retry
        /// Before all other entries of its host: the next hop of a redirect. Its entry has had
        /// its turn already.
        case next
    }

    /// An entry that starts or is given up.
    package struct Start: Sendable {
        package let entry: Int
        /// The use to end with ``finished(_:of:_:at:)`` when the entry no longer needs its host.
        package let host: HostTurn
        package let isAlone: Bool
        package let place: Place
    }

    /// The place of an entry in the queues of its host.
    package struct Place: Sendable {
        fileprivate let rank: HostStore.Rank

        package var isFirstTurn: Bool { Scheduler.isFirstTurn(level: rank.level) }

        package func isFirstTurn(of priority: Priority) -> Bool {
            rank.level == Scheduler.level(priority, .firstTurn)
        }
    }

    package struct HostTurn: Hashable, Sendable {
        fileprivate let host: Int
        fileprivate let start: HostPacing.NumberedStart

        package func isOf(_ load: HostLoad) -> Bool { host == load.host }
    }

    /// The running and waiting entries of one host.
    package struct HostLoad: Sendable {
        fileprivate let host: Int
        package let running: Int
        package let waiting: Int
        /// The time before which no entry of the host starts; nil without one.
        package let wakeTime: Instant?
        package let waitingEntry: Int?
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
    let storage: any QueueSpilling
    var hosts: HostStore
    private var heaps = HostHeaps()
    private var sleepers = Heap<Sleeper>()
    var pushes = 0
    /// The positions of entries in random order.
    var draw = RandomDraw(generator: SplitMix64(seed: 0))
    /// An error of the storage while entries woke.
    private var spillError: (any Error)?

    package internal(set) var count = 0
    /// Fresh entries that wait in memory.
    package internal(set) var countInMemory = 0
    /// Entries that were started before and wait in memory for a host.
    package internal(set) var returnedInMemory = 0
    /// Entries that were started and not yet finished.
    package private(set) var running = 0
    /// Entries that wait for a time of their own.
    package var sleepingCount: Int { sleepers.count }
    package var hostCount: Int { hosts.count }
    package var activeHostCount: Int { hosts.activeCount }

    /// Takes the rules for all hosts, the rules of single hosts, and the number of runs that
    /// share the limits of some.
    package init(
        order: StartOrder, rules: HostPacing.PaceRules,
        rulesByHost: HostTable<HostPacing.PaceRules> = HostTable(),
        parts: HostTable<Int> = HostTable(), storage: any QueueSpilling,
        maximumActiveHosts: Int = 4096
    ) {
        self.order = order
        self.storage = storage
        if case .random(let seed) = order { draw.generator = SplitMix64(seed: seed) }
        hosts = HostStore(
            rules: rules, byHost: rulesByHost, parts: parts, maximumActive: maximumActiveHosts)
    }

    package var isEmpty: Bool { count == 0 }

    /// Stores the knowledge of earlier runs about a host, before the host's first push.
    package mutating func recall(_ memory: HostPacing.Memory, of name: String) {
        hosts.recall(memory, of: name)
    }

    /// Adds an entry. A `firstTurn` one starts after all earlier ones in FIFO order, and
    /// before them in LIFO order. The host is scheme, host and port, as one text.
    ///
    /// The entry does not start before `wakeTime`, and delays no other until then. If its host is
    /// given up, it does not wait.
    ///
    /// - Throws: errors of the storage. The entry then waits in memory.
    package mutating func push(
        _ entry: Int, priority: Priority, host name: String, placement: Placement = .firstTurn,
        notBefore wakeTime: Instant? = nil, at now: Instant
    ) throws {
        pushes += 1
        count += 1
        let number = hosts.number(of: name)
        let host = hosts.activate(number, at: now)
        if hosts[host].isRemembered { hosts.noteName(name, of: host) }
        let level = Scheduler.level(priority, placement)
        if let wakeTime, wakeTime > now, !hosts[host].pacing.isGivenUp {
            hosts[host].sleeping += 1
            sleepers.insert(
                Sleeper(
                    wakeTime: wakeTime, position: pushes, entry: entry, level: level, host: number))
            return
        }
        defer { update(number, at: now) }
        let queue = queueIndex(level, of: host)
        switch order {
        case .lifo where placement == .firstTurn: try prepend(entry, to: queue, of: host)
        case .random where placement == .firstTurn: try insertAtRandom(entry, to: queue, of: host)
        case .fifo, .lifo, .random: try append(entry, to: queue, of: host, at: pushes)
        }
    }

    /// Removes and returns the entry that starts next; nil when none is ready.
    package mutating func popReady(at now: Instant) throws -> Start? {
        wake(at: now)
        if let error = spillError {
            spillError = nil
            throw error
        }
        guard let number = heaps.ready.first?.host else { return nil }
        let host = hosts.activate(number, at: now)
        guard let rank = hosts[host].front else {
            preconditionFailure("a ready host has an entry")
        }
        let entry = try removeFirst(of: host)
        let start = hosts[host].pacing.started(
            at: now, running: hosts[host].running, hosts.rules(of: number))
        hosts[host].running += 1
        running += 1
        let isAlone =
            hosts[host].running == 1 && hosts[host].sleeping == 0 && hosts[host].queues.isEmpty
        update(number, at: now)
        return Start(
            entry: entry, host: HostTurn(host: number, start: start), isAlone: isAlone,
            place: Place(rank: rank))
    }

    /// Returns a started entry to its place, after ``finished(_:of:_:_:at:)``: its host refused it
    /// for the pace. It starts before newer entries that have been spilled in the meantime.
    package mutating func putBack(_ start: Start, at now: Instant) {
        let number = start.host.host
        let host = hosts.activate(number, at: now)
        let queue = queueIndex(start.place.rank.level, of: host)
        // It was the first of its queue; only others that return may precede it.
        let position = start.place.rank.position
        let place =
            hosts[host].queues[queue].memory.firstIndex { $0.position > position }
            ?? hosts[host].queues[queue].memory.endIndex
        hosts[host].queues[queue].memory.insert(
            HostStore.WaitingEntry(entry: start.entry, position: position), at: place)
        count += 1
        countWaiting(start.place.isFirstTurn, 1)
        update(number, at: now)
    }

    /// Removes and returns an entry of a given-up host; nil when there is none.
    package mutating func popGivenUp(
        at now: Instant
    ) throws -> (entry: Int, place: Place, cause: HostPacing.GiveUpCause)? {
        guard let number = heaps.givenUp.first?.host else { return nil }
        let host = hosts.activate(number, at: now)
        guard let cause = hosts[host].pacing.giveUpCause, let rank = hosts[host].front else {
            return nil
        }
        let entry = try removeFirst(of: host)
        update(number, at: now)
        return (entry, Place(rank: rank), cause)
    }

    /// Whether ``popReady(at:)`` would return an entry.
    package mutating func hasReady(at now: Instant) -> Bool {
        wake(at: now)
        return !heaps.ready.isEmpty
    }

    package var hasGivenUp: Bool { !heaps.givenUp.isEmpty }

    /// Returns the entries in memory that start next at the host of a start, unless better ones
    /// arrive: the entries at these places of its first queue, 0 for the next one.
    package func upcoming(at use: HostTurn, _ places: Range<Int>) -> [Int] {
        guard let host = hosts.activePlace(of: use.host), let queue = hosts[host].queues.first
        else { return [] }
        return queue.memory.dropFirst(places.lowerBound).prefix(places.count).map(\.entry)
    }

    /// The earliest future time at which an entry may become ready without another one finishing;
    /// nil when no entry waits for a time.
    package var nextWakeTime: Instant? {
        guard !isEmpty else { return nil }
        return switch (sleepers.min?.wakeTime, heaps.pausing.first?.key) {
        case (let first?, let second?): min(first, second)
        case (let time, nil), (nil, let time): time
        }
    }

    /// The number of hosts above which ``largestLoad`` is nil: among that many, none stands out.
    private static let maximumComparedHosts = 100_000

    /// The host with the most running and waiting entries; nil without any, or with very many
    /// hosts. O(h) in the hosts.
    package var largestLoad: HostLoad? {
        guard hosts.count <= Scheduler.maximumComparedHosts else { return nil }
        var largest: (number: Int, host: Int, count: Int)?
        for number in hosts.numbers {
            guard let host = hosts.activePlace(of: number) else { continue }
            let count = hosts[host].running + hosts[host].waiting
            if count > largest?.count ?? 0 { largest = (number, host, count) }
        }
        guard let (number, host, _) = largest else { return nil }
        let front = hosts[host].queues.lazy.compactMap { $0.memory.first?.entry }.first
        return HostLoad(
            host: number, running: hosts[host].running, waiting: hosts[host].waiting,
            wakeTime: hosts[host].pacing.wakeTime,
            waitingEntry: front ?? sleepers.unordered.first { $0.host == number }?.entry)
    }

    /// Notes that a started entry has sent no request to its host.
    package mutating func withdrew(_ use: HostTurn, at now: Instant) {
        let host = hosts.activate(use.host, at: now)
        hosts[host].running -= 1
        running -= 1
        hosts[host].pacing.withdrew(use.start)
        update(use.host, at: now)
    }

    /// Notes that a started entry no longer uses its host, and the result.
    ///
    /// `name` is the host of the push; it is evaluated when the next run should know of it.
    ///
    /// - Returns: the cause of a refusal; for the pace, see ``putBack(_:at:)``.
    @discardableResult
    package mutating func finished(
        _ use: HostTurn, of name: @autoclosure () -> String, _ signal: HostPacing.Signal,
        _ observation: HostPacing.Observation = .nothing, at now: Instant
    ) -> HostPacing.RefusalCause {
        let host = hosts.activate(use.host, at: now)
        hosts[host].running -= 1
        running -= 1
        let rules = hosts.rules(of: use.host)
        let cause = hosts[host].pacing.finished(
            signal, observation, start: use.start, running: hosts[host].running, at: now, rules)
        if hosts[host].pacing.memory(rules, at: now) != nil { hosts.noteName(name(), of: host) }
        if hosts[host].pacing.isGivenUp, hosts[host].sleeping > 0 {
            wakeAll(of: use.host, at: now)
        }
        update(use.host, at: now)
        return cause
    }

    /// Removes and returns any entry, whatever its host and time, to end everything that waits; nil
    /// when nothing does. After the first call nothing becomes ready any more.
    ///
    /// Entries are returned about in the order in which they were spilled, so that each block is
    /// read once.
    ///
    /// - Throws: errors of the storage; the rest of that queue is then lost and no longer counted.
    package mutating func removeNext() throws -> Int? {
        if let sleeper = sleepers.popMin() {
            let host = hosts.activate(sleeper.host, at: .now)
            hosts[host].sleeping -= 1
            count -= 1
            return sleeper.entry
        }
        startEmptying()
        guard let number = heaps.emptied.first?.host else { return nil }
        let host = hosts.activate(number, at: .now)
        defer { update(number, at: .now) }
        do {
            return try removeFirst(of: host)
        } catch {
            count -= hosts[host].queues[0].spilledCount
            hosts[host].queues.removeFirst()
            throw error
        }
    }

    /// Removes all spilled entries without reading them, for a caller that drops them from the
    /// storage too. As after ``removeNext()``, nothing becomes ready any more.
    package mutating func dropSpilled() {
        startEmptying()
        for number in Array(hosts.numbers) where hosts.front(of: number) != nil {
            let host = hosts.activate(number, at: .now)
            count -= hosts[host].dropSpilled()
            update(number, at: .now)
        }
    }

    private mutating func startEmptying() {
        guard !heaps.isEmptying else { return }
        heaps = HostHeaps(isEmptying: true)
        for number in hosts.numbers { heaps.move(number, to: placeToEmpty(number)) }
    }

    private func placeToEmpty(_ number: Int) -> HostHeaps.Place {
        hosts.front(of: number).map { .emptied($0) } ?? .none
    }

    /// Calls `body` with the knowledge about each host for the next run: nil when the next run can
    /// forget the host.
    ///
    /// Omits hosts beyond some hundreds of thousands, since every run reads that table.
    package func forEachMemory(
        at now: Instant, _ body: (_ host: String, HostPacing.Memory?) throws -> Void
    ) rethrows {
        try hosts.forEachMemory(at: now, body)
    }

    /// Returns the limit of transfers at a host, and the limit of its pace: a new host's if
    /// nothing is known about it.
    package func pace(of host: String) -> (concurrency: Int, limit: HostPace.Limit?) {
        let (pacing, rules) = hosts.pacing(of: host)
        return (pacing.concurrency, pacing.limit(rules))
    }

    // MARK: Hosts

    /// Moves the entries and hosts that are due.
    private mutating func wake(at now: Instant) {
        while let sleeper = sleepers.min, sleeper.wakeTime <= now {
            sleepers.removeMin()
            wake(sleeper, at: now)
        }
        while let (time, host) = heaps.pausing.first, time <= now { update(host, at: now) }
    }

    /// Moves the sleeping entries of a host that is given up. O(n) in all sleeping entries.
    private mutating func wakeAll(of number: Int, at now: Instant) {
        let all = sleepers.unordered
        sleepers = Heap(all.filter { $0.host != number })
        for sleeper in all.filter({ $0.host == number }).sorted() { wake(sleeper, at: now) }
    }

    /// Moves an entry that no longer sleeps to the end of its queue.
    private mutating func wake(_ sleeper: Sleeper, at now: Instant) {
        let host = hosts.activate(sleeper.host, at: now)
        hosts[host].sleeping -= 1
        let queue = queueIndex(sleeper.level, of: host)
        pushes += 1
        do {
            try append(sleeper.entry, to: queue, of: host, at: pushes)
        } catch {
            spillError = error
        }
        update(sleeper.host, at: now)
    }

    /// Moves a host to the right heap after its front, its running entries or its pacing changed.
    private mutating func update(_ number: Int, at now: Instant) {
        heaps.move(number, to: heaps.isEmptying ? placeToEmpty(number) : place(of: number, at: now))
        hosts.packIfIdle(number, at: now)
    }

    private mutating func place(of number: Int, at now: Instant) -> HostHeaps.Place {
        let host = hosts.activate(number, at: now)
        let pause = hosts[host].pacing.wakeTime.flatMap { $0 > now ? $0 : nil }
        guard let front = hosts[host].front else {
            // A pausing host without entries is removed when its pause ends.
            guard let pause, hosts[host].pacing.isPristine(hosts.rules(of: number), at: pause)
            else { return .none }
            return .pausing(until: pause)
        }
        if hosts[host].pacing.isGivenUp { return .givenUp(front) }
        guard hosts[host].pacing.hasRoom(running: hosts[host].running) else { return .none }
        return pause.map { .pausing(until: $0) } ?? .ready(front)
    }
}
