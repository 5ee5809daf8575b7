internal import GRDB
internal import GRDBSQLite
import PrefetchModel

/// A statement of GRDB's, stepped through SQLite's own functions: all that is read from the database
/// is read here.
///
/// GRDB's `Row` ends the program when a column has another type than is asked for, which takes no more
/// than a damaged page; and it makes boxed values, where a million rows or look-ups are at stake.
///
/// Columns are counted from 0. Reading one throws `SQLITE_CORRUPT` when its value is of another type
/// than the schema allows, as SQLite does where it finds damage by itself.
///
/// Valid inside the database access that it was made in, on that thread.
struct PreparedStatement {
    /// What a parameter is bound to.
    enum Value {
        case null
        case integer(Int64)
        case text(String)
        case digest(ContentDigest)
        case blob([UInt8])

        init(_ text: String?) { self = text.map(Value.text) ?? .null }
        init(_ number: Int) { self = .integer(Int64(number)) }
        init(_ number: Int64?) { self = number.map(Value.integer) ?? .null }
        init(_ time: Timestamp) { self = .integer(time.milliseconds) }
    }

    private let database: Database
    private let statement: Statement
    private let handle: SQLiteStatement

    init(_ database: Database, sql: String) throws {
        self.database = database
        statement = try database.cachedStatement(sql: sql)
        handle = statement.sqliteStatement
    }

    /// Makes the statement ready for other values.
    func reset() {
        // The error of the last step, which was thrown then.
        sqlite3_reset(handle)
    }

    /// Binds the parameter `index`, 1 for the first.
    func bind(_ value: Value, at index: Int32) throws {
        // SQLite copies the bytes: its SQLITE_TRANSIENT, a cast that Swift does not import.
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value {
        case .null:
            try check(sqlite3_bind_null(handle, index))
        case .integer(let number):
            try check(sqlite3_bind_int64(handle, index, number))
        case .text(var text):
            let code = text.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) { bytes in
                    // An empty string may have no address, which would bind NULL.
                    sqlite3_bind_text(
                        handle, index, bytes.baseAddress ?? UnsafePointer(emptyText),
                        Int32(bytes.count), transient)
                }
            }
            try check(code)
        case .digest(let digest):
            let code = digest.withBytes { bytes in
                sqlite3_bind_blob(
                    handle, index, bytes.baseAddress, Int32(bytes.count), transient)
            }
            try check(code)
        case .blob(let bytes):
            let code = bytes.withUnsafeBytes { bytes in
                // As for text: no address would bind NULL.
                sqlite3_bind_blob(
                    handle, index, bytes.baseAddress ?? UnsafeRawPointer(emptyText),
                    Int32(bytes.count), transient)
            }
            try check(code)
        }
    }

    private func bind(_ values: [Value]) throws {
        for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1)) }
    }

    /// Binds all parameters, carries the statement out and makes it ready again.
    func execute(_ values: Value...) throws {
        defer { reset() }
        try bind(values)
        while try step() {}
    }

    /// Binds all parameters and reads the first row, if there is one.
    func first<Result>(
        _ values: Value..., read: (PreparedStatement) throws -> Result
    ) throws -> Result? {
        defer { reset() }
        try bind(values)
        return try step() ? read(self) : nil
    }

    /// Binds all parameters and reads every row.
    func all<Result>(
        _ values: Value..., read: (PreparedStatement) throws -> Result
    ) throws -> [Result] {
        defer { reset() }
        try bind(values)
        var results: [Result] = []
        while try step() { results.append(try read(self)) }
        return results
    }

    /// Goes to the next row; false at the end.
    func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw error(code)
        }
    }

    // MARK: Columns

    func integer(_ column: Int32) throws -> Int64 {
        try expect(SQLITE_INTEGER, in: column)
        return sqlite3_column_int64(handle, column)
    }

    /// Nil for NULL.
    func optionalInteger(_ column: Int32) throws -> Int64? {
        isNull(column) ? nil : try integer(column)
    }

    /// A count or a size, which is not negative.
    func count(_ column: Int32) throws -> Int {
        let number = try integer(column)
        guard let count = Int(exactly: number), count >= 0 else {
            throw damage("\(number) in", column)
        }
        return count
    }

    func time(_ column: Int32) throws -> Timestamp {
        Timestamp(milliseconds: try integer(column))
    }

    /// Nil for NULL.
    func optionalTime(_ column: Int32) throws -> Timestamp? {
        try optionalInteger(column).map(Timestamp.init(milliseconds:))
    }

    /// Bytes that are not UTF-8 are replaced, as everywhere where bytes become text.
    func text(_ column: Int32) throws -> String {
        try expect(SQLITE_TEXT, in: column)
        return withBytes(column) { String(decoding: $0, as: UTF8.self) }
    }

    /// Nil for NULL.
    func optionalText(_ column: Int32) throws -> String? {
        isNull(column) ? nil : try text(column)
    }

    func blob(_ column: Int32) throws -> [UInt8] {
        try expect(SQLITE_BLOB, in: column)
        return withBytes(column) { [UInt8]($0) }
    }

    func digest(_ column: Int32) throws -> ContentDigest {
        try expect(SQLITE_BLOB, in: column)
        guard let digest = withBytes(column, { ContentDigest(bytes: $0) }) else {
            throw damage("a digest of another length in", column)
        }
        return digest
    }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    /// The bytes of a text or BLOB in `column`, valid inside `body`; empty for NULL.
    private func withBytes<Result>(
        _ column: Int32, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        // The pointer first: asking for it may convert the value and change its length.
        let start = sqlite3_column_blob(handle, column)
        let count = Int(sqlite3_column_bytes(handle, column))
        return body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }

    private func expect(_ type: Int32, in column: Int32) throws {
        let found = sqlite3_column_type(handle, column)
        guard found != type else { return }
        throw damage("\(PreparedStatement.name(of: found)) in", column)
    }

    private static func name(of type: Int32) -> String {
        switch type {
        case SQLITE_INTEGER: "an INTEGER"
        case SQLITE_FLOAT: "a REAL"
        case SQLITE_TEXT: "a TEXT"
        case SQLITE_BLOB: "a BLOB"
        default: "NULL"
        }
    }

    private func damage(_ found: String, _ column: Int32) -> DatabaseError {
        let name = sqlite3_column_name(handle, column).map { String(cString: $0) } ?? "\(column)"
        return DatabaseError(
            resultCode: .SQLITE_CORRUPT, message: "damaged row: \(found) column \(name)",
            sql: statement.sql)
    }

    private func check(_ code: CInt) throws {
        guard code == SQLITE_OK else { throw error(code) }
    }

    private func error(_ code: CInt) -> DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: code), message: database.lastErrorMessage,
            sql: statement.sql)
    }
}

/// Holds the address of no bytes.
///
/// `nonisolated(unsafe)`: never written after it is made, nor freed.
private nonisolated(unsafe) let emptyText: UnsafeMutablePointer<CChar> = {
    let text = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
    text.initialize(to: 0)
    return text
}()
