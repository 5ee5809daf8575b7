import SQLite
import Testing

@Suite(.timeLimit(.minutes(15)))
struct StatementTests {
    private let folder: DatabaseFolder
    private let connection: Connection

    init() throws {
        folder = try DatabaseFolder()
        connection = try folder.connect()
    }

    /// The first column of a one-row query.
    private func value<Result>(
        _ sql: String, _ read: (borrowing Statement) throws -> Result
    ) throws -> Result? {
        try Statement(connection, sql: sql).first([], read: read)
    }

    // MARK: Values

    @Test(arguments: [
        "", "a", "ä\u{1F600}", "it's \"quoted\"", "a\0b", String(repeating: "x", count: 9999),
    ])
    func readsBackTexts(text: String) throws {
        let statement = try Statement(
            connection, sql: "SELECT ?1, typeof(?1), length(CAST(?1 AS BLOB))")
        let row = try statement.first([.text(text)]) {
            (try $0.text(0), try $0.text(1), try $0.count(2))
        }
        #expect(row?.0 == text)
        #expect(row?.1 == "text")
        #expect(row?.2 == text.utf8.count)
    }

    @Test(arguments: [[], [0], [0, 255, 0], [UInt8](repeating: 7, count: 70_000)])
    func readsBackBytes(bytes: [UInt8]) throws {
        let statement = try Statement(connection, sql: "SELECT ?1, typeof(?1)")
        let row = try statement.first([.blob(bytes)]) { (try $0.blob(0), try $0.text(1)) }
        #expect(row?.0 == bytes)
        #expect(row?.1 == "blob")
    }

    @Test(arguments: [Int64.min, -1, 0, 1, .max])
    func readsBackIntegers(number: Int64) throws {
        let statement = try Statement(connection, sql: "SELECT ?")
        let found = try statement.first([.integer(number)]) { try $0.integer(0) }
        #expect(found == number)
    }

    @Test func readsNullAsNil() throws {
        let values: [Statement.Value] = [.null, .init(String?.none), .init(Int64?.none)]
        for value in values {
            let statement = try Statement(connection, sql: "SELECT ?")
            let row = try statement.first([value]) {
                ($0.isNull(0), try $0.optionalText(0), try $0.optionalInteger(0))
            }
            #expect(row?.0 == true)
            #expect(row?.1 == nil && row?.2 == nil)
        }
    }

    @Test func replacesInvalidUTF8() throws {
        #expect(try value("SELECT CAST(X'61FF62' AS TEXT)") { try $0.text(0) } == "a\u{FFFD}b")
    }

    // MARK: Types

    private enum Column: String, CaseIterable {
        case integer, text, blob

        func read(_ row: borrowing Statement) throws {
            switch self {
            case .integer: _ = try row.integer(0)
            case .text: _ = try row.text(0)
            case .blob: _ = try row.blob(0)
            }
        }
    }

    /// A value of another type is always damage and never converted.
    @Test(arguments: [
        ("NULL", "NULL", ""), ("1.5", "a REAL", ""), ("7", "an INTEGER", "integer"),
        ("'7'", "a TEXT", "text"), ("X'37'", "a BLOB", "blob"),
    ])
    func valueOfAnotherTypeIsDamage(literal: String, name: String, type: String) throws {
        for column in Column.allCases {
            let statement = try Statement(connection, sql: "SELECT \(literal) AS c")
            try expectRow(statement)
            if column.rawValue == type {
                try column.read(statement)
            } else {
                let error = #expect(throws: SQLiteError.self) { try column.read(statement) }
                #expect(error?.code == .corrupt)
                #expect(error?.message == "damaged row: \(name) in column c")
                #expect(error?.sql == "SELECT \(literal) AS c")
            }
        }
    }

    @Test func negativeCountIsDamage() throws {
        #expect(try value("SELECT 3") { try $0.count(0) } == 3)
        let error = #expect(throws: SQLiteError.self) {
            try value("SELECT -3 AS c") { try $0.count(0) }
        }
        #expect(error?.message == "damaged row: -3 in column c")
    }

    @Test func bytesWithoutAValueAreDamage() throws {
        func read(_ row: borrowing Statement) throws -> Int {
            try row.blob(0, orDamage: "two bytes") { $0.count == 2 ? nil : $0.count }
        }
        #expect(try value("SELECT X'010203' AS c", read) == 3)
        let error = #expect(throws: SQLiteError.self) { try value("SELECT X'0102' AS c", read) }
        #expect(error?.code == .corrupt)
        #expect(error?.message == "damaged row: two bytes in column c")
        #expect(throws: SQLiteError.self) { try value("SELECT 'abc' AS c", read) }
    }

    // MARK: Rows

    @Test func returnsRowsInOrderRepeatedly() throws {
        let statement = try Statement(connection, sql: "VALUES (?1), (?1 + 1), (?1 + 2)")
        let rows = try statement.all([.init(1)]) { try $0.integer(0) }
        #expect(rows == [1, 2, 3])
        let again = try statement.all([.init(5)]) { try $0.integer(0) }
        #expect(again == [5, 6, 7])
        let found = try statement.first([.init(9)]) { try $0.integer(0) }
        #expect(found == 9)
        #expect(
            try Statement(connection, sql: "SELECT 1 WHERE 0").first([]) { try $0.integer(0) }
                == nil)
    }

    @Test func throwingStatementCanBeReused() throws {
        try connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT")
        let insertion = try Statement(connection, sql: "INSERT INTO t VALUES (?)")
        try insertion.execute(.init(1))
        var caught: SQLiteError?
        do throws(SQLiteError) { try insertion.execute(.init(1)) } catch { caught = error }
        #expect(caught?.code.primary == .constraint)
        #expect(caught?.code != .constraint)
        #expect(caught?.message == "UNIQUE constraint failed: t.a")
        try insertion.execute(.init(2))
        #expect(try connection.integers("SELECT a FROM t") == [1, 2])
    }

    /// A reused statement has no rows or bindings of its previous use.
    @Test func preparesAgainForTheNextUse() throws {
        let sql = "VALUES (?1), (2)"
        do {
            let statement = try Statement(connection, sql: sql)
            try statement.bind(.init(1), at: 1)
            try expectRow(statement)
        }
        let statement = try Statement(connection, sql: sql)
        try expectRow(statement)
        let isNull = statement.isNull(0)
        #expect(isNull)
        try expectRow(statement)
        try expectRow(statement, isThere: false)
    }

    @Test func statementsOfOneTextAreIndependent() throws {
        let sql = "VALUES (?1), (?1 + 1)"
        let sums = try Statement(connection, sql: sql).all([.init(1)]) { outer in
            let inner = try Statement(connection, sql: sql).all([.init(10)]) { try $0.integer(0) }
            return try outer.integer(0) + inner.reduce(0, +)
        }
        #expect(sums == [22, 23])
        // Both statements were returned; only one is kept.
        try connection.close()
    }

    @Test(arguments: ["", " -- nothing", "SELECT 1; SELECT 2", "SELECT"])
    func refusesTextsOfOtherThanOneStatement(sql: String) throws {
        let error = #expect(throws: SQLiteError.self) {
            try Statement(connection, sql: sql).execute()
        }
        #expect(error?.sql == sql)
    }

    @Test func refusesAMissingParameter() throws {
        let error = #expect(throws: SQLiteError.self) {
            try Statement(connection, sql: "SELECT ?").execute(.init(1), .init(2))
        }
        #expect(error?.message == "column index out of range")
    }
}
