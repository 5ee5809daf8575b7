internal import CSQLite

extension Connection {
    /// The bytes of the database, as in a file.
    ///
    /// - Throws: `SQLITE_NOMEM`.
    package func serialized() throws(SQLiteError) -> [UInt8] {
        checkOwner()
        var count: Int64 = 0
        guard let bytes = sqlite3_serialize(handle, "main", &count, 0) else {
            throw SQLiteError(code: .init(rawValue: SQLITE_NOMEM), message: "out of memory")
        }
        defer { sqlite3_free(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }
}
