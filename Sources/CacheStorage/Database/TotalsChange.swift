import PrefetchModel
internal import SQLite

/// The effect of many changed rows on the totals, at a tenth of the cost of triggers for each.
struct TotalsChange {
    private struct TotalKey: Hashable {
        let host: String
        let format: String
        let name: Int64
        let superseded: Int64
    }

    private struct Sum {
        var count = 0
        var bytes = 0

        /// Damaged rows may hold any number; an overflow is reversed by the opposite change.
        mutating func add(_ count: Int, bytes more: Int) {
            self.count += count
            bytes &+= count &* more
        }
    }

    private var kinds: [TotalKey: Sum] = [:]
    private var resources = Sum()
    private var files = Sum()
    private var blocks = 0

    /// Counts an added (1) or removed (-1) resource.
    mutating func count(resources count: Int, sourceBytes bytes: Int) {
        resources.add(count, bytes: bytes)
    }

    /// Counts an added or removed variant. `format` is the column's text, of any value.
    mutating func count(
        variants count: Int, host: String, format: String, name: Int64, isSuperseded: Int64,
        bytes: Int
    ) {
        let kind = TotalKey(host: host, format: format, name: name, superseded: isSuperseded)
        kinds[kind, default: Sum()].add(count, bytes: bytes)
    }

    /// Counts a file that its first row names, or that its last row no longer names.
    mutating func count(files count: Int, bytes: Int) {
        files.add(count, bytes: bytes)
        // As the triggers count them.
        let whole = (bytes &+ (DiskUsage.blockSize - 1)) / DiskUsage.blockSize
        blocks &+= count &* whole
    }

    /// Writes the change. Call once.
    func write(in database: Connection) throws {
        let addition = try database.prepare(
            """
            INSERT INTO total VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT DO UPDATE SET variants = variants + ?5, bytes = bytes + ?6
            """)
        // As with the triggers, a missing row stays missing.
        let removal = try database.prepare(
            """
            UPDATE total SET variants = variants + ?5, bytes = bytes + ?6
            WHERE host = ?1 AND format = ?2 AND name = ?3 AND superseded = ?4
            """)
        for (kind, sum) in kinds {
            let values: [Statement.Value] = [
                .text(kind.host), .text(kind.format), .integer(kind.name),
                .integer(kind.superseded),
                .init(sum.count), .init(sum.bytes),
            ]
            if sum.count < 0 {
                try removal.execute(values)
            } else {
                try addition.execute(values)
            }
        }
        try database.run(
            """
            UPDATE usage SET resources = resources + ?1, source_bytes = source_bytes + ?2,
                files = files + ?3, file_bytes = file_bytes + ?4, blocks = blocks + ?5
            """, .init(resources.count), .init(resources.bytes), .init(files.count),
            .init(files.bytes), .init(blocks))
    }
}

/// Compares the tables of totals with a scan of the rows.
enum TotalsCheck {
    private static let usage =
        "SELECT resources, source_bytes, files, file_bytes, blocks FROM usage"
    private static let totals = """
        SELECT host, format, name, superseded, variants, bytes FROM total WHERE variants <> 0
        """

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
}

extension CacheInspection {
    /// The first difference between totals and rows, read in one transaction; nil without one.
    package func differenceOfTotals() throws(StorageError) -> String? {
        try database.read("comparing totals") { try TotalsCheck.difference(in: $0) }
    }
}

extension OpenCache {
    package func rebuildTotals() throws(StorageError) {
        try database.write("rebuilding totals") { database in
            try database.execute(
                """
                DELETE FROM total; INSERT INTO total \(Schema.totalSums);
                DELETE FROM usage; INSERT INTO usage SELECT 0, * FROM (\(Schema.usageSums));
                """)
        }
    }
}
