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
