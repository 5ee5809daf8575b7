internal import SQLite

/// The versions of the schema and of SQLite.
package enum StorageVersions {
    /// The newest version of the schema.
    package static var schema: String { Schema.migrator.migrations.last?.identifier ?? "0" }
    /// The version of the loaded SQLite library.
    package static var sqlite: String { Connection.libraryVersion }
}
