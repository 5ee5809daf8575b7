import FileOutput
import Glibc
import PrefetchModel
import Reporting

/// Writes to standard error outside a run; a run's reporter has its own output.
enum StandardError {
    /// - Parameter line: without line end; escaped for terminals.
    static func write(_ line: String) { put(printable(line) + "\n") }

    static func message(_ text: String, hint: String? = nil) {
        write("prefetch: \(text)")
        if let hint { write("hint: \(hint)") }
    }

    /// - Parameter text: unescaped, with terminal controls.
    static func put(_ text: String) {
        let file = OutputFile(borrowing: STDERR_FILENO, name: "standard error")
        // A failure of standard error can't be reported anywhere.
        try? file.write(Array(text.utf8))
    }

    static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    /// Whether it is a terminal that can erase a line and show colours.
    static var isCapableTerminal: Bool { isTerminal && environment("TERM") != "dumb" }

    /// Columns; 80 if the terminal doesn't tell.
    static var width: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}

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

    static func print(_ object: JSONObject) throws { try print([object.description]) }

    static func print(_ lines: [String]) throws {
        var output = standardOutput()
        for line in lines { try output.write(line: line) }
        try output.finish()
    }
}

/// A progress line on a terminal, overwritten in place; nothing elsewhere.
struct ProgressText {
    private let isWanted: Bool
    private var isShown = false

    init(isWanted: Bool) {
        self.isWanted = isWanted && StandardError.isCapableTerminal
    }

    mutating func show(_ text: String) {
        guard isWanted else { return }
        StandardError.put(String(text.prefix(max(1, StandardError.width - 1))))
        isShown = true
    }

    mutating func clear() {
        guard isShown else { return }
        StandardError.put(ProgressLine.clearText)
        isShown = false
    }
}

/// Writes lines to standard output from callbacks that cannot throw. ``finish()`` throws the first
/// error; nothing is written after it.
final class CallbackOutput {
    private var lines = LineWriter.standardOutput()
    private var failure: (any Error)?

    func write(_ line: String) { attempt { try $0.write(line: line) } }
    func write(_ object: JSONObject) { attempt { try $0.write(object) } }

    func finish() throws {
        if let failure { throw failure }
        try lines.finish()
    }

    private func attempt(_ write: (inout LineWriter) throws -> Void) {
        guard failure == nil else { return }
        do {
            try write(&lines)
        } catch {
            failure = error
        }
    }
}
