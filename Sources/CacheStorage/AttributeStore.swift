internal import Foundation
internal import GRDB
package import PrefetchModel

/// The table `attribute`, for the commands.
package struct AttributeStore: Sendable {
    private let database: CacheDatabase

    package init(database: CacheDatabase) {
        self.database = database
    }

    /// Sets an attribute of a key's resource.
    ///
    /// - Returns: false when the cache has no such key.
    package func set(_ attribute: EntryAttribute, key: String) throws(StorageError) -> Bool {
        try database.write("setting an attribute") { database in
            guard let resource = try AttributeStore.resource(key: key, in: database) else {
                return false
            }
            try AttributeStore.put(attribute, resource: resource, in: database)
            return true
        }
    }

    /// Removes an attribute of a key's resource.
    ///
    /// - Returns: nil when the cache has no such key, else whether there was such an attribute.
    package func remove(_ name: String, key: String) throws(StorageError) -> Bool? {
        try database.write("removing an attribute") { database in
            guard let resource = try AttributeStore.resource(key: key, in: database) else {
                return nil
            }
            try database.execute(
                sql: "DELETE FROM attribute WHERE resource_id = ? AND name = ?",
                arguments: [resource, name])
            return database.changesCount > 0
        }
    }

    static func resource(key: String, in database: Database) throws -> Int64? {
        try Int64.fetchOne(
            database, sql: "SELECT id FROM resource WHERE key = ?", arguments: [key])
    }

    static func put(
        _ attribute: EntryAttribute, resource: Int64, in database: Database
    ) throws {
        try database.cachedStatement(
            sql: """
                INSERT INTO attribute (resource_id, name, value) VALUES (?1, ?2, ?3)
                ON CONFLICT (resource_id, name) DO UPDATE SET value = ?3
                """
        ).execute(arguments: [resource, attribute.name, Data(attribute.value)])
    }

    static func fetch(resource: Int64, in database: Database) throws -> [EntryAttribute] {
        try Row.fetchAll(
            database.cachedStatement(
                sql: "SELECT name, value FROM attribute WHERE resource_id = ? ORDER BY name"),
            arguments: [resource]
        ).map { EntryAttribute(storedName: $0[0], value: [UInt8]($0[1] as Data)) }
    }
}
