internal import SQLite

/// What caches are written by.
package enum StorageVersions {
    /// That of the schema: the last of its migrations.
    package static var schema: String { Schema.migrator.migrations.last?.identifier ?? "0" }
    /// SQLite as it is loaded.
    package static var sqlite: String { Connection.libraryVersion }
}
