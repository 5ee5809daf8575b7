internal import SQLite

/// Compares the tables of totals with a scan of the rows.
enum TotalsCheck {
    private static let usage =
        "SELECT resources, source_bytes, files, file_bytes, blocks FROM usage"
    private static let totals = """
        SELECT host, format, name, superseded, variants, bytes FROM total WHERE variants <> 0
        """

    /// A description of the first difference; nil without one.
    static func difference(in database: Connection) throws -> String? {
        func differ(_ kept: String, _ sums: String) throws -> Bool {
            try database.first(
                """
                SELECT EXISTS (SELECT * FROM (\(kept)) EXCEPT SELECT * FROM (\(sums)))
                    OR EXISTS (SELECT * FROM (\(sums)) EXCEPT SELECT * FROM (\(kept)))
                """
            ) { try $0.integer(0) != 0 } ?? false
        }
        if try differ(usage, Schema.usageSums) {
            return "the totals of files and bytes are not the sums of the rows"
        }
        if try differ(totals, Schema.totalSums) {
            return "the totals by host and format are not the sums of the rows"
        }
        return nil
    }

    /// Rebuilds the totals.
    static func repair(in database: Connection) throws {
        try database.execute("DELETE FROM total; DELETE FROM usage; \(Schema.sumUpTotals)")
    }
}

extension CacheInspection {
    /// A description of the first difference between totals and rows, both read in one transaction;
    /// nil without one.
    package func differenceOfTotals() throws(StorageError) -> String? {
        try database.read("comparing totals") { try TotalsCheck.difference(in: $0) }
    }
}

extension OpenCache {
    /// Rebuilds the totals from the rows.
    package func rebuildTotals() throws(StorageError) {
        try database.write("rebuilding totals") { try TotalsCheck.repair(in: $0) }
    }
}
