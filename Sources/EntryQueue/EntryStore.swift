package import EntryLifecycle
package import PrefetchModel
package import Scheduling

/// The entries of a run that have no outcome yet, and how the others ended.
///
/// Entries that wait are in memory up to a number and a size; the scheduler has the others put
/// into a temporary file. What is kept of every entry for those of the same key that come later is
/// seven bytes, and four more where its request is not what its key says.
package final class EntryStore: QueueSpilling {
    /// Entries that wait in memory, in each of the run's queues.
    private let capacity: Int
    /// Where the temporary file is made when it is needed.
    private let folder: String
    private var entries: [Int: Held] = [:]
    /// What the texts of ``entries`` take, which may be long.
    private var bytes = 0
    private var file: SpillFile?
    private var manifests: [String] = []
    /// Times in records are from here on.
    private let epoch = ContinuousClock.now

    /// By entry: 0 while it has no outcome, ``endedWithoutReason``, or a reason and two.
    private var ends = ChunkedArray<UInt8>()
    /// By entry: where it stands, for those of the same key.
    private var lines = ChunkedArray<UInt32>()
    private var manifestIndices = ChunkedArray<UInt16>()
    /// By entry: what tells its request from those of others with the same key.
    private var requestMarks = ChunkedArray<UInt32>()
    /// Entries that wait in two places of their queue since a duplicate has raised them, and those
    /// that have ended and still wait in one. They stay in memory as long as they have no outcome.
    private var raised: Set<Int> = []

    /// Of entries without an outcome, those in memory.
    private var duplicates: [Int: [Entry.Duplicate]] = [:]
    /// Of them all.
    package private(set) var duplicatesInMemory = 0
    private var duplicateBytes = 0
    /// By entry: where the last of its duplicates in the file is, plus one.
    private var spilledDuplicates = ChunkedArray<UInt64>()

    /// The most of ``bytes`` beside which one more entry waits in memory: one that was not started
    /// yet, one that comes back, and one that sleeps. Each has some room that those before it in
    /// this list leave.
    private static let (mostBytes, mostBytesReturning, mostBytesSleeping) =
        (32 << 20, 40 << 20, 48 << 20)
    private static let mostDuplicateBytes = 8 << 20
    private static let endedWithoutReason: UInt8 = 1
    private static let firstReason: UInt8 = 2
    /// The place and the position of the record that starts next, in front of the entry's payload.
    private static let linkBytes = 2 * 8

    /// An entry in memory.
    private struct Held {
        var machine: EntryMachine
        /// What its texts take, as ``EntryStore/bytes`` has counted it.
        var countedBytes: Int
    }

    package init(capacity: Int, folder: String) {
        self.capacity = capacity
        self.folder = folder
    }

    // MARK: Entries in memory

    /// Whether no entry without an outcome is in memory.
    package var isEmpty: Bool { entries.isEmpty }

    /// The entry of an identifier, if it is in memory.
    package subscript(identifier: Int) -> EntryMachine? { entries[identifier]?.machine }

    /// Changes an entry that is in memory.
    package func update<Result>(
        _ identifier: Int, _ change: (inout EntryMachine) -> Result
    ) -> Result {
        guard let index = entries.index(forKey: identifier) else {
            preconditionFailure("an entry that something happens to is in memory")
        }
        return change(&entries.values[index].machine)
    }

    /// Adds an entry that has just been read.
    package func add(_ machine: EntryMachine, as identifier: Int) {
        let count = machine.textBytes
        bytes += count
        entries[identifier] = Held(machine: machine, countedBytes: count)
    }

    /// Tells that an entry waits anew, perhaps with a longer URL than before.
    package func waits(_ identifier: Int) {
        guard let held = entries[identifier] else { return }
        let count = held.machine.textBytes
        bytes += count - held.countedBytes
        entries[identifier]?.countedBytes = count
    }

    /// Takes out an entry that has its outcome.
    package func end(_ identifier: Int, reason: FailureReason?) {
        guard let held = entries.removeValue(forKey: identifier) else { return }
        bytes -= held.countedBytes
        noteEnd(identifier, reason: reason)
    }

    /// Those in memory that are `wanted`.
    package func identifiers(where isWanted: (EntryMachine) -> Bool) -> [Int] {
        entries.filter { isWanted($0.value.machine) }.map(\.key)
    }

    // MARK: Duplicates

    /// Notes an entry for those of its key that come later: where it stands, and what tells its request
    /// from others of the key, 0 for what the key says.
    package func noteOrigin(_ identifier: Int, manifest: String, line: Int, requestMark: UInt32) {
        lines[identifier] = UInt32(clamping: line)
        manifestIndices[identifier] = UInt16(clamping: index(of: manifest))
        if requestMark != 0 { requestMarks[identifier] = requestMark }
    }

    package func noteEnd(_ identifier: Int, reason: FailureReason?) {
        ends[identifier] =
            reason.map { EntryStore.firstReason + UInt8($0.index) }
            ?? EntryStore.endedWithoutReason
    }

    package func hasEnded(_ identifier: Int) -> Bool { ends[identifier] != 0 }

    /// Where an entry stands.
    package func origin(of identifier: Int) -> (manifest: String, line: Int) {
        (manifests[Int(manifestIndices[identifier])], Int(lines[identifier]))
    }

    package func requestMark(of identifier: Int) -> UInt32 { requestMarks[identifier] }

    /// Why an entry failed; nil when it did not, or has not ended.
    package func reason(of identifier: Int) -> FailureReason? {
        let end = ends[identifier]
        guard end >= EntryStore.firstReason else { return nil }
        return FailureReason.allCases[Int(end - EntryStore.firstReason)]
    }

    /// Adds an entry that shares the fate of one without an outcome.
    package func add(
        _ duplicate: Entry.Duplicate, of identifier: Int
    ) throws(SpillError) {
        let count = duplicate.url.utf8.count
        if duplicatesInMemory < capacity, duplicateBytes + count <= EntryStore.mostDuplicateBytes {
            duplicates[identifier, default: []].append(duplicate)
            duplicatesInMemory += 1
            duplicateBytes += count
            return
        }
        var payload = SpillWriter(reservingCapacity: count + 32)
        payload.put(Int(spilledDuplicates[identifier]))
        payload.put(duplicate.line)
        payload.put(index(of: duplicate.manifest))
        payload.put(duplicate.url)
        var record = SpillWriter(reservingCapacity: payload.bytes.count + 16)
        record.put(payload: payload)
        let offset = try openFile().append(record.bytes)
        spilledDuplicates[identifier] = UInt64(offset) + 1
    }

    /// Gives the duplicates of an entry that has ended, those in memory in their order, the others
    /// from the last one on.
    ///
    /// - Throws: when they cannot be read back.
    package func takeDuplicates(
        of identifier: Int, _ body: (Entry.Duplicate) -> Void
    ) throws(SpillError) {
        if let known = duplicates.removeValue(forKey: identifier) {
            duplicatesInMemory -= known.count
            duplicateBytes -= known.reduce(0) { $0 + $1.url.utf8.count }
            for duplicate in known { body(duplicate) }
        }
        while spilledDuplicates[identifier] != 0 {
            let file = try openFile()
            let offset = Int(spilledDuplicates[identifier]) - 1
            let payload = try file.payload(at: offset)
            var reader = SpillReader(payload)
            let next = reader.number()
            let line = reader.number()
            let manifest = manifests[reader.number()]
            body(
                Entry.Duplicate(manifest: manifest, line: line, url: reader.text()))
            file.forget(SpillFile.payloadHeadBytes + payload.count, at: offset)
            spilledDuplicates[identifier] = UInt64(next)
        }
    }

    // MARK: Raising

    /// Whether an entry that waits may be put into its queue once more, at a better place.
    package func canBeRaised(_ identifier: Int) -> Bool {
        entries[identifier]?.machine.isWaiting == true
            && !raised.contains(identifier) && raised.count < capacity
    }

    /// Notes that an entry waits in a second place.
    package func raise(_ identifier: Int, to priority: Priority) {
        entries[identifier]?.machine.raise(to: priority)
        raised.insert(identifier)
    }

    /// Whether an entry waits in a place that is not to be used.
    package func isRaised(_ identifier: Int) -> Bool { raised.contains(identifier) }

    /// Forgets that place, when it comes up.
    ///
    /// - Returns: whether there was one.
    package func dropPlace(of identifier: Int) -> Bool { raised.remove(identifier) != nil }

    /// Of entries that have ended and those without an outcome.
    package var raisedCount: Int { raised.count }

    // MARK: Spilling

    package func hasRoom(beside waiting: Int, isReturning: Bool) -> Bool {
        waiting < capacity
            && bytes < (isReturning ? EntryStore.mostBytesReturning : EntryStore.mostBytes)
    }

    /// Whether one more entry may sleep until its retry.
    package var hasRoomForSleeper: Bool { bytes < EntryStore.mostBytesSleeping }

    package func spill(
        _ identifier: Int, position: Int, next: SpillLink, behind last: SpillPlace?
    ) throws -> SpillLink {
        var record = SpillWriter(reservingCapacity: 160)
        record.put(next.place?.offset ?? -1)
        record.put(next.position)
        var payload = SpillWriter(reservingCapacity: 128)
        // One that waits in two places stays in memory: only the place is spilled.
        let isPlace = isRaised(identifier)
        if isPlace {
            payload.put(~identifier)
        } else {
            guard let machine = entries[identifier]?.machine, let rest = machine.rest else {
                preconditionFailure("an entry that waits in memory is there")
            }
            payload.put(identifier)
            payload.put(machine.entry, manifest: index(of: machine.entry.manifest), epoch: epoch)
            payload.put(rest)
        }
        record.put(payload: payload)
        let file = try openFile()
        let offset = try file.append(record.bytes)
        if let last {
            var link = SpillWriter(reservingCapacity: 16)
            link.put(offset)
            link.put(position)
            do throws(SpillError) {
                try file.change(link.bytes, at: last.offset)
            } catch {
                // Nobody will ask for the record.
                file.forget(record.bytes.count, at: offset)
                throw error
            }
        }
        if !isPlace, let entry = entries.removeValue(forKey: identifier) {
            bytes -= entry.countedBytes
        }
        return SpillLink(place: SpillPlace(offset: offset), position: position)
    }

    package func load(_ place: SpillPlace) throws -> (entry: Int, next: SpillLink) {
        let file = try openFile()
        var head = SpillReader(try file.read(EntryStore.linkBytes, at: place.offset))
        let offset = head.number()
        let link = SpillLink(
            place: offset < 0 ? nil : SpillPlace(offset: offset), position: head.number())
        let payload = try file.payload(at: place.offset + EntryStore.linkBytes)
        var reader = SpillReader(payload)
        let number = reader.number()
        if number >= 0 {
            let entry = reader.entry(manifests: manifests, epoch: epoch)
            add(EntryMachine(entry, rest: reader.rest(of: entry)), as: number)
        }
        file.forget(
            EntryStore.linkBytes + SpillFile.payloadHeadBytes + payload.count, at: place.offset)
        return (number >= 0 ? number : ~number, link)
    }

    private func openFile() throws(SpillError) -> SpillFile {
        if let file { return file }
        let opened = try SpillFile(folder: folder)
        file = opened
        return opened
    }

    /// Few manifests are read at a time, the last one most.
    private func index(of manifest: String) -> Int {
        if let index = manifests.lastIndex(of: manifest) { return index }
        manifests.append(manifest)
        return manifests.count - 1
    }
}

extension EntryMachine {
    /// What its texts take, about.
    fileprivate var textBytes: Int {
        var count = entry.url.text.utf8.count
        if entry.key != entry.url.text { count += entry.key.utf8.count }
        if case .queued(let history, let journey) = rest {
            count +=
                journey.route.target.text.utf8.count
                + (journey.route.permanentTarget?.text.utf8.count ?? 0)
            if case .response(_, let type?) = history.answer { count += type.utf8.count }
        }
        guard let extras = entry.extras else { return count }
        return count
            + extras.attributes.reduce(64) { $0 + $1.name.utf8.count + $1.value.count + 64 }
            + extras.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 64 }
    }
}
