import PrefetchModel
internal import SQLite

/// Prepared statements that read the copies of many resources.
struct CopyStatements: ~Copyable {
    private let variants: Statement
    private let resource: Statement
    /// The names of the runs' variants, by recipe. Rows have the names of lines' variants.
    private let notedNames: [String: [VariantName]]

    init(_ database: Connection) throws {
        let variants = try database.prepare(
            """
            SELECT sha256, format, width, height, bytes, variant.recipe, decoded, orientation,
                superseded, variant_name.name
            FROM variant LEFT JOIN variant_name ON id = variant.name WHERE resource_id = ?
            """)
        let noted = try VariantNames.all(in: database).filter(\.isOfRun)
        let names = Dictionary(grouping: noted, by: \.recipe)
            .mapValues { $0.compactMap { VariantName($0.name) } }
        let resource = try database.prepare(
            """
            SELECT source_sha256, etag, last_modified, cache_control, expires, vary, date,
                fetched_at, expires_at, url, final_url, permanent_url, redirects, host,
                source_format, content_type, thumbhash, validated_at
            FROM resource WHERE id = ?
            """)
        self.variants = variants
        self.resource = resource
        notedNames = names
    }

    func copy(of identifier: Int64) throws -> CachedCopy? {
        var names: [(name: VariantName, recipe: String)] = []
        let images = try variants.all(.integer(identifier)) { row in
            let recipe = try row.text(5)
            if try row.integer(8) == 0 {
                let noted = notedNames[recipe] ?? []
                let tag = try row.optionalText(9).flatMap { VariantName($0) }
                names += noted.map { ($0, recipe) }
                if let tag, !noted.contains(tag) { names.append((tag, recipe)) }
            }
            return try row.storedImage(from: 0, details: 6).map { (recipe: recipe, image: $0) }
        }.compactMap(\.self)
        return try resource.first(.integer(identifier)) { row in
            CachedCopy(
                resourceID: identifier,
                location: ResourceLocation(
                    url: try row.text(9), finalURL: try row.optionalText(10),
                    permanentURL: try row.optionalText(11), redirects: try row.count(12),
                    host: try row.text(13)),
                response: StoredResponse(
                    entityTag: try row.optionalText(1), lastModified: try row.optionalText(2),
                    cacheControl: try row.optionalText(3), expires: try row.optionalText(4),
                    vary: try row.optionalText(5), date: try row.optionalTime(6),
                    contentType: try row.optionalText(15)),
                fetchedAt: try row.time(7), validatedAt: try row.time(17),
                expiresAt: try row.time(8),
                sourceDigest: try row.digest(0), sourceFormat: try row.text(14),
                thumbHash: row.isNull(16) ? nil : try row.blob(16), images: images, names: names)
        }
    }
}
