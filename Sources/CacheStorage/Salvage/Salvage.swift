import PrefetchModel
internal import SQLite

/// Carries all readable rows of a damaged database, and missing ones from its snapshot, into a new
/// one.
///
/// Each table is read from both ends up to the damage. The gap is searched page by page, as
/// SQLite's own recovery does, which also finds rows on unreachable pages and in a database without
/// its schema. Each row must be valid, and the file that it names must exist.
struct Salvage {
    private let directory: CacheDirectory
    /// The cache whose folder of temporary files is used.
    private let workspace: CacheDirectory
    private let target: Connection
    private let insertions: [RowInsertion]
    /// Tables with missing rows, certain or possible.
    private(set) var incomplete: Set<String> = []
    private(set) var report = SalvageReport()
    private var witnesses: RowWitnesses?
    /// Resources whose keys the index does not confirm.
    private var unconfirmed: Set<Int64> = []
    /// The unconfirmed resources without a key in the index, and without other confirmation so far.
    private var doubtful: Set<Int64> = []
    private var contradictions = 0
    /// The rows read from the current table, valid or not.
    private var seen = 0
    /// Whether the rows were in the order of their keys. A misplaced page repeats rows or yields
    /// them too early.
    private var isOrdered = true
    /// The missing files of rows that were read, perhaps repeatedly.
    private var lostFiles: Set<ContentDigest> = []

    /// The largest number of contradictions that flipped bits explain: one leaves one or two. More
    /// are caused by pages of another database.
    private static let toleratedContradictions = 8
    /// If more than one variant in 20 is contradicted, the remaining pages may agree by chance. Up
    /// to that, a fortieth of the pages belongs to another database. A wrong row needs three such
    /// pages, which happens for one row in 60,000.
    private static let believedContradictions = 20

    /// - Precondition: the target has the current schema and no rows.
    init(
        directory: CacheDirectory, workspace: CacheDirectory, into target: Connection
    ) throws {
        self.directory = directory
        self.workspace = workspace
        self.target = target
        insertions = try SalvagedTable.all.map { try RowInsertion($0, into: target) }
    }

    /// Carries all rows over, in a transaction of the new database with its foreign keys off.
    /// Without a damaged database, all rows are the snapshot's.
    ///
    /// - Throws: when the new database cannot be written, or there is no space for a copy of the
    ///   old one.
    mutating func run(isDamaged: Bool) throws {
        // The new database has a row for `main` already.
        try target.execute("DELETE FROM variant_name")
        if isDamaged {
            try readDamaged()
            try settle()
            report.salvaged = try SalvageReport.Counts(of: target)
        } else {
            incomplete = Set(SalvagedTable.all.map(\.name))
        }
        var merge = SnapshotMerge(
            directory: directory, target: target, insertions: insertions, incomplete: incomplete)
        let time = try merge.run()
        try settle()
        report.restored = try SalvageReport.Counts(of: target) - report.salvaged
        if !report.restored.isEmpty { report.snapshotTime = time }
        report.lostFiles = lostFiles.count
        // Listings are not carried over; until runs record new ones, nothing counts as unlisted.
        try Schema.Property.listingsBegin.remove(in: target)
        try Schema.rebuildFreshness(in: target)
    }

    // MARK: The damaged database

    private mutating func readDamaged() throws {
        let copy = try DamagedCopy(of: directory, in: workspace)
        let whole = try copy.openWhole(
            directory.path(of: CacheDirectory.databaseName))
        let tables = ["resource", "variant", "freshness"]
        let witness = try whole.flatMap { try tables.allSatisfy($0.isOrdinaryTable) ? $0 : nil }
        let digests = try DigestIndex(in: target)
        try digests.readPagesIfHidden(of: witness, in: copy)
        witnesses = RowWitnesses(witness, digests)
        defer { witnesses = nil }
        var claimed: Set<Int> = []
        for insertion in insertions {
            var gap: Gap? = Gap()
            if let whole { gap = try readFromBothEnds(insertion, of: whole) }
            guard let gap else { continue }
            incomplete.insert(insertion.table.name)
            try readPages(insertion, gap, of: copy, &claimed)
        }
        for id in doubtful { try removeResource(id) }
        if contradictions > Salvage.toleratedContradictions {
            let isProved = try witness.map(digests.removeUnprovedVariants) ?? false
            let variants = try Statement(target, sql: "SELECT count(*) FROM variant")
                .first { try $0.count(0) }
            report.isMixed =
                !isProved || contradictions > (variants ?? 0) / Salvage.believedContradictions
            if report.isMixed { try target.execute("DELETE FROM resource") }
        }
        if contradictions > 0 || !doubtful.isEmpty {
            incomplete.formUnion(["resource", "variant", "attribute"])
        }
    }

    /// The keys around an unreadable part; nil for an end of the table.
    private struct Gap {
        var lower: [Statement.Value]?
        var upper: [Statement.Value]?

        /// Parameters are numbered in the order of the keys.
        func condition(_ layout: TableLayout) -> (sql: String, values: [Statement.Value]) {
            var (terms, values): ([String], [Statement.Value]) = ([], [])
            for (bound, comparison) in [(lower, ">"), (upper, "<")] {
                guard let bound else { continue }
                terms.append(
                    "\(layout.keyList) \(comparison) \(layout.keyParameters(from: values.count + 1))"
                )
                values += bound
            }
            return (terms.isEmpty ? "" : "WHERE " + terms.joined(separator: " AND "), values)
        }
    }

    /// - Returns: the unreadable part; nil if the whole table was read.
    private mutating func readFromBothEnds(
        _ insertion: RowInsertion, of source: Connection
    ) throws -> Gap? {
        var gap = Gap()
        do {
            try insertion.layout.check(in: source)
        } catch let error as SQLiteError where error.isUnreadable {
            return gap
        }
        seen = 0
        isOrdered = true
        for isDescending in [false, true] {
            let (condition, values) = gap.condition(insertion.layout)
            let sql = """
                SELECT \(insertion.layout.list) FROM \(insertion.table.name) \(condition)
                ORDER BY \(insertion.layout.order(isDescending: isDescending))
                """
            let (isWhole, last) = try read(
                sql, values, isDescending: isDescending, of: source, insertion
            ) { _ in }
            if isWhole {
                let isComplete = try isOrdered && !lacksRows(insertion.table, of: source)
                return isComplete ? nil : Gap()
            }
            if isDescending { gap.upper = last } else { gap.lower = last }
        }
        return gap
    }

    /// Whether an index has more rows than were read: a page with a damaged count looks sound.
    private func lacksRows(_ table: SalvagedTable, of source: Connection) throws -> Bool {
        guard let index = table.index else { return false }
        let sql = "SELECT count(*) FROM \(table.name) INDEXED BY \(index)"
        guard try source.canPrepare(sql) else { return true }
        let rows = try Statement(source, sql: sql)
        guard try rows.stepIfReadable() == true else { return true }
        return try rows.count(0) > seen
    }

    /// Reads rows of the gap from each page that no table has claimed, and claims the pages with
    /// such rows.
    private mutating func readPages(
        _ insertion: RowInsertion, _ gap: Gap, of copy: DamagedCopy,
        _ claimed: inout Set<Int>
    ) throws {
        let layout = insertion.layout
        let (condition, values) = gap.condition(layout)
        var found: Set<Int> = []
        try copy.forEachPage(
            ofKinds: layout.hasRowID ? [.tableLeaf] : [.indexLeaf, .indexInterior], as: layout
        ) { page, number in
            guard !claimed.contains(number) else { return }
            for isDescending in [false, true] {
                let sql = """
                    SELECT \(layout.list) FROM page
                    \(condition.isEmpty ? "WHERE" : condition + " AND") surplus IS NULL
                    ORDER BY \(layout.order(isDescending: isDescending))
                    """
                let (isWhole, _) = try read(
                    sql, values, isDescending: isDescending, of: page, insertion
                ) {
                    if $0 { found.insert(number) }
                }
                if isWhole { break }
            }
        }
        claimed.formUnion(found)
    }

    /// Reads rows until the end or damage; calls `note` for each with whether it belongs to the
    /// table.
    ///
    /// - Returns: whether the end was reached, and the last row's key.
    private mutating func read(
        _ sql: String, _ values: [Statement.Value], isDescending: Bool, of source: Connection,
        _ insertion: RowInsertion, _ note: (Bool) -> Void
    ) throws -> (isWhole: Bool, last: [Statement.Value]?) {
        guard try source.canPrepare(sql) else { return (false, nil) }
        let rows = try Statement(source, sql: sql)
        try rows.bind(values)
        var last: [Statement.Value]?
        while let hasRow = try rows.stepIfReadable() {
            guard hasRow else { return (true, last) }
            seen += 1
            let fits = insertion.layout.fits(rows)
            if fits {
                let key = insertion.layout.key(of: rows)
                if let last, !(isDescending ? key.precedes(last) : last.precedes(key)) {
                    isOrdered = false
                }
                last = key
            }
            let isOurs = try fits && insertion.isValid(rows)
            note(isOurs)
            if isOurs {
                try take(rows, insertion)
            } else {
                incomplete.insert(insertion.table.name)
            }
        }
        return (false, last)
    }

    // MARK: Rows

    private mutating func take(_ row: borrowing Statement, _ insertion: RowInsertion) throws {
        let name = insertion.table.name
        switch name {
        case "resource": guard try isBelieved(resource: row, insertion.layout) else { return }
        case "variant": guard try isBelieved(variant: row, insertion.layout) else { return }
        default: break
        }
        if case .refused = try insertion.insert(row) { incomplete.insert(name) }
    }

    private mutating func isBelieved(
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
            incomplete.insert(columns.table)
            return false
        }
    }

    private mutating func isBelieved(
        variant row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        let id = try row.integer(columns["resource_id"])
        let recipe = try row.text(columns["recipe"])
        let resource = try Statement(
            target, sql: "SELECT key, validated_at, expires_at FROM resource WHERE id = ?"
        ).first(.integer(id)) {
            (key: try $0.text(0), times: [try $0.integer(1), try $0.integer(2)])
        }
        guard let resource else {
            incomplete.insert(columns.table)
            return false
        }
        if let witnesses {
            let digest = try witnesses.variant(
                of: id, recipe: recipe, hasDigest: row.value(columns["sha256"]))
            let (link, times) = try witnesses.freshness(
                key: resource.key, recipe: recipe, isOf: id)
            switch (digest, link) {
            case (.another, _), (_, .another):
                contradictions += 1
                incomplete.insert(columns.table)
                return false
            case (.no, _), (.unknown, .no):
                incomplete.insert(columns.table)
                return false
            case (.yes, .yes), (.unknown, .yes):
                doubtful.remove(id)
                if times != resource.times { try expire(id) }
            case (.yes, .no):
                guard unconfirmed.contains(id) else { break }
                incomplete.insert(columns.table)
                return false
            case (.yes, .unknown), (.unknown, .unknown):
                break
            }
        }
        guard try directory.hasFile(of: row, columns) else {
            lostFiles.insert(try row.digest(columns["sha256"]))
            return false
        }
        return true
    }

    /// Makes the next use validate a resource, one of whose times is wrong.
    private func expire(_ resource: Int64) throws {
        try Statement(target, sql: "UPDATE resource SET expires_at = 0 WHERE id = ?")
            .execute(.integer(resource))
    }

    private func removeResource(_ id: Int64) throws {
        try Statement(target, sql: "DELETE FROM resource WHERE id = ?").execute(.integer(id))
    }

    /// Makes rows consistent: none names a missing row, and each name has one current variant.
    private func settle() throws {
        try target.execute(
            """
            INSERT OR IGNORE INTO \(Schema.mainVariantName);
            DELETE FROM attribute WHERE resource_id NOT IN (SELECT id FROM resource);
            DELETE FROM variant WHERE resource_id NOT IN (SELECT id FROM resource);
            UPDATE variant SET name = 0, superseded = 1
            WHERE name NOT IN (SELECT id FROM variant_name);
            UPDATE variant SET superseded = 1 WHERE NOT superseded AND EXISTS (
                SELECT 1 FROM variant AS other WHERE other.resource_id = variant.resource_id
                    AND other.name = variant.name AND NOT other.superseded
                    AND (other.created_at, other.recipe) > (variant.created_at, variant.recipe));
            DELETE FROM failure WHERE last_failed_at < (
                SELECT validated_at FROM resource WHERE resource.key = failure.key);
            """)
    }
}

extension CacheDirectory {
    /// Whether the content file of a row of `variant` exists in its full size.
    func hasFile(of row: borrowing Statement, _ columns: TableLayout) throws -> Bool {
        guard let format = ImageFormat(rawValue: try row.text(columns["format"])) else {
            return false
        }
        return hasWholeFile(
            StoredImage(
                digest: try row.digest(columns["sha256"]), format: format,
                widthInPixels: try row.count(columns["width"]),
                heightInPixels: try row.count(columns["height"]),
                size: ByteCount(try row.count(columns["bytes"]))))
    }
}
