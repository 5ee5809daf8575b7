internal import DequeModule
package import PrefetchModel

/// Decides which waiting entry starts next: by priority, order and the readiness of its host.
///
/// A value type without clock or I/O. Every host keeps its own queues, and a heap holds the hosts
/// that are ready (something waits and fewer than the limit run), ordered by what each would
/// start. So a start or a push costs O(log hosts) however many entries wait, entries of a busy
/// host keep their place without standing in anybody's way, and no entry ever depends on another:
/// in LIFO order as in FIFO all workers have work while any ready entry waits.
package struct Scheduler<Entry: Sendable>: Sendable {
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

    /// What starts.
    package struct Start: Sendable {
        package let entry: Entry
        /// Hand it back with ``finished(_:)`` when the entry is done with its host.
        package let host: HostID
    }

    /// Identifies a host inside one scheduler.
    package struct HostID: Hashable, Sendable {
        fileprivate let index: Int
    }

    /// A position in the start order; the smaller starts first.
    private struct Rank: Comparable {
        /// From priority and standing: smaller is earlier.
        let level: Int
        /// Ascending in FIFO order, negated in LIFO order.
        let position: Int

        static func < (left: Rank, right: Rank) -> Bool {
            (left.level, left.position) < (right.level, right.position)
        }
    }

    private struct Waiting: Sendable {
        let entry: Entry
        let position: Int
    }

    /// The waiting entries of one host with one level, the next to start at the front.
    private struct Level: Sendable {
        let level: Int
        var entries: Deque<Waiting>
    }

    private struct Host: Sendable {
        /// Ascending by level, never holding an empty one; few, since few priorities are in use.
        var levels: [Level] = []
        var running = 0
        /// Position in ``Scheduler/ready``, -1 while it is not ready.
        var heapIndex = -1

        var front: Rank? {
            guard let first = levels.first, let waiting = first.entries.first else { return nil }
            return Rank(level: first.level, position: waiting.position)
        }
    }

    private let order: StartOrder
    private let hostConcurrency: Int
    private var hosts: [Host] = []
    private var indices: [String: Int] = [:]
    /// A binary heap of host indices; the host with the smallest front is first.
    private var ready: [Int] = []
    private var pushes = 0

    /// Entries that wait.
    package private(set) var count = 0
    /// Entries that were started and not yet finished.
    package private(set) var running = 0

    /// At most `hostConcurrency` entries of one host run at once.
    ///
    /// - Precondition: `hostConcurrency` is 1 or more.
    package init(order: StartOrder, hostConcurrency: Int) {
        precondition(hostConcurrency >= 1, "a host needs room for one transfer")
        self.order = order
        self.hostConcurrency = hostConcurrency
    }

    package var isEmpty: Bool { count == 0 }

    /// Whether ``popReady()`` would give an entry.
    package var hasReady: Bool { !ready.isEmpty }

    /// Adds an entry; with standing `fresh` it comes after all pushed before it in FIFO order and
    /// before them in LIFO order. The host is scheme, host and port, as one text.
    package mutating func push(
        _ entry: Entry, priority: Priority, host: String, standing: Standing = .fresh
    ) {
        pushes += 1
        let isReversed = standing == .fresh && order == .lifo
        let waiting = Waiting(entry: entry, position: isReversed ? -pushes : pushes)
        let index = hostIndex(host)
        insert(
            waiting, level: Scheduler.level(priority, standing), isReversed: isReversed,
            host: index)
        count += 1
        update(index)
    }

    /// Takes the entry that starts next, or nil when nothing waits or no host is ready.
    package mutating func popReady() -> Start? {
        guard let index = ready.first else { return nil }
        let waiting = hosts[index].levels[0].entries.removeFirst()
        if hosts[index].levels[0].entries.isEmpty { hosts[index].levels.removeFirst() }
        hosts[index].running += 1
        count -= 1
        running += 1
        update(index)
        return Start(entry: waiting.entry, host: HostID(index: index))
    }

    /// Tells that a started entry no longer uses its host.
    package mutating func finished(_ host: HostID) {
        hosts[host.index].running -= 1
        running -= 1
        update(host.index)
    }

    /// Removes everything that waits, in no particular order.
    package mutating func removeAll() -> [Entry] {
        var entries: [Entry] = []
        entries.reserveCapacity(count)
        for index in hosts.indices {
            for level in hosts[index].levels { entries += level.entries.map(\.entry) }
            hosts[index].levels = []
            hosts[index].heapIndex = -1
        }
        ready = []
        count = 0
        return entries
    }

    // MARK: Levels

    /// 0 for the next hop of a redirect, then two for each priority from the highest to the lowest.
    private static func level(_ priority: Priority, _ standing: Standing) -> Int {
        let base = 1 + 2 * (Priority.range.upperBound - Int(priority.value))
        return switch standing {
        case .next: 0
        case .fresh: base
        case .retry: base + 1
        }
    }

    private mutating func hostIndex(_ name: String) -> Int {
        if let index = indices[name] { return index }
        hosts.append(Host())
        indices[name] = hosts.count - 1
        return hosts.count - 1
    }

    private mutating func insert(_ waiting: Waiting, level: Int, isReversed: Bool, host: Int) {
        let place = hosts[host].levels.firstIndex { $0.level >= level } ?? hosts[host].levels.count
        if place == hosts[host].levels.count || hosts[host].levels[place].level != level {
            hosts[host].levels.insert(Level(level: level, entries: [waiting]), at: place)
        } else if isReversed {
            hosts[host].levels[place].entries.prepend(waiting)
        } else {
            hosts[host].levels[place].entries.append(waiting)
        }
    }

    // MARK: The heap of ready hosts

    /// Puts a host where it belongs after its front or its number of running entries changed.
    private mutating func update(_ host: Int) {
        let isReady = hosts[host].running < hostConcurrency && !hosts[host].levels.isEmpty
        let place = hosts[host].heapIndex
        switch (isReady, place >= 0) {
        case (true, true):
            siftUp(place)
            siftDown(hosts[host].heapIndex)
        case (true, false):
            hosts[host].heapIndex = ready.count
            ready.append(host)
            siftUp(ready.count - 1)
        case (false, true):
            let last = ready.count - 1
            swapPlaces(place, last)
            ready.removeLast()
            hosts[host].heapIndex = -1
            if place < last {
                siftUp(place)
                siftDown(place)
            }
        case (false, false):
            break
        }
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        guard let first = hosts[ready[left]].front, let second = hosts[ready[right]].front else {
            preconditionFailure("a host in the heap has something to start")
        }
        return first < second
    }

    private mutating func swapPlaces(_ left: Int, _ right: Int) {
        guard left != right else { return }
        ready.swapAt(left, right)
        hosts[ready[left]].heapIndex = left
        hosts[ready[right]].heapIndex = right
    }

    private mutating func siftUp(_ start: Int) {
        var place = start
        while place > 0, isBefore(place, (place - 1) / 2) {
            swapPlaces(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    private mutating func siftDown(_ start: Int) {
        var place = start
        while true {
            var smallest = place
            for child in [2 * place + 1, 2 * place + 2]
            where child < ready.count && isBefore(child, smallest) {
                smallest = child
            }
            guard smallest != place else { return }
            swapPlaces(place, smallest)
            place = smallest
        }
    }
}
