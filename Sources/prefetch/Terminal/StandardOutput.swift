import Glibc
import PrefetchModel
import Reporting

extension LineWriter {
    /// A writer to standard output, which stays open.
    static func standardOutput() -> LineWriter {
        LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
    }

    /// Writes one object to standard output.
    static func print(_ object: JSONObject) throws {
        var lines = standardOutput()
        try lines.write(object)
        try lines.finish()
    }
}
