import PrefetchModel
internal import SQLite

/// What the index `variant_sha256` of a damaged database says, entry by entry: which digest which
/// variant has.
///
/// The way through an index does not lead to all of its entries where a page of its inside is
/// damaged or in another's place. Those of pages that nothing leads to are found as rows are, page
/// by page; they are proof as long as nothing speaks of pages of another database.
final class DigestIndex {
    private let target: Connection
    /// Whether the entries of all pages are known.
    private(set) var hasEveryPage = false

    private static let order = """
        SELECT sha256, resource_id, recipe FROM variant INDEXED BY variant_sha256
        ORDER BY sha256, resource_id, recipe
        """
    private static let layout = TableLayout(
        of: "variant_sha256",
        columns: [("sha256", .blob), ("resource_id", .integer), ("recipe", .text)],
        keys: ["sha256", "resource_id", "recipe"])

    /// The target keeps the entries, in a temporary table.
    init(in target: Connection) throws {
        self.target = target
        try target.execute(
            """
            CREATE TEMP TABLE named (resource_id, recipe, sha256,
                PRIMARY KEY (resource_id, recipe, sha256)) WITHOUT ROWID
            """)
    }

    /// Reads the entries of all pages, unless the way through the index leads to one for each
    /// variant. Without a `source` there is no way.
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
            let entries = try Statement(page, sql: sql)
            // Pages of other tables end with their first row.
            while try entries.stepIfReadable() == true, try DigestIndex.isEntry(entries) {
                try note(entries)
            }
        }
        try target.execute("CREATE INDEX named_sha256 ON named (sha256)")
    }

    /// What the entries of all pages say of a variant. Equal images have one digest: that another
    /// variant has it, too, is no word against this one as long as nothing says that this one has
    /// another.
    func word(
        on digest: Statement.Value, of resource: Int64, recipe: String
    ) throws -> RowWitnesses.Word {
        let (all, agreeing) =
            try Statement(
                target,
                sql: """
                    SELECT count(*), coalesce(sum(sha256 = ?3), 0) FROM named
                    WHERE resource_id = ?1 AND recipe = ?2
                    """
            ).first(.integer(resource), .text(recipe), digest) {
                (try $0.integer(0), try $0.integer(1))
            } ?? (0, 0)
        // Pages that are free may say what was so once.
        if agreeing > 0 { return all == 1 ? .yes : .no }
        let isOfOthers =
            try Statement(target, sql: "SELECT 1 FROM named WHERE sha256 = ? LIMIT 1")
            .first(digest) { _ in true } ?? false
        // A digest that nobody has is one of which a bit has changed, here or there.
        if all > 0 { return isOfOthers ? .another : .no }
        return isOfOthers ? .no : .unknown
    }

    /// Removes the variants but for those to which the index gives one digest, and the same: where
    /// it gives several, one of them is another database's. What only pages say that nothing leads
    /// to is no proof here: they may be that database's as well.
    ///
    /// - Returns: whether all of the index could be read, so that this says something.
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

    // MARK: Entries

    /// Whether the entries can be read to the last, follow each other in order, and are as many as
    /// there are variants.
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
        let rows = try Statement(source, sql: sql)
        guard try rows.stepIfReadable() == true else { return false }
        return try rows.count(0) <= count
    }

    /// - Returns: whether the end was reached.
    private static func readInOrder(
        of source: Connection, _ body: (borrowing Statement) throws -> Void
    ) throws -> Bool {
        guard try source.canPrepare(order) else { return false }
        let entries = try Statement(source, sql: order)
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
        // One without them is no entry of the index.
        if entry.isNull(0) || entry.isNull(1) || entry.isNull(2) { return }
        let insertion = try Statement(
            target,
            sql: "INSERT OR IGNORE INTO named (sha256, resource_id, recipe) VALUES (?, ?, ?)")
        for column in Int32(0)..<3 {
            try insertion.bind(column: column, of: entry, at: column + 1)
        }
        while try insertion.step() {}
    }
}
