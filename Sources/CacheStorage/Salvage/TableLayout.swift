internal import SQLite

/// The columns of a table as the present schema has them.
struct TableLayout: Sendable {
    struct Column: Sendable {
        let name: String
        let kind: Statement.Kind
        let isRequired: Bool
        /// What rows of older versions have, as SQL.
        let fallback: String
    }

    let table: String
    let columns: [Column]
    /// The columns of the primary key, in its order.
    let keys: [String]
    /// Whether the rows lie by a number, which is the primary key, and not by all of it.
    let hasRowID: Bool
    private let indexes: [String: Int32]

    /// - Throws: where there is no such table.
    init(of table: String, in database: Connection) throws {
        let columns = try Statement(
            database,
            sql: #"SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)"#
        ).all(.text(table)) { row in
            let kinds: [String: Statement.Kind] = [
                "INTEGER": .integer, "TEXT": .text, "BLOB": .blob, "REAL": .real,
            ]
            let key = try row.integer(4)
            return (
                column: Column(
                    name: try row.text(0), kind: kinds[try row.text(1)] ?? .blob,
                    isRequired: try row.integer(2) != 0 || key > 0,
                    fallback: try row.optionalText(3) ?? "NULL"),
                key: key
            )
        }
        guard !columns.isEmpty else {
            throw SQLiteError(code: .error, message: "no table \(table)")
        }
        self.table = table
        self.columns = columns.map(\.column)
        keys = columns.filter { $0.key > 0 }.sorted { $0.key < $1.key }.map(\.column.name)
        hasRowID =
            try Statement(
                database, sql: "SELECT wr FROM pragma_table_list(?) WHERE schema = 'main'"
            ).first(.text(table)) { try $0.integer(0) == 0 } ?? true
        indexes = Dictionary(
            uniqueKeysWithValues: columns.enumerated().map { ($1.column.name, Int32($0)) })
    }

    /// The layout of an index, whose entries lie as the rows of a table without numbers do.
    init(of index: String, columns: [(name: String, kind: Statement.Kind)], keys: [String]) {
        table = index
        self.columns = columns.map {
            Column(name: $0.name, kind: $0.kind, isRequired: true, fallback: "NULL")
        }
        self.keys = keys
        hasRowID = false
        indexes = Dictionary(
            uniqueKeysWithValues: columns.enumerated().map { ($1.name, Int32($0)) })
    }

    /// Where a column stands; those of a table are named in ``SalvagedTable`` alone.
    subscript(name: String) -> Int32 {
        guard let index = indexes[name] else { preconditionFailure("no column \(table).\(name)") }
        return index
    }

    /// Whether each value of a row is of its column's type, and every text is one.
    func fits(_ row: borrowing Statement) -> Bool {
        for (index, column) in columns.enumerated() {
            switch row.kind(Int32(index)) {
            case .null: if column.isRequired { return false }
            case let kind where kind != column.kind: return false
            case .text: if !row.isCleanText(Int32(index)) { return false }
            case .integer, .real, .blob: break
            }
        }
        return true
    }

    // MARK: SQL

    /// `id, key, …`
    var list: String { columns.map(\.name).joined(separator: ", ") }

    /// The same for a database of an older version, which may lack some.
    ///
    /// - Throws: where its schema cannot be read.
    func list(in older: Connection) throws -> String {
        let present = Set(
            try Statement(older, sql: "SELECT name FROM pragma_table_info(?)")
                .all(.text(table)) { try $0.text(0) })
        guard !present.isEmpty else {
            throw SQLiteError(code: .error, message: "no table \(table)")
        }
        // Versions add columns that may be empty or have a default. What lacks another has lost its
        // name.
        let lost = columns.first {
            !present.contains($0.name) && $0.isRequired && $0.fallback == "NULL"
        }
        if let lost {
            throw SQLiteError(code: .error, message: "no column \(table).\(lost.name)")
        }
        return columns.map { present.contains($0.name) ? $0.name : $0.fallback }
            .joined(separator: ", ")
    }

    /// `(resource_id, recipe)`
    var keyList: String { "(\(keys.joined(separator: ", ")))" }

    /// `resource_id DESC, recipe DESC`
    func order(isDescending: Bool) -> String {
        keys.map { isDescending ? "\($0) DESC" : $0 }.joined(separator: ", ")
    }

    /// `(?1, ?2)`, numbered from `first` on.
    func keyParameters(from first: Int) -> String {
        "(\(keys.indices.map { "?\($0 + first)" }.joined(separator: ", ")))"
    }

    /// A statement that makes a table which rows of this one can be read through, without anything
    /// that SQLite would have to look up elsewhere. Its last column, `surplus`, is NULL for rows
    /// that have no more columns than these: those of other tables may begin alike.
    func bareCreation(of name: String) -> String {
        let declarations = columns.map { column in
            hasRowID && [column.name] == keys
                ? "\(column.name) INTEGER PRIMARY KEY"
                : "\(column.name) DEFAULT \(column.fallback)"
        }
        return "CREATE TABLE \(name) (\(declarations.joined(separator: ", ")), surplus"
            + (hasRowID ? ")" : ", PRIMARY KEY \(keyList)) WITHOUT ROWID")
    }

    func key(of row: borrowing Statement) -> [Statement.Value] {
        keys.map { row.value(self[$0]) }
    }
}
