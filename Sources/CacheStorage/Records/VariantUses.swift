import PrefetchModel
internal import SQLite

/// A name and the recipe of the last run that used it.
package struct NotedVariant: Hashable, Sendable {
    package let name: String
    /// A canonical text; see ``Recipe``. If only lines use the name, each image may have another.
    package let recipe: String
    /// Whether a run's flags have defined the name.
    package var isOfRun = true
}

/// The current and superseded variants of one resource. A value: others read and write the rows. A
/// current variant is tagged with one name. If several names have its recipe, the tag is `main`,
/// or the first of them without `main`; the table `variant_name` leads from the others to it.
struct VariantUses {
    struct VariantUse: Equatable {
        let recipe: String
        var name: Int64
        var isSuperseded: Bool

        /// The value of `freshness.superseded`.
        var freshnessMark: Int64 { isSuperseded ? 1 : name == VariantNames.main ? 0 : 2 }
    }

    private(set) var rows: [VariantUse]

    init(_ rows: [VariantUse]) {
        self.rows = rows
    }

    /// Makes these variants current, each under its own name. A stored one supersedes the others of
    /// its name; variants of other names are unchanged. Returns the rows that have changed.
    mutating func use(_ used: [(name: Int64, recipe: String)]) -> [VariantUse] {
        // The case of nearly every resource in nearly every run.
        if rows.count == 1, used.count == 1, !rows[0].isSuperseded,
            rows[0].recipe == used[0].recipe, rows[0].name == used[0].name
        {
            return []
        }
        let stored = Set(rows.map(\.recipe))
        let recipes = Dictionary(
            used.filter { stored.contains($0.recipe) }.map { ($0.name, $0.recipe) }
        ) { first, _ in first }
        var changed: [VariantUse] = []
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
        of row: VariantUse, among names: [Int64], first: Int64, all recipes: [Int64: String]
    ) -> Int64 {
        if names.contains(VariantNames.main) { return VariantNames.main }
        if names.contains(row.name) { return row.name }
        // Current under a name that this run does not use.
        if !row.isSuperseded, recipes[row.name] == nil { return row.name }
        return first
    }
}

/// The table `variant_name`: the names of variants.
enum VariantNames {
    /// The row of `main`, which every database has.
    static let main: Int64 = 0

    /// Records the names of a run's variants, and its start; equal rows only with a time.
    static func note(
        _ variants: [RequestedVariant], at time: Timestamp? = nil, in database: Connection
    ) throws {
        let statement = try database.prepare(
            """
            INSERT INTO variant_name (name, recipe, used_at) VALUES (?1, ?2, ?3)
            ON CONFLICT (name) DO UPDATE SET recipe = ?2, used_at = coalesce(?3, used_at)
            WHERE recipe <> ?2 OR ?3 IS NOT NULL
            """)
        for variant in variants {
            try statement.execute(
                .text(variant.name.text), .text(variant.recipeText), .init(time?.milliseconds))
        }
    }

    /// The row of a name, which is added if it is new.
    static func row(of variant: RequestedVariant, in database: Connection) throws -> Int64 {
        if variant.name == .main { return main }
        let statement = try database.prepare("SELECT id FROM variant_name WHERE name = ?")
        if let row = try statement.first([.text(variant.name.text)], read: { try $0.integer(0) }) {
            return row
        }
        try note([variant], in: database)
        return database.lastInsertedRowID
    }

    /// All names: `main` first, the others in alphabetical order.
    static func all(in database: Connection) throws -> [NotedVariant] {
        try database.all(
            """
            SELECT name, recipe, id = 0 OR used_at IS NOT NULL FROM variant_name
            ORDER BY id <> 0, name
            """
        ) {
            NotedVariant(
                name: try $0.text(0), recipe: try $0.text(1), isOfRun: try $0.integer(2) != 0)
        }
    }
}
