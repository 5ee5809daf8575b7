import Testing

@testable import SQLite

/// The time limit of statements, with clock readings set by hand.
@Suite(.timeLimit(.minutes(15)))
struct StatementWatchTests {
    private let folder: DatabaseFolder
    private let connection: Connection
    /// Runs for longer than the instructions between two looks at the clock.
    private static let count = """
        WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
        SELECT count(*) FROM n
        """

    init() throws {
        folder = try DatabaseFolder()
        connection = try folder.connect()
        try connection.readSchema()
    }

    /// As if the last statement had begun long ago.
    private func letTimePass() {
        connection.watch.pointee.watchedStep = connection.watch.pointee.steps
        connection.watch.pointee.start = -1_000_000
    }

    @Test func eachStatementHasItsOwnTime() throws {
        letTimePass()
        try connection.execute(StatementWatchTests.count)
        letTimePass()
        #expect(try connection.integers(StatementWatchTests.count) == [100_000])
    }

    @Test func everyStatementOfATextIsCounted() throws {
        let before = connection.watch.pointee.steps
        try connection.execute("SELECT 1; SELECT 2 UNION SELECT 3; -- nothing\n")
        // A step for each row and one for the end.
        #expect(connection.watch.pointee.steps == before + 5)
    }

    @Test func executionEndsAtTheLimit() throws {
        connection.watch.pointee.limit = -1
        let error = #expect(throws: SQLiteError.self) {
            try connection.execute("CREATE TABLE t (a); INSERT INTO t \(StatementWatchTests.count)")
        }
        #expect(error?.code.primary == .interrupted)
        // The first statement is done, the second is not.
        #expect(try connection.integers("SELECT count(*) FROM t") == [0])
    }

    @Test func executionIsCancelled() throws {
        var calls = 0
        let error = #expect(throws: SQLiteError.self) {
            try connection.withInterruption(when: {
                calls += 1
                return calls > 2
            }) {
                try connection.execute(StatementWatchTests.count)
            }
        }
        #expect(error?.code.primary == .interrupted)
        #expect(calls == 3)
    }
}
