import Hashing
import PrefetchModel
internal import SQLite

extension MetadataStatements {
    /// The values of a resource's rows in `freshness`; times in milliseconds.
    struct StoredFreshness {
        let validatedAt: Int64
        let expiresAt: Int64
        let vary: String?
    }

    /// Writes the freshness rows of all variants of a resource.
    mutating func putFreshness(
        key: String, resource: Int64, _ freshness: StoredFreshness, in database: Connection
    ) throws {
        for use in try uses(of: resource, in: database) {
            try putFreshness(use, key: key, resource: resource, freshness, in: database)
        }
    }

    struct FreshnessRow {
        let fingerprint: VariantFingerprint
        let resource: Int64
        let freshness: StoredFreshness
        let mark: Int64
    }

    mutating func putFreshness(
        _ use: VariantUses.VariantUse, key: String, resource: Int64, _ freshness: StoredFreshness,
        in database: Connection
    ) throws {
        let row = FreshnessRow(
            fingerprint: fingerprint(key: key, recipe: use.recipe), resource: resource,
            freshness: freshness, mark: use.freshnessMark)
        if newRows?.freshness.append(row) == nil { try put(row, in: database) }
    }

    func put(_ row: FreshnessRow, in database: Connection) throws {
        // A row of another variant with the same upper half stays; see ``VariantFingerprint``.
        try database.run(
            """
            INSERT INTO freshness (fingerprint, fingerprint_low, resource_id, validated_at,
                expires_at, vary, superseded)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (fingerprint) DO UPDATE SET resource_id = ?3, validated_at = ?4,
                expires_at = ?5, vary = ?6, superseded = ?7 WHERE fingerprint_low = ?2
            """, .integer(row.fingerprint.upper), .integer(row.fingerprint.lower),
            .integer(row.resource), .integer(row.freshness.validatedAt),
            .integer(row.freshness.expiresAt),
            .init(row.freshness.vary.map { VaryFingerprint($0, hasher: hasher).value }),
            .integer(row.mark))
    }

    /// Changes expiries in the order of the identifiers, so that each page is visited once.
    func setExpiries(_ expiries: [Int64: Timestamp], in database: Connection) throws {
        for (resource, expiresAt) in expiries.sorted(by: { $0.key < $1.key }) {
            for sql in [
                "UPDATE resource SET expires_at = ?2 WHERE id = ?1",
                "UPDATE freshness SET expires_at = ?2 WHERE resource_id = ?1",
            ] {
                try database.run(sql, .integer(resource), .init(expiresAt))
            }
        }
    }

    /// Changes the URLs that listed resources last, in the order of their identifiers.
    func setListedURLs(_ listedURLs: [Int64: String], in database: Connection) throws {
        for (resource, url) in listedURLs.sorted(by: { $0.key < $1.key }) {
            try database.run(
                "UPDATE resource SET listed_url = nullif(?2, url) WHERE id = ?1",
                .integer(resource), .text(url))
        }
    }

    mutating func removeFreshness(key: String, recipe: String, in database: Connection) throws {
        let fingerprint = fingerprint(key: key, recipe: recipe)
        try database.run(
            "DELETE FROM freshness WHERE fingerprint = ? AND fingerprint_low = ?",
            .integer(fingerprint.upper), .integer(fingerprint.lower))
    }

    mutating func fingerprint(key: String, recipe: String) -> VariantFingerprint {
        let recipeFingerprint: RecipeFingerprint
        if let known = recipes[recipe] {
            recipeFingerprint = known
        } else {
            recipeFingerprint = RecipeFingerprint(recipe, hasher: hasher)
            recipes[recipe] = recipeFingerprint
        }
        return VariantFingerprint(KeyFingerprint(key, hasher: hasher), recipeFingerprint)
    }
}

extension MetadataStatements.StoredFreshness {
    init(_ validation: ResourceValidation) {
        self.init(
            validatedAt: validation.validatedAt.milliseconds,
            expiresAt: validation.expiresAt.milliseconds, vary: validation.response.vary)
    }
}
