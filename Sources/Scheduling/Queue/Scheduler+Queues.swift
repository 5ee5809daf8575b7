internal import DequeModule
import PrefetchModel

/// The queues of hosts: entries in memory, and behind them a list of spilled ones.
extension Scheduler {
    /// 0 for the next hop of a redirect, then two for each priority from the highest to the lowest.
    static func level(_ priority: Priority, _ placement: Placement) -> Int {
        let base = 1 + 2 * (Priority.range.upperBound - Int(priority.value))
        return switch placement {
        case .next: 0
        case .firstTurn: base
        case .retry: base + 1
        }
    }

    static func isFirstTurn(level: Int) -> Bool { level % 2 == 1 }

    mutating func queueIndex(_ level: Int, of host: Int) -> Int {
        var place = 0
        while place < hosts[host].queues.count, hosts[host].queues[place].level < level {
            place += 1
        }
        if place == hosts[host].queues.count || hosts[host].queues[place].level != level {
            hosts[host].queues.insert(HostStore.Queue(level: level), at: place)
        }
        return place
    }

    mutating func append(_ entry: Int, to queue: Int, of host: Int, at position: Int) throws {
        let isFirstTurn = Scheduler.isFirstTurn(level: hosts[host].queues[queue].level)
        let waiting = HostStore.WaitingEntry(entry: entry, position: position)
        if hosts[host].queues[queue].spilled.place == nil,
            storage.hasRoom(
                beside: isFirstTurn ? countInMemory : returnedInMemory, isReturning: !isFirstTurn)
        {
            hosts[host].queues[queue].memory.append(waiting)
            countWaiting(isFirstTurn, 1)
            return
        }
        try spillLast(waiting, to: queue, of: host)
    }

    /// Spills an entry behind the spilled ones of its queue; on failure, it waits in memory.
    mutating func spillLast(_ waiting: HostStore.WaitingEntry, to queue: Int, of host: Int) throws {
        do {
            let last = hosts[host].queues[queue].lastSpilled
            let link = try storage.spill(
                waiting.entry, position: waiting.position, next: .end, behind: last)
            if last == nil { hosts[host].queues[queue].spilled = link }
            hosts[host].queues[queue].lastSpilled = link.place
            hosts[host].queues[queue].spilledCount += 1
        } catch {
            // A disk error loses the order, but not the entry.
            hosts[host].queues[queue].memory.append(waiting)
            countWaiting(Scheduler.isFirstTurn(level: hosts[host].queues[queue].level), 1)
            throw error
        }
    }

    mutating func countWaiting(_ isFirstTurn: Bool, _ change: Int) {
        if isFirstTurn { countInMemory += change } else { returnedInMemory += change }
    }

    /// Adds to the near end (LIFO); the entries in memory are the far end.
    mutating func prepend(_ entry: Int, to queue: Int, of host: Int) throws {
        let waiting = HostStore.WaitingEntry(entry: entry, position: -pushes)
        do {
            if !storage.hasRoom(beside: countInMemory, isReturning: false) {
                while try spillLastInMemory(of: queue, of: host) {}
            }
            guard storage.hasRoom(beside: countInMemory, isReturning: false) else {
                return try spillFirst(waiting, to: queue, of: host)
            }
        } catch {
            keepInMemory(entry, of: queue, of: host)
            throw error
        }
        hosts[host].queues[queue].memory.prepend(waiting)
        countInMemory += 1
    }

    /// Keeps a new entry in memory after an error of the storage, which loses the order, but not
    /// the entry.
    mutating func keepInMemory(_ entry: Int, of queue: Int, of host: Int) {
        hosts[host].queues[queue].memory.prepend(
            HostStore.WaitingEntry(entry: entry, position: -pushes))
        countInMemory += 1
    }

    /// Spills the last entry in memory of a queue of first turns, if it has one at `least` or
    /// later.
    mutating func spillLastInMemory(
        of queue: Int, of host: Int, from least: Int = .min
    ) throws -> Bool {
        guard let last = hosts[host].queues[queue].memory.last, last.position >= least else {
            return false
        }
        try spillFirst(last, to: queue, of: host)
        hosts[host].queues[queue].memory.removeLast()
        countInMemory -= 1
        return true
    }

    /// Spills an entry in front of the spilled ones of its queue.
    private mutating func spillFirst(
        _ waiting: HostStore.WaitingEntry, to queue: Int, of host: Int
    ) throws {
        let link = try storage.spill(
            waiting.entry, position: waiting.position, next: hosts[host].queues[queue].spilled,
            behind: nil)
        hosts[host].queues[queue].spilled = link
        if hosts[host].queues[queue].lastSpilled == nil {
            hosts[host].queues[queue].lastSpilled = link.place
        }
        hosts[host].queues[queue].spilledCount += 1
    }

    mutating func removeFirst(of host: Int) throws -> Int {
        let entry: Int
        let isFirstTurn = Scheduler.isFirstTurn(level: hosts[host].queues[0].level)
        if let waiting = hosts[host].queues[0].memory.popFirst() {
            entry = waiting.entry
            countWaiting(isFirstTurn, -1)
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
}

/// The positions of entries in random order.
///
/// Entries with a position below ``limit`` wait in memory, the others in the spill file. So the
/// entries in memory are a uniform sample of all, whatever their hosts. They start before the
/// others, which keep about the order of their arrival.
struct RandomDraw {
    var generator: SplitMix64
    /// Positions are below 2⁵³.
    private(set) var limit = 1 << 53

    mutating func position() -> Int { Int(generator.next() >> 11) }

    mutating func halveLimit() { limit /= 2 }
}

extension Scheduler {
    /// Adds an entry at a random position among the entries of its priority. After an error of the
    /// storage it waits in memory.
    mutating func insertAtRandom(_ entry: Int, to queue: Int, of host: Int) throws {
        let waiting = HostStore.WaitingEntry(entry: entry, position: draw.position())
        while waiting.position < draw.limit, !hasRoom, draw.limit > 1 {
            draw.halveLimit()
            do {
                try spillBeyondLimit()
            } catch {
                keepInMemory(entry, of: queue, of: host)
                throw error
            }
        }
        guard waiting.position < draw.limit, hasRoom else {
            return try spillLast(waiting, to: queue, of: host)
        }
        let place = place(of: waiting.position, in: hosts[host].queues[queue])
        hosts[host].queues[queue].memory.insert(waiting, at: place)
        countInMemory += 1
    }

    private var hasRoom: Bool { storage.hasRoom(beside: countInMemory, isReturning: false) }

    /// Returns the index in memory of a position, by binary search.
    private func place(of position: Int, in queue: borrowing HostStore.Queue) -> Int {
        var (start, end) = (0, queue.memory.count)
        while start < end {
            let middle = (start + end) / 2
            if queue.memory[middle].position < position { start = middle + 1 } else { end = middle }
        }
        return start
    }

    /// Spills the entries beyond the limit, the last ones first, so that the first one of each
    /// queue stays the first. O(h) in the hosts, and called log₂ of the entries times.
    private mutating func spillBeyondLimit() throws {
        for number in Array(hosts.numbers) {
            guard let host = hosts.activePlace(of: number) else { continue }
            for queue in hosts[host].queues.indices
            where Scheduler.isFirstTurn(level: hosts[host].queues[queue].level) {
                while try spillLastInMemory(of: queue, of: host, from: draw.limit) {}
            }
        }
    }
}
