import EntryQueue
import PrefetchModel

/// The warm entries of a run whose requests differ from those of their keys. They distinguish
/// duplicates from lines that only share the key.
struct UnusualWarmEntries {
    private var marks = ChunkedArray<UInt32>()
    private var lines = ChunkedArray<UInt32>()
    private var manifestIndices = ChunkedArray<UInt16>()
    private var manifests: [String] = []

    /// Larger identifiers are not worth a table.
    private static let largestResource: Int64 = 1 << 32

    mutating func note(_ entry: RawEntry, _ mark: UInt32, of resource: Int64) {
        guard (0..<UnusualWarmEntries.largestResource).contains(resource) else { return }
        let index = Int(resource)
        marks[index] = mark
        lines[index] = UInt32(clamping: entry.record.line)
        if manifests.last != entry.manifest { manifests.append(entry.manifest) }
        manifestIndices[index] = UInt16(clamping: manifests.count - 1)
    }

    /// Returns the mark and the position of a resource's first entry; nil for a usual one.
    func entry(of resource: Int64) -> (requestMark: UInt32, position: String)? {
        guard (0..<UnusualWarmEntries.largestResource).contains(resource),
            case let index = Int(resource), marks[index] != 0
        else { return nil }
        return (marks[index], "\(manifests[Int(manifestIndices[index])]):\(lines[index])")
    }
}
