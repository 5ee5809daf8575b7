import EntryQueue
import PrefetchModel

/// The warm entries of a run with unusual requests for their keys. They distinguish duplicates
/// from lines that only share the key.
struct UnusualWarmEntries {
    private var positions = EntryPositions()

    /// Larger identifiers are not worth a table.
    private static let largestResource: Int64 = 1 << 32

    private static func place(_ resource: Int64) -> Int? {
        (0..<largestResource).contains(resource) ? Int(resource) : nil
    }

    mutating func note(_ entry: RawEntry, _ mark: UInt32, of resource: Int64) {
        guard let place = UnusualWarmEntries.place(resource) else { return }
        positions.note(
            place, manifest: entry.manifest, line: Int(entry.record.line), requestMark: mark,
            variantSet: entry.variantSet)
    }

    /// Changes the variants of all lines of a resource. The first one may be a usual one.
    mutating func note(variantSet: UInt32, of resource: Int64) {
        guard let place = UnusualWarmEntries.place(resource) else { return }
        positions.note(variantSet: variantSet, of: place)
    }

    /// The number of the variants of all lines so far of a resource.
    func variantSet(of resource: Int64) -> UInt32 {
        UnusualWarmEntries.place(resource).map(positions.variantSet) ?? 0
    }

    func requestMark(of resource: Int64) -> UInt32 {
        UnusualWarmEntries.place(resource).map(positions.requestMark) ?? 0
    }

    /// The position of a resource's first entry, as messages name it. That of a usual one is not
    /// known.
    func position(of resource: Int64) -> String {
        UnusualWarmEntries.place(resource).map(positions.place) ?? "an earlier line"
    }
}
