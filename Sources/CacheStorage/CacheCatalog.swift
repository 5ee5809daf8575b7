internal import GRDB
import Glibc
package import PrefetchModel

/// Reads the cache for people and scripts: what `get`, `list` and `stats` show.
package struct CacheCatalog: Sendable {
    /// One variant with its resource.
    package struct Item: Sendable {
        package let key: String
        package let url: String
        package let recipe: String
        package let image: StoredImage
        package let fetchedAt: Timestamp
        package let expiresAt: Timestamp
        package let sourceSize: ByteCount
        package let sourceFormat: String
    }

    /// Sums over the cache.
    package struct Statistics: Sendable {
        package let resources: Int
        package let variants: Int
        /// Equal images are one file.
        package let contentFiles: Int
        /// Bytes of the content files.
        package let contentBytes: Int
        /// Bytes of the sources as fetched.
        package let sourceBytes: Int
        package let expired: Int
        package let formats: [(format: String, variants: Int, bytes: Int)]
        package let databaseBytes: Int
        package let lastRun: Run?
    }

    /// A row of the run log.
    package struct Run: Sendable {
        package let startedAt: Timestamp
        package let endedAt: Timestamp?
        package let exitStatus: Int?
        package let manifest: String
    }

    private let database: CacheDatabase
    private let directory: CacheDirectory

    package init(directory: CacheDirectory) throws(StorageError) {
        self.directory = directory
        database = try CacheDatabase(directory: directory, access: .readOnly)
    }

    private static let columns = """
        sha256, format, width, height, bytes, key, url, recipe, fetched_at, expires_at,
        source_bytes, source_format
        """

    /// The variants of one key, the newest first.
    package func variants(of key: String) throws(StorageError) -> [Item] {
        try database.read("looking up") { database in
            try Row.fetchAll(
                database,
                sql: """
                    SELECT \(CacheCatalog.columns)
                    FROM resource JOIN variant ON id = resource_id WHERE key = ?
                    ORDER BY created_at DESC, recipe
                    """,
                arguments: [key]
            ).compactMap(Item.init)
        }
    }

    /// Calls `body` for every variant, ordered by key and recipe.
    ///
    /// The rows are streamed: memory stays flat however large the cache is.
    package func forEachVariant(_ body: (Item) throws -> Void) throws {
        // The caller's errors pass through unchanged.
        var failure: (any Error)?
        try database.read("listing") { database in
            let rows = try Row.fetchCursor(
                database,
                sql: """
                    SELECT \(CacheCatalog.columns)
                    FROM resource JOIN variant ON id = resource_id ORDER BY key, recipe
                    """)
            while failure == nil, let row = try rows.next() {
                guard let item = Item(row) else { continue }
                do { try body(item) } catch { failure = error }
            }
        }
        if let failure { throw failure }
    }

    package func statistics(at time: Timestamp) throws(StorageError) -> Statistics {
        let path = database.path
        return try database.read("counting") { database in
            func number(_ sql: String, _ arguments: StatementArguments = []) throws -> Int {
                try Int.fetchOne(database, sql: sql, arguments: arguments) ?? 0
            }
            let formats = try Row.fetchAll(
                database,
                sql: """
                    SELECT format, count(*), sum(bytes) FROM variant
                    GROUP BY format ORDER BY format
                    """
            ).map { (format: $0[0] as String, variants: $0[1] as Int, bytes: $0[2] as Int) }
            let run = try Row.fetchOne(
                database,
                sql: """
                    SELECT started_at, ended_at, exit_status, manifest
                    FROM run ORDER BY id DESC LIMIT 1
                    """
            ).map { row in
                Run(
                    startedAt: Timestamp(milliseconds: row[0]),
                    endedAt: (row[1] as Int64?).map(Timestamp.init(milliseconds:)),
                    exitStatus: row[2], manifest: row[3])
            }
            var status = stat()
            let databaseBytes = stat(path, &status) == 0 ? Int(status.st_size) : 0
            return Statistics(
                resources: try number("SELECT count(*) FROM resource"),
                variants: try number("SELECT count(*) FROM variant"),
                contentFiles: try number("SELECT count(DISTINCT sha256) FROM variant"),
                contentBytes: try number(
                    """
                    SELECT coalesce(sum(bytes), 0)
                    FROM (SELECT max(bytes) AS bytes FROM variant GROUP BY sha256)
                    """),
                sourceBytes: try number("SELECT coalesce(sum(source_bytes), 0) FROM resource"),
                expired: try number(
                    "SELECT count(*) FROM resource WHERE expires_at <= ?", [time.milliseconds]),
                formats: formats, databaseBytes: databaseBytes, lastRun: run)
        }
    }

    /// The path of a variant's content file, or nil when the file is missing or its size is not
    /// the row's.
    package func wholeFile(of image: StoredImage) -> String? {
        let path = directory.path(of: image)
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            Int(status.st_size) == image.size.bytes
        else { return nil }
        return path
    }
}

extension CacheCatalog.Item {
    /// Reads the columns of ``CacheCatalog``'s queries.
    fileprivate init?(_ row: Row) {
        guard let image = StoredImage(row, from: 0) else { return nil }
        self.init(
            key: row[5], url: row[6], recipe: row[7], image: image,
            fetchedAt: Timestamp(milliseconds: row[8]),
            expiresAt: Timestamp(milliseconds: row[9]),
            sourceSize: ByteCount(max(0, row[10])), sourceFormat: row[11])
    }
}
