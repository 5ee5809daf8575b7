import PrefetchModel
internal import SQLite

/// What many changed rows do to the totals that triggers keep otherwise: summed up here and written
/// once, it costs a tenth of what the triggers do row by row.
struct TotalsChange {
    /// A row of the table `total`.
    private struct Kind: Hashable {
        let host: String
        let format: String
        let name: Int64
        let superseded: Int64
    }

    private struct Sum {
        var count = 0
        var bytes = 0

        /// Damaged rows may say anything: what overflows comes back with what goes the other way.
        mutating func add(_ count: Int, bytes more: Int) {
            self.count += count
            bytes &+= count &* more
        }
    }

    private var kinds: [Kind: Sum] = [:]
    private var resources = Sum()
    private var files = Sum()
    private var blocks = 0

    /// - Parameters:
    ///   - count: 1 for a resource that came, -1 for one that went.
    ///   - bytes: of its source.
    mutating func count(resources count: Int, sourceBytes bytes: Int) {
        resources.add(count, bytes: bytes)
    }

    /// The same for a variant. `format` is the column's text, which may be any.
    mutating func count(
        variants count: Int, host: String, format: String, name: Int64, isSuperseded: Int64,
        bytes: Int
    ) {
        let kind = Kind(host: host, format: format, name: name, superseded: isSuperseded)
        kinds[kind, default: Sum()].add(count, bytes: bytes)
    }

    /// The same for a file that no row named before, or that none names any more.
    mutating func count(files count: Int, bytes: Int) {
        files.add(count, bytes: bytes)
        // As the triggers count them.
        let whole = (bytes &+ (DiskUsage.blockSize - 1)) / DiskUsage.blockSize
        blocks &+= count &* whole
    }

    /// Writes it; once.
    func write(in database: Connection) throws {
        let addition = try Statement(
            database,
            sql: """
                INSERT INTO total VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                ON CONFLICT DO UPDATE SET variants = variants + ?5, bytes = bytes + ?6
                """)
        // A row that should be there and is not stays away, as with the triggers.
        let removal = try Statement(
            database,
            sql: """
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
        try Statement(
            database,
            sql: """
                UPDATE usage SET resources = resources + ?1, source_bytes = source_bytes + ?2,
                    files = files + ?3, file_bytes = file_bytes + ?4, blocks = blocks + ?5
                """
        ).execute(
            .init(resources.count), .init(resources.bytes), .init(files.count), .init(files.bytes),
            .init(blocks))
    }
}
