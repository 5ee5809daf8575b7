import FileOutput
import Glibc
import PrefetchModel
import Reporting

extension OutputFile {
    /// The standard output, which stays open.
    static func standardOutput() -> OutputFile {
        OutputFile(borrowing: STDOUT_FILENO, name: "standard output")
    }

    /// Replaces a file by one with this content; `-` is standard output.
    ///
    /// - Throws: ``OutputError``; the old file is unchanged then.
    static func replace(_ path: String, with bytes: [UInt8]) throws {
        guard path != "-" else { return try OutputFile.standardOutput().write(bytes) }
        var file = try ReplacingFile(path)
        try file.write(bytes)
        try file.commit()
    }
}

extension LineWriter {
    /// A writer to standard output, which stays open.
    static func standardOutput() -> LineWriter { LineWriter(.standardOutput()) }

    /// Writes one object to standard output.
    static func print(_ object: JSONObject) throws { try print([object.description]) }

    /// Writes lines to standard output.
    static func print(_ lines: [String]) throws {
        var output = standardOutput()
        for line in lines { try output.write(line: line) }
        try output.finish()
    }
}
