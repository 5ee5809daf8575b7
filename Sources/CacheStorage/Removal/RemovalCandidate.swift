import PrefetchModel
internal import SQLite

package struct RemovalCandidate: Sendable {
    /// Images read and removed together: one or two seconds of work.
    package static let batchSize = 65_536

    /// The batch size where only identifiers are in memory. Index pages are written once a batch.
    /// Removing 500,000 of a million images took 9.8 s of CPU and 134 MB, twice this size 10.0 s
    /// and 162 MB, and 65,536 candidates 12.9 s and 167 MB (docs/benchmarks.md).
    static let largestBatch = 131_072

    static func batchSize(of selector: VariantSelector?) -> Int {
        selector == nil ? largestBatch : batchSize
    }

    let id: Int64
    package let key: String
    /// Scheme, host and port.
    package let host: String
    package let hasFailed: Bool

    private static let columns = """
        id, key, host, EXISTS (SELECT 1 FROM failure WHERE failure.key = resource.key)
        """

    private init(_ row: borrowing Statement) throws {
        id = try row.integer(0)
        key = try row.text(1)
        host = try row.text(2)
        hasFailed = try row.integer(3) != 0
    }

    static func find(
        key: String, in database: CacheDatabase
    ) throws(StorageError) -> RemovalCandidate? {
        try database.read("looking up") { database in
            try database.first("SELECT \(columns) FROM resource WHERE key = ?", .text(key)) {
                try RemovalCandidate($0)
            }
        }
    }

    /// Returns the candidates that still exist, in the order of the identifiers.
    static func find(
        ids: some Sequence<Int64>, in database: CacheDatabase
    ) throws(StorageError) -> [RemovalCandidate] {
        try database.read("looking up") { database in
            let statement = try database.prepare("SELECT \(columns) FROM resource WHERE id = ?")
            return try ids.compactMap { id in
                try statement.first(.integer(id)) { try RemovalCandidate($0) }
            }
        }
    }

    static func next(
        after last: RemovalCandidate?, in database: CacheDatabase
    ) throws(StorageError) -> [RemovalCandidate] {
        try database.read("looking for images") { database in
            try database.all(
                "SELECT \(columns) FROM resource WHERE id > ? ORDER BY id LIMIT ?",
                .integer(last?.id ?? .min), .init(batchSize)
            ) { try RemovalCandidate($0) }
        }
    }
}
