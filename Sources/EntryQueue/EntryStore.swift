package import EntryLifecycle
package import PrefetchModel
package import Scheduling

/// The entries of a run without an outcome, and the outcomes of the others.
///
/// Waiting entries are in memory up to a number and a size; the scheduler spills the others into a
/// temporary file. ``EntryPositions`` keeps a few bytes of every entry.
package final class EntryStore: QueueSpilling {
    /// The limit of entries in memory, for each of the run's queues.
    private let capacity: Int
    private var entries: [Int: Held] = [:]
    private var bytes = 0
    private let file: SpillFile
    package let variantSets: VariantSetTable
    /// The origin of times in records.
    private let epoch = ContinuousClock.now

    /// The places of all entries, for later ones of the same key.
    package var positions = EntryPositions()
    /// Entries with two places in their queue since a duplicate raised them, and ended ones that
    /// still have one place, with the number of spilled places. They stay in memory until they have
    /// an outcome.
    private var raised: [Int: Int] = [:]
    /// Spilled entries, and how many of them have had a turn.
    private var spilled = (all: 0, returning: 0)

    package private(set) var laterLines: LaterLines

    /// The limits of ``bytes`` for one more entry in memory. Each has some room that the ones
    /// before it leave.
    private enum MaximumBytes {
        static let new = 12 << 20
        static let returning = 14 << 20
        static let starting = 22 << 20
        static let sleeping = 24 << 20
    }
    private static let linkBytes = MemoryLayout<SpillLink>.size

    private struct Held {
        var machine: EntryMachine
        var countedBytes: Int
    }

    package init(capacity: Int, folder: String, variants: VariantSet = VariantSet(main: Recipe())) {
        self.capacity = capacity
        laterLines = LaterLines(capacity: capacity)
        file = SpillFile(folder: folder)
        variantSets = VariantSetTable(variants, folder: folder)
    }

    // MARK: Entries in memory

    /// Whether no entry without an outcome is in memory.
    package var isEmpty: Bool { entries.isEmpty }

    package var count: Int { entries.count }

    package subscript(identifier: Int) -> EntryMachine? { entries[identifier]?.machine }

    package func update<Result>(
        _ identifier: Int, _ change: (inout EntryMachine) -> Result
    ) -> Result {
        guard let index = entries.index(forKey: identifier) else {
            preconditionFailure("an entry that something happens to is in memory")
        }
        return change(&entries.values[index].machine)
    }

    package func add(_ machine: EntryMachine, as identifier: Int) {
        let count = machine.textBytes
        bytes += count
        entries[identifier] = Held(machine: machine, countedBytes: count)
    }

    /// Notes that an entry waits again, perhaps with a longer URL than before.
    package func waits(_ identifier: Int) {
        guard let held = entries[identifier] else { return }
        let count = held.machine.textBytes
        bytes += count - held.countedBytes
        entries[identifier]?.countedBytes = count
    }

    package func end(_ identifier: Int, reason: FailureReason?) {
        guard let held = entries.removeValue(forKey: identifier) else { return }
        bytes -= held.countedBytes
        positions.noteEnd(identifier, reason: reason)
    }

    package func identifiers(where isWanted: (EntryMachine) -> Bool) -> [Int] {
        entries.filter { isWanted($0.value.machine) }.map(\.key)
    }

    // MARK: Duplicates

    /// Adds a later line that shares the outcome of an entry, which has none yet.
    package func add(_ line: Entry.Duplicate, of identifier: Int) throws {
        try laterLines.add(
            line, of: identifier, manifest: positions.index(of: line.manifest), in: file)
    }

    /// Removes the later lines of an ended entry: the ones in memory in their order, then the
    /// others from the last one on.
    package func takeDuplicates(of identifier: Int, _ body: (Entry.Duplicate) -> Void) throws {
        for line in laterLines.takeLinesInMemory(of: identifier) { body(line) }
        while let line = try laterLines.takeSpilledLine(
            of: identifier, manifests: positions.manifests, in: file)
        {
            body(line)
        }
    }

    // MARK: Raising

    /// Whether a waiting entry may get a second, better place in its queue.
    package func canBeRaised(_ identifier: Int) -> Bool {
        entries[identifier]?.machine.isWaiting == true
            && !isRaised(identifier) && raised.count < capacity
    }

    package func raise(_ identifier: Int, to priority: Priority) {
        entries[identifier]?.machine.raise(to: priority)
        raised[identifier] = 0
    }

    /// Whether an entry has a place that is not to be used.
    package func isRaised(_ identifier: Int) -> Bool { raised[identifier] != nil }

    /// Removes that place, when its turn arrives; returns whether there was one.
    package func dropPlace(of identifier: Int) -> Bool {
        raised.removeValue(forKey: identifier) != nil
    }

    package var raisedCount: Int { raised.count }

    // MARK: Spilling

    package func hasRoom(beside waiting: Int, isReturning: Bool) -> Bool {
        waiting < capacity
            && bytes < (isReturning ? MaximumBytes.returning : MaximumBytes.new)
    }

    /// Whether one more entry may stay in memory outside of the queue: until its retry, its last
    /// look-up or the return of its host.
    package var hasRoomForUnspilled: Bool { bytes < MaximumBytes.sleeping }

    /// Whether one more entry may leave the queue. It stays in memory until its commit.
    package var hasRoomForStart: Bool { bytes < MaximumBytes.starting }

    package func spill(
        _ identifier: Int, position: Int, next: SpillLink, behind last: SpillPlace?
    ) throws -> SpillLink {
        var record = SpillWriter(reservingCapacity: 160)
        record.put(next)
        var payload = SpillWriter(reservingCapacity: 128)
        // An entry with two places stays in memory: only the place is spilled.
        let isPlace = isRaised(identifier)
        if isPlace {
            payload.put(~identifier)
        } else {
            guard let machine = entries[identifier]?.machine, let rest = machine.rest else {
                preconditionFailure("an entry that waits in memory is there")
            }
            payload.put(identifier)
            payload.put(
                machine.entry, manifest: positions.index(of: machine.entry.manifest), epoch: epoch)
            payload.put(rest)
        }
        record.put(payload: payload)
        let offset = try file.append(record.bytes)
        let link = SpillLink(place: SpillPlace(offset: offset), position: position)
        if let last {
            var change = SpillWriter(reservingCapacity: EntryStore.linkBytes)
            change.put(link)
            do {
                try file.change(change.bytes, at: last.offset)
            } catch {
                // The record is unreachable.
                file.forget(record.bytes.count, at: offset)
                throw error
            }
        }
        if isPlace {
            raised[identifier]? += 1
        } else if let entry = entries.removeValue(forKey: identifier) {
            bytes -= entry.countedBytes
            countSpilled(entry.machine, 1)
        }
        return link
    }

    private func countSpilled(_ machine: EntryMachine, _ change: Int) {
        spilled.all += change
        if !machine.isWaiting { spilled.returning += change }
    }

    /// Whether an entry that has had a turn is spilled.
    package var hasSpilledReturning: Bool { spilled.returning > 0 }

    /// Forgets all spilled entries and places, which the queues no longer have. Returns the number
    /// of these entries, and the raised entries in memory that have lost their places.
    package func dropSpilled() -> (count: Int, placeless: [Int]) {
        defer { spilled = (0, 0) }
        // Another place is in memory, or the entry has started by it.
        for (identifier, places) in raised where places == 1 { raised[identifier] = nil }
        let placeless = raised.filter { $0.value == 2 }.keys.sorted()
        for identifier in placeless { raised[identifier] = nil }
        return (spilled.all, placeless)
    }

    package func load(_ place: SpillPlace) throws -> (entry: Int, next: SpillLink) {
        var head = SpillReader(try file.read(EntryStore.linkBytes, at: place.offset))
        let payload = try file.payload(at: place.offset + EntryStore.linkBytes)
        var reader = SpillReader(payload)
        let number = reader.value(Int.self)
        if number >= 0 {
            let entry = reader.entry(manifests: positions.manifests, epoch: epoch)
            let machine = EntryMachine(entry, rest: reader.rest(of: entry))
            add(machine, as: number)
            countSpilled(machine, -1)
        } else {
            raised[~number]? -= 1
        }
        file.forget(
            EntryStore.linkBytes + SpillFile.payloadHeadBytes + payload.count, at: place.offset)
        return (number >= 0 ? number : ~number, head.value())
    }
}

extension EntryMachine {
    fileprivate var textBytes: Int {
        var count = entry.listedURL.text.utf8.count
        if entry.key != entry.listedURL.text { count += entry.key.utf8.count }
        if case .queued(let history, let journey) = rest {
            count +=
                journey.route.target.text.utf8.count
                + (journey.route.permanent?.url.utf8.count ?? 0)
            if case .response(_, let type?) = history.lastResult { count += type.utf8.count }
        }
        guard let extras = entry.extras else { return count }
        return count
            + extras.attributes.reduce(64) { $0 + $1.name.utf8.count + $1.value.count + 64 }
            + extras.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 64 }
            + extras.alternatives.reduce(0) { $0 + $1.text.utf8.count + 64 }
            + (extras.columns?.count ?? 0)
    }
}
