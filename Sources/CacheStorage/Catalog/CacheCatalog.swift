import Glibc
package import Hashing
package import PrefetchModel
internal import SQLite

/// Reads the cache for people and scripts: what `get`, `list`, `stats`, `attr` and `failed` show.
package struct CacheCatalog: Sendable {
    /// One variant with its resource.
    package struct Item: Sendable {
        package let resource: Resource
        package let recipe: String
        /// That it is in use by, or was last; of several names with its recipe `main`, else the first.
        /// Nil when the database has lost the name.
        package let name: String?
        package let image: StoredImage
        package let fetchedAt: Timestamp
        package let validatedAt: Timestamp
        /// Fresh until then by the rules of the run that stored it; 0 when it has to be validated
        /// at every use.
        package let expiresAt: Timestamp
        /// The response's field as it came.
        package let cacheControl: String?
        package let sourceSize: ByteCount
        package let sourceFormat: String
        /// Whether a later run used another variant of the resource by that name.
        package let isSuperseded: Bool
        /// Where redirects led, without user information; nil without any.
        package let finalURL: String?
        /// The response's field as it came; nil without one, and in rows of older versions.
        package let contentType: String?
        /// Redirects that were followed to the response; nil in rows of older versions.
        package let redirects: Int?
        /// How the last refresh of the URL failed, until it succeeds; nil unless it was asked for.
        package internal(set) var failure: FailureRecord?
        /// The resource's, ordered by name; empty unless they were asked for.
        package internal(set) var attributes: [EntryAttribute] = []
    }

    /// What a cache key names.
    package struct Resource: Sendable {
        let id: Int64
        package let key: String
        /// Without user information.
        package let url: String
        /// Scheme, host and port of ``url``.
        package let host: String
    }

    let database: CacheDatabase
    let directory: CacheDirectory

    package init(directory: CacheDirectory) throws(StorageError) {
        self.init(
            database: try CacheDatabase(directory: directory, access: .readOnly),
            directory: directory)
    }

    init(database: CacheDatabase, directory: CacheDirectory) {
        self.database = database
        self.directory = directory
    }

    /// The columns that ``Item/init(_:)`` reads.
    static let columns = """
        sha256, format, width, height, bytes, id, key, url, recipe, fetched_at, validated_at,
        expires_at, cache_control, source_bytes, source_format, host, final_url, content_type,
        redirects, superseded,
        (SELECT named.name FROM variant_name AS named WHERE named.id = variant.name),
        decoded
        """

    /// The variants of one key, the newest first.
    package func variants(of key: String) throws(StorageError) -> [Item] {
        try variants(ofKeys: [key])[0]
    }

    /// The same variant as its row is now; nil when it is gone.
    package func item(like item: Item) throws(StorageError) -> Item? {
        try variants(of: item.resource.key).first { $0.recipe == item.recipe }
    }

    /// The variants of each key, the newest first; none for a key that is not there.
    package func variants(ofKeys keys: [String]) throws(StorageError) -> [[Item]] {
        try database.read("looking up") { database in
            let rows = try Statement(
                database,
                sql: """
                    SELECT \(CacheCatalog.columns)
                    FROM resource JOIN variant ON id = resource_id WHERE key = ?
                    ORDER BY created_at DESC, recipe
                    """)
            return try keys.map { key in
                try rows.all(.text(key)) { try Item($0) }.compactMap(\.self)
            }
        }
    }

    /// The key of the resource that was asked for at a URL without user information, where the key is
    /// another text; of several the one that was validated last. Nil without any.
    package func key(ofURL url: String) throws(StorageError) -> String? {
        try database.read("looking up") { try CacheCatalog.key(ofURL: url, in: $0) }
    }

    static func key(ofURL url: String, in database: Connection) throws -> String? {
        try Statement(
            database,
            sql: """
                SELECT key FROM resource WHERE url = ? AND url <> key
                ORDER BY validated_at DESC, key LIMIT 1
                """
        ).first(.text(url)) { try $0.text(0) }
    }

    /// Calls `body` for every variant, ordered by key and recipe.
    ///
    /// The rows are streamed: memory stays flat however large the cache is. With attributes, those
    /// of one resource are held at a time, and failures come with them.
    package func forEachVariant(
        withAttributes: Bool = false, _ body: (Item) throws -> Void
    ) throws {
        try stream("listing", to: body) { database in
            try withAttributes
                ? CacheCatalog.itemsWithDetails(database) : CacheCatalog.items(database)
        }
    }

    private static func items(_ database: Connection) throws -> () throws -> Item? {
        let rows = try Statement(
            database,
            sql: """
                SELECT \(columns)
                FROM resource JOIN variant ON id = resource_id ORDER BY key, recipe
                """)
        return {
            while try rows.step() {
                if let item = try Item(rows) { return item }
            }
            return nil
        }
    }

    private static func itemsWithDetails(_ database: Connection) throws -> () throws -> Item? {
        let next = try itemsWithAttributes(database)
        guard try FailureLog.isAny(in: database) else { return next }
        return {
            guard var item = try next() else { return nil }
            item.failure = try failure(of: item.resource, in: database)
            return item
        }
    }

    static func itemsWithAttributes(_ database: Connection) throws -> () throws -> Item? {
        // One row an attribute, and one for a variant without any. Three primary keys are in this
        // order already, so nothing is sorted.
        let rows = try Statement(
            database,
            sql: """
                SELECT \(columns), attribute.name, attribute.value, thumbhash, color
                FROM resource JOIN variant ON id = variant.resource_id
                LEFT JOIN attribute ON id = attribute.resource_id
                ORDER BY key, recipe, attribute.name
                """)
        var current: Item?
        var placeholder: Placeholder?
        var isAtEnd = false
        func complete() -> Item? {
            if let placeholder { current?.attributes.insert(placeholder) }
            return current
        }
        return {
            // SQLite would begin anew when it is asked for a row after the last one.
            if isAtEnd { return nil }
            while try rows.step() {
                var finished: Item?
                if let item = current {
                    let isSame = try rows.integer(5) == item.resource.id
                    if try !isSame || rows.text(8) != item.recipe {
                        finished = complete()
                        current = nil
                    }
                }
                if current == nil {
                    current = try Item(rows)
                    placeholder = try rows.placeholder(from: 24)
                }
                if let name = try rows.optionalText(22) {
                    current?.attributes.append(
                        EntryAttribute(storedName: name, value: try rows.blob(23)))
                }
                if let finished { return finished }
            }
            isAtEnd = true
            return complete()
        }
    }

    /// Hands what `open` gives, one by one, to a caller whose errors pass through unchanged.
    func stream<Value>(
        _ operation: String, to body: (Value) throws -> Void,
        _ open: (Connection) throws -> () throws -> Value?
    ) throws {
        var failure: (any Error)?
        try database.read(operation) { database in
            let next = try open(database)
            while failure == nil, let value = try next() {
                do { try body(value) } catch { failure = error }
            }
        }
        if let failure { throw failure }
    }

    /// The path of a variant's content file, or nil when the file is missing or its size is not
    /// the row's.
    package func wholeFile(of image: StoredImage) -> String? {
        directory.hasWholeFile(image) ? directory.path(of: image) : nil
    }

    /// The same after reading the file: nil also when its bytes are not those that its name says.
    ///
    /// - Throws: when the file cannot be read.
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

extension CacheCatalog.Item {
    /// Reads the columns of ``CacheCatalog``'s queries.
    init?(_ row: borrowing Statement) throws {
        guard let image = try row.storedImage(from: 0, decoded: 21) else { return nil }
        self.init(
            resource: CacheCatalog.Resource(
                id: try row.integer(5), key: try row.text(6), url: try row.text(7),
                host: try row.text(15)),
            recipe: try row.text(8), name: try row.optionalText(20), image: image,
            fetchedAt: try row.time(9),
            validatedAt: try row.time(10), expiresAt: try row.time(11),
            cacheControl: try row.optionalText(12), sourceSize: ByteCount(try row.count(13)),
            sourceFormat: try row.text(14), isSuperseded: try row.integer(19) != 0,
            finalURL: try row.optionalText(16),
            contentType: try row.optionalText(17),
            redirects: try row.optionalInteger(18).map(Int.init(truncatingIfNeeded:)))
    }
}
