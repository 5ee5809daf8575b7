internal import CSQLite
internal import Glibc

// Limits of every connection: anybody may have written the file, this program's own included.

/// The progress of a connection's statements, for the time limit.
struct StatementWatch {
    var steps = 0
    var watchedStep = 0
    /// In seconds of the thread's processor time.
    var start: Int64 = 0
    var limit: Int64 = 60

    /// Whether a step has taken too long. Reading a clock at each would cost as much as some rows.
    fileprivate mutating func isOver() -> Bool {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        if steps != watchedStep { (watchedStep, start) = (steps, Int64(time.tv_sec)) }
        return Int64(time.tv_sec) - start > limit
    }
}

extension Connection {
    /// Values may hold a listing of 2²⁸ resources. This program stays far below the other limits.
    private static let limits = [
        (SQLITE_LIMIT_LENGTH, 33 << 20), (SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (SQLITE_LIMIT_COLUMN, 200), (SQLITE_LIMIT_EXPR_DEPTH, 100),
        (SQLITE_LIMIT_COMPOUND_SELECT, 20), (SQLITE_LIMIT_VDBE_OP, 1_000_000),
        (SQLITE_LIMIT_FUNCTION_ARG, 20), (SQLITE_LIMIT_ATTACHED, 0),
        (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000), (SQLITE_LIMIT_VARIABLE_NUMBER, 1000),
        (SQLITE_LIMIT_TRIGGER_DEPTH, 20), (SQLITE_LIMIT_WORKER_THREADS, 0),
    ]
    /// Instructions between two looks at the clock: about a millisecond.
    private static let stepsBetweenLooks: Int32 = 100_000
    /// Instructions for reading a schema: more than 10,000 objects.
    private static let mostStepsOfSchema: Int32 = 100_000
    /// Applies the limits, and lets the schema run nothing but built-in, pure functions.
    func limit() throws(SQLiteError) {
        for (kind, value) in Connection.limits { sqlite3_limit(handle, kind, Int32(value)) }
        try check(csqlite_distrust_schema(handle))
        // Reports damage where it is, rather than where it leads.
        try execute("PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON")
    }

    /// Reads the schema, and limits the processor time of each step from now on. Must precede the
    /// first statement that names a table: parsing a schema takes memory without any other limit.
    ///
    /// - Throws: ``SQLiteError/Code/tooBig`` for a schema of very many objects.
    package func readSchema() throws(SQLiteError) {
        sqlite3_progress_handler(handle, Connection.mostStepsOfSchema, { _ in 1 }, nil)
        defer { watchSteps() }
        do {
            try execute("SELECT 1 FROM sqlite_schema LIMIT 1")
            let bytes = try pragma("page_count") * pragma("page_size")
            // Checking a MiB takes some milliseconds.
            watch.pointee.limit = 60 + bytes >> 20
        } catch  where error.code.primary == .interrupted {
            throw SQLiteError(code: .tooBig, message: "the schema is too large")
        }
    }

    private func watchSteps() {
        sqlite3_progress_handler(
            handle, Connection.stepsBetweenLooks,
            { $0?.assumingMemoryBound(to: StatementWatch.self).pointee.isOver() == true ? 1 : 0 },
            watch)
    }

    /// Interrupts `body` soon after `isStopped` returns true, by `SQLITE_INTERRUPT`. The
    /// closure is called every few thousand instructions, in place of the time limit.
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
                // The pointer is valid only in this block.
                defer { watchSteps() }
                return try body()
            }
        }
    }

    /// Permits changes of `sqlite_schema` and `journal_mode = OFF`, for files that no other process
    /// uses and that are discarded after a failure.
    package func permitUnsafeChanges() throws(SQLiteError) {
        checkOwner()
        try check(csqlite_defend(handle, 0))
    }
}
