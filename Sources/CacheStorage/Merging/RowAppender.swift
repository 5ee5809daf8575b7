internal import SQLite

/// Inserts rows that have no equal into a table of the new database, by one prepared statement.
final class RowAppender {
    private let rows: RowInsertion
    private let insertion: Statement

    var layout: TableLayout { rows.layout }

    init(_ table: SalvagedTable, into target: Connection) throws {
        rows = try RowInsertion(table, into: target)
        insertion = try target.prepare("INSERT \(rows.insertion)")
    }

    /// See ``RowInsertion/isValid(_:)``.
    func isValid(_ row: borrowing Statement) throws -> Bool { try rows.isValid(row) }

    /// Inserts a row of another database, with some values replaced.
    ///
    /// - Throws: also when there is a row with its key.
    func add(
        _ row: borrowing Statement, replacing values: [(column: Int32, value: Statement.Value)]
    ) throws {
        defer { insertion.reset() }
        for column in 0..<Int32(layout.columns.count) {
            try insertion.bindShared(column: column, of: row, at: column + 1)
        }
        for (column, value) in values { try insertion.bind(value, at: column + 1) }
        while try insertion.step() {}
    }

    /// Inserts the values of all columns.
    func add(_ values: [Statement.Value]) throws {
        try insertion.execute(values)
    }
}
