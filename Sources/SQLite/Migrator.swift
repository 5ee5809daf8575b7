/// Migrates a database to the current schema, one version at a time.
///
/// A table with one row per applied migration records the versions.
package struct Migrator: Sendable {
    /// A step from one version to the next.
    package struct Migration: Sendable {
        package let identifier: String
        let migrate: @Sendable (Connection) throws -> Void

        package init(
            _ identifier: String, _ migrate: @escaping @Sendable (Connection) throws -> Void
        ) {
            self.identifier = identifier
            self.migrate = migrate
        }
    }

    private let table: String
    /// Oldest first.
    package let migrations: [Migration]

    /// Creates a migrator.
    ///
    /// - Parameters:
    ///   - table: The name of the table of versions; inserted into SQL unescaped.
    ///   - migrations: Oldest first.
    package init(table: String, _ migrations: [Migration]) {
        self.table = table
        self.migrations = migrations
    }

    /// Applies the missing migrations, each in its own transaction.
    ///
    /// Foreign keys are off meanwhile, so that tables can be rebuilt, and are checked before each
    /// commit.
    ///
    /// - Throws: When a migration fails, after earlier ones were committed.
    package func migrate(_ connection: Connection) throws {
        try connection.execute(
            "CREATE TABLE IF NOT EXISTS \(table) (identifier TEXT NOT NULL PRIMARY KEY)")
        let applied = try applied(in: connection)
        let lacking = migrations.filter { !applied.contains($0.identifier) }
        guard !lacking.isEmpty else { return }
        // Has no effect inside a transaction.
        try connection.execute("PRAGMA foreign_keys = OFF")
        // Cannot fail if switching off succeeded.
        defer { try? connection.execute("PRAGMA foreign_keys = ON") }
        for migration in lacking {
            try connection.transaction(.immediate) {
                try migration.migrate(connection)
                try Statement(connection, sql: "INSERT INTO \(table) (identifier) VALUES (?)")
                    .execute(.text(migration.identifier))
                try checkForeignKeys(connection)
            }
        }
    }

    /// The identifiers of the migrations that the database has, also unknown ones.
    package func applied(in connection: Connection) throws -> Set<String> {
        let tables = try Statement(
            connection, sql: "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
        ).all(.text(table)) { _ in true }
        guard !tables.isEmpty else { return [] }
        let rows = try Statement(connection, sql: "SELECT identifier FROM \(table)")
        return Set(try rows.all { try $0.text(0) })
    }

    private func checkForeignKeys(_ connection: Connection) throws {
        // Columns: table, rowid, parent, number of the key.
        let dangling = try Statement(connection, sql: "PRAGMA foreign_key_check").first {
            (try $0.text(0), try $0.text(2))
        }
        guard let (child, parent) = dangling else { return }
        throw SQLiteError(
            code: .foreignKey, message: "a row of \(child) names a missing row of \(parent)")
    }
}
