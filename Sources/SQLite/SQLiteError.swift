internal import CSQLite

/// An error of SQLite, or a stored value of an unexpected type.
package struct SQLiteError: Error {
    /// A result code of SQLite; unnamed codes are preserved.
    package struct ResultCode: RawRepresentable, Hashable, Sendable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        /// The primary code, in the lowest eight bits.
        package var primary: ResultCode { ResultCode(rawValue: rawValue & 0xFF) }

        package static let error = ResultCode(rawValue: SQLITE_ERROR)
        package static let permission = ResultCode(rawValue: SQLITE_PERM)
        package static let abort = ResultCode(rawValue: SQLITE_ABORT)
        package static let busy = ResultCode(rawValue: SQLITE_BUSY)
        package static let locked = ResultCode(rawValue: SQLITE_LOCKED)
        package static let readOnly = ResultCode(rawValue: SQLITE_READONLY)
        package static let interrupted = ResultCode(rawValue: SQLITE_INTERRUPT)
        package static let inputOutput = ResultCode(rawValue: SQLITE_IOERR)
        package static let corrupt = ResultCode(rawValue: SQLITE_CORRUPT)
        package static let full = ResultCode(rawValue: SQLITE_FULL)
        package static let cannotOpen = ResultCode(rawValue: SQLITE_CANTOPEN)
        package static let tooBig = ResultCode(rawValue: SQLITE_TOOBIG)
        package static let constraint = ResultCode(rawValue: SQLITE_CONSTRAINT)
        package static let misuse = ResultCode(rawValue: SQLITE_MISUSE)
        package static let notADatabase = ResultCode(rawValue: SQLITE_NOTADB)
        // Extended codes are macros that Swift does not import.
        /// `SQLITE_IOERR_SHMSIZE`: the index of the log cannot grow.
        package static let sharedMemorySize = ResultCode(rawValue: SQLITE_IOERR | 19 << 8)

        /// Whether the file system refused the shared memory of the log's index or its locks:
        /// `SQLITE_IOERR_LOCK`, `_SHMOPEN`, `_SHMLOCK` or `_SHMMAP`.
        package var refusesSharedMemory: Bool {
            primary == .inputOutput && [15, 18, 20, 21].contains(rawValue >> 8)
        }

        /// Whether the cause may be the same, but also another one.
        package var mayRefuseSharedMemory: Bool {
            refusesSharedMemory || [SQLITE_CANTOPEN, SQLITE_PROTOCOL].contains(primary.rawValue)
        }
    }

    /// The extended code, if SQLite has one.
    package let code: ResultCode
    package let message: String
    /// The text of the statement that failed; nil for other operations.
    package let sql: String?

    package init(code: ResultCode, message: String, sql: String? = nil) {
        self.code = code
        self.message = message
        self.sql = sql
    }
}
