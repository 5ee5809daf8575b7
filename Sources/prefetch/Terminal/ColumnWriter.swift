import FileOutput
import Glibc
import Reporting

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
