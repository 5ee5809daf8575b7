import PrefetchModel
internal import SQLite

/// Carries what can be read of a damaged database, and what its snapshot has beside that, into a
/// new one.
///
/// Each table is read from both ends up to the damage. What lies between is looked for page by
/// page, as SQLite's own recovery does: rows that no way leads to any more are found so, too, and
/// those of a database without its schema. Every row has to be one that we may have written, and
/// what names a file has to have it.
struct Salvage {
    private let directory: CacheDirectory
    private let target: Connection
    private let insertions: [RowInsertion]
    /// Tables of which rows are missing, or may be.
    private(set) var incomplete: Set<String> = []
    private(set) var report = SalvageReport()
    private var witnesses: RowWitnesses?
    /// Resources whose keys the index does not confirm.
    private var unconfirmed: Set<Int64> = []
    /// Those of them whose keys it does not have, and that nothing else confirms yet.
    private var doubtful: Set<Int64> = []
    private var contradictions = 0
    /// Rows of the present table, whatever became of them.
    private var seen = 0
    /// Whether they followed each other by their keys: pages in the place of others bring rows
    /// twice, or too early.
    private var isOrdered = true
    /// Of rows that were read, perhaps more than once.
    private var lostFiles: Set<ContentDigest> = []

    /// More words against rows than these come of pages of another database: a bit that has changed
    /// leaves one or two.
    private static let toleratedContradictions = 8
    /// Where more of all variants are contradicted than one in so many, the pages that agree may do
    /// so by chance. A fortieth of all pages is another database's then, and for a wrong row three
    /// pages have to be: of 60 000 rows one.
    private static let believedContradictions = 20

    /// The target has the present schema, and no rows.
    init(directory: CacheDirectory, into target: Connection) throws {
        self.directory = directory
        self.target = target
        insertions = try SalvagedTable.all.map { try RowInsertion($0, into: target) }
    }

    /// Carries everything over; in a transaction of the new database, with its foreign keys off.
    /// Where there is no damaged database, everything is the snapshot's.
    ///
    /// - Throws: when the new database cannot be written, or there is no room for a copy of the old
    ///   one.
    mutating func run(isDamaged: Bool) throws {
        // The new database has a row of its own for `main`.
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
        // What was listed is not carried over; until runs note it anew, nothing counts as unlisted.
        try Schema.Property.listingsBegin.remove(in: target)
        try Schema.rebuildFreshness(in: target)
    }

    // MARK: The damaged database

    private mutating func readDamaged() throws {
        let copy = try DamagedCopy(of: directory)
        let whole = try copy.openWhole()
        let digests = try DigestIndex(in: target)
        try digests.readPagesIfHidden(of: whole, in: copy)
        witnesses = RowWitnesses(whole, digests)
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
            let isProved = try whole.map(digests.removeUnprovedVariants) ?? false
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

    /// The keys between which nothing could be read; nil for the end of the table.
    private struct Gap {
        var lower: [Statement.Value]?
        var upper: [Statement.Value]?

        /// Parameters are numbered in the order of the bounds.
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

    /// - Returns: what could not be read; nil where all could.
    private mutating func readFromBothEnds(
        _ insertion: RowInsertion, of source: Connection
    ) throws -> Gap? {
        var gap = Gap()
        let list: String
        do {
            list = try insertion.layout.list(in: source)
        } catch let error as SQLiteError where error.isUnreadable {
            return gap
        }
        seen = 0
        isOrdered = true
        for isDescending in [false, true] {
            let (condition, values) = gap.condition(insertion.layout)
            let sql = """
                SELECT \(list) FROM \(insertion.table.name) \(condition)
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

    /// Whether an index has more rows than could be read: a page that has lost its count of them
    /// looks sound.
    private func lacksRows(_ table: SalvagedTable, of source: Connection) throws -> Bool {
        guard let index = table.index else { return false }
        let sql = "SELECT count(*) FROM \(table.name) INDEXED BY \(index)"
        guard try source.canPrepare(sql) else { return true }
        let rows = try Statement(source, sql: sql)
        guard try rows.stepIfReadable() == true else { return true }
        return try rows.count(0) > seen
    }

    /// Reads rows of the gap from every page that is not claimed by another table, and claims those
    /// that have any.
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

    /// Reads rows until the end or damage; `note` hears of each whether it is one of the table's.
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
            let isOurs = try fits && insertion.table.isOurs(rows, insertion.layout)
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
            // Its freshness may tell when its variants come.
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

    /// Has a resource validated at its next use: one of its times was changed.
    private func expire(_ resource: Int64) throws {
        try Statement(target, sql: "UPDATE resource SET expires_at = 0 WHERE id = ?")
            .execute(.integer(resource))
    }

    private func removeResource(_ id: Int64) throws {
        try Statement(target, sql: "DELETE FROM resource WHERE id = ?").execute(.integer(id))
    }

    /// Sees that rows go together: nothing names what is not there, and of the variants of a name
    /// one is in use.
    private func settle() throws {
        try target.execute(
            """
            INSERT OR IGNORE INTO variant_name (id, name, recipe)
            VALUES (0, 'main', 'same;q=85;strip=safe');
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
    /// Whether the content file of a row of `variant` is there in its whole size.
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

extension [Statement.Value] {
    /// Whether a key comes before another one of the same columns, in SQLite's order ("Datatypes In
    /// SQLite", section 4).
    fileprivate func precedes(_ other: [Statement.Value]) -> Bool {
        for (value, other) in zip(self, other) {
            switch (value, other) {
            case (.integer(let value), .integer(let other)) where value != other:
                return value < other
            case (.text(let value), .text(let other))
            where !value.utf8.elementsEqual(other.utf8):
                return value.utf8.lexicographicallyPrecedes(other.utf8)
            case (.blob(let value), .blob(let other)) where value != other:
                return value.lexicographicallyPrecedes(other)
            default: continue
            }
        }
        return false
    }
}
