package import PrefetchModel
internal import SQLite

extension CacheCatalog {
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

    package func attribute(_ name: String, of resource: Resource) throws(StorageError) -> [UInt8]? {
        try database.read("reading an attribute") { database in
            try AttributeStore.value(name, resource: resource.id, in: database)
        }
    }

    package func failure(of key: String) throws(StorageError) -> FailureRecord? {
        try database.read("looking up a failure") { database in
            try CacheCatalog.failure(of: key, in: database)
        }
    }

    /// The failed last refresh of a resource until one succeeds; nil if it is of another URL with
    /// its key.
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

    /// Calls `body` for every failure, ordered by key. Memory use is constant.
    package func forEachFailure(_ body: (FailureRecord) throws -> Void) throws {
        try database.stream("listing failures") { database in
            try database.forEach("SELECT \(FailureRecord.columns) FROM failure ORDER BY key") {
                if let record = try FailureRecord($0) { try body(record) }
            }
        }
    }

    /// Nil if the resource was removed.
    package func source(of resource: Resource) throws(StorageError) -> SourceDetails? {
        try database.read("looking up a source") { database in
            try database.first(
                """
                SELECT etag, last_modified, cache_control, validated_at, source_sha256,
                    source_width, source_height
                FROM resource WHERE id = ?
                """, .integer(resource.id)
            ) { row in
                SourceDetails(
                    entityTag: try row.optionalText(0), lastModified: try row.optionalText(1),
                    cacheControl: try row.optionalText(2), validatedAt: try row.time(3),
                    digest: try row.digest(4), widthInPixels: try row.known(5),
                    heightInPixels: try row.known(6))
            }
        }
    }

    /// The shortest time between two access notes of a variant.
    private static let accessInterval = Duration.seconds(86_400)

    /// Notes that images were read, at most once a day each, for `prune`. It never waits for
    /// another writer or checkpoints the log, and leaves a cache that cannot be written unchanged.
    package func noteAccess(to items: [Item], at now: Timestamp) {
        // With a journal a commit waits for the disk, and for all readers.
        guard !items.isEmpty, !directory.hasJournal else { return }
        do {
            let due = try database.read("looking up accesses") { database in
                try items.filter { try CacheCatalog.isDue($0, in: database, at: now) }
            }
            guard !due.isEmpty else { return }
            let connection = try Connection(path: database.path, access: .readWriteExisting)
            // Closing must not checkpoint the log without syncing the files that its rows name.
            try connection.setKeepsLogAtClose(true)
            try connection.execute("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL")
            try connection.transaction(.immediate) {
                let update = try connection.prepare(
                    """
                    UPDATE variant SET last_access_at = ?3
                    WHERE resource_id = ?1 AND recipe = ?2 AND last_access_at < ?3
                    """)
                for item in due {
                    try update.execute(.integer(item.resource.id), .text(item.recipe), .init(now))
                }
            }
            try connection.close()
        } catch {
            // Another process is writing, or the cache is read-only: the next read notes it.
        }
    }

    private static func isDue(
        _ item: Item, in database: Connection, at now: Timestamp
    ) throws -> Bool {
        try database.first(
            "SELECT last_access_at FROM variant WHERE resource_id = ? AND recipe = ?",
            .integer(item.resource.id), .text(item.recipe)
        ) {
            now.timeSince(try $0.time(0)) > accessInterval
        } ?? false
    }
}

/// The response and the image that a resource's variants were made of.
package struct SourceDetails: Sendable {
    /// Response fields, unchanged; nil without them.
    package let entityTag: String?
    package let lastModified: String?
    package let cacheControl: String?
    package let validatedAt: Timestamp
    package let digest: ContentDigest
    /// As displayed; nil if unknown.
    package let widthInPixels: Int?
    package let heightInPixels: Int?
}

extension Statement {
    fileprivate func known(_ column: Int32) throws -> Int? {
        let count = try count(column)
        return count > 0 ? count : nil
    }
}
