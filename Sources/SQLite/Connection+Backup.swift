internal import CSQLite

// SQLite's backup interface, and long work that somebody may want to end.

extension Connection {
    /// Copies the database as it is now, with what its log holds, over all of another one.
    ///
    /// Between two steps nothing is locked. What another connection changes meanwhile has the copy
    /// begin anew; changes by this one go into it.
    ///
    /// - Parameters:
    ///   - copy: an open database, of this thread like this one.
    ///   - pagesAtOnce: pages in each step, 1 or more.
    ///   - isStopped: asked before each step.
    /// - Returns: false when it was stopped; what is in the copy then is no database.
    /// - Throws: when a page cannot be read or written.
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
        // It has the step's error again; without one, that of the last write.
        let end = sqlite3_backup_finish(backup)
        guard !isEnded else { return false }
        guard code == SQLITE_DONE else {
            throw SQLiteError(
                code: .init(rawValue: code), message: String(cString: sqlite3_errstr(code)))
        }
        try copy.check(end)
        return true
    }

    /// Ends what `body` does with the connection soon after `isStopped` says so: it throws
    /// `SQLITE_INTERRUPT` then. Asked every so many thousand steps of a statement.
    package func withInterruption<Result>(
        when isStopped: () -> Bool, _ body: () throws -> Result
    ) throws -> Result {
        checkOwner()
        return try withoutActuallyEscaping(isStopped) { isStopped in
            var question = isStopped
            return try withUnsafeMutablePointer(to: &question) { pointer in
                sqlite3_progress_handler(
                    handle, 10_000,
                    { context in
                        let question = context?.assumingMemoryBound(to: (() -> Bool).self)
                        return question?.pointee() == true ? 1 : 0
                    }, pointer)
                // The pointer lives no longer than this block.
                defer { sqlite3_progress_handler(handle, 0, nil, nil) }
                return try body()
            }
        }
    }

    /// Refuses rows and values of more bytes than that, which a damaged length may claim to have;
    /// otherwise they may have a billion.
    package func limitValues(toBytes count: Int) {
        sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Int32(clamping: count))
    }
}
