package import PrefetchModel
internal import SQLite

/// Carries all readable rows of a damaged database, and missing ones from its snapshot, into a new
/// one. Each table is read from both ends up to the damage. The gap is searched page by page, as
/// SQLite's own recovery does, which also finds rows on unreachable pages and in a database without
/// its schema. Each row must be valid, and the file that it names must exist.
struct Salvage {
    private let directory: CacheDirectory
    private let workspace: CacheDirectory
    private let target: Connection
    private let insertions: [RowInsertion]
    /// Tables with missing rows, certain or possible.
    private(set) var incomplete: Set<String> = []
    private(set) var report = SalvageReport()
    private var trust = RowTrust()
    /// The rows read from the current table, valid or not.
    private var seen = 0
    /// Whether rows were in the order of keys: a misplaced page repeats rows, or is early.
    private var isOrdered = true
    /// The missing files of rows that were read, perhaps repeatedly.
    private var lostFiles: Set<ContentDigest> = []
    /// The changed identifiers of the snapshot's resources; nil for resources left out.
    private var identifiers: [Int64: Int64?] = [:]
    /// The resources that only the snapshot had.
    private var added: Set<Int64> = []

    /// - Precondition: the target has the current schema and no rows.
    init(directory: CacheDirectory, workspace: CacheDirectory, into target: Connection) throws {
        self.directory = directory
        self.workspace = workspace
        self.target = target
        insertions = try SalvagedTable.all.map { try RowInsertion($0, into: target) }
    }

    /// Carries all rows over, in a transaction of the new database with its foreign keys off.
    /// Without a damaged database, all rows are the snapshot's.
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
        let time = try mergeSnapshot()
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
        let whole = try copy.openWhole(directory.path(of: CacheDirectory.databaseName))
        let tables = ["resource", "variant", "freshness"]
        let witness = try whole.flatMap { try tables.allSatisfy($0.isOrdinaryTable) ? $0 : nil }
        let digests = try DigestIndex(in: target)
        try digests.readPagesIfHidden(of: witness, in: copy)
        trust.witnesses = RowWitnesses(witness, digests)
        defer { trust.witnesses = nil }
        var claimed: Set<Int> = []
        for insertion in insertions {
            var gap: Gap? = Gap()
            if let whole { gap = try readFromBothEnds(insertion, of: whole) }
            guard let gap else { continue }
            incomplete.insert(insertion.table.name)
            try readPages(insertion, gap, of: copy, &claimed)
        }
        for id in trust.doubtful {
            try target.run("DELETE FROM resource WHERE id = ?", .integer(id))
        }
        if trust.mayBeMixed {
            let isProved = try witness.map(digests.removeUnprovedVariants) ?? false
            let variants = try target.first("SELECT count(*) FROM variant") { try $0.count(0) }
            report.isMixed = !isProved || trust.isMixed(variants: variants ?? 0)
            if report.isMixed { try target.execute("DELETE FROM resource") }
        }
        if trust.hasDoubts { incomplete.formUnion(["resource", "variant", "attribute"]) }
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

    /// Returns the unreadable part; nil if the whole table was read.
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
        let rows = try source.prepare(sql)
        guard try rows.stepIfReadable() == true else { return true }
        return try rows.count(0) > seen
    }

    /// Reads rows of the gap from pages that no table has claimed, and claims the useful ones.
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
    /// table. Returns whether the end was reached, and the last row's key.
    private mutating func read(
        _ sql: String, _ values: [Statement.Value], isDescending: Bool, of source: Connection,
        _ insertion: RowInsertion, _ note: (Bool) -> Void
    ) throws -> (isWhole: Bool, last: [Statement.Value]?) {
        guard try source.canPrepare(sql) else { return (false, nil) }
        let rows = try source.prepare(sql)
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

    private mutating func take(_ row: borrowing Statement, _ insertion: RowInsertion) throws {
        let (name, columns) = (insertion.table.name, insertion.layout)
        let isBelieved =
            switch name {
            case "resource": try trust.isBelieved(resource: row, columns)
            case "variant": try trust.isBelieved(variant: row, columns, in: target)
            default: true
            }
        guard isBelieved else {
            incomplete.insert(name)
            return
        }
        if name == "variant", try !directory.hasFile(of: row, columns) {
            lostFiles.insert(try row.digest(columns["sha256"]))
            return
        }
        if case .refused = try insertion.insert(row) { incomplete.insert(name) }
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

    // MARK: The snapshot

    /// Adds rows of the snapshot that the damaged database did not yield. Tables that were read
    /// completely get none: rows that they lack were removed. Of an image in both, the damaged
    /// database's newer row stays. Variants are added only to the source that they were made from.
    /// Returns the time of the snapshot; nil without a readable one.
    private mutating func mergeSnapshot() throws -> Timestamp? {
        guard !incomplete.isEmpty, let (snapshot, time) = try openSnapshot() else { return nil }
        for insertion in insertions {
            switch insertion.table.name {
            case "resource":
                try forEachRow(of: insertion, in: snapshot) { try match($0, insertion) }
            case "variant", "attribute":
                guard incomplete.contains(insertion.table.name) || !added.isEmpty else { continue }
                try forEachRow(of: insertion, in: snapshot) { try follow($0, insertion) }
            case let name:
                guard incomplete.contains(name) else { continue }
                try forEachRow(of: insertion, in: snapshot) { _ = try insertion.insert($0) }
            }
        }
        // Images without files were removed since the snapshot.
        for id in added {
            try target.run(
                """
                DELETE FROM resource WHERE id = ?1
                    AND NOT EXISTS (SELECT 1 FROM variant WHERE resource_id = ?1)
                """, .integer(id))
        }
        return time
    }

    private func openSnapshot() throws -> (Connection, Timestamp)? {
        guard let time = directory.snapshotTime else { return nil }
        do {
            let connection = try Connection(
                path: directory.path(of: CacheDirectory.snapshotName), access: .immutable)
            try connection.readSchema()
            // Each table is compared before its rows are read.
            let isOurs =
                try connection.pragma("application_id") == Schema.applicationID
                && connection.pragma("user_version") == Schema.schemaVersion
            return isOurs ? (connection, time) : nil
        } catch let error as SQLiteError where error.isUnreadable {
            return nil
        }
    }

    /// Calls `body` with the valid rows of a table, up to damage.
    private func forEachRow(
        of insertion: RowInsertion, in snapshot: Connection,
        _ body: (borrowing Statement) throws -> Void
    ) throws {
        do {
            try insertion.layout.check(in: snapshot)
        } catch {
            // The snapshot has no such table, or cannot be read.
            return
        }
        let rows = try snapshot.prepare(
            "SELECT \(insertion.layout.list) FROM \(insertion.table.name)")
        while try rows.stepIfReadable() == true {
            if try insertion.isValid(rows) { try body(rows) }
        }
    }

    /// Finds the resource with the row's key, or adds it.
    private mutating func match(_ row: borrowing Statement, _ insertion: RowInsertion) throws {
        let columns = insertion.layout
        let id = try row.integer(columns["id"])
        let known = try target.first(
            "SELECT id, source_sha256 FROM resource WHERE key = ?", row.value(columns["key"])
        ) { (id: try $0.integer(0), source: try $0.digest(1)) }
        if let known, try !makesRoom(of: known.id) {
            let isSame = try row.digest(columns["source_sha256"]) == known.source
            if !isSame || known.id != id {
                identifiers.updateValue(isSame ? known.id : nil, forKey: id)
            }
            return
        }
        guard incomplete.contains("resource") else {
            identifiers.updateValue(nil, forKey: id)
            return
        }
        let isTaken =
            try target.hasRow("SELECT 1 FROM resource WHERE id = ?", .integer(id))
        guard
            case .inserted = try insertion.insert(
                row, replacing: isTaken ? [columns["id"]: .null] : [:])
        else {
            identifiers.updateValue(nil, forKey: id)
            return
        }
        let newID = target.lastInsertedRowID
        if newID != id { identifiers.updateValue(newID, forKey: id) }
        added.insert(newID)
    }

    /// Removes a resource that has lost its variants, in favour of the snapshot's.
    private func makesRoom(of resource: Int64) throws -> Bool {
        guard incomplete.contains("resource") else { return false }
        try target.run(
            """
            DELETE FROM resource WHERE id = ?1
                AND NOT EXISTS (SELECT 1 FROM variant WHERE resource_id = ?1)
            """, .integer(resource))
        return target.changes > 0
    }

    private func follow(_ row: borrowing Statement, _ insertion: RowInsertion) throws {
        let columns = insertion.layout
        let id = try row.integer(columns["resource_id"])
        guard let newID = identifiers[id, default: id],
            incomplete.contains(columns.table) || added.contains(newID)
        else { return }
        if columns.table == "variant", try !directory.hasFile(of: row, columns) { return }
        _ = try insertion.insert(row, replacing: [columns["resource_id"]: .integer(newID)])
    }
}

extension CacheDirectory {
    /// Whether the content file of a row of `variant` exists in its full size.
    fileprivate func hasFile(of row: borrowing Statement, _ columns: TableLayout) throws -> Bool {
        guard let format = ImageFormat(rawValue: try row.text(columns["format"])) else {
            return false
        }
        return hasWholeFile(
            ContentFile(
                digest: try row.digest(columns["sha256"]),
                size: ByteCount(try row.count(columns["bytes"])), format: format))
    }
}

/// The rows that a new database has taken from a damaged or lost one.
package struct SalvageReport: Hashable, Sendable {
    package struct Counts: Hashable, Sendable {
        package var images = 0
        package var failures = 0
        package var hosts = 0
        package var runs = 0

        package static func - (left: Counts, right: Counts) -> Counts {
            Counts(
                images: max(0, left.images - right.images),
                failures: max(0, left.failures - right.failures),
                hosts: max(0, left.hosts - right.hosts), runs: max(0, left.runs - right.runs))
        }

        package var isEmpty: Bool { self == Counts() }
    }

    package internal(set) var salvaged = Counts()
    package internal(set) var restored = Counts()
    /// The time of the snapshot, if any row is from it.
    package internal(set) var snapshotTime: Timestamp?
    /// Images with readable rows and missing or incomplete files.
    package internal(set) var lostFiles = 0
    /// Whether it contains another database's pages, so that any image may have another's URL.
    package internal(set) var isMixed = false
}

extension SalvageReport.Counts {
    init(of database: Connection) throws {
        func count(_ source: String) throws -> Int {
            try database.first("SELECT count(*) FROM \(source)") { try $0.count(0) }
                ?? 0
        }
        images = try count(
            "resource WHERE EXISTS (SELECT 1 FROM variant WHERE resource_id = resource.id)")
        failures = try count("failure")
        hosts = try count("host")
        runs = try count("run")
    }
}
