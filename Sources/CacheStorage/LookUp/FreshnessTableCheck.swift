import Hashing
import PrefetchModel
internal import SQLite

// Compares the table `freshness`, a copy for fast look-ups, with the tables that it copies.

extension CacheInspection {
    /// The keys of images with differences between `freshness` and the tables that it copies, and
    /// the number of its rows without a variant.
    package typealias FreshnessFindings = (keys: [String], orphanedRows: Int)

    /// Compares `freshness` with `resource` and `variant` in one read transaction.
    package func freshnessFindings() throws(StorageError) -> FreshnessFindings {
        try database.read("comparing freshness") { database in
            var check = try FreshnessTableCheck(database)
            return try check.findings()
        }
    }
}

extension OpenCache {
    package func rebuildFreshness() throws(StorageError) {
        try database.write("rebuilding freshness") { try Schema.rebuildFreshness(in: $0) }
    }
}

extension Schema {
    /// If two variants have the same fingerprint, only one gets a row.
    static let freshnessInsertion = """
        INSERT OR IGNORE INTO freshness (fingerprint, fingerprint_low, resource_id, validated_at,
            expires_at, vary, superseded)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """

    /// Rebuilds `freshness` from `resource` and `variant`; call inside a transaction.
    static func rebuildFreshness(in database: Connection) throws {
        try database.execute("DELETE FROM freshness")
        var check = try FreshnessTableCheck(database)
        try check.insertAll()
    }
}

/// Iterates over all variants and their expected `freshness` rows.
private struct FreshnessTableCheck: ~Copyable {
    private struct ExpectedRow {
        let key: String
        let fingerprint: VariantFingerprint
        /// resource_id, validated_at, expires_at, vary, superseded
        let values: [Int64?]
    }

    private let database: Connection
    private let hasher = SHA256Hasher()
    private var recipes: [String: RecipeFingerprint] = [:]
    private let variants: Statement

    init(_ database: Connection) throws {
        self.database = database
        variants = try database.prepare(
            """
            SELECT key, recipe, name, superseded, id, validated_at, expires_at, vary
            FROM resource JOIN variant ON id = resource_id ORDER BY id, recipe
            """)
    }

    private mutating func next() throws -> ExpectedRow? {
        guard try variants.step() else { return nil }
        let (key, recipe) = (try variants.text(0), try variants.text(1))
        let recipeFingerprint = recipes[recipe] ?? RecipeFingerprint(recipe, hasher: hasher)
        recipes[recipe] = recipeFingerprint
        let use = VariantUses.VariantUse(
            recipe: recipe, name: try variants.integer(2),
            isSuperseded: try variants.integer(3) != 0)
        return ExpectedRow(
            key: key,
            fingerprint: VariantFingerprint(KeyFingerprint(key, hasher: hasher), recipeFingerprint),
            values: [
                try variants.integer(4), try variants.integer(5), try variants.integer(6),
                try variants.optionalText(7).map { VaryFingerprint($0, hasher: hasher).value },
                use.freshnessMark,
            ])
    }

    mutating func findings() throws -> CacheInspection.FreshnessFindings {
        var keys: [String] = []
        var founded = 0
        let lookUp = try database.prepare(
            """
            SELECT fingerprint_low, resource_id, validated_at, expires_at, vary, superseded
            FROM freshness WHERE fingerprint = ?
            """)
        while let row = try next() {
            let found = try lookUp.first([.integer(row.fingerprint.upper)]) { found in
                (
                    lower: try found.integer(0),
                    values: try (1...5).map { try found.optionalInteger($0) }
                )
            }
            switch found {
            case let found? where found.lower == row.fingerprint.lower:
                founded += 1
                if found.values != row.values { keys.append(row.key) }
            case .some:
                // Another variant has the same fingerprint and owns the row.
                break
            case nil:
                keys.append(row.key)
            }
        }
        let all = try database.first("SELECT count(*) FROM freshness") { try $0.count(0) }
        return (keys, (all ?? 0) - founded)
    }

    mutating func insertAll() throws {
        let insertion = try database.prepare(Schema.freshnessInsertion)
        while let row = try next() {
            try insertion.execute(
                [.integer(row.fingerprint.upper), .integer(row.fingerprint.lower)]
                    + row.values.map { .init($0) })
        }
    }
}
