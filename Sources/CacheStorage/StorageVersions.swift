internal import GRDB
internal import GRDBSQLite

/// What caches are written by.
package enum StorageVersions {
    /// That of the schema: the last of its migrations.
    package static var schema: String { Schema.migrator.migrations.last ?? "0" }
    /// SQLite as it is loaded.
    package static var sqlite: String { String(cString: sqlite3_libversion()) }
}
