import PrefetchModel
internal import SQLite

/// A table whose rows a salvage carries into a new database.
///
/// Omitted are tables that follow from others: `freshness` is rebuilt, the next run fills `folder`,
/// and triggers keep the totals. `listing` is omitted because it serves only removals.
struct SalvagedTable: Sendable {
    let name: String
    /// The column that tells which of two rows of one key is newer.
    var age: String?
    /// A column other than the primary key with unique values.
    var unique: String?
    /// An index that repeats all rows.
    var index: String?
    /// Whether a row, whose values have the right types, is one that this program could have
    /// written.
    let isOurs: @Sendable (borrowing Statement, TableLayout) throws -> Bool

    /// All tables, each after those that it names.
    static let all = [
        SalvagedTable(
            name: "resource", age: "validated_at", unique: "key",
            index: "sqlite_autoindex_resource_1", isOurs: isResource),
        SalvagedTable(name: "variant_name", unique: "name", isOurs: isVariantName),
        SalvagedTable(
            name: "variant", age: "created_at", index: "variant_sha256", isOurs: isVariant),
        SalvagedTable(name: "attribute", isOurs: isAttribute),
        SalvagedTable(name: "failure", age: "last_failed_at", isOurs: isFailure),
        SalvagedTable(name: "host", age: "updated_at", isOurs: isHost),
        SalvagedTable(name: "partial", age: "created_at", isOurs: isPartial),
        SalvagedTable(name: "run", isOurs: isRun),
        SalvagedTable(name: "property", isOurs: isProperty),
    ]

    // MARK: Rows

    @Sendable private static func isResource(
        _ row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        guard try row.integer(columns["id"]) > 0, try !row.text(columns["key"]).isEmpty,
            try !row.text(columns["url"]).isEmpty, try !row.text(columns["host"]).isEmpty,
            ImageFormat(rawValue: try row.text(columns["source_format"])) != nil,
            try row.isDigest(columns["source_sha256"])
        else { return false }
        return try columns.areCounts(
            ["source_bytes", "source_width", "source_height", "redirects", "fetched_at"]
                + ["validated_at", "expires_at", "color"], in: row)
    }

    @Sendable private static func isVariantName(
        _ row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        let (id, name) = (try row.integer(columns["id"]), try row.text(columns["name"]))
        return try id >= 0 && (id == VariantNames.main) == (name == VariantName.main.text)
            && VariantName(name) != nil && isRecipe(try row.text(columns["recipe"]))
    }

    @Sendable private static func isVariant(
        _ row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        guard try row.integer(columns["resource_id"]) > 0,
            isRecipe(try row.text(columns["recipe"])), try row.isDigest(columns["sha256"]),
            ImageFormat(rawValue: try row.text(columns["format"])) != nil
        else { return false }
        return try columns.areCounts(
            ["width", "height", "bytes", "name", "superseded", "decoded", "created_at"]
                + ["orientation"], in: row)
    }

    @Sendable private static func isAttribute(
        _ row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        let name = try row.text(columns["name"])
        // A row of `variant` on a misplaced page begins like this.
        if try name.contains(";") && isRecipe(name) && row.isDigest(columns["value"]) {
            return false
        }
        return try row.integer(columns["resource_id"]) > 0
            && (1...255).contains(name.utf8.count) && !name.hasPrefix("prefetch.")
    }

    @Sendable private static func isFailure(
        _ row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        guard try !row.text(columns["key"]).isEmpty, try !row.text(columns["url"]).isEmpty,
            FailureReason(rawValue: try row.text(columns["reason"])) != nil,
            FailureRecord.Kind(rawValue: try row.text(columns["class"])) != nil
        else { return false }
        return try columns.areCounts(
            ["attempts", "runs_in_a_row", "first_failed_at", "last_failed_at", "run_id"], in: row)
    }

    @Sendable private static func isHost(
        _ row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        // `http://a:80`: other rows that begin with a text and numbers have no "://".
        try row.text(columns["host"]).contains("://")
            && row.optionalInteger(columns["concurrency"]) != 0
            && columns.areCounts(["concurrency", "failures_in_a_row", "updated_at"], in: row)
    }

    @Sendable private static func isPartial(
        _ row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        try !row.text(columns["key"]).isEmpty && row.isDigest(columns["sha256"])
            && row.isNull(columns["etag"]) != row.isNull(columns["last_modified"])
            && columns.areCounts(["bytes", "total", "created_at"], in: row)
    }

    @Sendable private static func isRun(
        _ row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        let counters = try row.optionalText(columns["counters"])
        return try row.integer(columns["id"]) > 0
            && counters.map { $0.hasPrefix("{") && $0.hasSuffix("}") } ?? true
            && columns.areCounts(
                ["started_at", "ended_at", "exit_status", "files_synced"], in: row)
    }

    @Sendable private static func isProperty(
        _ row: borrowing Statement, _ columns: TableLayout
    ) throws -> Bool {
        Schema.Property.isKnown(try row.text(columns["name"]))
    }

    /// Whether a text has the form of ``PrefetchModel/Recipe/canonicalText``.
    static func isRecipe(_ text: String) -> Bool {
        let encoding = text.prefix { $0 != ";" }
        return Recipe.Encoding(rawValue: String(encoding)) != nil
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}

extension TableLayout {
    /// Whether the values of the columns are 0 or more, or NULL where allowed.
    func areCounts(_ names: [String], in row: borrowing Statement) throws -> Bool {
        for name in names where try row.optionalInteger(self[name]) ?? 0 < 0 { return false }
        return true
    }
}

extension Statement {
    func isDigest(_ column: Int32) throws -> Bool {
        try blob(column, orDamage: "no BLOB") { $0.count } == ContentDigest.byteCount
    }
}
