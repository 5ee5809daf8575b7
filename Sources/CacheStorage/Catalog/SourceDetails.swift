package import PrefetchModel
internal import SQLite

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

extension CacheCatalog {
    /// The source of a resource; nil if it was removed.
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
}

extension Statement {
    /// A number of pixels; nil for 0.
    fileprivate func known(_ column: Int32) throws -> Int? {
        let count = try count(column)
        return count > 0 ? count : nil
    }
}
