import PrefetchModel
internal import SQLite

/// The entries of the index `variant_sha256` of a damaged database: the digest of each variant.
/// Without an interior page, some cannot be reached from the root, and are read page by page, like
/// rows. They count as proof unless there are signs of pages of another database.
final class DigestIndex {
    private let target: Connection
    private(set) var hasEveryPage = false

    private static let order = """
        SELECT sha256, resource_id, recipe FROM variant INDEXED BY variant_sha256
        ORDER BY sha256, resource_id, recipe
        """
    private static let layout = TableLayout(
        of: "variant_sha256",
        columns: [("sha256", .blob), ("resource_id", .integer), ("recipe", .text)],
        keys: ["sha256", "resource_id", "recipe"])

    /// Creates a temporary table in the target for the entries.
    init(in target: Connection) throws {
        self.target = target
        try target.execute(
            """
            CREATE TEMP TABLE named (resource_id, recipe, sha256,
                PRIMARY KEY (resource_id, recipe, sha256)) WITHOUT ROWID
            """)
    }

    /// Reads the entries of all pages, unless the root of `source` leads to one of each variant.
    func readPagesIfHidden(of source: Connection?, in copy: DamagedCopy) throws {
        if let source, try DigestIndex.isWhole(in: source) { return }
        hasEveryPage = true
        let layout = DigestIndex.layout
        let sql = """
            SELECT \(layout.list) FROM page WHERE surplus IS NULL
            ORDER BY \(layout.order(isDescending: false))
            """
        try copy.forEachPage(ofKinds: [.indexLeaf, .indexInterior], as: layout) { page, _ in
            guard try page.canPrepare(sql) else { return }
            let entries = try page.prepare(sql)
            // Pages of other tables end with their first row.
            while try entries.stepIfReadable() == true, try DigestIndex.isEntry(entries) {
                try note(entries)
            }
        }
        try target.execute("CREATE INDEX named_sha256 ON named (sha256)")
    }

    /// The testimony of all entries about a variant. Equal images share a digest, so another
    /// variant's entry contradicts this one only if this one's own has another digest.
    func word(
        on digest: Statement.Value, of resource: Int64, recipe: String
    ) throws -> RowWitnesses.Word {
        let (all, agreeing) =
            try target.first(
                """
                SELECT count(*), coalesce(sum(sha256 = ?3), 0) FROM named
                WHERE resource_id = ?1 AND recipe = ?2
                """, .integer(resource), .text(recipe), digest
            ) {
                (try $0.integer(0), try $0.integer(1))
            } ?? (0, 0)
        // Free pages may hold outdated entries.
        if agreeing > 0 { return all == 1 ? .yes : .no }
        let isOfOthers =
            try target.hasRow("SELECT 1 FROM named WHERE sha256 = ? LIMIT 1", digest)
        // A digest without any entry has a flipped bit, in the row or in the index.
        if all > 0 { return isOfOthers ? .another : .no }
        return isOfOthers ? .no : .unknown
    }

    /// Removes each variant unless the index has exactly one digest for it, equal to the row's: of
    /// several, one belongs to another database, as entries that the root does not lead to may.
    /// Returns whether the whole index could be read; otherwise this proves nothing.
    func removeUnprovedVariants(_ source: Connection) throws -> Bool {
        hasEveryPage = false
        try target.execute("DELETE FROM named")
        guard try DigestIndex.readInOrder(of: source, { try note($0) }) else { return false }
        try target.execute(
            """
            DELETE FROM variant WHERE sha256 IS NOT (
                SELECT iif(count(*) = 1, max(sha256), NULL) FROM named
                WHERE named.resource_id = variant.resource_id
                    AND named.recipe = variant.recipe)
            """)
        return true
    }

    /// Whether all entries can be read, are in order, and are as many as the variants.
    private static func isWhole(in source: Connection) throws -> Bool {
        var count = 0
        var last: [UInt8] = []
        var isOrdered = true
        let isRead = try readInOrder(of: source) { entry in
            count += 1
            guard isOrdered, try isEntry(entry) else {
                isOrdered = false
                return
            }
            let digest = try entry.blob(0)
            isOrdered = !digest.lexicographicallyPrecedes(last)
            last = digest
        }
        guard isRead, isOrdered else { return false }
        let sql = "SELECT count(*) FROM variant NOT INDEXED"
        guard try source.canPrepare(sql) else { return false }
        let rows = try source.prepare(sql)
        guard try rows.stepIfReadable() == true else { return false }
        return try rows.count(0) <= count
    }

    /// Returns whether the end was reached.
    private static func readInOrder(
        of source: Connection, _ body: (borrowing Statement) throws -> Void
    ) throws -> Bool {
        guard try source.canPrepare(order) else { return false }
        let entries = try source.prepare(order)
        while let hasEntry = try entries.stepIfReadable() {
            guard hasEntry else { return true }
            try body(entries)
        }
        return false
    }

    private static func isEntry(_ row: borrowing Statement) throws -> Bool {
        try layout.fits(row) && row.isDigest(0) && row.integer(1) > 0
            && SalvagedTable.isRecipe(row.text(2))
    }

    private func note(_ entry: borrowing Statement) throws {
        // An entry without these values does not belong to the index.
        if entry.isNull(0) || entry.isNull(1) || entry.isNull(2) { return }
        let insertion = try target.prepare(
            "INSERT OR IGNORE INTO named (sha256, resource_id, recipe) VALUES (?, ?, ?)")
        for column in Int32(0)..<3 {
            try insertion.bind(column: column, of: entry, at: column + 1)
        }
        while try insertion.step() {}
    }
}
