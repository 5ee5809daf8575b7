import Foundation
import SQLite
import Testing

@Suite(.timeLimit(.minutes(15)))
struct ConnectionTests {
    private let folder: DatabaseFolder

    init() throws {
        folder = try DatabaseFolder()
    }

    private func makeTable(_ rows: Int = 1) throws -> Connection {
        let connection = try folder.connect()
        try connection.execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a INTEGER) STRICT")
        for number in 0..<rows {
            try Statement(connection, sql: "INSERT INTO t VALUES (?)").execute(.init(number))
        }
        return connection
    }

    // MARK: Opening

    @Test func readsWhatAnotherConnectionWrote() throws {
        _ = try makeTable(3)
        #expect(try folder.connect(.readOnly).integers("SELECT a FROM t") == [0, 1, 2])
    }

    @Test func readerCreatesAndWritesNoFile() throws {
        #expect(
            #expect(throws: SQLiteError.self) { try folder.connect(.readOnly) }?.code.primary
                == .cannotOpen)
        #expect(!folder.contains(""))
        _ = try makeTable()
        let reader = try folder.connect(.readOnly)
        let error = #expect(throws: SQLiteError.self) { try reader.execute("DELETE FROM t") }
        #expect(error?.code.primary == .readOnly)
        #expect(try reader.integers("SELECT a FROM t") == [0])
    }

    /// The name contains every character with a meaning in URIs.
    @Test func readsAnImmutableDatabaseWithoutCompanions() throws {
        let writer = try makeTable(2)
        try writer.close()
        #expect(!folder.contains("-wal"))
        let reader = try folder.connect(.immutable)
        #expect(try reader.integers("SELECT a FROM t") == [0, 1])
        #expect(!folder.contains("-wal") && !folder.contains("-shm"))
        let other = try folder.connect(.readOnly)
        #expect(try other.integers("SELECT a FROM t") == [0, 1])
        #expect(folder.contains("-shm"))
    }

    @Test func opensNamesNotURIs() throws {
        let name = "file:\(UUID().uuidString)?mode=memory"
        defer { try? FileManager.default.removeItem(atPath: "./" + name) }
        try Connection(path: name, access: .readWrite).execute("CREATE TABLE t (a)")
        #expect(FileManager.default.fileExists(atPath: "./" + name))
    }

    @Test func firstStatementReportsANonDatabase() throws {
        try Data(repeating: 0x41, count: 8192)
            .write(to: URL(fileURLWithPath: folder.database))
        let connection = try folder.connect()
        let error = #expect(throws: SQLiteError.self) { try connection.pragma("user_version") }
        #expect(error?.code == .notADatabase)
        #expect(error?.message == "file is not a database")
    }

    @Test func doubleQuotesAreNoStrings() throws {
        let connection = try makeTable()
        let error = #expect(throws: SQLiteError.self) {
            try connection.integers("SELECT a FROM t WHERE a = \"b\"")
        }
        #expect(error?.code == .error)
        #expect(error?.message == "no such column: b")
        #expect(error?.sql == "SELECT a FROM t WHERE a = \"b\"")
    }

    @Test func pragmas() throws {
        let connection = try makeTable()
        try connection.execute("PRAGMA user_version = 7")
        #expect(try connection.pragma("user_version") == 7)
        #expect(try connection.pragma("foreign_keys") == 1)
        #expect(throws: SQLiteError.self) { try connection.pragma("nothing_known") }
    }

    // MARK: Closing

    @Test func closedConnectionThrows() throws {
        let connection = try makeTable()
        try connection.close()
        try connection.close()
        let error = #expect(throws: SQLiteError.self) { try connection.integers("SELECT a FROM t") }
        #expect(error?.code == .misuse)
        #expect(
            #expect(throws: SQLiteError.self) { try connection.execute("SELECT 1") }?.code
                == .misuse)
    }

    @Test func usedConnectionStaysOpen() throws {
        let connection = try makeTable(2)
        do {
            let rows = try Statement(connection, sql: "SELECT a FROM t")
            try expectRow(rows)
            #expect(#expect(throws: SQLiteError.self) { try connection.close() }?.code == .busy)
            try expectRow(rows)
        }
        try connection.close()
    }

    /// Releasing the last reference closes the connection, which removes the log.
    @Test func statementKeepsItsConnection() throws {
        do {
            let rows = try Statement(makeTable(2), sql: "SELECT a FROM t ORDER BY a")
            try expectRow(rows)
            let number = try rows.integer(0)
            #expect(number == 0)
            #expect(folder.contains("-wal"))
        }
        #expect(!folder.contains("-wal"))
    }

    // MARK: Transactions

    @Test func rollsBackAThrowingTransaction() throws {
        struct Stop: Error {}
        let connection = try makeTable()
        #expect(throws: Stop.self) {
            try connection.transaction(.immediate) {
                try connection.execute("INSERT INTO t VALUES (5)")
                throw Stop()
            }
        }
        #expect(try connection.integers("SELECT a FROM t") == [0])
        let count = try connection.transaction(.immediate) {
            try connection.execute("INSERT INTO t VALUES (6), (7)")
            return connection.changes
        }
        #expect(count == 2)
        #expect(connection.lastInsertedRowID == 3)
        #expect(try connection.integers("SELECT a FROM t") == [0, 6, 7])
    }

    /// SQLite rolls back automatically on some errors; a caller that ignores one must not assume a
    /// commit.
    @Test func commitsNoLostTransaction() throws {
        let connection = try makeTable()
        let error = #expect(throws: SQLiteError.self) {
            try connection.transaction(.immediate) {
                try connection.execute("INSERT INTO t VALUES (5)")
                try connection.execute("ROLLBACK")
            }
        }
        #expect(error?.code == .abort)
        #expect(try connection.integers("SELECT a FROM t") == [0])
    }

    @Test func failedCommitLeavesNoTransaction() throws {
        let connection = try makeTable()
        try connection.execute(
            """
            CREATE TABLE parent (id INTEGER PRIMARY KEY);
            CREATE TABLE child (parent REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)
            """)
        let error = #expect(throws: SQLiteError.self) {
            try connection.transaction(.immediate) {
                try connection.execute("INSERT INTO child VALUES (1)")
            }
        }
        // SQLITE_CONSTRAINT_FOREIGNKEY
        #expect(error?.code.rawValue == 787)
        #expect(error?.sql == "COMMIT")
        try connection.transaction(.immediate) {}
        #expect(try connection.integers("SELECT count(*) FROM child") == [0])
    }

    @Test func deferredTransactionSeesOneState() throws {
        let writer = try makeTable()
        let reader = try folder.connect(.readOnly)
        try reader.transaction(.deferred) {
            #expect(try reader.integers("SELECT a FROM t") == [0])
            try writer.execute("INSERT INTO t VALUES (1)")
            #expect(try reader.integers("SELECT a FROM t") == [0])
        }
        #expect(try reader.integers("SELECT a FROM t") == [0, 1])
    }

    @Test func admitsOneWriterAtATime() throws {
        let first = try makeTable()
        let second = try folder.connect(busyTimeout: .milliseconds(1))
        try first.transaction(.immediate) {
            let error = #expect(throws: SQLiteError.self) { try second.transaction(.immediate) {} }
            #expect(error?.code.primary == .busy)
            #expect(error?.sql == "BEGIN IMMEDIATE")
        }
        try second.transaction(.immediate) {}
    }

    // MARK: Checkpoints

    @Test func checkpointMovesTheLog() throws {
        let connection = try makeTable(3)
        let passive = try connection.checkpoint(.passive)
        #expect(passive.frames > 0 && passive.moved == passive.frames)
        let truncated = try connection.checkpoint(.truncate)
        #expect(truncated == (0, 0))
    }

    @Test func readerHoldsTheLogBack() throws {
        let connection = try makeTable()
        let reader = try folder.connect(.readOnly)
        try reader.transaction(.deferred) {
            #expect(try reader.integers("SELECT a FROM t") == [0])
            try connection.execute("INSERT INTO t VALUES (1)")
            let log = try connection.checkpoint(.passive)
            #expect(log.moved < log.frames)
            connection.setBusyTimeout(.zero)
            let error = #expect(throws: SQLiteError.self) { try connection.checkpoint(.truncate) }
            #expect(error?.code.primary == .busy)
        }
    }
}
