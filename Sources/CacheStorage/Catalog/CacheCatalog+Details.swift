package import PrefetchModel
internal import SQLite

// Queries of `attr` and `failed`.

extension CacheCatalog {
    /// The resource of a key, or nil when the cache has no such key.
    package func resource(of key: String) throws(StorageError) -> Resource? {
        try database.read("looking up") { database in
            try database.first(
                "SELECT id, key, url, host, coalesce(listed_url, url) FROM resource WHERE key = ?",
                .text(key)
            ) {
                Resource(
                    id: try $0.integer(0), key: try $0.text(1), url: try $0.text(2),
                    host: try $0.text(3), listedURL: try $0.text(4))
            }
        }
    }

    /// The names under which runs used variants: `main` first, then by name.
    package func variantNames() throws(StorageError) -> [NotedVariant] {
        try database.read("reading the names of variants") { database in
            try VariantNames.all(in: database)
        }
    }

    /// Whether any image of this recipe is stored.
    package func hasVariant(ofRecipe recipe: String) throws(StorageError) -> Bool {
        try database.read("looking up") { database in
            try database.hasRow("SELECT 1 FROM variant WHERE recipe = ? LIMIT 1", .text(recipe))
        }
    }

    /// The attributes of a resource, ordered by the bytes of their names.
    package func attributes(of resource: Resource) throws(StorageError) -> [EntryAttribute] {
        try database.read("reading attributes") { database in
            try AttributeStore.fetch(resource: resource.id, in: database)
        }
    }

    /// The value of a resource's attribute, or nil when it has none of that name.
    package func attribute(_ name: String, of resource: Resource) throws(StorageError) -> [UInt8]? {
        try database.read("reading an attribute") { database in
            try AttributeStore.value(name, resource: resource.id, in: database)
        }
    }

    /// The failure of a key, or nil when none is remembered.
    package func failure(of key: String) throws(StorageError) -> FailureRecord? {
        try database.read("looking up a failure") { database in
            try CacheCatalog.failure(of: key, in: database)
        }
    }

    /// The latest failure to refresh a resource, until a refresh succeeds; nil if the failure is
    /// for another URL with the same key.
    package func failure(of resource: Resource) throws(StorageError) -> FailureRecord? {
        try database.read("looking up a failure") { database in
            try CacheCatalog.failure(of: resource, in: database)
        }
    }

    static func failure(of resource: Resource, in database: Connection) throws -> FailureRecord? {
        let record = try failure(of: resource.key, in: database)
        return record?.url == resource.url ? record : nil
    }

    /// The latest failure of a URL, given without user information, under any key.
    package func failure(ofURL url: String) throws(StorageError) -> FailureRecord? {
        if let record = try failure(of: url), record.url == url { return record }
        return try database.read("looking up a failure") { database in
            try database.first(
                """
                SELECT \(FailureRecord.columns) FROM failure WHERE url = ? AND url <> key
                ORDER BY last_failed_at DESC, key LIMIT 1
                """, .text(url)
            ) { try FailureRecord($0) } ?? nil
        }
    }

    private static func failure(of key: String, in database: Connection) throws -> FailureRecord? {
        try database.first("SELECT \(FailureRecord.columns) FROM failure WHERE key = ?", .text(key))
        { try FailureRecord($0) } ?? nil
    }

    /// Calls `body` for every failure, ordered by key.
    ///
    /// The rows are streamed, so memory use is constant.
    package func forEachFailure(_ body: (FailureRecord) throws -> Void) throws {
        try stream("listing failures", to: body) { database in
            let rows = try database.prepare(
                "SELECT \(FailureRecord.columns) FROM failure ORDER BY key")
            return {
                while try rows.step() {
                    if let record = try FailureRecord(rows) { return record }
                }
                rows.reset()
                return nil
            }
        }
    }
}
