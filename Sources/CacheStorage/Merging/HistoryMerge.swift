import PrefetchModel
internal import SQLite

/// Merges the tables that do not describe images. Each rule depends on the set of rows alone, not
/// on the order of the sources.
struct HistoryMerge {
    let target: Connection
    let sources: [MergeSource]
    /// The wall clock. Rows from the future are skipped: they would hide present ones.
    let now: Timestamp

    /// Unites the names, before the images; of two recipes of a name, the one used later stays.
    func mergeNames() throws {
        var names: [String: (recipe: String, usedAt: Int64?)] = [:]
        try forEachRow(of: .variantName) { row, layout, _ in
            let name = try row.text(layout["name"])
            let recipe = try row.text(layout["recipe"])
            let usedAt = try row.optionalInteger(layout["used_at"])
            if let known = names[name],
                (known.usedAt ?? -1, known.recipe) >= (usedAt ?? -1, recipe)
            {
                return
            }
            names[name] = (recipe, usedAt)
        }
        let main = VariantName.main.text
        let others = names.keys.filter { $0 != main }.sorted()
        let identifiers = Dictionary(
            uniqueKeysWithValues: others.enumerated().map { ($1, Int64($0 + 1)) }
                + [(main, VariantNames.main)])
        let insertion = try target.prepare(
            "INSERT OR REPLACE INTO variant_name (id, name, recipe, used_at) VALUES (?, ?, ?, ?)")
        for (name, row) in names {
            try insertion.execute(
                .init(identifiers[name]), .text(name), .text(row.recipe), .init(row.usedAt))
        }
        try forEachRow(of: .variantName) { row, layout, source in
            let name = try row.text(layout["name"])
            source.names[try row.integer(layout["id"])] = identifiers[name]
        }
    }

    /// Keeps the last failure of each key and the latest end of its blacklisting, unless the image
    /// was validated at that time or later. Call after merging images.
    func mergeFailures() throws {
        let insertion = try RowInsertion(.failure, into: target)
        let layout = insertion.layout
        let until = layout["blacklisted_until"]
        let known = try target.prepare("SELECT \(layout.list) FROM failure WHERE key = ?")
        let removal = try target.prepare("DELETE FROM failure WHERE key = ?")
        try forEachRow(of: .failure) { row, layout, _ in
            var values = layout.columns.indices.map { row.value(Int32($0)) }
            // The identifiers of runs belong to another cache. A failure of a run without an end
            // stays one: no run has the identifier 0.
            if !row.isNull(layout["run_id"]) { values[Int(layout["run_id"])] = .integer(0) }
            let other = try known.first([row.value(layout["key"])]) { other in
                layout.columns.indices.map { other.value(Int32($0)) }
            }
            if let other {
                let all = layout.columns.indices.map(Int32.init).filter { $0 != until }
                let order = [layout["last_failed_at"]] + all
                func rank(_ values: [Statement.Value]) -> [Statement.Value] {
                    order.map { values[Int($0)] }
                }
                let ends = [[values[Int(until)]], [other[Int(until)]]]
                if rank(values).precedes(rank(other)) { values = other }
                values[Int(until)] = (ends[0].precedes(ends[1]) ? ends[1] : ends[0])[0]
                try removal.execute(row.value(layout["key"]))
            }
            try insertion.append(values)
        }
        try target.execute(
            """
            DELETE FROM failure WHERE last_failed_at <= (
                SELECT validated_at FROM resource WHERE resource.key = failure.key)
            """)
    }

    /// The time by which the rows of one host differ at most to be compared; see ``mergeHosts()``.
    private static let sameTime = Duration.seconds(86_400)

    /// Keeps the stricter limits of each host. Rows a day older than the newest one do not count: a
    /// host that has recovered would stay limited in a cache that is merged into repeatedly.
    func mergeHosts() throws {
        var states: [HostState] = []
        // The layout has the columns in the order of ``HostState/columns``.
        try forEachRow(of: .host) { row, _, _ in
            if let state = try HostState(row) { states.append(state) }
        }
        let newest = Dictionary(
            states.map { ($0.host, $0.updatedAt) }, uniquingKeysWith: { max($0, $1) })
        func either(_ function: String, _ column: String) -> String {
            """
            \(column) = \(function)(coalesce(\(column), excluded.\(column)),
                coalesce(excluded.\(column), \(column)))
            """
        }
        let insertion = try target.prepare(
            """
            INSERT INTO host (\(HostState.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (host) DO UPDATE SET
                \(either("min", "concurrency")), \(either("max", "failures_in_a_row")),
                \(either("max", "cooling_until")), \(either("max", "updated_at")),
                \(either("max", "interval_us")), \(either("min", "latency_us")),
                limited_by = CASE
                    WHEN 'refusals' IN (limited_by, excluded.limited_by) THEN 'refusals'
                    ELSE min(coalesce(limited_by, excluded.limited_by),
                        coalesce(excluded.limited_by, limited_by)) END
            """)
        for state in states {
            if let last = newest[state.host],
                last.timeSince(state.updatedAt) > HistoryMerge.sameTime
            {
                continue
            }
            try insertion.execute(state.values)
        }
    }

    /// Unites the runs that have ended, in the order of their starts. Doubtful files were compared
    /// with their digests, and everything is synchronised before the rows count.
    func mergeRuns() throws {
        let layout = try TableLayout(of: "run", in: target)
        let columns = layout.columns.map(\.name).filter { $0 != "id" }.joined(separator: ", ")
        let insertion = try RowInsertion(.run, into: target)
        var count: Int64 = 0
        try forEachRow(of: .run) { row, layout, _ in
            if row.isNull(layout["ended_at"]) { return }
            count += 1
            _ = try insertion.insert(
                row,
                replacing: [layout["id"]: .integer(-count), layout["files_synced"]: .integer(1)])
        }
        try target.execute(
            """
            INSERT INTO run (id, \(columns))
            SELECT row_number() OVER (ORDER BY \(columns)), \(columns) FROM (
                SELECT DISTINCT \(columns) FROM run WHERE id < 0
                ORDER BY \(columns.split(separator: ", ").map { "\($0) DESC" }
                    .joined(separator: ", ")) LIMIT \(RunLog.keptRuns));
            DELETE FROM run WHERE id < 0;
            """)
    }

    /// Unites the listings of each time, and of each period as a run does, after the images.
    func mergeListings(at now: Timestamp) throws {
        var listings: [[Int64]: [(source: MergeSource, row: StoredListing)]] = [:]
        var begin: Int64?
        var areKnown = true
        for source in sources {
            try source.reading {
                for row in try ListingLog.rows(in: source.connection) {
                    listings[[row.lastAt.milliseconds, row.firstAt.milliseconds], default: []]
                        .append((source, row))
                }
                let first = try Schema.Property.listingsBegin.value(in: source.connection)
                if let first {
                    begin = max(begin ?? first, first)
                } else if try source.hasRows(in: "resource") {
                    areKnown = false
                }
            }
        }
        let insertion = try target.prepare(
            "INSERT INTO listing (last_at, first_at, resources) VALUES (?, ?, ?)")
        for (times, rows) in listings.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            var union = ResourceSet()
            for (source, row) in rows {
                let set = try source.reading {
                    try ListingLog.set(
                        of: row, in: source.connection,
                        ListingLog.largestResource(in: source.connection))
                }
                // Without its bytes, any resource may have been listed.
                guard let set else {
                    areKnown = false
                    continue
                }
                set.forEach { if let merged = source.identifiers[$0] { union.insert(merged) } }
            }
            try insertion.execute(.integer(times[0]), .integer(times[1]), .blob(union.compressed))
        }
        try ListingLog.mergeOldSets(in: target, ListingLog.largestResource(in: target), at: now)
        if let begin, areKnown {
            try Schema.Property.listingsBegin.set(to: begin, in: target)
        }
    }

    /// Keeps the destination's own properties, except the ones merged with listings.
    func keepProperties() throws {
        let others = [Schema.Property.listingsBegin, .verifiedFolders].map(\.propertyName)
        let insertion = try RowInsertion(.property, into: target)
        try forEachRow(of: .property, sources: sources.filter { $0.number == 0 }) {
            row, layout, _ in
            if try others.contains(row.text(layout["name"])) { return }
            _ = try insertion.insert(row)
        }
    }

    /// The columns by which rows are from the future.
    private static let times = [
        "failure": "last_failed_at", "host": "updated_at", "run": "started_at",
    ]

    /// Calls `body` with each valid row of a table of all sources.
    private func forEachRow(
        of table: SalvagedTable, sources: [MergeSource]? = nil,
        _ body: (borrowing Statement, TableLayout, MergeSource) throws -> Void
    ) throws {
        let insertion = try RowInsertion(table, into: target)
        let layout = insertion.layout
        let time = HistoryMerge.times[table.name].map { layout[$0] }
        let latest = now.advanced(by: Timestamp.toleratedClockStep)
        for source in sources ?? self.sources {
            try source.forEachRow(of: insertion) { row in
                if let time, try row.time(time) > latest { return }
                try body(row, layout, source)
            }
        }
    }
}
