internal import SQLite

// Conversion of SQLite's errors.

extension StorageError {
    /// Calls `body`. An error of SQLite becomes an error of the database at `path`.
    static func converting<Result>(
        _ operation: String, _ path: String, _ body: () throws -> Result
    ) throws(StorageError) -> Result {
        do {
            return try body()
        } catch {
            throw StorageError(error, operation, path)
        }
    }

    /// Converts an error of SQLite; a ``StorageError`` stays as it is.
    init(_ error: any Error, _ operation: String, _ path: String) {
        switch error {
        case let error as StorageError: self = error
        case let error as SQLiteError:
            self.init(
                operation: operation, subject: path, code: .database(error.code.rawValue),
                message: error.message, hint: StorageError.hint(for: error.code, path))
        default:
            // No other error is thrown inside; if one were, it would not mean damage.
            self.init(
                operation: operation, subject: path,
                code: .database(SQLiteError.ResultCode.error.rawValue), message: "\(error)")
        }
    }

    /// The error for a damaged database.
    static func damaged(_ operation: String, _ path: String, _ message: String) -> StorageError {
        StorageError(SQLiteError(code: .corrupt, message: message), operation, path)
    }

    private static func hint(for code: SQLiteError.ResultCode, _ path: String) -> String? {
        // A full disk is reported as an I/O error if the index of the log must grow.
        switch code == .sharedMemorySize ? .full : code.primary {
        case .corrupt, .notADatabase, .tooBig:
            "the database is damaged; `prefetch run` replaces it and salvages its readable rows"
        case .busy, .locked: "another program holds the database"
        case .full: "free some space and run again; stored images are kept"
        case .readOnly, .cannotOpen, .permission: permissionHint(path)
        default: nil
        }
    }
}
