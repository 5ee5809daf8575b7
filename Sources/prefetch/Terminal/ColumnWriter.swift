import Glibc
import Reporting

/// Rows of columns on standard output: under a header and aligned on a terminal, for people; separated
/// by tabs and without a header elsewhere, for programs.
struct ColumnWriter: ~Copyable {
    struct Column {
        let title: String
        /// Whether cells are set flush right, as numbers are.
        let isNumber: Bool

        static func text(_ title: String) -> Column { Column(title: title, isNumber: false) }
        static func number(_ title: String) -> Column { Column(title: title, isNumber: true) }
    }

    /// Whether people read it.
    let isForPeople: Bool
    private let columns: [Column]
    private var output: LineWriter
    /// Rows that wait until the columns' widths are known.
    private var waiting: [[String]] = []
    private var widths: [Int] = []

    /// So many rows decide the widths, so that long lists are shown while they are read; wider cells
    /// that come later push their own line to the right.
    private static let measuredRows = 1000
    private static let gap = "  "

    init(_ columns: [Column], isForPeople: Bool = isatty(STDOUT_FILENO) == 1) {
        self.columns = columns
        self.isForPeople = isForPeople
        output = LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
    }

    /// Writes a row: a cell for each column, without tabs and line ends, and perhaps more as remarks.
    mutating func write(row cells: [String]) throws(ReportingError) {
        guard isForPeople else {
            return try output.write(line: cells.joined(separator: "\t"))
        }
        guard widths.isEmpty else { return try output.write(line: aligned(cells)) }
        waiting.append(cells)
        if waiting.count == ColumnWriter.measuredRows { try writeWaiting() }
    }

    /// Writes what is buffered.
    mutating func finish() throws(ReportingError) {
        if !waiting.isEmpty { try writeWaiting() }
        try output.finish()
    }

    private mutating func writeWaiting() throws(ReportingError) {
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
                // No blanks at the end of a line.
                line += index == cells.count - 1 ? cell : cell + padding
            }
        }
        return line
    }
}
