internal import SQLite

/// Inserts rows into a table of the new database, and checks those of sources.
final class RowAppender {
    let layout: TableLayout
    private let check: SalvagedTable.RowCheck
    private let insertion: Statement

    init(_ table: SalvagedTable, into target: Connection) throws {
        let layout = try TableLayout(of: table.name, in: target)
        let parameters = layout.columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
        self.layout = layout
        check = table.makeCheck(layout)
        insertion = try Statement(
            target,
            sql: "INSERT INTO \(table.name) (\(layout.list)) VALUES (\(parameters))")
    }

    /// Whether a row with the table's columns is one that this program could have written.
    func isValid(_ row: borrowing Statement) throws -> Bool {
        try layout.fits(row) && check(row)
    }

    /// Inserts a row of another database, with some values replaced.
    ///
    /// - Throws: also when there is a row with its key.
    func add(
        _ row: borrowing Statement, replacing values: (column: Int32, value: Statement.Value)...
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
