import Scheduling

/// Spilled entries in an array, for tests; it counts what is asked of it.
final class MemorySpill: QueueSpilling {
    struct Full: Error {}

    private var records: [(entry: Int, next: SpillLink)?] = []
    private let capacity: Int
    /// Records that may be made before ``spill(_:next:)`` fails.
    var space = Int.max
    private(set) var spills = 0
    var living: Int { records.count { $0 != nil } }

    init(capacity: Int = .max) {
        self.capacity = capacity
    }

    func hasRoom(beside waiting: Int) -> Bool { waiting < capacity }

    func spill(_ entry: Int, next: SpillLink) throws -> SpillPlace {
        guard spills < space else { throw Full() }
        spills += 1
        records.append((entry, next))
        return SpillPlace(offset: records.count - 1)
    }

    func setNext(_ next: SpillLink, of place: SpillPlace) throws {
        records[place.offset]?.next = next
    }

    func load(_ place: SpillPlace) throws -> (entry: Int, next: SpillLink) {
        defer { records[place.offset] = nil }
        return try records[place.offset] ?? { throw Full() }()
    }
}
