import Hashing
import PrefetchModel
internal import SQLite

/// Carries changes out in the tables, inside one transaction; the writer's thread only.
struct MetadataStatements: ~Copyable {
    private let hasher = SHA256Hasher()
    private var recipes: [String: RecipeFingerprint] = [:]
    /// The run that failures are noted with.
    private let run: Int64
    /// Whether there may be failures, which most caches never have; nil before it is looked up in a
    /// transaction.
    private var hasFailures: Bool?

    init(run: Int64) {
        self.run = run
    }

    /// Forgets what held in the last transaction: commands write to the table of failures, too.
    mutating func beginTransaction() {
        hasFailures = nil
    }

    /// Carries out one change and returns the images of variants that it replaced or made
    /// obsolete.
    mutating func apply(
        _ change: MetadataChange, in database: Connection
    ) throws -> [StoredImage] {
        switch change {
        case .image(let row):
            return try store(row, in: database)
        case .resource(let change):
            return try apply(change, in: database)
        case .failure(let record):
            try record.note(in: database, run: run)
            hasFailures = true
            return []
        case .lost(let image):
            try forget(image, in: database)
            return [image]
        case .used(let resources, let variant):
            for resource in resources { try use([variant], of: resource, in: database) }
            return []
        }
    }

    /// Removes the variants that name a content file. Their resources stay, and with them their
    /// attributes.
    private mutating func forget(_ image: StoredImage, in database: Connection) throws {
        let variants = try Statement(
            database,
            sql: """
                SELECT key, recipe FROM variant JOIN resource ON id = resource_id
                WHERE sha256 = ? AND format = ?
                """
        ).all(.digest(image.digest), .text(image.format.rawValue)) {
            (key: try $0.text(0), recipe: try $0.text(1))
        }
        for (key, recipe) in variants {
            try removeFreshness(key: key, recipe: recipe, in: database)
        }
        try Statement(
            database, sql: "DELETE FROM variant WHERE sha256 = ? AND format = ?"
        ).execute(.digest(image.digest), .text(image.format.rawValue))
    }

    // MARK: A body

    private mutating func store(
        _ row: ImageRow, in database: Connection
    ) throws -> [StoredImage] {
        let previous = try previousResource(key: row.key, in: database)
        let (validation, source) = (row.validation, row.source)
        let (response, location) = (validation.response, validation.location)
        let resource: Int64
        var replaced: [StoredImage] = []
        let statement = try Statement(
            database,
            sql: previous == nil
                ? MetadataStatements.resourceInsertion : MetadataStatements.resourceUpdate)
        try statement.execute(
            .text(row.key), .text(location.url), .init(location.finalURL), .text(location.host),
            .init(response.entityTag), .init(response.lastModified), .init(response.cacheControl),
            .init(response.expires), .init(response.vary), .init(response.date?.milliseconds),
            .init(validation.validatedAt), .init(validation.expiresAt), .init(source.size.bytes),
            .text(source.format.rawValue), .digest(source.digest), .init(source.widthInPixels),
            .init(source.heightInPixels), .init(location.permanentURL),
            .init(response.contentType), .init(location.redirects))
        if let previous {
            resource = previous.id
            if previous.sourceDigest != source.digest {
                // Variants of other recipes were made from another body.
                replaced = try removeVariants(of: resource, key: row.key, in: database)
            }
        } else {
            resource = database.lastInsertedRowID
        }
        for variant in row.variants {
            replaced += try putVariant(
                variant, of: resource, isNew: previous == nil, in: database)
        }
        let freshness = Freshness(
            validatedAt: validation.validatedAt.milliseconds,
            expiresAt: validation.expiresAt.milliseconds, vary: response.vary)
        if previous == nil {
            for variant in row.variants {
                try putFreshness(
                    recipe: variant.variant.recipe.canonicalText, key: row.key,
                    resource: resource, freshness, in: database)
            }
        } else {
            try putFreshness(key: row.key, resource: resource, freshness, in: database)
            try use(row.variants.map(\.variant), of: resource, in: database)
        }
        try put(row.attributes, resource: resource, in: database)
        try removeFailure(key: row.key, in: database)
        return replaced.filter { !row.variants.name($0) }
    }

    private static let resourceInsertion = """
        INSERT INTO resource (key, url, final_url, host, etag, last_modified, cache_control,
            expires, vary, date, fetched_at, validated_at, expires_at, source_bytes,
            source_format, source_sha256, source_width, source_height, permanent_url, content_type,
            redirects)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
            ?18, ?19, ?20)
        """

    private static let resourceUpdate = """
        UPDATE resource SET url = ?2, final_url = ?3, host = ?4, etag = ?5, last_modified = ?6,
            cache_control = ?7, expires = ?8, vary = ?9, date = ?10, fetched_at = ?11,
            validated_at = ?11, expires_at = ?12, source_bytes = ?13, source_format = ?14,
            source_sha256 = ?15, source_width = ?16, source_height = ?17, permanent_url = ?18,
            content_type = ?19, redirects = ?20
        WHERE key = ?1
        """

    private func previousResource(
        key: String, in database: Connection
    ) throws -> (id: Int64, sourceDigest: ContentDigest)? {
        try Statement(
            database, sql: "SELECT id, source_sha256 FROM resource WHERE key = ?"
        ).first(.text(key)) { (try $0.integer(0), try $0.digest(1)) }
    }

    private mutating func removeVariants(
        of resource: Int64, key: String, in database: Connection
    ) throws -> [StoredImage] {
        let removed = try Statement(
            database,
            sql: """
                DELETE FROM variant WHERE resource_id = ?
                RETURNING sha256, format, width, height, bytes, recipe
                """
        ).all(.integer(resource)) { (image: try $0.storedImage(from: 0), recipe: try $0.text(5)) }
        for variant in removed {
            try removeFreshness(key: key, recipe: variant.recipe, in: database)
        }
        return removed.compactMap(\.image)
    }

    /// Writes a variant, and returns the image that it replaces, if any.
    private func putVariant(
        _ row: VariantRow, of resource: Int64, isNew: Bool, in database: Connection
    ) throws -> [StoredImage] {
        let (image, recipe) = (row.image, row.variant.recipe)
        var replaced: [StoredImage] = []
        // Stays as it is in ``freshness``, too, until the variant is used.
        var isSuperseded: Int64 = 0
        if !isNew {
            replaced = try Statement(
                database,
                sql: """
                    DELETE FROM variant WHERE resource_id = ? AND recipe = ?
                    RETURNING sha256, format, width, height, bytes, superseded
                    """
            ).all(.integer(resource), .text(recipe.canonicalText)) { row in
                isSuperseded = try row.integer(5)
                return try row.storedImage(from: 0)
            }.compactMap(\.self)
        }
        try Statement(
            database,
            sql: """
                INSERT INTO variant (resource_id, recipe, sha256, format, width, height, bytes,
                    created_at, last_access_at, superseded)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9)
                """
        ).execute(
            .integer(resource), .text(recipe.canonicalText), .digest(image.digest),
            .text(image.format.rawValue), .init(image.widthInPixels), .init(image.heightInPixels),
            .init(image.size.bytes), .init(row.createdAt), .integer(isSuperseded))
        return replaced
    }

    // MARK: A resource whose body stays

    private mutating func apply(
        _ change: ResourceChange, in database: Connection
    ) throws -> [StoredImage] {
        var replaced: [StoredImage] = []
        for variant in change.variants {
            replaced += try putVariant(
                variant, of: change.resourceID, isNew: false, in: database)
        }
        replaced.removeAll(where: change.variants.name)
        if let validation = change.validation {
            let response = validation.response
            try Statement(
                database,
                sql: """
                    UPDATE resource SET etag = ?2, last_modified = ?3, cache_control = ?4,
                        expires = ?5, vary = ?6, date = ?7, validated_at = ?8, expires_at = ?9,
                        url = ?10, final_url = ?11, host = ?12,
                        fetched_at = coalesce(?13, fetched_at), permanent_url = ?14,
                        content_type = ?15, redirects = ?16
                    WHERE id = ?1
                    """
            ).execute(
                .integer(change.resourceID), .init(response.entityTag),
                .init(response.lastModified), .init(response.cacheControl),
                .init(response.expires), .init(response.vary),
                .init(response.date?.milliseconds), .init(validation.validatedAt),
                .init(validation.expiresAt), .text(validation.location.url),
                .init(validation.location.finalURL), .text(validation.location.host),
                .init(validation.fetchedAt?.milliseconds),
                .init(validation.location.permanentURL), .init(response.contentType),
                .init(validation.location.redirects))
            try putFreshness(
                key: change.key, resource: change.resourceID,
                Freshness(
                    validatedAt: validation.validatedAt.milliseconds,
                    expiresAt: validation.expiresAt.milliseconds, vary: response.vary),
                in: database)
            try removeFailure(key: change.key, in: database)
        } else if !change.variants.isEmpty {
            let freshness = try Statement(
                database, sql: "SELECT validated_at, expires_at, vary FROM resource WHERE id = ?"
            ).first(.integer(change.resourceID)) {
                Freshness(
                    validatedAt: try $0.integer(0), expiresAt: try $0.integer(1),
                    vary: try $0.optionalText(2))
            }
            guard let freshness else {
                throw SQLiteError(code: .error, message: "the resource is gone")
            }
            for variant in change.variants {
                try putFreshness(
                    recipe: variant.variant.recipe.canonicalText, key: change.key,
                    resource: change.resourceID, freshness, in: database)
            }
        }
        try use(change.used, of: change.resourceID, in: database)
        try put(change.attributes, resource: change.resourceID, in: database)
        return replaced
    }

    /// Makes these variants the ones in use of a resource, if any of them is stored; mostly they are
    /// already.
    private mutating func use(
        _ variants: [RequestedVariant], of resource: Int64, in database: Connection
    ) throws {
        let recipes = JSONTexts(variants.map(\.recipe.canonicalText)).text
        let changed = try Statement(
            database,
            sql: """
                UPDATE variant
                SET superseded = recipe NOT IN (SELECT value FROM json_each(?2))
                WHERE resource_id = ?1
                    AND superseded <> (recipe NOT IN (SELECT value FROM json_each(?2)))
                    AND EXISTS (
                        SELECT 1 FROM variant
                        WHERE resource_id = ?1 AND recipe IN (SELECT value FROM json_each(?2)))
                RETURNING recipe, superseded
                """
        ).all(.integer(resource), .text(recipes)) {
            (recipe: try $0.text(0), isSuperseded: try $0.integer(1))
        }
        guard !changed.isEmpty else { return }
        let key = try Statement(database, sql: "SELECT key FROM resource WHERE id = ?")
            .first(.integer(resource)) { try $0.text(0) }
        guard let key else { return }
        for (recipe, isSuperseded) in changed {
            let fingerprint = fingerprint(key: key, recipe: recipe)
            try Statement(
                database,
                sql: """
                    UPDATE freshness SET superseded = ?3
                    WHERE fingerprint = ?1 AND fingerprint_low = ?2
                    """
            ).execute(
                .integer(fingerprint.upper), .integer(fingerprint.lower), .integer(isSuperseded))
        }
    }

    // MARK: Freshness

    /// What a resource's rows in `freshness` say; times in milliseconds.
    private struct Freshness {
        let validatedAt: Int64
        let expiresAt: Int64
        let vary: String?
    }

    /// Writes the freshness of every variant of a resource.
    private mutating func putFreshness(
        key: String, resource: Int64, _ freshness: Freshness, in database: Connection
    ) throws {
        let recipes = try Statement(
            database, sql: "SELECT recipe FROM variant WHERE resource_id = ?"
        ).all(.integer(resource)) { try $0.text(0) }
        for recipe in recipes {
            try putFreshness(
                recipe: recipe, key: key, resource: resource, freshness, in: database)
        }
    }

    private mutating func putFreshness(
        recipe: String, key: String, resource: Int64, _ freshness: Freshness,
        in database: Connection
    ) throws {
        let fingerprint = fingerprint(key: key, recipe: recipe)
        // A row of another variant with the same upper half stays; see ``VariantFingerprint``.
        try Statement(
            database,
            sql: """
                INSERT INTO freshness (fingerprint, fingerprint_low, resource_id, validated_at,
                    expires_at, vary)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                ON CONFLICT (fingerprint) DO UPDATE SET resource_id = ?3, validated_at = ?4,
                    expires_at = ?5, vary = ?6 WHERE fingerprint_low = ?2
                """
        ).execute(
            .integer(fingerprint.upper), .integer(fingerprint.lower), .integer(resource),
            .integer(freshness.validatedAt), .integer(freshness.expiresAt),
            .init(freshness.vary.map { VaryFingerprint($0, hasher: hasher).value }))
    }

    private mutating func removeFreshness(
        key: String, recipe: String, in database: Connection
    ) throws {
        let fingerprint = fingerprint(key: key, recipe: recipe)
        try Statement(
            database, sql: "DELETE FROM freshness WHERE fingerprint = ? AND fingerprint_low = ?"
        ).execute(.integer(fingerprint.upper), .integer(fingerprint.lower))
    }

    private mutating func fingerprint(key: String, recipe: String) -> VariantFingerprint {
        let recipeFingerprint: RecipeFingerprint
        if let known = recipes[recipe] {
            recipeFingerprint = known
        } else {
            recipeFingerprint = RecipeFingerprint(recipe, hasher: hasher)
            recipes[recipe] = recipeFingerprint
        }
        return VariantFingerprint(KeyFingerprint(key, hasher: hasher), recipeFingerprint)
    }

    // MARK: Attributes and failures

    private func put(
        _ attributes: [EntryAttribute], resource: Int64, in database: Connection
    ) throws {
        for attribute in attributes {
            try AttributeStore.put(attribute, resource: resource, in: database)
        }
    }

    private mutating func removeFailure(key: String, in database: Connection) throws {
        if hasFailures == nil { hasFailures = try FailureLog.isAny(in: database) }
        guard hasFailures == true else { return }
        try Statement(database, sql: "DELETE FROM failure WHERE key = ?")
            .execute(.text(key))
    }

    static func isNamed(_ digest: ContentDigest, in database: Connection) throws -> Bool {
        try Statement(database, sql: "SELECT 1 FROM variant WHERE sha256 = ? LIMIT 1")
            .first(.digest(digest)) { _ in true } ?? false
    }
}

extension [VariantRow] {
    /// Whether one of them has this content file.
    fileprivate func name(_ image: StoredImage) -> Bool {
        contains { $0.image.digest == image.digest && $0.image.format == image.format }
    }
}

/// Texts as an array of JSON, to give several of them to one statement. Recipes need no escapes.
private struct JSONTexts {
    let text: String

    init(_ texts: [String]) {
        text = "[" + texts.map { "\"\($0)\"" }.joined(separator: ",") + "]"
    }
}
