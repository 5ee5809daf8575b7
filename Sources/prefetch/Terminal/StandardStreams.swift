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
    static func replace(_ path: String, with bytes: [UInt8], mode: UInt32 = 0o666) throws {
        guard path != "-" else { return try OutputFile.standardOutput().write(bytes) }
        var file = try ReplacingFile(path, mode: mode)
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

struct PrintedColumn {
    let title: String
    /// Whether cells are right-aligned.
    let isNumber: Bool

    static func text(_ title: String) -> PrintedColumn {
        PrintedColumn(title: title, isNumber: false)
    }
    static func number(_ title: String) -> PrintedColumn {
        PrintedColumn(title: title, isNumber: true)
    }
}

/// Writes rows to standard output: aligned under a header on a terminal, tab-separated without a
/// header elsewhere.
struct ColumnWriter: ~Copyable {
    let isForPeople: Bool
    private let columns: [PrintedColumn]
    private var output: LineWriter
    /// Rows held back until the columns' widths are known.
    private var waiting: [[String]] = []
    private var widths: [Int] = []

    /// Number of rows that determine the widths. Long lists are printed while they are read; a
    /// wider cell further down shifts the rest of its line.
    private static let measuredRows = 1000
    private static let gap = "  "

    init(_ columns: [PrintedColumn], isForPeople: Bool = isatty(STDOUT_FILENO) == 1) {
        self.columns = columns
        self.isForPeople = isForPeople
        output = LineWriter.standardOutput()
    }

    mutating func write(line: String) throws(OutputError) { try output.write(line: line) }

    mutating func write(_ object: JSONObject) throws(OutputError) { try output.write(object) }

    /// Writes a row: one cell per column, without tabs and line ends, and optional remarks behind.
    mutating func write(row cells: [String]) throws(OutputError) {
        guard isForPeople else { return try output.write(line: cells.joined(separator: "\t")) }
        guard widths.isEmpty else { return try output.write(line: aligned(cells)) }
        waiting.append(cells)
        if waiting.count == ColumnWriter.measuredRows { try writeWaiting() }
    }

    mutating func finish() throws(OutputError) {
        if !waiting.isEmpty { try writeWaiting() }
        try output.finish()
    }

    private mutating func writeWaiting() throws(OutputError) {
        let rows = [columns.map(\.title)] + waiting
        waiting = []
        widths = columns.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        for row in rows { try output.write(line: aligned(row)) }
    }

    private func aligned(_ cells: [String]) -> String {
        var line = ""
        for (index, cell) in cells.enumerated() {
            guard index < columns.count else {
                line += ColumnWriter.gap + cell
                continue
            }
            let padding = String(repeating: " ", count: max(0, widths[index] - cell.count))
            if index > 0 { line += ColumnWriter.gap }
            if columns[index].isNumber {
                line += padding + cell
            } else {
                // No trailing spaces.
                line += index == cells.count - 1 ? cell : cell + padding
            }
        }
        return line
    }
}
