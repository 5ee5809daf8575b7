import SQLite
import Testing

@Suite(.timeLimit(.minutes(1)))
struct MigratorTests {
    private let folder: DatabaseFolder
    private let connection: Connection

    init() throws {
        folder = try DatabaseFolder()
        connection = try folder.connect()
    }

    private static let first = Migrator.Migration("1") {
        try $0.execute("CREATE TABLE a (id INTEGER PRIMARY KEY)")
    }
    private static let second = Migrator.Migration("2") {
        try $0.execute("CREATE TABLE b (a REFERENCES a (id))")
    }

    private func migrator(_ migrations: [Migrator.Migration]) -> Migrator {
        Migrator(table: "versions", migrations)
    }

    private var versions: [String] {
        get throws {
            try Statement(connection, sql: "SELECT identifier FROM versions ORDER BY rowid")
                .all { try $0.text(0) }
        }
    }

    @Test func appliesEachMigrationOnce() throws {
        let old = migrator([Self.first])
        let new = migrator([Self.first, Self.second])
        #expect(try old.applied(in: connection) == [])
        try old.migrate(connection)
        #expect(try new.applied(in: connection) == ["1"])
        #expect(try versions == ["1"])
        try new.migrate(connection)
        try new.migrate(connection)
        #expect(try versions == ["1", "2"])
        #expect(try old.applied(in: connection) == ["1", "2"])
    }

    /// Earlier migrations stay, and nothing of the failing one.
    @Test func failedMigrationLeavesNothing() throws {
        let failing = Migrator.Migration("3") {
            try $0.execute("CREATE TABLE c (x)")
            try $0.execute("CREATE TABLE a (id)")
        }
        let error = #expect(throws: SQLiteError.self) {
            try migrator([Self.first, Self.second, failing]).migrate(connection)
        }
        #expect(error?.message == "table a already exists")
        #expect(try versions == ["1", "2"])
        #expect(
            try connection.integers("SELECT count(*) FROM sqlite_schema WHERE name = 'c'") == [0])
        #expect(try connection.pragma("foreign_keys") == 1)
    }

    /// Foreign keys are off while tables are rebuilt, and are checked at the end.
    @Test func migrationMayRebuildATableWithoutDanglingRows() throws {
        try migrator([Self.first, Self.second]).migrate(connection)
        try connection.execute("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)")
        let anew = Migrator.Migration("3") {
            try $0.execute(
                """
                CREATE TABLE new (id INTEGER PRIMARY KEY, x);
                INSERT INTO new (id) SELECT id FROM a;
                DROP TABLE a;
                ALTER TABLE new RENAME TO a;
                """)
        }
        try migrator([Self.first, Self.second, anew]).migrate(connection)
        #expect(try connection.integers("SELECT a FROM b") == [1])
        let dangling = Migrator.Migration("4") { try $0.execute("DELETE FROM a") }
        let error = #expect(throws: SQLiteError.self) {
            try migrator([Self.first, Self.second, anew, dangling]).migrate(connection)
        }
        #expect(error?.code == .foreignKey)
        #expect(error?.message == "a row of b names a missing row of a")
        #expect(try versions == ["1", "2", "3"])
        #expect(try connection.integers("SELECT id FROM a") == [1])
    }

    @Test func versionOfAnotherTypeIsDamage() throws {
        try connection.execute(
            "CREATE TABLE versions (identifier); INSERT INTO versions VALUES (1)")
        let error = #expect(throws: SQLiteError.self) {
            try migrator([Self.first]).migrate(connection)
        }
        #expect(error?.code == .corrupt)
    }
}
