package import PrefetchModel
internal import SQLite

/// The attributes of resources, in the table `attribute`; the program's own are in `resource`.
package struct AttributeStore: Sendable {
    let database: CacheDatabase

    /// Sets an attribute, not one of the program's own; false if the cache has no such key.
    package func set(_ attribute: EntryAttribute, key: String) throws(StorageError) -> Bool {
        try database.write("setting an attribute") { database in
            guard let resource = try AttributeStore.resource(key: key, in: database) else {
                return false
            }
            try AttributeStore.put(attribute, resource: resource, in: database)
            return true
        }
    }

    /// Removes an attribute. Returns whether there was one; nil if the cache has no such key.
    package func remove(_ name: String, key: String) throws(StorageError) -> Bool? {
        try database.write("removing an attribute") { database in
            guard let resource = try AttributeStore.resource(key: key, in: database) else {
                return nil
            }
            try database.run(
                "DELETE FROM attribute WHERE resource_id = ? AND name = ?", .integer(resource),
                .text(name))
            return database.changes > 0
        }
    }

    static func resource(key: String, in database: Connection) throws -> Int64? {
        try database.first("SELECT id FROM resource WHERE key = ?", .text(key)) {
            try $0.integer(0)
        }
    }

    static func put(_ attribute: EntryAttribute, resource: Int64, in database: Connection) throws {
        try database.run(
            """
            INSERT INTO attribute (resource_id, name, value) VALUES (?1, ?2, ?3)
            ON CONFLICT (resource_id, name) DO UPDATE SET value = ?3
            """, .integer(resource), .text(attribute.name), .blob(attribute.value))
    }

    static func fetch(resource: Int64, in database: Connection) throws -> [EntryAttribute] {
        var attributes = try database.all(
            "SELECT name, value FROM attribute WHERE resource_id = ? ORDER BY name",
            .integer(resource)
        ) {
            EntryAttribute(storedName: try $0.text(0), value: try $0.blob(1))
        }
        if let placeholder = try PlaceholderStore.fetch(resource: resource, in: database) {
            attributes.insert(placeholder)
        }
        return attributes
    }

    static func value(_ name: String, resource: Int64, in database: Connection) throws -> [UInt8]? {
        if name.utf8.starts(with: EntryAttribute.reservedPrefix.utf8) {
            return try PlaceholderStore.fetch(resource: resource, in: database)?
                .attributes.first { $0.name == name }?.value
        }
        return try database.first(
            "SELECT value FROM attribute WHERE resource_id = ? AND name = ?", .integer(resource),
            .text(name)
        ) { try $0.blob(0) }
    }
}

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
