internal import Foundation
internal import GRDB
package import PrefetchModel

// What `attr` and `failed` read.

extension CacheCatalog {
    /// The resource of a key, or nil when the cache has no such key.
    package func resource(of key: String) throws(StorageError) -> Resource? {
        try database.read("looking up") { database in
            try Row.fetchOne(
                database, sql: "SELECT id, key, url FROM resource WHERE key = ?", arguments: [key]
            ).map { Resource(id: $0[0], key: $0[1], url: $0[2]) }
        }
    }

    /// The attributes of a resource, ordered by the bytes of their names.
    package func attributes(of resource: Resource) throws(StorageError) -> [EntryAttribute] {
        try database.read("reading attributes") { database in
            try AttributeStore.fetch(resource: resource.id, in: database)
        }
    }

    /// The value of a resource's attribute, or nil when it has none of that name.
    package func attribute(
        _ name: String, of resource: Resource
    ) throws(StorageError) -> [UInt8]? {
        try database.read("reading an attribute") { database in
            try Data.fetchOne(
                database, sql: "SELECT value FROM attribute WHERE resource_id = ? AND name = ?",
                arguments: [resource.id, name]
            ).map { [UInt8]($0) }
        }
    }

    /// Calls `body` for every failure, ordered by key.
    ///
    /// The rows are streamed: memory stays flat however many there are.
    package func forEachFailure(_ body: (FailureRecord) throws -> Void) throws {
        try stream("listing failures", to: body) { database in
            let rows = try Row.fetchCursor(
                database, sql: "SELECT \(FailureRecord.columns) FROM failure ORDER BY key")
            return {
                while let row = try rows.next() {
                    if let record = FailureRecord(row) { return record }
                }
                return nil
            }
        }
    }
}
