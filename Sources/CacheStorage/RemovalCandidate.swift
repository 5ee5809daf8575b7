import PrefetchModel
internal import SQLite

/// An image that may be removed.
package struct RemovalCandidate: Sendable {
    /// Read together: a second's work or less.
    package static let batchSize = 4096

    let id: Int64
    package let key: String
    /// Scheme, host and port.
    package let host: String
    /// Whether its last refresh failed.
    package let hasFailed: Bool

    private static let columns = """
        id, key, host, EXISTS (SELECT 1 FROM failure WHERE failure.key = resource.key)
        """

    private init(_ row: borrowing Statement) throws {
        id = try row.integer(0)
        key = try row.text(1)
        host = try row.text(2)
        hasFailed = try row.integer(3) != 0
    }

    static func find(
        key: String, in database: CacheDatabase
    ) throws(StorageError) -> RemovalCandidate? {
        try database.read("looking up") { database in
            try Statement(database, sql: "SELECT \(columns) FROM resource WHERE key = ?")
                .first(.text(key)) { try RemovalCandidate($0) }
        }
    }

    static func find(
        url: String, in database: CacheDatabase
    ) throws(StorageError) -> RemovalCandidate? {
        let key = try database.read("looking up") { database in
            try CacheCatalog.key(ofURL: url, in: database)
        }
        guard let key else { return nil }
        return try find(key: key, in: database)
    }

    /// In the order of their identifiers.
    static func next(
        after last: RemovalCandidate?, in database: CacheDatabase
    ) throws(StorageError) -> [RemovalCandidate] {
        try database.read("looking for images") { database in
            try Statement(
                database, sql: "SELECT \(columns) FROM resource WHERE id > ? ORDER BY id LIMIT ?"
            ).all(.integer(last?.id ?? .min), .init(batchSize)) { try RemovalCandidate($0) }
        }
    }
}

/// Which of an image's variants are meant.
package enum VariantSelector: Hashable, Sendable {
    /// Those in use by that name, and those that they have superseded.
    case name(String)
    case recipe(String)

    /// The condition in SQL, in which ``text`` is this parameter.
    func condition(parameter: String) -> String {
        switch self {
        case .name: "name = (SELECT id FROM variant_name WHERE variant_name.name = \(parameter))"
        case .recipe: "recipe = \(parameter)"
        }
    }

    var text: String {
        switch self {
        case .name(let text), .recipe(let text): text
        }
    }

    /// The images and recipes of these variants.
    static func variants(
        _ selector: VariantSelector?, of resource: Int64, in database: Connection
    ) throws -> [(image: StoredImage?, recipe: String)] {
        let statement = try Statement(
            database,
            sql: """
                SELECT sha256, format, width, height, bytes, recipe FROM variant
                WHERE resource_id = ?1\(selector.map { " AND \($0.condition(parameter: "?2"))" } ?? "")
                """)
        if let selector { try statement.bind(.text(selector.text), at: 2) }
        try statement.bind(.integer(resource), at: 1)
        var variants: [(image: StoredImage?, recipe: String)] = []
        while try statement.step() {
            variants.append((try statement.storedImage(from: 0), try statement.text(5)))
        }
        return variants
    }
}

extension MetadataStatements {
    /// Removes an image or its variants that are meant, and what lost its last variant.
    ///
    /// - Returns: what went; an image may have been the file of others, too.
    mutating func remove(
        _ candidate: RemovalCandidate, _ selector: VariantSelector?, in database: Connection
    ) throws -> (images: [StoredImage], variants: Int, isWhole: Bool) {
        let variants = try VariantSelector.variants(selector, of: candidate.id, in: database)
        if selector != nil {
            guard !variants.isEmpty else { return ([], 0, false) }
            let removal = try Statement(
                database, sql: "DELETE FROM variant WHERE resource_id = ? AND recipe = ?")
            for variant in variants {
                try removal.execute(.integer(candidate.id), .text(variant.recipe))
                try removeFreshness(key: candidate.key, recipe: variant.recipe, in: database)
            }
        }
        let isWhole =
            try selector == nil
            || Statement(database, sql: "SELECT 1 FROM variant WHERE resource_id = ? LIMIT 1")
                .first(.integer(candidate.id)) { _ in true } == nil
        if isWhole {
            // Its other rows go by the trigger.
            try Statement(database, sql: "DELETE FROM resource WHERE id = ?")
                .execute(.integer(candidate.id))
            guard database.changes > 0 else { return ([], 0, false) }
            if selector == nil { try removeFailure(key: candidate.key, in: database) }
        }
        return (variants.compactMap(\.image), variants.count, isWhole)
    }
}
