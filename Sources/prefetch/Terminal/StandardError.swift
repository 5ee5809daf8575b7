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
    static var isCapableTerminal: Bool {
        isTerminal && getenv("TERM").map { String(cString: $0) } != "dumb"
    }

    /// Columns; 80 if the terminal doesn't tell.
    static var width: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
