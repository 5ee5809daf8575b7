internal import DequeModule
import PrefetchModel

/// The hosts of a ``Scheduler``, by number.
///
/// An active host is stored unpacked. Beyond some thousands, hosts without running entries or
/// entries in memory are packed: about 90 bytes with spilled entries, and 50 more after a failure.
/// A host without any knowledge is removed, and its number is reused.
struct HostStore: Sendable {
    struct WaitingEntry: Sendable {
        let entry: Int
        let position: Int
    }

    /// The waiting entries of one host and one level, the next to start first.
    struct Queue: Sendable {
        let level: Int
        var memory: Deque<WaitingEntry> = []
        /// The far end, which starts after the entries in memory.
        var spilled = SpillLink.end
        var lastSpilled: SpillPlace?
        var spilledCount = 0

        var isEmpty: Bool { memory.isEmpty && spilled.place == nil }
        var front: Int? {
            memory.first?.position ?? (spilled.place == nil ? nil : spilled.position)
        }
    }

    struct ActiveHost: Sendable {
        /// Ascending by level, never empty ones; few, since few priorities are in use.
        var queues: [Queue] = []
        var running = 0
        /// Entries that sleep until a time of their own.
        var sleeping = 0
        var pacing: HostPacing
        /// Whether an earlier run left knowledge about it.
        var isRemembered = false
        var name = PoolIndex.none
        /// Entries that wait or sleep, spilled ones included.
        var waiting: Int { queues.reduce(sleeping) { $0 + $1.memory.count + $1.spilledCount } }
        /// Whether none of its entries runs, sleeps or waits in memory.
        var isIdle: Bool {
            running == 0 && sleeping == 0 && queues.allSatisfy { $0.memory.isEmpty }
        }

        /// Removes the spilled entries, and returns their number.
        mutating func dropSpilled() -> Int {
            let dropped = queues.reduce(0) { $0 + $1.spilledCount }
            for index in queues.indices {
                queues[index].spilled = .end
                queues[index].lastSpilled = nil
                queues[index].spilledCount = 0
            }
            queues.removeAll(where: \.isEmpty)
            return dropped
        }

        var front: Rank? {
            guard let first = queues.first, let position = first.front else { return nil }
            return Rank(level: first.level, position: position)
        }
    }

    /// A position in the start order of all hosts; smaller ranks start first.
    struct Rank: Comparable, Sendable {
        /// The level above 54 bits of position.
        private let value: UInt64

        init(level: Int, position: Int) {
            value = UInt64(level) << 54 | UInt64(position + 1 << 53)
        }

        var level: Int { Int(value >> 54) }
        var position: Int { Int(value & (1 << 54 - 1)) - 1 << 53 }

        static func < (left: Rank, right: Rank) -> Bool { left.value < right.value }
    }

    private struct PackedQueue: Sendable {
        let first: Rank
        let place: SpillPlace
        let last: SpillPlace
        let count: UInt32
        var next: PoolIndex
    }

    private struct References: Sendable {
        /// The host while something of it runs or waits in memory.
        var active = PoolIndex.none
        /// Its first queue, while it is not active.
        var queue = PoolIndex.none
        /// Its pacing, while it is not active and differs from that of a new host.
        var pacing = PoolIndex.none
    }

    private let commonRules: HostPacing.PaceRules
    private let rulesByHost: HostTable<HostPacing.PaceRules>
    private let parts: HostTable<Int>
    /// The positions in ``rulesByHost``, by the numbers of the hosts that it has.
    private var ownRules: [Int: Int] = [:]
    /// The numbers of hosts with shared limits, and of the runs that share them.
    private var ownParts: [Int: Int] = [:]
    private var table = FingerprintTable<References>()
    private var active = Pool<ActiveHost>()
    /// The number of ``active`` hosts above which idle ones are packed.
    private let maximumActive: Int
    private var packedQueues = Pool<PackedQueue>()
    private var packedPacings = Pool<PackedPacing>()
    private var names = NameStore()

    init(
        rules: HostPacing.PaceRules, byHost: HostTable<HostPacing.PaceRules>,
        parts: HostTable<Int> = HostTable(), maximumActive: Int
    ) {
        commonRules = rules
        rulesByHost = byHost
        self.parts = parts
        self.maximumActive = maximumActive
    }

    var count: Int { table.count }
    var activeCount: Int { active.count }
    var numbers: some Sequence<Int> { table.numbers }

    /// An active host, by its index from ``activate(_:at:)``.
    subscript(host: Int) -> ActiveHost {
        _read { yield active[host] }
        _modify { yield &active[host] }
    }

    /// Returns the index of a host among the active ones; nil when it is packed.
    func activePlace(of number: Int) -> Int? { table[number].active.index }

    mutating func number(of name: String) -> Int {
        let known = table.count
        let number = table.insert(HostFingerprint(name).bits, References())
        if table.count > known {
            if let position = rulesByHost.position(ofHostIn: name) { ownRules[number] = position }
            if let count = parts[hostIn: name] { ownParts[number] = count }
        }
        return number
    }

    func rules(of number: Int) -> HostPacing.PaceRules {
        let whole =
            ownRules.isEmpty
            ? commonRules : ownRules[number].map { rulesByHost[$0] } ?? commonRules
        return ownParts.isEmpty ? whole : whole.divided(by: ownParts[number] ?? 1)
    }

    private func rules(of name: String) -> HostPacing.PaceRules {
        (rulesByHost[hostIn: name] ?? commonRules).divided(by: parts[hostIn: name] ?? 1)
    }

    /// Stores the knowledge of earlier runs about a host that is not in the table yet.
    mutating func recall(_ memory: HostPacing.Memory, of name: String) {
        let host = number(of: name)
        let packed = PackedPacing(remembered: memory)
        table[host].pacing = PoolIndex(packedPacings.insert(packed))
    }

    /// Returns the pacing of a host, that of a new one if nothing is known.
    func pacing(of name: String) -> (pacing: HostPacing, rules: HostPacing.PaceRules) {
        let rules = rules(of: name)
        return (pacing(of: name, rules), rules)
    }

    private func pacing(of name: String, _ rules: HostPacing.PaceRules) -> HostPacing {
        guard let number = table.number(of: HostFingerprint(name).bits) else {
            return HostPacing(rules)
        }
        if let host = table[number].active.index { return active[host].pacing }
        return table[number].pacing.index.map {
            packedPacings[$0].unpacked(rules, at: .now)
        } ?? HostPacing(rules)
    }

    /// Returns the rank of the entry that a host would start.
    func front(of number: Int) -> Rank? {
        if let host = table[number].active.index { return active[host].front }
        return table[number].queue.index.map { packedQueues[$0].first }
    }

    /// Stores the name of a host for the next run.
    mutating func noteName(_ name: @autoclosure () -> String, of host: Int) {
        if active[host].name == .none { active[host].name = names.insert(name()) }
    }

    /// Unpacks a host, and returns its index among the active ones; ``packIfIdle(_:at:)`` packs it.
    mutating func activate(_ number: Int, at now: ContinuousClock.Instant) -> Int {
        if let host = table[number].active.index { return host }
        let rules = rules(of: number)
        var host = ActiveHost(pacing: HostPacing(rules))
        if let index = table[number].pacing.index {
            let packed = packedPacings[index]
            host.pacing = packed.unpacked(rules, at: now)
            host.isRemembered = packed.isRemembered
            host.name = packed.name
            packedPacings.remove(index)
            table[number].pacing = .none
        }
        while let index = table[number].queue.index {
            let packed = packedQueues[index]
            var queue = Queue(level: packed.first.level)
            queue.spilled = SpillLink(place: packed.place, position: packed.first.position)
            queue.lastSpilled = packed.last
            queue.spilledCount = Int(packed.count)
            host.queues.append(queue)
            packedQueues.remove(index)
            table[number].queue = packed.next
        }
        let index = active.insert(host)
        table[number].active = PoolIndex(index)
        return index
    }

    /// Packs an idle host when there are many, and removes it when nothing is known of it.
    mutating func packIfIdle(_ number: Int, at now: ContinuousClock.Instant) {
        guard let index = table[number].active.index, active[index].isIdle else { return }
        let rules = rules(of: number)
        let isPristine =
            !active[index].isRemembered && active[index].pacing.isPristine(rules, at: now)
        let isForgotten = isPristine && active[index].queues.isEmpty
        guard isForgotten || active.count > maximumActive else { return }
        let host = active[index]
        active.remove(index)
        active[index] = ActiveHost(pacing: HostPacing(rules))
        guard !isForgotten else {
            ownRules[number] = nil
            return table.remove(number)
        }
        table[number].active = .none
        if !isPristine {
            let packed = PackedPacing(
                host.pacing, rules, name: host.name, isRemembered: host.isRemembered)
            table[number].pacing = PoolIndex(packedPacings.insert(packed))
        }
        for queue in host.queues.reversed() {
            guard let place = queue.spilled.place, let last = queue.lastSpilled,
                let position = queue.front
            else { continue }
            table[number].queue = PoolIndex(
                packedQueues.insert(
                    PackedQueue(
                        first: Rank(level: queue.level, position: position), place: place,
                        last: last, count: UInt32(clamping: queue.spilledCount),
                        next: table[number].queue)))
        }
    }

    func forEachMemory(
        at now: ContinuousClock.Instant, _ body: (String, HostPacing.Memory?) throws -> Void
    ) rethrows {
        for number in table.numbers {
            let rules = rules(of: number)
            let pacing: HostPacing
            let place: PoolIndex
            let isRemembered: Bool
            if let host = table[number].active.index {
                pacing = active[host].pacing
                (place, isRemembered) = (active[host].name, active[host].isRemembered)
            } else if let packed = table[number].pacing.index {
                guard !packedPacings[packed].isUntouched else { continue }
                pacing = packedPacings[packed].unpacked(rules, at: now)
                place = packedPacings[packed].name
                isRemembered = packedPacings[packed].isRemembered
            } else {
                continue
            }
            guard let name = names[place] else { continue }
            let memory = pacing.memory(rules, at: now)
            if memory != nil || isRemembered { try body(name, memory) }
        }
    }
}
