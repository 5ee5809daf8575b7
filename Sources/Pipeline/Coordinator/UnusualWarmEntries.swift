import EntryQueue
import PrefetchModel

/// The warm entries of a run whose requests differ from those of their keys. They distinguish
/// duplicates from lines that only share the key.
struct UnusualWarmEntries {
    /// By resource.
    private var positions = EntryPositions()

    /// Larger identifiers are not worth a table.
    private static let largestResource: Int64 = 1 << 32

    mutating func note(_ entry: RawEntry, _ mark: UInt32, of resource: Int64) {
        guard (0..<UnusualWarmEntries.largestResource).contains(resource) else { return }
        positions.note(
            Int(resource), manifest: entry.manifest, line: Int(entry.record.line), requestMark: mark
        )
    }

    /// Returns the mark and the position of a resource's first entry; nil for a usual one.
    func entry(of resource: Int64) -> (requestMark: UInt32, position: String)? {
        guard (0..<UnusualWarmEntries.largestResource).contains(resource),
            case let mark = positions.requestMark(of: Int(resource)), mark != 0
        else { return nil }
        let (manifest, line) = positions.position(of: Int(resource))
        return (mark, "\(manifest):\(line)")
    }
}
