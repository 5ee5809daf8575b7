import PrefetchModel
internal import SQLite

/// The rows of a damaged database that are believed, by its ``RowWitnesses``.
struct RowTrust {
    /// Nil for rows of the snapshot.
    var witnesses: RowWitnesses?
    /// Resources with keys that the index does not confirm.
    private var unconfirmed: Set<Int64> = []
    /// The unconfirmed resources without a key in the index, and without other confirmation so far.
    private(set) var doubtful: Set<Int64> = []
    private var contradictions = 0

    /// Flipped bits explain as many contradictions; another database's pages cause more.
    private static let toleratedContradictions = 8
    /// If more than one variant in 20 is contradicted, the remaining pages may agree by chance. Up
    /// to that, a fortieth of the pages belongs to another database. A wrong row needs three such
    /// pages, which happens for one row in 60,000.
    private static let believedContradictions = 20

    /// Whether rows were refused, or will be.
    var hasDoubts: Bool { contradictions > 0 || !doubtful.isEmpty }

    /// Whether the database may have pages of another one.
    var mayBeMixed: Bool { contradictions > RowTrust.toleratedContradictions }

    /// Whether too many of the variants were contradicted to believe any.
    func isMixed(variants: Int) -> Bool {
        contradictions > variants / RowTrust.believedContradictions
    }

    mutating func isBelieved(
        resource row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        let id = try row.integer(columns["id"])
        switch try witnesses?.resource(id, hasKey: row.value(columns["key"])) ?? .unknown {
        case .yes: return true
        case .unknown:
            unconfirmed.insert(id)
            return true
        case .no:
            unconfirmed.insert(id)
            // Its `freshness` may confirm it with its variants.
            doubtful.insert(id)
            return true
        case .another:
            contradictions += 1
            return false
        }
    }

    /// Also makes the next use validate a resource with a wrong time.
    mutating func isBelieved(
        variant row: borrowing Statement, _ columns: TableLayout, in target: Connection
    ) throws -> Bool {
        let id = try row.integer(columns["resource_id"])
        let recipe = try row.text(columns["recipe"])
        let resource = try target.first(
            "SELECT key, validated_at, expires_at FROM resource WHERE id = ?", .integer(id)
        ) {
            (key: try $0.text(0), times: [try $0.integer(1), try $0.integer(2)])
        }
        guard let resource else { return false }
        guard let witnesses else { return true }
        let digest = try witnesses.variant(
            of: id, recipe: recipe, hasDigest: row.value(columns["sha256"]))
        let (link, times) = try witnesses.freshness(key: resource.key, recipe: recipe, isOf: id)
        switch (digest, link) {
        case (.another, _), (_, .another):
            contradictions += 1
            return false
        case (.no, _), (.unknown, .no):
            return false
        case (.yes, .yes), (.unknown, .yes):
            doubtful.remove(id)
            if times != resource.times {
                try target.run("UPDATE resource SET expires_at = 0 WHERE id = ?", .integer(id))
            }
            return true
        case (.yes, .no):
            return !unconfirmed.contains(id)
        case (.yes, .unknown), (.unknown, .unknown):
            return true
        }
    }
}
