import Hashing
import PrefetchModel
internal import SQLite

extension MetadataStatements {
    /// Removes whole images and all their metadata. Uses one statement per table instead of one per
    /// image. So each table and index is traversed once, in page order as far as SQLite sorts.
    /// Triggers and foreign keys would traverse them for each image. Rows are read before the
    /// removal: RETURNING keeps all rows until its end and takes a third more time.
    mutating func remove(
        images ids: some Sequence<Int64>, in database: Connection
    ) throws -> RemovedRows {
        try database.withoutTriggers {
            try MetadataStatements.fillRemovalTable(with: ids, in: database)
            var totals = TotalsChange()
            var named: [NamedFile] = []
            var removed = try MetadataStatements.readRemoved(noting: &totals, &named, in: database)
            try deleteRemoved(in: database)
            let unnamed = try OrphanedFiles(among: named, in: database)
            named = []
            unnamed.count(in: &totals)
            removed.files = unnamed.files
            try totals.write(in: database)
            return removed
        }
    }

    /// Fills the table `removal` with the identifiers of the images to remove.
    private static func fillRemovalTable(
        with ids: some Sequence<Int64>, in database: Connection
    ) throws {
        // A failed transaction rolls the table back.
        try database.execute(
            "CREATE TEMP TABLE IF NOT EXISTS removal (id INTEGER PRIMARY KEY); DELETE FROM removal")
        let insertion = try database.prepare("INSERT OR IGNORE INTO removal VALUES (?)")
        for id in ids { try insertion.execute(.integer(id)) }
    }

    private static func readRemoved(
        noting totals: inout TotalsChange, _ named: inout [NamedFile], in database: Connection
    ) throws -> RemovedRows {
        var removed = RemovedRows()
        let rows = try database.prepare(
            """
            SELECT id, host, source_bytes, sha256, format, bytes, name, superseded
            FROM removal CROSS JOIN resource USING (id) LEFT JOIN variant ON resource_id = id
            """)
        var formats = FormatNames()
        while try rows.step() {
            let host = try rows.text(1)
            // An image has a row for each of its variants.
            if removed.gone.insert(try rows.integer(0)) {
                removed.wholeImages += 1
                totals.count(resources: -1, sourceBytes: Int(try rows.integer(2)))
            }
            guard !rows.isNull(3) else { continue }
            let bytes = Int(try rows.integer(5))
            totals.count(
                variants: -1, host: host, format: try rows.text(4), name: try rows.integer(6),
                isSuperseded: try rows.integer(7), bytes: bytes)
            named.append(
                NamedFile(
                    digest: try rows.digest(3), bytes: bytes,
                    format: formats.format(of: try rows.textBytes(4))))
            removed.variants += 1
        }
        removed.keysOfParts = try database.all(
            """
            SELECT key FROM partial CROSS JOIN resource USING (key)
            WHERE id IN (SELECT id FROM removal)
            """
        ) { try $0.text(0) }
        return removed
    }

    private mutating func deleteRemoved(in database: Connection) throws {
        if try mayHaveFailures(in: database) {
            try database.execute(
                """
                DELETE FROM failure WHERE key IN
                    (SELECT key FROM resource WHERE id IN (SELECT id FROM removal))
                """)
        }
        // In the order of the fingerprints.
        try database.execute(
            """
            DELETE FROM freshness WHERE fingerprint IN
                (SELECT fingerprint FROM freshness WHERE resource_id IN (SELECT id FROM removal))
            """)
        for (table, column) in [
            ("attribute", "resource_id"), ("variant", "resource_id"), ("resource", "id"),
        ] {
            try database.execute("DELETE FROM \(table) WHERE \(column) IN (SELECT id FROM removal)")
        }
        try database.execute("DELETE FROM removal")
    }

    /// Removes the selected variants, and images that lose their last variant.
    mutating func remove(
        _ batch: [RemovalCandidate], _ selector: VariantSelector, in database: Connection
    ) throws -> RemovedRows {
        var removed = RemovedRows()
        var files: [NamedFile] = []
        for candidate in batch {
            let variants = try VariantSelector.variants(selector, of: candidate.id, in: database)
            guard !variants.isEmpty else { continue }
            removed.gone.insert(candidate.id)
            for variant in variants {
                try database.run(
                    "DELETE FROM variant WHERE resource_id = ? AND recipe = ?",
                    .integer(candidate.id), .text(variant.recipe))
                try removeFreshness(key: candidate.key, recipe: variant.recipe, in: database)
            }
            removed.variants += variants.count
            files += variants.compactMap(\.image).map { image in
                NamedFile(digest: image.digest, bytes: image.size.bytes, format: image.format)
            }
            let hasOthers =
                try database.hasRow(
                    "SELECT 1 FROM variant WHERE resource_id = ? LIMIT 1", .integer(candidate.id))
            guard !hasOthers else { continue }
            // A trigger removes its other rows.
            try database.run("DELETE FROM resource WHERE id = ?", .integer(candidate.id))
            removed.wholeImages += database.changes > 0 ? 1 : 0
        }
        removed.files = try OrphanedFiles(among: files, in: database).files
        return removed
    }

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

/// The files of removed variants that no variant names any more.
struct OrphanedFiles {
    /// Sorted by digest, ascending; a digest may repeat.
    private let all: [NamedFile]

    /// Queries in the order of the index.
    init(among files: [NamedFile], in database: Connection) throws {
        let name = try database.prepare(MetadataStatements.nameOfDigest)
        var last: (digest: ContentDigest, isNamed: Bool)?
        all = try files.sorted { $0.digest.leadingWords < $1.digest.leadingWords }.filter { file in
            if let last, last.digest == file.digest { return !last.isNamed }
            let isNamed = try name.hasRow([.digest(file.digest)])
            last = (file.digest, isNamed)
            return !isNamed
        }
    }

    func count(in totals: inout TotalsChange) {
        var last: ContentDigest?
        for file in all where file.digest != last {
            totals.count(files: -1, bytes: file.bytes)
            last = file.digest
        }
    }

    /// The files with a known name, each once.
    var files: [NamedFile] {
        var files: [NamedFile] = []
        for file in all where file.format != nil {
            // One digest may have several formats.
            let isKnown = files.reversed().prefix { $0.digest == file.digest }
                .contains { $0.format == file.format }
            if !isKnown { files.append(file) }
        }
        return files
    }
}

/// A content file, as the row of a variant names it.
struct NamedFile: Hashable {
    let digest: ContentDigest
    let bytes: Int
    /// Nil for an unknown format, and thus file name.
    let format: ImageFormat?
}

struct RemovedRows {
    /// Files that no row names any more, each once, in the order of their folders.
    var files: [NamedFile] = []
    var variants = 0
    /// The number of images without a remaining variant.
    var wholeImages = 0
    var gone = ResourceSet()
    /// Keys of completely removed images that had a partial download.
    var keysOfParts: [String] = []
}

extension MetadataStatements.StoredFreshness {
    init(_ validation: ResourceValidation) {
        self.init(
            validatedAt: validation.validatedAt.milliseconds,
            expiresAt: validation.expiresAt.milliseconds, vary: validation.response.vary)
    }
}
