import PrefetchModel

extension MetadataStatements {
    static let resourceInsertion = """
        INSERT INTO resource (key, url, final_url, host, etag, last_modified, cache_control,
            expires, vary, date, fetched_at, validated_at, expires_at, source_bytes,
            source_format, source_sha256, source_width, source_height, permanent_url, content_type,
            redirects, thumbhash, color)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
            ?18, ?19, ?20, ?21, ?22)
        """

    /// Keeps the placeholder unless a new one is given or the picture changes.
    static let resourceUpdate = """
        UPDATE resource SET url = ?2, listed_url = NULL, final_url = ?3, host = ?4, etag = ?5, last_modified = ?6,
            cache_control = ?7, expires = ?8, vary = ?9, date = ?10, fetched_at = ?11,
            validated_at = ?11, expires_at = ?12, source_bytes = ?13, source_format = ?14,
            source_sha256 = ?15, source_width = ?16, source_height = ?17, permanent_url = ?18,
            content_type = ?19, redirects = ?20,
            thumbhash = iif(?21 IS NULL AND source_sha256 = ?15, thumbhash, ?21),
            color = iif(?21 IS NULL AND source_sha256 = ?15, color, ?22)
        WHERE key = ?1
        """
}

extension [VariantChange] {
    func name(_ image: StoredImage) -> Bool {
        contains { $0.image.digest == image.digest && $0.image.format == image.format }
    }

    /// The variants without later ones of the same recipe, which have the same bytes and share a
    /// row.
    ///
    /// Compares the recipes' texts, as the table does: a quality does not affect a PNG.
    var withoutRepeatedRecipes: [VariantChange] {
        guard count > 1 else { return self }
        var recipes: Set<String> = []
        return filter { recipes.insert($0.variant.recipe.canonicalText).inserted }
    }
}
