internal import CSQLite

// Carrying rows from one database into another without a look at what they mean.

extension Statement {
    /// What SQLite calls a storage class.
    package enum Kind: Hashable, Sendable {
        case null, integer, real, text, blob
    }

    /// What the value of a column is.
    package func kind(_ column: Int32) -> Kind {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .real
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    /// Binds a parameter to the value that the row of another statement has in a column.
    package func bind(
        column: Int32, of other: borrowing Statement, at index: Int32
    ) throws(SQLiteError) {
        try connection.check(
            sqlite3_bind_value(handle, index, sqlite3_column_value(other.handle, column)))
    }

    /// The value of a column to be bound elsewhere; a REAL, which no table of ours has, is NULL.
    package func value(_ column: Int32) -> Value {
        switch kind(column) {
        case .null, .real: .null
        case .integer: .integer(sqlite3_column_int64(handle, column))
        case .text: .text(withBytes(column) { String(decoding: $0, as: UTF8.self) })
        case .blob: .blob(withBytes(column) { [UInt8]($0) })
        }
    }

    /// Whether the bytes of a text are UTF-8 without a NUL among them.
    package func isCleanText(_ column: Int32) -> Bool {
        withBytes(column) { !$0.contains(0) && String(validating: $0, as: UTF8.self) != nil }
    }
}
