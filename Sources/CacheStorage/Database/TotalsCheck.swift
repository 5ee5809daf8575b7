internal import SQLite

/// The tables of totals against a scan of what they sum up.
enum TotalsCheck {
    private static let usage =
        "SELECT resources, source_bytes, files, file_bytes, blocks FROM usage"
    private static let totals = """
        SELECT host, format, name, superseded, variants, bytes FROM total WHERE variants <> 0
        """

    /// What differs, for people; nil when nothing does.
    static func difference(in database: Connection) throws -> String? {
        func differ(_ kept: String, _ sums: String) throws -> Bool {
            try Statement(
                database,
                sql: """
                    SELECT EXISTS (SELECT * FROM (\(kept)) EXCEPT SELECT * FROM (\(sums)))
                        OR EXISTS (SELECT * FROM (\(sums)) EXCEPT SELECT * FROM (\(kept)))
                    """
            ).first { try $0.integer(0) != 0 } ?? false
        }
        if try differ(usage, Schema.usageSums) {
            return "the totals of files and bytes are not the sums of the rows"
        }
        if try differ(totals, Schema.totalSums) {
            return "the totals by host and format are not the sums of the rows"
        }
        return nil
    }

    /// Makes the totals anew.
    static func mend(in database: Connection) throws {
        try database.execute("DELETE FROM total; DELETE FROM usage; \(Schema.sumUpTotals)")
    }
}

extension CacheInspection {
    /// Whether the totals are the sums of the rows, as both were at one moment: nil when they are, else what
    /// differs, for people.
    package func differenceOfTotals() throws(StorageError) -> String? {
        try database.read("comparing totals") { try TotalsCheck.difference(in: $0) }
    }
}

extension OpenCache {
    /// Makes the totals anew from the rows.
    package func rebuildTotals() throws(StorageError) {
        try database.write("making totals anew") { try TotalsCheck.mend(in: $0) }
    }
}
