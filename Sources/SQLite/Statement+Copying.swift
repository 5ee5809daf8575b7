internal import CSQLite

// Copies rows between databases without interpreting them.

extension Statement {
    /// A storage class of SQLite.
    package enum Kind: Hashable, Sendable {
        case null, integer, real, text, blob
    }

    /// The storage class of a column's value.
    package func kind(_ column: Int32) -> Kind {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .real
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    /// Binds a parameter to a column of another statement's row.
    package func bind(
        column: Int32, of other: borrowing Statement, at index: Int32
    ) throws(SQLiteError) {
        try connection.check(
            sqlite3_bind_value(handle, index, sqlite3_column_value(other.handle, column)))
    }

    /// The value of a column, for binding elsewhere. REAL becomes NULL, since no table here uses
    /// it.
    package func value(_ column: Int32) -> Value {
        switch kind(column) {
        case .null, .real: .null
        case .integer: .integer(sqlite3_column_int64(handle, column))
        case .text: .text(withBytes(column) { String(decoding: $0, as: UTF8.self) })
        case .blob: .blob(withBytes(column) { [UInt8]($0) })
        }
    }

    /// Whether a text is valid UTF-8 without NUL.
    package func isCleanText(_ column: Int32) -> Bool {
        withBytes(column) { !$0.contains(0) && String(validating: $0, as: UTF8.self) != nil }
    }
}
