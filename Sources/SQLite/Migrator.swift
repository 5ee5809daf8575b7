/// Brings a database to the present schema, one version after another.
///
/// Which versions a database has is said by a table of its own, with a row for each.
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
    /// From the oldest to the newest.
    package let migrations: [Migration]

    /// - Parameters:
    ///   - table: the name of the table of versions, which becomes part of statements.
    ///   - migrations: from the oldest to the newest.
    package init(table: String, _ migrations: [Migration]) {
        self.table = table
        self.migrations = migrations
    }

    /// Whether a newer version has written the database: it has a migration that is not in the
    /// list.
    package func hasBeenSuperseded(in connection: Connection) throws -> Bool {
        let known = Set(migrations.map(\.identifier))
        return try !applied(in: connection).isSubset(of: known)
    }

    /// Whether the database has every migration of the list.
    package func isComplete(in connection: Connection) throws -> Bool {
        let applied = try applied(in: connection)
        return migrations.allSatisfy { applied.contains($0.identifier) }
    }

    /// Applies what the database lacks, each migration in a transaction of its own.
    ///
    /// Foreign keys are off meanwhile, so that tables may be made anew, and are checked before each
    /// commit.
    ///
    /// - Throws: when one fails, after those before it have been committed.
    package func migrate(_ connection: Connection) throws {
        try connection.execute(
            "CREATE TABLE IF NOT EXISTS \(table) (identifier TEXT NOT NULL PRIMARY KEY)")
        let applied = try applied(in: connection)
        let lacking = migrations.filter { !applied.contains($0.identifier) }
        guard !lacking.isEmpty else { return }
        // Has no effect inside a transaction.
        try connection.execute("PRAGMA foreign_keys = OFF")
        // Cannot fail where the other way has worked.
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

    private func applied(in connection: Connection) throws -> Set<String> {
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
            code: .foreignKey, message: "a row of \(child) names one of \(parent) that is not there"
        )
    }
}
