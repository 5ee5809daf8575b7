package import Hashing
package import PrefetchModel
internal import SQLite

/// Reads a cache, without its lock: for commands, the planning of runs, and as their seed.
package struct CacheCatalog: Sendable {
    package struct Item: Sendable {
        package let resource: Resource
        package let recipe: String
        /// The name by which it is or was last in use. If its recipe has several names, `main`,
        /// else the first. Nil when the database has lost the name.
        package let name: String?
        package let image: StoredImage
        package let download: SourceDownload
        package let validatedAt: Timestamp
        /// The end of its freshness by its run's rules; 0 if every use must validate it.
        package let expiresAt: Timestamp
        /// Whether a later run used another variant of the resource by that name.
        package let isSuperseded: Bool
        /// The latest failure to refresh the URL, until a refresh succeeds; nil unless requested.
        package internal(set) var failure: FailureRecord?
        /// The resource's attributes, ordered by name; empty unless requested.
        package internal(set) var attributes: [EntryAttribute] = []
    }

    /// The response that delivered a resource, and its image.
    package struct SourceDownload: Sendable {
        package let fetchedAt: Timestamp
        /// The final URL after redirects, without user information; nil without redirects.
        package let finalURL: String?
        package let redirects: Int
        /// Response fields, unchanged; nil without them.
        package let cacheControl: String?
        package let contentType: String?
        package let size: ByteCount
        package let format: String
    }

    package struct Resource: Sendable {
        let id: Int64
        package let key: String
        /// Without user information.
        package let url: String
        /// Scheme, host and port of ``url``.
        package let host: String
        /// The URL of the list's line that named it last, without user information.
        package let listedURL: String
        package var urls: StoredURLs { StoredURLs(requested: url, listed: listedURL) }
    }

    let database: CacheDatabase
    package let directory: CacheDirectory

    /// Whether another database has replaced the open one, or none is there.
    package var isReplaced: Bool { !database.isInPlace }

    /// The columns that ``Item/init(_:)`` reads.
    static let columns = """
        sha256, format, width, height, bytes, id, key, url, recipe, fetched_at, validated_at,
        expires_at, cache_control, source_bytes, source_format, host, final_url, content_type,
        redirects, superseded,
        (SELECT named.name FROM variant_name AS named WHERE named.id = variant.name),
        decoded, orientation, coalesce(listed_url, url)
        """

    package func variants(of key: String) throws(StorageError) -> [Item] {
        try variants(ofKeys: [key])[0]
    }

    /// The current row of a variant; nil if it was removed.
    package func item(like item: Item) throws(StorageError) -> Item? {
        try variants(of: item.resource.key).first { $0.recipe == item.recipe }
    }

    /// The variants of each key, newest first; empty for a key that is not stored.
    package func variants(ofKeys keys: [String]) throws(StorageError) -> [[Item]] {
        try database.read("looking up") { database in
            let rows = try database.prepare(
                """
                SELECT \(CacheCatalog.columns), created_at
                FROM resource JOIN variant ON id = resource_id WHERE key = ?
                """)
            return try keys.map { key in
                var found = try rows.all([.text(key)]) {
                    (item: try Item($0), at: try $0.integer(24))
                }
                // Most keys have one row, and SQLite's sorter would cost more than their look-up.
                if found.count > 1 {
                    found.sort { ($1.at, $0.item?.recipe ?? "") < ($0.at, $1.item?.recipe ?? "") }
                }
                return found.compactMap(\.item)
            }
        }
    }

    /// The key of the resource that a URL without user information requested or listed last, if the
    /// key differs from the URL; of several the last validated one.
    package func key(ofURL url: String) throws(StorageError) -> String? {
        try database.read("looking up") { try CacheCatalog.key(ofURL: url, in: $0) }
    }

    static func key(ofURL url: String, in database: Connection) throws -> String? {
        try database.first(
            """
            SELECT key FROM resource WHERE url = ?1 AND url <> key OR listed_url = ?1
            ORDER BY validated_at DESC, key LIMIT 1
            """, .text(url)
        ) { try $0.text(0) }
    }

    /// Calls `body` for every variant, ordered by key and recipe. Memory use is constant.
    package func forEachVariant(_ body: (Item) throws -> Void) throws {
        try database.stream("listing") { database in
            try database.forEach(
                """
                SELECT \(CacheCatalog.columns)
                FROM resource JOIN variant ON id = resource_id ORDER BY key, recipe
                """
            ) {
                if let item = try Item($0) { try body(item) }
            }
        }
    }

    static func forEachItemWithAttributes(
        in database: Connection, _ body: (Item) throws -> Void
    ) throws {
        var current: Item?
        var placeholder: Placeholder?
        func finish() throws {
            if let placeholder { current?.attributes.insert(placeholder) }
            if let item = current { try body(item) }
            current = nil
        }
        // One row per attribute, at least one a variant. The primary keys have this order.
        try database.forEach(
            """
            SELECT \(columns), attribute.name, attribute.value, thumbhash, color
            FROM resource JOIN variant ON id = variant.resource_id
            LEFT JOIN attribute ON id = attribute.resource_id
            ORDER BY key, recipe, attribute.name
            """
        ) { row in
            if let item = current,
                try row.integer(5) != item.resource.id || row.text(8) != item.recipe
            {
                try finish()
            }
            if current == nil {
                current = try Item(row)
                placeholder = try row.placeholder(from: 26)
            }
            if let name = try row.optionalText(24) {
                current?.attributes.append(
                    EntryAttribute(storedName: name, value: try row.blob(25)))
            }
        }
        try finish()
    }

    /// The path of a variant's content file; nil without a file of the row's size.
    package func wholeFile(of image: StoredImage) -> String? {
        directory.hasWholeFile(image) ? directory.path(of: image) : nil
    }

    /// Like ``wholeFile(of:)``, and nil also if the file's digest differs from its name.
    package func checkedFile(
        of image: StoredImage, hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> String? {
        switch directory.bytes(of: image, hasher: hasher) {
        case .whole: return directory.path(of: image)
        case .damaged: return nil
        case .unreadable(let error): throw error
        }
    }
}

extension CacheCatalog {
    package init(directory: CacheDirectory) throws(StorageError) {
        self.init(
            database: try CacheDatabase(directory: directory, access: .readOnly),
            directory: directory)
    }

    package init(_ cache: OpenCache) {
        self.init(database: cache.database, directory: cache.directory)
    }
}

extension CacheCatalog.Item {
    init?(_ row: borrowing Statement) throws {
        guard let image = try row.storedImage(from: 0, details: 21) else { return nil }
        self.init(
            resource: CacheCatalog.Resource(
                id: try row.integer(5), key: try row.text(6), url: try row.text(7),
                host: try row.text(15), listedURL: try row.text(23)),
            recipe: try row.text(8), name: try row.optionalText(20), image: image,
            download: CacheCatalog.SourceDownload(
                fetchedAt: try row.time(9), finalURL: try row.optionalText(16),
                redirects: try row.count(18), cacheControl: try row.optionalText(12),
                contentType: try row.optionalText(17), size: ByteCount(try row.count(13)),
                format: try row.text(14)),
            validatedAt: try row.time(10), expiresAt: try row.time(11),
            isSuperseded: try row.integer(19) != 0)
    }
}
