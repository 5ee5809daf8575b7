package import PrefetchModel
internal import SQLite

/// Placeholders, shown as the attributes `prefetch.thumbhash` and `prefetch.color`.
package struct PlaceholderStore: Sendable {
    /// A resource without a placeholder, with the stored image to make it of: the current variant
    /// `main`, else another one.
    package typealias LackingImage = (resource: Int64, key: String, image: StoredImage)

    let database: CacheDatabase

    package func count() throws(StorageError) -> Int {
        try database.read("counting placeholders") { database in
            try database.first("SELECT count(*) FROM resource WHERE \(PlaceholderStore.isLacking)")
            {
                try $0.count(0)
            } ?? 0
        }
    }

    /// The next resources without one, in the order of their identifiers.
    package func candidates(
        after resource: Int64, limit: Int
    ) throws(StorageError) -> [LackingImage] {
        try database.read("looking for placeholders") { database in
            // Superseded variants show the same picture.
            try database.all(
                """
                SELECT sha256, format, width, height, bytes, id, key
                FROM resource JOIN variant ON resource_id = id AND recipe = (
                    SELECT recipe FROM variant WHERE resource_id = id
                    ORDER BY superseded, name, recipe LIMIT 1)
                WHERE id > ? AND \(PlaceholderStore.isLacking) ORDER BY id LIMIT ?
                """, .integer(resource), .init(limit)
            ) { row in
                let (id, key) = (try row.integer(5), try row.text(6))
                return try row.storedImage(from: 0).map { (id, key, $0) }
            }.compactMap(\.self)
        }
    }

    /// Stores all of them, or none.
    package func put(_ placeholders: [(resource: Int64, Placeholder)]) throws(StorageError) {
        guard !placeholders.isEmpty else { return }
        try database.write("storing placeholders") { database in
            for (resource, placeholder) in placeholders {
                try database.run(
                    "UPDATE resource SET thumbhash = ?2, color = ?3 WHERE id = ?1",
                    .integer(resource), .blob(placeholder.thumbHash),
                    .init(placeholder.colour.map { Int64($0.number) }))
            }
        }
    }

    private static let isLacking = """
        thumbhash IS NULL
        AND EXISTS (SELECT 1 FROM variant WHERE variant.resource_id = resource.id)
        """

    static func fetch(resource: Int64, in database: Connection) throws -> Placeholder? {
        try database.first("SELECT thumbhash, color FROM resource WHERE id = ?", .integer(resource))
        { try $0.placeholder(from: 0) } ?? nil
    }
}

extension CacheCatalog {
    package func countWithoutPlaceholder() throws(StorageError) -> Int {
        try PlaceholderStore(database: database).count()
    }
}
