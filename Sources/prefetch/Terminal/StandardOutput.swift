import CacheStorage
import Glibc
import Reporting

/// Runs work that writes to standard output; a closed pipe ends the command quietly.
func writing(_ work: () throws -> Void) throws {
    do {
        try work()
    } catch let error as ReportingError {
        throw CommandFailure(error)
    } catch let error as StorageError {
        throw CommandFailure(error)
    }
}

extension LineWriter {
    /// A writer to standard output, which stays open.
    static func standardOutput() -> LineWriter {
        LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
    }
}
