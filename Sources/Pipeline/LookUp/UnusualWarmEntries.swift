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
            Int(resource), manifest: entry.manifest, line: Int(entry.record.line),
            requestMark: mark, variantSet: entry.variantSet)
    }

    /// Changes the variants of all lines of a resource. The first one may be a usual one.
    mutating func note(variantSet: UInt32, of resource: Int64) {
        guard (0..<UnusualWarmEntries.largestResource).contains(resource) else { return }
        positions.note(variantSet: variantSet, of: Int(resource))
    }

    /// The number of the variants of all lines so far of a resource.
    func variantSet(of resource: Int64) -> UInt32 {
        guard (0..<UnusualWarmEntries.largestResource).contains(resource) else { return 0 }
        return positions.variantSet(of: Int(resource))
    }

    /// The mark of the request of a resource's first entry.
    func requestMark(of resource: Int64) -> UInt32 {
        guard (0..<UnusualWarmEntries.largestResource).contains(resource) else { return 0 }
        return positions.requestMark(of: Int(resource))
    }

    /// The position of a resource's first entry, as messages name it. That of a usual one is not
    /// known.
    func position(of resource: Int64) -> String {
        guard (0..<UnusualWarmEntries.largestResource).contains(resource),
            let (manifest, line) = positions.knownPosition(of: Int(resource))
        else { return "an earlier line" }
        return "\(manifest):\(line)"
    }
}
