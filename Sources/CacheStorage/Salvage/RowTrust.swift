import Hashing
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

/// Redundant data that confirms or contradicts the rows of a damaged database: indexes repeat the
/// links from key to resource and from digest to variant, `freshness` those from key and recipe to
/// resource. One image under another's key is worse than a missing image.
final class RowWitnesses {
    enum Word {
        /// Equal to the row.
        case yes
        /// Nothing confirms the row.
        case no
        /// It names another row.
        case another
        /// It cannot be read.
        case unknown
    }

    private let database: Connection?
    private let digests: DigestIndex
    private let hasher = SHA256Hasher()
    private var recipes: [String: RecipeFingerprint] = [:]

    /// Without a readable schema, only the entries of the digest index are available.
    init(_ database: Connection?, _ digests: DigestIndex) {
        self.database = database
        self.digests = digests
    }

    func resource(_ id: Int64, hasKey key: Statement.Value) throws -> Word {
        try word { database in
            let found = try database.first(
                "SELECT id FROM resource INDEXED BY sqlite_autoindex_resource_1 WHERE key = ?", key
            ) { try $0.integer(0) }
            return found.map { $0 == id ? .yes : .another } ?? .no
        }
    }

    func variant(
        of resource: Int64, recipe: String, hasDigest digest: Statement.Value
    ) throws -> Word {
        let word = try word { database in
            let rows = try database.prepare(
                """
                SELECT resource_id, recipe FROM variant INDEXED BY variant_sha256
                WHERE sha256 = ?
                """)
            try rows.bind(digest, at: 1)
            var hasOthers = false
            while try rows.step() {
                if try rows.integer(0) == resource, try rows.text(1) == recipe { return .yes }
                hasOthers = true
            }
            return hasOthers ? .another : .no
        }
        guard digests.hasEveryPage, word != .yes else { return word }
        let other = try digests.word(on: digest, of: resource, recipe: recipe)
        switch (word, other) {
        // The entry may be one that cannot be reached from the root.
        case (.another, .unknown), (.no, .unknown): return .no
        default: return other
        }
    }

    /// Returns the times that the resource must have: of its validation and expiry.
    func freshness(
        key: String, recipe: String, isOf resource: Int64
    ) throws -> (word: Word, times: [Int64]) {
        let recipeFingerprint = recipes[recipe] ?? RecipeFingerprint(recipe, hasher: hasher)
        recipes[recipe] = recipeFingerprint
        let fingerprint = VariantFingerprint(KeyFingerprint(key, hasher: hasher), recipeFingerprint)
        var times: [Int64] = []
        let word = try word { database in
            let found = try database.first(
                """
                SELECT resource_id, validated_at, expires_at FROM freshness
                WHERE fingerprint = ? AND fingerprint_low = ?
                """, .integer(fingerprint.upper), .integer(fingerprint.lower)
            ) {
                times = [try $0.integer(1), try $0.integer(2)]
                return try $0.integer(0)
            }
            return found.map { $0 == resource ? .yes : .another } ?? .no
        }
        return (word, times)
    }

    private func word(_ look: (Connection) throws -> Word) throws -> Word {
        guard let database else { return .unknown }
        do {
            return try look(database)
        } catch let error as SQLiteError where error.isUnreadable {
            return .unknown
        }
    }
}
