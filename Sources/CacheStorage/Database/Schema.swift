import PrefetchModel
internal import SQLite

// The metadata in `prefetch.sqlite`. docs/cache.md explains tables, columns and properties,
// docs/schema.sql has the other tables; a test compares the statements of both with a new database.
// Times are milliseconds since 1970-01-01 00:00 UTC.
// Digests are the 32 bytes of a SHA-256 as a BLOB; `lower(hex(sha256))` gives the file's name.
// Other programs may read the database while a run writes (WAL).
//
// A row never names a missing file: files are on the disk before their rows are committed, and are
// removed after the removal of the last row that names them is permanent. A crash of the machine
// can leave two exceptions, both repaired by the next run: a row of `partial` without its file, and
// rows of runs with `--sync off`. `freshness` repeats the resource for each variant; if two
// variants have the same `fingerprint`, one of them has no row. Rows of `variant`, `freshness` and
// `attribute` are removed with their resource, also when another program removes it.
enum Schema {
    /// The version of the tables, kept in `PRAGMA user_version`. A cache of another version is
    /// refused and stays unchanged.
    static let schemaVersion: Int64 = 1

    /// `PRAGMA application_id`: "prfc", which marks a database of this program.
    static let applicationID: Int32 = 0x7072_6663

    /// Makes all tables in an empty database.
    static func makeTables(_ database: Connection) throws {
        try database.transaction(.immediate) {
            for statements in [images, failures, runs, totals, resourceTriggers, variantTriggers] {
                try database.execute(statements)
            }
            try database.execute(
                "INSERT INTO \(mainVariantName); PRAGMA user_version = \(schemaVersion)")
        }
    }

    /// The row of `main`, as the target and values of an INSERT.
    static let mainVariantName = """
        variant_name (id, name, recipe) VALUES (0, 'main', 'same;q=85;strip=safe')
        """
}
