package import PrefetchModel
internal import SQLite

/// The attributes `prefetch.thumbhash` and `prefetch.color` of resources.
package struct PlaceholderStore: Sendable {
    /// A resource without a placeholder.
    package struct Candidate: Sendable {
        package let resource: Int64
        package let key: String
        /// The stored image that it can be made of: the variant `main` that is in use, else another.
        package let image: StoredImage
    }

    private let database: CacheDatabase

    package init(database: CacheDatabase) {
        self.database = database
    }

    /// Resources that lack one.
    package func count() throws(StorageError) -> Int {
        try PlaceholderStore.count(database)
    }

    fileprivate static func count(_ database: CacheDatabase) throws(StorageError) -> Int {
        try database.read("counting placeholders") { database in
            try Statement(database, sql: "SELECT count(*) FROM resource WHERE \(isLacking)")
                .first { try $0.count(0) } ?? 0
        }
    }

    /// The next so many that lack one, in the order of their identifiers.
    package func candidates(
        after resource: Int64, limit: Int
    ) throws(StorageError) -> [Candidate] {
        try database.read("looking for placeholders") { database in
            // Superseded ones are of the same body.
            try Statement(
                database,
                sql: """
                    SELECT sha256, format, width, height, bytes, id, key
                    FROM resource JOIN variant ON resource_id = id AND recipe = (
                        SELECT recipe FROM variant WHERE resource_id = id
                        ORDER BY superseded, name, recipe LIMIT 1)
                    WHERE id > ? AND \(PlaceholderStore.isLacking) ORDER BY id LIMIT ?
                    """
            ).all(.integer(resource), .init(limit)) { row in
                let (id, key) = (try row.integer(5), try row.text(6))
                return try row.storedImage(from: 0).map {
                    Candidate(resource: id, key: key, image: $0)
                }
            }.compactMap(\.self)
        }
    }

    /// Stores them all, or none.
    package func put(_ placeholders: [(resource: Int64, Placeholder)]) throws(StorageError) {
        guard !placeholders.isEmpty else { return }
        try database.write("storing placeholders") { database in
            for (resource, placeholder) in placeholders {
                try PlaceholderStore.put(placeholder, resource: resource, in: database)
            }
        }
    }

    /// Of a resource that has an image.
    private static let isLacking = """
        EXISTS (SELECT 1 FROM variant WHERE variant.resource_id = resource.id)
        AND NOT EXISTS (
            SELECT 1 FROM attribute WHERE attribute.resource_id = resource.id
            AND attribute.name = '\(EntryAttribute.Own.thumbHash)')
        """

    static func put(
        _ placeholder: Placeholder, resource: Int64, in database: Connection
    ) throws {
        try put(
            placeholder.thumbHashText, EntryAttribute.Own.thumbHash, resource: resource,
            in: database)
        if let colour = placeholder.colourText {
            try put(colour, EntryAttribute.Own.colour, resource: resource, in: database)
        } else {
            try remove(EntryAttribute.Own.colour, resource: resource, in: database)
        }
    }

    private static func put(
        _ value: String, _ name: String, resource: Int64, in database: Connection
    ) throws {
        try AttributeStore.put(
            EntryAttribute(storedName: name, value: Array(value.utf8)), resource: resource,
            in: database)
    }

    /// Forgets what a resource has.
    static func remove(resource: Int64, in database: Connection) throws {
        try remove(EntryAttribute.Own.thumbHash, resource: resource, in: database)
        try remove(EntryAttribute.Own.colour, resource: resource, in: database)
    }

    private static func remove(
        _ name: String, resource: Int64, in database: Connection
    ) throws {
        try Statement(
            database, sql: "DELETE FROM attribute WHERE resource_id = ? AND name = ?"
        ).execute(.integer(resource), .text(name))
    }
}

extension CacheCatalog {
    /// Images that lack a placeholder.
    package func countWithoutPlaceholder() throws(StorageError) -> Int {
        try PlaceholderStore.count(database)
    }
}
