internal import CSQLite

/// A prepared statement. As in SQLite, parameters count from 1 and columns from 0. Column types are
/// checked, since a damaged page may contain anything: reading a value of another type throws
/// `SQLITE_CORRUPT`, like damage that SQLite finds. Belongs to the thread of its connection, which
/// it keeps open. Its deinitialiser returns it to the connection for reuse.
package struct Statement: ~Copyable {
    package enum Value {
        case null
        case integer(Int64)
        case text(String)
        case blob([UInt8])

        package init(_ text: String?) { self = text.map(Value.text) ?? .null }
        package init(_ number: Int) { self = .integer(Int64(number)) }
        package init(_ number: Int64?) { self = number.map(Value.integer) ?? .null }
    }

    let connection: Connection
    let handle: OpaquePointer
    private let sql: String

    /// Prepares a statement, or reuses an idle one with the same text.
    ///
    /// - Throws: When the text is not one valid SQL statement, or names an unknown table or column.
    package init(_ connection: Connection, sql: String) throws(SQLiteError) {
        handle = try connection.takeStatement(sql)
        self.connection = connection
        self.sql = sql
    }

    deinit {
        connection.giveBack(handle, sql)
    }

    // MARK: Execution

    package func bind(_ value: Value, at index: Int32) throws(SQLiteError) {
        let code: Int32
        switch value {
        case .null: code = sqlite3_bind_null(handle, index)
        case .integer(let number): code = sqlite3_bind_int64(handle, index, number)
        case .text(var text):
            code = text.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    csqlite_bind_text(handle, index, $0.baseAddress, Int32($0.count))
                }
            }
        case .blob(let bytes):
            code = bytes.withUnsafeBytes {
                csqlite_bind_blob(handle, index, $0.baseAddress, Int32($0.count))
            }
        }
        try connection.check(code, sql: sql)
    }

    package func bind(_ values: [Value]) throws(SQLiteError) {
        for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1)) }
    }

    /// Advances to the next row; false at the end.
    package func step() throws(SQLiteError) -> Bool {
        connection.checkOwner()
        connection.watch.pointee.steps &+= 1
        let code = sqlite3_step(handle)
        if code == SQLITE_ROW { return true }
        try connection.check(code == SQLITE_DONE ? SQLITE_OK : code, sql: sql)
        return false
    }

    /// Resets the statement; keeps its bindings.
    package func reset() {
        // Returns the error of the last step, which was already thrown.
        sqlite3_reset(handle)
    }

    /// Binds all parameters, executes the statement and resets it.
    package func execute(_ values: Value...) throws(SQLiteError) { try execute(values) }

    package func execute(_ values: [Value]) throws(SQLiteError) {
        defer { reset() }
        try bind(values)
        while try step() {}
    }

    /// Binds all parameters and reads the first row, if any.
    package func first<Result>(
        _ values: [Value], read: (borrowing Statement) throws -> Result
    ) throws -> Result? {
        defer { reset() }
        try bind(values)
        return try step() ? read(self) : nil
    }

    package func hasRow(_ values: [Value]) throws(SQLiteError) -> Bool {
        defer { reset() }
        try bind(values)
        return try step()
    }

    package func all<Result>(
        _ values: [Value], read: (borrowing Statement) throws -> Result
    ) throws -> [Result] {
        var results: [Result] = []
        try forEach(values) { results.append(try read($0)) }
        return results
    }

    func forEach(_ values: [Value], body: (borrowing Statement) throws -> Void) throws {
        defer { reset() }
        try bind(values)
        while try step() { try body(self) }
    }

    // MARK: Columns

    package func isNull(_ column: Int32) -> Bool {
        sqlite3_column_type(handle, column) == SQLITE_NULL
    }

    package func integer(_ column: Int32) throws(SQLiteError) -> Int64 {
        try expect(SQLITE_INTEGER, in: column)
        return sqlite3_column_int64(handle, column)
    }

    package func optionalInteger(_ column: Int32) throws(SQLiteError) -> Int64? {
        isNull(column) ? nil : try integer(column)
    }

    /// A count or size: zero or more.
    package func count(_ column: Int32) throws(SQLiteError) -> Int {
        let number = try integer(column)
        guard let count = Int(exactly: number), count >= 0 else {
            throw damage("\(number)", in: column)
        }
        return count
    }

    /// The text of a column; invalid UTF-8 is replaced.
    package func text(_ column: Int32) throws(SQLiteError) -> String {
        try expect(SQLITE_TEXT, in: column)
        return String(decoding: bytes(column), as: UTF8.self)
    }

    package func optionalText(_ column: Int32) throws(SQLiteError) -> String? {
        isNull(column) ? nil : try text(column)
    }

    /// The stored bytes of a text, perhaps invalid UTF-8; valid until the next step or reset.
    package func textBytes(_ column: Int32) throws(SQLiteError) -> UnsafeRawBufferPointer {
        try expect(SQLITE_TEXT, in: column)
        return bytes(column)
    }

    /// The bytes of a BLOB; valid until the next step or reset.
    package func blobBytes(_ column: Int32) throws(SQLiteError) -> UnsafeRawBufferPointer {
        try expect(SQLITE_BLOB, in: column)
        return bytes(column)
    }

    package func blob(_ column: Int32) throws(SQLiteError) -> [UInt8] {
        try expect(SQLITE_BLOB, in: column)
        return [UInt8](bytes(column))
    }

    /// Creates a value from a BLOB's bytes, valid inside `body`; for nil, throws that it is `what`.
    package func blob<Result>(
        _ column: Int32, orDamage what: @autoclosure () -> String,
        _ body: (UnsafeRawBufferPointer) -> Result?
    ) throws(SQLiteError) -> Result {
        try expect(SQLITE_BLOB, in: column)
        guard let result = body(bytes(column)) else { throw damage(what(), in: column) }
        return result
    }

    /// Unwraps a value created from a column's; throws an error that it is `what` if it is nil.
    package func value<Value>(
        _ value: Value?, orDamage what: @autoclosure () -> String, in column: Int32
    ) throws(SQLiteError) -> Value {
        guard let value else { throw damage(what(), in: column) }
        return value
    }

    private func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        // The pointer first: this call may convert the value and change its length.
        let start = sqlite3_column_blob(handle, column)
        let count = Int(sqlite3_column_bytes(handle, column))
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
    }

    private func expect(_ type: Int32, in column: Int32) throws(SQLiteError) {
        let found = sqlite3_column_type(handle, column)
        guard found != type else { return }
        let names = [
            SQLITE_INTEGER: "an INTEGER", SQLITE_FLOAT: "a REAL", SQLITE_TEXT: "a TEXT",
            SQLITE_BLOB: "a BLOB", SQLITE_NULL: "NULL",
        ]
        throw damage(names[found, default: "a type \(found)"], in: column)
    }

    private func damage(_ found: String, in column: Int32) -> SQLiteError {
        let name = sqlite3_column_name(handle, column).map { String(cString: $0) } ?? "\(column)"
        return SQLiteError(
            code: .corrupt, message: "damaged row: \(found) in column \(name)", sql: sql)
    }

    // MARK: Copies of rows between databases

    package enum StorageClass: Hashable, Sendable {
        case null, integer, real, text, blob
    }

    package func kind(_ column: Int32) -> StorageClass {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .real
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    /// Binds a parameter to a column of another statement's row without a copy: execute this one
    /// before the other moves on, and bind the parameter again before the next execution.
    package func bind(
        column: Int32, of other: borrowing Statement, at index: Int32
    ) throws(SQLiteError) {
        try connection.check(csqlite_bind_shared(handle, index, other.handle, column))
    }

    /// The value of a column, for binding elsewhere; NULL for a REAL, which no table uses.
    package func value(_ column: Int32) -> Value {
        switch kind(column) {
        case .null, .real: .null
        case .integer: .integer(sqlite3_column_int64(handle, column))
        case .text: .text(String(decoding: bytes(column), as: UTF8.self))
        case .blob: .blob([UInt8](bytes(column)))
        }
    }

    /// Whether a text is valid UTF-8 without NUL.
    package func isCleanText(_ column: Int32) -> Bool {
        let bytes = bytes(column)
        // Nearly all texts are ASCII. The least significant bit of each byte is set in `ones`;
        // subtracting it sets the most significant one of a zero byte.
        let (ones, tops) = (0x0101_0101_0101_0101 as UInt64, 0x8080_8080_8080_8080 as UInt64)
        var offset = 0
        while offset + 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            if (word | (word &- ones)) & tops != 0 { break }
            offset += 8
        }
        let rest = bytes[offset...]
        if rest.allSatisfy({ (1...127).contains($0) }) { return true }
        return !rest.contains(0) && String(validating: rest, as: UTF8.self) != nil
    }
}

@available(*, unavailable)
extension Statement: Sendable {}

// Statements for one use, which are prepared only the first time.
extension Connection {
    package func prepare(_ sql: String) throws(SQLiteError) -> Statement {
        try Statement(self, sql: sql)
    }

    package func run(_ sql: String, _ values: Statement.Value...) throws(SQLiteError) {
        try prepare(sql).execute(values)
    }

    package func first<Result>(
        _ sql: String, _ values: Statement.Value..., read: (borrowing Statement) throws -> Result
    ) throws -> Result? {
        try prepare(sql).first(values, read: read)
    }

    package func hasRow(_ sql: String, _ values: Statement.Value...) throws(SQLiteError) -> Bool {
        try prepare(sql).hasRow(values)
    }

    package func all<Result>(
        _ sql: String, _ values: Statement.Value..., read: (borrowing Statement) throws -> Result
    ) throws -> [Result] {
        try prepare(sql).all(values, read: read)
    }

    package func forEach(
        _ sql: String, _ values: Statement.Value..., body: (borrowing Statement) throws -> Void
    ) throws {
        try prepare(sql).forEach(values, body: body)
    }
}
