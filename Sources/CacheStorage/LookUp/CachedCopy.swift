package import PrefetchModel
internal import SQLite

/// The cache's complete record of one resource.
package struct CachedCopy: Sendable {
    package let resourceID: Int64
    package let location: ResourceLocation
    package let response: StoredResponse
    package let fetchedAt: Timestamp
    package let validatedAt: Timestamp
    package let expiresAt: Timestamp
    package let sourceDigest: ContentDigest
    package let sourceFormat: String
    /// As ``Placeholder/thumbHash``; nil without one.
    package let thumbHash: [UInt8]?
    /// The stored images, each with the canonical text of its recipe.
    package let images: [(recipe: String, image: StoredImage)]
    /// The names in use, each with the recipe of its variant. Several names may share one.
    package let names: [(name: VariantName, recipe: String)]

    package subscript(recipe: String) -> StoredImage? {
        images.first { $0.recipe == recipe }?.image
    }

    /// The variant of a recipe, given its canonical text, or a variant of another recipe with the
    /// same bytes; nil if neither is stored.
    package func image(asBy recipe: String, sameRules: SameRules) -> StoredImage? {
        if let image = self[recipe] { return image }
        let rule = sameRules[sourceFormat]
        let effective = Recipe.effectiveText(of: recipe, under: rule)
        return images.first {
            Recipe.effectiveText(of: $0.recipe, under: rule) == effective
        }?.image
    }

    static func read(_ resources: [Int64], in database: Connection) throws -> [CachedCopy?] {
        let variants = try database.prepare(
            """
            SELECT sha256, format, width, height, bytes, variant.recipe, decoded, orientation,
                superseded, variant_name.name
            FROM variant LEFT JOIN variant_name ON id = variant.name WHERE resource_id = ?
            """)
        let resource = try database.prepare(
            """
            SELECT url, final_url, permanent_url, redirects, host, etag, last_modified,
                cache_control, expires, vary, date, content_type, fetched_at, validated_at,
                expires_at, source_sha256, source_format, thumbhash
            FROM resource WHERE id = ?
            """)
        // The names of the runs' variants, by recipe. Rows have the names of lines' variants.
        let notedNames = Dictionary(
            grouping: try VariantNames.all(in: database).filter(\.isOfRun), by: \.recipe
        ).mapValues { $0.compactMap { VariantName($0.name) } }
        return try resources.map { identifier in
            var names: [(name: VariantName, recipe: String)] = []
            let images = try variants.all([.integer(identifier)]) { row in
                let recipe = try row.text(5)
                if try row.integer(8) == 0 {
                    let noted = notedNames[recipe] ?? []
                    let tag = try row.optionalText(9).flatMap { VariantName($0) }
                    names += noted.map { ($0, recipe) }
                    if let tag, !noted.contains(tag) { names.append((tag, recipe)) }
                }
                return try row.storedImage(from: 0, details: 6).map { (recipe: recipe, image: $0) }
            }.compactMap(\.self)
            return try resource.first([.integer(identifier)]) { row in
                CachedCopy(
                    resourceID: identifier,
                    location: try row.location(from: 0), response: try row.response(from: 5),
                    fetchedAt: try row.time(12), validatedAt: try row.time(13),
                    expiresAt: try row.time(14), sourceDigest: try row.digest(15),
                    sourceFormat: try row.text(16),
                    thumbHash: row.isNull(17) ? nil : try row.blob(17), images: images,
                    names: names)
            }
        }
    }
}
