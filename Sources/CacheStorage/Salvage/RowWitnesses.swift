import Hashing
import PrefetchModel
internal import SQLite

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
