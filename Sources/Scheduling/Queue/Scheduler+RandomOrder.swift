internal import DequeModule
import PrefetchModel

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
