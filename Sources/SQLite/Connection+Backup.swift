internal import CSQLite

extension Connection {
    /// Copies a snapshot of the database, including its log, over another one of the same thread.
    /// Before each step of `pagesAtOnce` pages, 1 or more, `isStopped` may end the copy. Returns
    /// false then, and the copy is unusable. Takes no lock between steps. A change by another
    /// connection restarts the copy; changes by this one are included.
    package func backUp(
        to copy: Connection, pagesAtOnce: Int, isStopped: () -> Bool
    ) throws(SQLiteError) -> Bool {
        checkOwner()
        guard let backup = sqlite3_backup_init(copy.handle, "main", handle, "main") else {
            try copy.check(sqlite3_extended_errcode(copy.handle))
            throw SQLiteError(code: .misuse, message: "no copy can be begun")
        }
        var code = SQLITE_OK
        var isEnded = false
        while code == SQLITE_OK {
            isEnded = isStopped()
            if isEnded { break }
            code = sqlite3_backup_step(backup, Int32(clamping: pagesAtOnce))
        }
        // Repeats the step's error, or else reports the error of the last write.
        let end = sqlite3_backup_finish(backup)
        guard !isEnded else { return false }
        guard code == SQLITE_DONE else {
            throw SQLiteError(
                code: .init(rawValue: code), message: String(cString: sqlite3_errstr(code)))
        }
        try copy.check(end)
        return true
    }

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
