import PrefetchModel
internal import SQLite

/// A table that a salvage carries into a new database. `freshness` is rebuilt, the next run fills
/// `folder`, triggers keep the totals, and `listing` serves only removals.
struct SalvagedTable: Sendable {
    let name: String
    /// The column that tells which of two rows of one key is newer.
    var age: String?
    /// A column other than the primary key with unique values.
    var unique: String?
    /// An index that repeats all rows.
    var index: String?
    /// Makes a check of a layout's rows: whether this program could have written the values.
    let makeCheck: @Sendable (TableLayout) -> RowCheck

    typealias RowCheck = (borrowing Statement) throws -> Bool

    /// All tables, each after the tables that it names.
    static let all = [
        resource, variantName, variant, attribute, failure, host,
        SalvagedTable(name: "partial", age: "created_at", makeCheck: checkPartial),
        run, property,
    ]

    static let resource = SalvagedTable(
        name: "resource", age: "validated_at", unique: "key",
        index: "sqlite_autoindex_resource_1", makeCheck: checkResource)
    static let variantName = SalvagedTable(
        name: "variant_name", unique: "name", makeCheck: checkVariantName)
    static let variant = SalvagedTable(
        name: "variant", age: "created_at", index: "variant_sha256", makeCheck: checkVariant)
    static let attribute = SalvagedTable(name: "attribute", makeCheck: checkAttribute)
    static let failure = SalvagedTable(
        name: "failure", age: "last_failed_at", makeCheck: checkFailure)
    static let host = SalvagedTable(name: "host", age: "updated_at", makeCheck: checkHost)
    static let run = SalvagedTable(name: "run", makeCheck: checkRun)
    static let property = SalvagedTable(name: "property", makeCheck: checkProperty)

    // The positions of columns are found once for all rows.

    @Sendable private static func checkResource(_ columns: TableLayout) -> RowCheck {
        let texts = columns.positions(["key", "url", "host"])
        let (id, digest) = (columns["id"], columns["source_sha256"])
        let format = columns["source_format"]
        var formats = FormatNames()
        let counts = columns.positions([
            "source_bytes", "source_width", "source_height", "redirects", "fetched_at",
            "validated_at", "expires_at", "permanent_until",
        ])
        let colour = columns["color"]
        return { row in
            for text in texts where try row.textBytes(text).isEmpty { return false }
            return try row.integer(id) > 0 && row.isDigest(digest)
                && formats.format(of: row.textBytes(format)) != nil && row.areCounts(counts)
                && (0...0xFF_FFFF).contains(row.optionalInteger(colour) ?? 0)
        }
    }

    @Sendable private static func checkVariantName(_ columns: TableLayout) -> RowCheck {
        { row in
            let (id, name) = (try row.integer(columns["id"]), try row.text(columns["name"]))
            return try id >= 0 && (id == VariantNames.main) == (name == VariantName.main.text)
                && VariantName(name) != nil && isRecipe(try row.text(columns["recipe"]))
        }
    }

    @Sendable private static func checkVariant(_ columns: TableLayout) -> RowCheck {
        let (resource, recipe) = (columns["resource_id"], columns["recipe"])
        let (digest, format) = (columns["sha256"], columns["format"])
        let counts = columns.positions([
            "width", "height", "bytes", "name", "created_at", "orientation",
        ])
        let marks = columns.positions(["superseded", "decoded"])
        var formats = FormatNames()
        // Few recipes are in use.
        var last: [UInt8] = []
        return { row in
            let text = try row.textBytes(recipe)
            if !text.elementsEqual(last) {
                guard isRecipe(try row.text(recipe)) else { return false }
                last = Array(text)
            }
            return try row.integer(resource) > 0 && row.isDigest(digest)
                && formats.format(of: row.textBytes(format)) != nil && row.areCounts(counts)
                && marks.allSatisfy { try (0...1).contains(row.integer($0)) }
        }
    }

    @Sendable private static func checkAttribute(_ columns: TableLayout) -> RowCheck {
        { row in
            let name = try row.text(columns["name"])
            // A row of `variant` on a misplaced page begins like this.
            if try name.contains(";") && isRecipe(name) && row.isDigest(columns["value"]) {
                return false
            }
            return try row.integer(columns["resource_id"]) > 0
                && (1...255).contains(name.utf8.count) && !name.hasPrefix("prefetch.")
        }
    }

    @Sendable private static func checkFailure(_ columns: TableLayout) -> RowCheck {
        let counts = columns.positions([
            "attempts", "runs_in_a_row", "first_failed_at", "last_failed_at", "run_id",
        ])
        return { row in
            guard try !row.text(columns["key"]).isEmpty, try !row.text(columns["url"]).isEmpty,
                FailureReason(rawValue: try row.text(columns["reason"])) != nil,
                let kind = FailureClass(rawValue: try row.text(columns["class"])), kind != .ours
            else { return false }
            return try row.areCounts(counts)
        }
    }

    @Sendable private static func checkHost(_ columns: TableLayout) -> RowCheck {
        let counts = columns.positions(["concurrency", "failures_in_a_row", "updated_at"])
        let waits = columns.positions(["interval_us", "latency_us"])
        let longest = HostLog.microseconds(HostState.longestWait)
        return { row in
            for wait in waits
            where try !(1...longest).contains(row.optionalInteger(wait) ?? 1) { return false }
            // `http://a:80`: other rows that begin with a text and numbers have no "://".
            return try row.text(columns["host"]).contains("://")
                && row.optionalInteger(columns["concurrency"]) != 0 && row.areCounts(counts)
        }
    }

    @Sendable private static func checkPartial(_ columns: TableLayout) -> RowCheck {
        let counts = columns.positions(["bytes", "total", "created_at"])
        return { row in
            try !row.text(columns["key"]).isEmpty && row.isDigest(columns["sha256"])
                && row.isNull(columns["etag"]) != row.isNull(columns["last_modified"])
                && row.areCounts(counts)
        }
    }

    @Sendable private static func checkRun(_ columns: TableLayout) -> RowCheck {
        let counts = columns.positions(["started_at", "ended_at", "exit_status", "files_synced"])
        return { row in
            let counters = try row.optionalText(columns["counters"])
            return try row.integer(columns["id"]) > 0
                && counters.map { $0.hasPrefix("{") && $0.hasSuffix("}") } ?? true
                && row.areCounts(counts)
        }
    }

    @Sendable private static func checkProperty(_ columns: TableLayout) -> RowCheck {
        { row in Schema.Property.isKnown(try row.text(columns["name"])) }
    }

    /// Whether a text has the form of ``PrefetchModel/Recipe/canonicalText``.
    static func isRecipe(_ text: String) -> Bool {
        let encoding = text.prefix { $0 != ";" }
        return Recipe.Encoding(rawValue: String(encoding)) != nil
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}

extension TableLayout {
    fileprivate func positions(_ names: [String]) -> [Int32] { names.map { self[$0] } }
}

extension Statement {
    func isDigest(_ column: Int32) throws -> Bool {
        try blobBytes(column).count == ContentDigest.byteCount
    }

    /// Whether values are 0 to 2⁴⁸, so that a sum of many does not overflow, or NULL.
    fileprivate func areCounts(_ columns: [Int32]) throws -> Bool {
        for column in columns
        where try !(0...1 << 48).contains(optionalInteger(column) ?? 0) { return false }
        return true
    }
}
