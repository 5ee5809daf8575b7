internal import SQLite

/// The versions of the schema and of SQLite.
package enum StorageVersions {
    package static var schema: String { "\(Schema.schemaVersion)" }
    /// The version of the loaded SQLite library.
    package static var sqlite: String { Connection.libraryVersion }
}
