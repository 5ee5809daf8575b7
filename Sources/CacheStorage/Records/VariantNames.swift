import PrefetchModel
internal import SQLite

/// The table `variant_name`: what runs call the variants that they keep.
enum VariantNames {
    /// The row of `main`, which every database has.
    static let main: Int64 = 0

    /// Notes what a run calls its variants, and when it began. Without a time, rows that say the same
    /// already are not written.
    static func note(
        _ variants: [RequestedVariant], at time: Timestamp? = nil, in database: Connection
    ) throws {
        let statement = try Statement(
            database,
            sql: """
                INSERT INTO variant_name (name, recipe, used_at) VALUES (?1, ?2, ?3)
                ON CONFLICT (name) DO UPDATE SET recipe = ?2, used_at = coalesce(?3, used_at)
                WHERE recipe <> ?2 OR ?3 IS NOT NULL
                """)
        for variant in variants {
            try statement.execute(
                .text(variant.name.text), .text(variant.recipeText), .init(time?.milliseconds))
        }
    }

    /// The row of a name, which is added if no run has noted it.
    static func row(of variant: RequestedVariant, in database: Connection) throws -> Int64 {
        if variant.name == .main { return main }
        let statement = try Statement(
            database, sql: "SELECT id FROM variant_name WHERE name = ?")
        if let row = try statement.first(.text(variant.name.text), read: { try $0.integer(0) }) {
            return row
        }
        try note([variant], in: database)
        return database.lastInsertedRowID
    }

    /// `main` first, the others in the order of their names.
    static func all(in database: Connection) throws -> [NotedVariant] {
        try Statement(
            database, sql: "SELECT name, recipe FROM variant_name ORDER BY id <> 0, name"
        ).all { NotedVariant(name: try $0.text(0), recipe: try $0.text(1)) }
    }
}

/// What a name stands for: the recipe of the last run that used it.
package struct NotedVariant: Hashable, Sendable {
    package let name: String
    /// A canonical text; see ``Recipe``.
    package let recipe: String
}

/// How the variants of one resource are used. A value: the rows are read and written elsewhere.
///
/// A variant that is in use is tagged with one name. Where several names have its recipe, it is tagged
/// with `main` if that is among them, else with the first; the others find it by what the table
/// `variant_name` says of them.
struct VariantUses {
    struct Row: Equatable {
        let recipe: String
        var name: Int64
        var isSuperseded: Bool

        /// What `freshness.superseded` says.
        var freshnessMark: Int64 { isSuperseded ? 1 : name == VariantNames.main ? 0 : 2 }
    }

    struct Used {
        let name: Int64
        let recipe: String
    }

    private(set) var rows: [Row]

    init(_ rows: [Row]) {
        self.rows = rows
    }

    /// A run uses these variants, with different names. Each supersedes the others of its name, if it
    /// is stored; what other names use stays.
    ///
    /// - Returns: the rows that have changed.
    mutating func use(_ used: [Used]) -> [Row] {
        // Nearly every resource of nearly every run.
        if rows.count == 1, used.count == 1, !rows[0].isSuperseded,
            rows[0].recipe == used[0].recipe, rows[0].name == used[0].name
        {
            return []
        }
        let stored = Set(rows.map(\.recipe))
        let recipes = Dictionary(
            used.filter { stored.contains($0.recipe) }.map { ($0.name, $0.recipe) }
        ) { first, _ in first }
        var changed: [Row] = []
        for index in rows.indices {
            var row = rows[index]
            let names = used.filter { $0.recipe == row.recipe }.map(\.name)
            if let first = names.first {
                row.name = VariantUses.tag(of: row, among: names, first: first, all: recipes)
                row.isSuperseded = false
            } else if recipes[row.name] != nil {
                row.isSuperseded = true
            }
            guard row != rows[index] else { continue }
            rows[index] = row
            changed.append(row)
        }
        return changed
    }

    private static func tag(
        of row: Row, among names: [Int64], first: Int64, all recipes: [Int64: String]
    ) -> Int64 {
        if names.contains(VariantNames.main) { return VariantNames.main }
        if names.contains(row.name) { return row.name }
        // In use by a name of which this run says nothing.
        if !row.isSuperseded, recipes[row.name] == nil { return row.name }
        return first
    }
}
