internal import SQLite

final class RowInsertion {
    enum InsertionOutcome {
        case inserted
        /// There is a row with that key, as new or newer.
        case known
        /// A constraint does not allow it.
        case refused
    }

    let table: SalvagedTable
    let layout: TableLayout
    private let check: SalvagedTable.RowCheck
    private let target: Connection
    private let insertion: String
    /// Inserts rows that have no equal.
    private let appending: Statement

    init(_ table: SalvagedTable, into target: Connection) throws {
        self.table = table
        self.target = target
        layout = try TableLayout(of: table.name, in: target)
        check = table.makeCheck(layout)
        let parameters = layout.columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
        insertion = "INTO \(table.name) (\(layout.list)) VALUES (\(parameters))"
        appending = try target.prepare("INSERT \(insertion)")
    }

    /// Inserts a row, with some values replaced, in place of an older one.
    func insert(
        _ row: borrowing Statement, replacing values: [Int32: Statement.Value] = [:]
    ) throws -> InsertionOutcome {
        if try put(row, values, "IGNORE") { return .inserted }
        guard try replacesOlder(row, values) else { return .known }
        return try put(row, values, "REPLACE") ? .inserted : .refused
    }

    /// Whether a row with the table's columns is one that this program could have written.
    func isValid(_ row: borrowing Statement) throws -> Bool {
        try layout.fits(row) && check(row)
    }

    /// Inserts another database's row, with some values replaced; throws if its key is there.
    func append(
        _ row: borrowing Statement, replacing values: [(column: Int32, value: Statement.Value)]
    ) throws {
        defer { appending.reset() }
        for column in 0..<Int32(layout.columns.count) {
            try appending.bind(column: column, of: row, at: column + 1)
        }
        for (column, value) in values { try appending.bind(value, at: column + 1) }
        while try appending.step() {}
    }

    func append(_ values: [Statement.Value]) throws { try appending.execute(values) }

    private func put(
        _ row: borrowing Statement, _ values: [Int32: Statement.Value], _ conflict: String
    ) throws -> Bool {
        let insertion = try target.prepare("INSERT OR \(conflict) \(insertion)")
        for index in 0..<Int32(layout.columns.count) {
            try bind(index, of: row, values, to: insertion, at: index + 1)
        }
        return try insertion.isAllowed() && target.changes > 0
    }

    /// Whether there is an older row with the same key.
    private func replacesOlder(
        _ row: borrowing Statement, _ values: [Int32: Statement.Value]
    ) throws -> Bool {
        guard let age = table.age else { return false }
        var condition = "\(layout.keyList) = \(layout.keyParameters(from: 1))"
        var names = layout.keys
        if let unique = table.unique {
            names.append(unique)
            condition += " OR \(unique) = ?\(names.count)"
        }
        let rows = try target.prepare("SELECT max(\(age)) FROM \(table.name) WHERE \(condition)")
        for (index, name) in names.enumerated() {
            try bind(layout[name], of: row, values, to: rows, at: Int32(index + 1))
        }
        guard try rows.step(), !rows.isNull(0) else { return false }
        return try rows.integer(0) < row.integer(layout[age])
    }

    /// Binds a parameter to a column of a row, or to the value that replaces it.
    private func bind(
        _ column: Int32, of row: borrowing Statement, _ values: [Int32: Statement.Value],
        to statement: borrowing Statement, at index: Int32
    ) throws {
        if let value = values[column] {
            try statement.bind(value, at: index)
        } else {
            try statement.bind(column: column, of: row, at: index)
        }
    }
}

extension Statement {
    fileprivate func isAllowed() throws -> Bool {
        do {
            while try step() {}
            return true
        } catch  where error.code.primary == .constraint {
            return false
        }
    }
}
