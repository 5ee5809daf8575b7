internal import CSQLite

/// An error of SQLite, or a stored value of an unexpected type.
package struct SQLiteError: Error {
    /// A result code of SQLite; unnamed codes are preserved.
    package struct Code: RawRepresentable, Hashable, Sendable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        /// The primary code, in the lowest eight bits.
        package var primary: Code { Code(rawValue: rawValue & 0xFF) }

        package static let error = Code(rawValue: SQLITE_ERROR)
        package static let permission = Code(rawValue: SQLITE_PERM)
        package static let abort = Code(rawValue: SQLITE_ABORT)
        package static let busy = Code(rawValue: SQLITE_BUSY)
        package static let locked = Code(rawValue: SQLITE_LOCKED)
        package static let readOnly = Code(rawValue: SQLITE_READONLY)
        package static let interrupted = Code(rawValue: SQLITE_INTERRUPT)
        package static let corrupt = Code(rawValue: SQLITE_CORRUPT)
        package static let full = Code(rawValue: SQLITE_FULL)
        package static let cannotOpen = Code(rawValue: SQLITE_CANTOPEN)
        package static let tooBig = Code(rawValue: SQLITE_TOOBIG)
        package static let constraint = Code(rawValue: SQLITE_CONSTRAINT)
        package static let misuse = Code(rawValue: SQLITE_MISUSE)
        package static let notADatabase = Code(rawValue: SQLITE_NOTADB)
        // Extended codes are macros that Swift does not import.
        /// `SQLITE_IOERR_SHMSIZE`: the index of the log cannot grow.
        package static let sharedMemorySize = Code(rawValue: SQLITE_IOERR | 19 << 8)
        /// `SQLITE_CONSTRAINT_FOREIGNKEY`
        package static let foreignKey = Code(rawValue: SQLITE_CONSTRAINT | 3 << 8)
    }

    /// The extended code, if SQLite has one.
    package let code: Code
    package let message: String
    /// The text of the statement that failed; nil for other operations.
    package let sql: String?

    package init(code: Code, message: String, sql: String? = nil) {
        self.code = code
        self.message = message
        self.sql = sql
    }
}
