import Scheduling

/// Spilled entries in an array, for tests; it counts the calls.
final class MemorySpill: QueueSpilling {
    struct Full: Error {}
    struct Damaged: Error {}

    private var records: [(entry: Int, next: SpillLink)?] = []
    let capacity: Int
    /// The number of records until ``spill(_:position:next:behind:)`` fails.
    var space = Int.max
    /// The number of records until links of others can no longer be written.
    var linkSpace = Int.max
    /// Entries with unreadable records.
    var unreadable: Set<Int> = []
    private(set) var spills = 0
    /// Entries that are not in memory.
    private(set) var spilled: Set<Int> = []
    var living: Int { records.count { $0 != nil } }

    init(capacity: Int = .max) {
        self.capacity = capacity
    }

    func hasRoom(beside waiting: Int, isReturning: Bool) -> Bool { waiting < capacity }

    func spill(
        _ entry: Int, position: Int, next: SpillLink, behind last: SpillPlace?
    ) throws -> SpillLink {
        guard spills < space else { throw Full() }
        precondition(!spilled.contains(entry), "an entry that waits in memory is there")
        let link = SpillLink(place: SpillPlace(offset: records.count), position: position)
        if let last {
            guard spills < linkSpace else { throw Full() }
            records[last.offset]?.next = link
        }
        spills += 1
        records.append((entry, next))
        spilled.insert(entry)
        return link
    }

    func load(_ place: SpillPlace) throws -> (entry: Int, next: SpillLink) {
        guard let record = records[place.offset], !unreadable.contains(record.entry) else {
            throw Damaged()
        }
        records[place.offset] = nil
        spilled.remove(record.entry)
        return record
    }
}

extension Scheduler {
    /// For tests that ignore the knowledge for the next run.
    mutating func finished(_ use: HostTurn, _ signal: HostPacing.Signal, at now: Instant) {
        finished(use, of: "http://nobody", signal, at: now)
    }

    /// Returns the knowledge about hosts, and the hosts that the next run can forget.
    func memories(at now: Instant) -> (known: [String: HostPacing.Memory], forgotten: [String]) {
        var known: [String: HostPacing.Memory] = [:]
        var forgotten: [String] = []
        forEachMemory(at: now) { host, memory in
            if let memory { known[host] = memory } else { forgotten.append(host) }
        }
        return (known, forgotten)
    }
}
