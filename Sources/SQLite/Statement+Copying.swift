internal import CSQLite

// Copies rows between databases without interpreting them.

extension Statement {
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

    /// Binds a parameter to a column of another statement's row without a copy.
    ///
    /// The caller executes this statement before the other one moves on, and binds the parameter
    /// again before the next execution.
    package func bind(
        column: Int32, of other: borrowing Statement, at index: Int32
    ) throws(SQLiteError) {
        try connection.check(csqlite_bind_shared(handle, index, other.handle, column))
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
        withBytes(column) { bytes in
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
}
