internal import SQLite

struct TableLayout: Sendable {
    struct LayoutColumn: Sendable {
        let name: String
        let kind: Statement.StorageClass
        let isRequired: Bool
    }

    let table: String
    let columns: [LayoutColumn]
    /// The columns of the primary key, in its order.
    let keys: [String]
    let hasRowID: Bool
    private let indexes: [String: Int32]

    init(of table: String, in database: Connection) throws {
        let columns = try database.all(
            #"SELECT name, type, "notnull", pk FROM pragma_table_info(?)"#, .text(table)
        ) { row in
            let kinds: [String: Statement.StorageClass] = [
                "INTEGER": .integer, "TEXT": .text, "BLOB": .blob, "REAL": .real,
            ]
            let key = try row.integer(3)
            return (
                column: LayoutColumn(
                    name: try row.text(0), kind: kinds[try row.text(1)] ?? .blob,
                    isRequired: try row.integer(2) != 0 || key > 0),
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
            try database.first(
                "SELECT wr FROM pragma_table_list(?) WHERE schema = 'main'", .text(table)
            ) { try $0.integer(0) == 0 } ?? true
        indexes = Dictionary(
            uniqueKeysWithValues: columns.enumerated().map { ($1.column.name, Int32($0)) })
    }

    /// The layout of an index: entries are stored like rows of a table without rowids.
    init(of index: String, columns: [(name: String, kind: Statement.StorageClass)], keys: [String])
    {
        table = index
        self.columns = columns.map {
            LayoutColumn(name: $0.name, kind: $0.kind, isRequired: true)
        }
        self.keys = keys
        hasRowID = false
        indexes = Dictionary(
            uniqueKeysWithValues: columns.enumerated().map { ($1.name, Int32($0)) })
    }

    /// The position of a column. Only ``SalvagedTable`` names columns of tables.
    subscript(name: String) -> Int32 {
        guard let index = indexes[name] else { preconditionFailure("no column \(table).\(name)") }
        return index
    }

    /// Whether each value has its column's type, and each text is valid.
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

    /// `id, key, …`
    var list: String { columns.map(\.name).joined(separator: ", ") }

    /// Throws ``SQLiteError`` if another database's schema cannot be read, or has something else in
    /// place of the table, or no such columns.
    func check(in other: Connection) throws {
        guard try other.isOrdinaryTable(table) else {
            throw SQLiteError(code: .corrupt, message: "\(table) is not a table")
        }
        _ = try other.prepare("SELECT \(list) FROM \(table)")
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

    /// Creates a table to read rows of this one without other schema objects. The last column,
    /// `surplus`, is NULL for rows without further columns: other tables' rows may begin alike.
    func bareCreation(of name: String) -> String {
        let declarations = columns.map { column in
            hasRowID && [column.name] == keys
                ? "\(column.name) INTEGER PRIMARY KEY" : column.name
        }
        return "CREATE TABLE \(name) (\(declarations.joined(separator: ", ")), surplus"
            + (hasRowID ? ")" : ", PRIMARY KEY \(keyList)) WITHOUT ROWID")
    }

    func key(of row: borrowing Statement) -> [Statement.Value] {
        keys.map { row.value(self[$0]) }
    }
}

extension Connection {
    /// Whether it is a plain table: views, virtual tables and generated columns may never end.
    func isOrdinaryTable(_ name: String) throws -> Bool {
        try self.first(
            """
            SELECT count(*) = 1 FROM pragma_table_list(?1)
            WHERE schema = 'main' AND type = 'table'
                AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden)
            """, .text(name)
        ) { try $0.integer(0) != 0 } ?? false
    }
}
