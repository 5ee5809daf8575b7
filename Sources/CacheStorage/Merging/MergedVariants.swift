import PrefetchModel
internal import SQLite

/// A row of `variant`, with the name's merged identifier.
struct MergedVariant {
    let source: MergeSource
    /// All columns, in the table's order.
    let values: [Statement.Value]
    /// The columns that a variant keeps from its creation on.
    let identity: [Statement.Value]
    let recipe: String
    let image: StoredImage
    let createdAt: Int64
    var lastAccessAt: Int64
    var name: Int64
    var isSuperseded: Bool
}

/// The variants of one image from several caches, made from the same source. Keeps the later
/// variant of each recipe; of two that are current under one name, the later one stays current.
struct MergedVariants {
    /// By recipe.
    private(set) var rows: [String: MergedVariant] = [:]
    /// The files of rows that were not kept.
    private(set) var dropped: [MergedVariant] = []

    mutating func add(_ row: MergedVariant) {
        guard let known = rows[row.recipe] else {
            rows[row.recipe] = row
            return
        }
        var (kept, other) = MergedVariants.isLater(row, known) ? (row, known) : (known, row)
        kept.lastAccessAt = max(kept.lastAccessAt, other.lastAccessAt)
        // A superseded `main` and a current thumbnail do not make a current `main`.
        if other.name == kept.name {
            kept.isSuperseded = kept.isSuperseded && other.isSuperseded
        } else if other.name < kept.name {
            (kept.name, kept.isSuperseded) = (other.name, other.isSuperseded)
        }
        rows[row.recipe] = kept
        if other.image.digest != kept.image.digest { dropped.append(other) }
    }

    /// The rows to store, in the order of their recipes.
    func settled() -> [MergedVariant] {
        var current: [Int64: MergedVariant] = [:]
        for row in rows.values where !row.isSuperseded {
            if let known = current[row.name], !MergedVariants.isLater(row, known) { continue }
            current[row.name] = row
        }
        return rows.values.sorted { $0.recipe.utf8.lexicographicallyPrecedes($1.recipe.utf8) }
            .map { row in
                var row = row
                row.isSuperseded = current[row.name]?.recipe != row.recipe
                return row
            }
    }

    /// A total order of rows, independent of their sources.
    private static func isLater(_ row: MergedVariant, _ other: MergedVariant) -> Bool {
        row.createdAt != other.createdAt
            ? row.createdAt > other.createdAt : other.identity.precedes(row.identity)
    }
}
