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
