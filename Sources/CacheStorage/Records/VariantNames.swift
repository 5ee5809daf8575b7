import PrefetchModel
internal import SQLite

/// The table `variant_name`: the names of variants.
enum VariantNames {
    /// The row of `main`, which every database has.
    static let main: Int64 = 0

    /// Records the names that a run uses for its variants, and its start. Without a time, equal
    /// rows are not written.
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
        if let row = try statement.first(.text(variant.name.text), read: { try $0.integer(0) }) {
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
