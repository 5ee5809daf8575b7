import EntryLifecycle

/// The later lines of keys with an entry without outcome: in memory up to a number and a size, and
/// beyond in the temporary file.
package struct LaterLines {
    private let capacity: Int
    /// All lines, and the ones that add variants.
    package private(set) var counts = (all: 0, additions: 0)
    private var lines: [Int: [Entry.Duplicate]] = [:]
    private(set) var countInMemory = 0
    private var bytes = 0
    /// By entry: the offset of its last line in the file, plus one.
    private var offsets = ChunkedArray<UInt64>()

    private static let maximumBytes = 8 << 20

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// Adds a line of an entry. `manifest` is its number, and `file` is for a line without room in
    /// memory.
    mutating func add(
        _ line: Entry.Duplicate, of identifier: Int, manifest: @autoclosure () -> Int,
        in file: SpillFile
    ) throws {
        let count = line.textBytes
        if countInMemory < capacity, bytes + count <= LaterLines.maximumBytes {
            lines[identifier, default: []].append(line)
            countInMemory += 1
            bytes += count
            return note(line, 1)
        }
        var payload = SpillWriter(reservingCapacity: count + 32)
        payload.put((offsets[identifier], line.line, manifest(), line.variantSet))
        payload.put((line.addsVariants, line.isFresh))
        payload.put(line.url)
        var columns = line.columns
        payload.code(&columns)
        var record = SpillWriter(reservingCapacity: payload.bytes.count + 16)
        record.put(payload: payload)
        offsets[identifier] = UInt64(try file.append(record.bytes)) + 1
        note(line, 1)
    }

    private mutating func note(_ line: Entry.Duplicate, _ change: Int) {
        counts.all += change
        if line.addsVariants { counts.additions += change }
    }

    mutating func takeLinesInMemory(of identifier: Int) -> [Entry.Duplicate] {
        guard let taken = lines.removeValue(forKey: identifier) else { return [] }
        countInMemory -= taken.count
        bytes -= taken.reduce(0) { $0 + $1.textBytes }
        for line in taken { note(line, -1) }
        return taken
    }

    /// Removes and returns the last line of an entry in the file; nil when none is left.
    mutating func takeSpilledLine(
        of identifier: Int, manifests: [String], in file: SpillFile
    ) throws -> Entry.Duplicate? {
        guard offsets[identifier] != 0 else { return nil }
        let offset = Int(offsets[identifier]) - 1
        let payload = try file.payload(at: offset)
        var reader = SpillReader(payload)
        let (next, line, manifest, variantSet): (UInt64, Int, Int, UInt32) = reader.value()
        let (addsVariants, isFresh): (Bool, Bool) = reader.value()
        let url = reader.text()
        var columns: [UInt8]?
        reader.code(&columns)
        offsets[identifier] = next
        file.forget(SpillFile.payloadHeadBytes + payload.count, at: offset)
        let taken = Entry.Duplicate(
            manifest: manifests[manifest], line: line, url: url, variantSet: variantSet,
            addsVariants: addsVariants, isFresh: isFresh, columns: columns)
        note(taken, -1)
        return taken
    }
}
