internal import GRDB
internal import GRDBSQLite
import PrefetchModel

/// A statement of GRDB's, stepped through SQLite's own functions where a million rows or look-ups
/// are at stake: GRDB makes a `Row` and boxed values for each.
///
/// Valid inside the database access that it was made in, on that thread.
struct PreparedStatement {
    /// What a parameter is bound to.
    enum Value {
        case null
        case integer(Int64)
        case text(String)
        case digest(ContentDigest)

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
        }
    }

    /// Binds all parameters, carries the statement out and makes it ready again.
    func execute(_ values: Value...) throws {
        defer { reset() }
        for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1)) }
        while try step() {}
    }

    /// Goes to the next row; false at the end.
    func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw error(code)
        }
    }

    /// The integer in `column`, 0 for the first; 0 for NULL.
    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    /// The bytes of a text or BLOB in `column`, valid inside `body`; empty for NULL.
    func withBytes<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // The pointer first: asking for it may convert the value and change its length.
        let start = sqlite3_column_blob(handle, column)
        let count = Int(sqlite3_column_bytes(handle, column))
        return body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

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
