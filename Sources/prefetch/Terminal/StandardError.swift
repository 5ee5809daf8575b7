import Glibc
import Reporting

/// Lines on standard error outside a run, whose reporter has its own.
enum StandardError {
    /// - Parameter line: without line end; made safe for a terminal.
    static func write(_ line: String) { put(printable(line) + "\n") }

    /// - Parameter text: as it is, for a terminal.
    static func put(_ text: String) {
        let file = OutputFile(borrowing: STDERR_FILENO, name: "standard error")
        // There is no place left to say that standard error cannot be written.
        try? file.write(Array(text.utf8))
    }

    static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    /// Whether it is a terminal that can erase a line and show colours.
    static var isCapableTerminal: Bool {
        isTerminal && getenv("TERM").map { String(cString: $0) } != "dumb"
    }

    /// Columns, 80 where the terminal does not say.
    static var width: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
