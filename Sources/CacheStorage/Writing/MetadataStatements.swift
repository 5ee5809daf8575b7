import Hashing
import PrefetchModel
internal import SQLite

/// Applies changes to the tables inside a transaction, on the writer's thread.
struct MetadataStatements: ~Copyable {
    let hasher = SHA256Hasher()
    var recipes: [String: RecipeFingerprint] = [:]
    /// The name rows found in this transaction.
    private var names: [VariantName: Int64] = [:]
    private let run: Int64
    /// Resources that got a body. A set, since identifiers are reused and need not be the largest.
    private(set) var stored = ResourceSet()
    /// Whether any failure may be stored, which is rare; nil until looked up in a transaction.
    private var hasFailures: Bool?

    /// Rows to write after all new images; nil while triggers are active.
    struct NewRows {
        var totals = TotalsChange()
        var freshness: [FreshnessRow] = []
    }

    var newRows: NewRows?

    init(run: Int64) {
        self.run = run
    }

    /// Discards cached values: others write failures, and a rollback may have removed names.
    mutating func beginTransaction() {
        hasFailures = nil
        names = [:]
    }

    /// Applies a group of changes. Returns the images of replaced and obsolete variants.
    mutating func apply(
        _ changes: some Collection<MetadataChange>, in database: Connection
    ) throws -> [StoredImage] {
        var replaced: [StoredImage] = []
        for change in try insertNewImages(among: changes, in: database) {
            replaced += try apply(change, in: database)
        }
        return replaced
    }

    /// Inserts new resources with triggers off, since triggers would write each total once per row.
    /// Skips an image after another change of its key, or after a change that may remove its files.
    /// Returns the remaining changes, in their order.
    private mutating func insertNewImages(
        among changes: some Collection<MetadataChange>, in database: Connection
    ) throws -> [MetadataChange] {
        // Switching triggers off and on prepares every statement again.
        guard changes.contains(where: \.isNewBody) else { return Array(changes) }
        var others: [MetadataChange] = []
        var keysOfOthers: Set<String> = []
        var removesFiles = false
        newRows = NewRows()
        defer { newRows = nil }
        try database.withoutTriggers {
            for change in changes {
                if case .image(let image) = change,
                    case .new(let source, let validation) = image.body, !removesFiles,
                    !keysOfOthers.contains(image.key),
                    try previousResource(key: image.key, in: database) == nil
                {
                    try insert(image, of: source, validation, in: database)
                    continue
                }
                others.append(change)
                if let key = change.key { keysOfOthers.insert(key) }
                if case .lost = change { removesFiles = true }
            }
            guard let rows = newRows else { preconditionFailure("new rows are counted") }
            try rows.totals.write(in: database)
            // In the order of the table, so that each page is visited once.
            for row in rows.freshness.sorted(by: { $0.fingerprint.upper < $1.fingerprint.upper }) {
                try put(row, in: database)
            }
        }
        return others
    }

    /// Applies one change. Returns the images of variants that it replaced or made obsolete.
    mutating func apply(_ change: MetadataChange, in database: Connection) throws -> [StoredImage] {
        switch change {
        case .image(let change):
            return try applyImage(change, in: database)
        case .failure(let record):
            try record.note(in: database, run: run)
            hasFailures = true
            return []
        case .harmlessFailure(let record):
            try record.noteHarmless(in: database)
            hasFailures = true
            return []
        case .lost(let image):
            try forget(image, in: database)
            return [image]
        case .used(let resources, let variants):
            for resource in resources { try use(variants, of: resource, in: database) }
            return []
        case .expiries(let expiries):
            try setExpiries(expiries, in: database)
            return []
        case .listedURLs(let urls):
            try setListedURLs(urls, in: database)
            return []
        }
    }

    private mutating func applyImage(
        _ change: ImageChange, in database: Connection
    ) throws -> [StoredImage] {
        switch change.body {
        case .new(let source, let validation):
            if let previous = try previousResource(key: change.key, in: database) {
                return try replaceBody(of: previous, by: change, source, validation, in: database)
            }
            try insert(change, of: source, validation, in: database)
            return []
        case .kept(let resource, let validation, let used):
            return try update(resource, by: change, validation, used, in: database)
        }
    }

    /// Removes the variants that name a content file. Their resources and attributes stay.
    private mutating func forget(_ image: StoredImage, in database: Connection) throws {
        let variants = try database.all(
            """
            SELECT key, recipe FROM variant JOIN resource ON id = resource_id
            WHERE sha256 = ? AND format = ?
            """, .digest(image.digest), .text(image.format.rawValue)
        ) {
            (key: try $0.text(0), recipe: try $0.text(1))
        }
        for (key, recipe) in variants {
            try removeFreshness(key: key, recipe: recipe, in: database)
        }
        try database.run(
            "DELETE FROM variant WHERE sha256 = ? AND format = ?", .digest(image.digest),
            .text(image.format.rawValue))
    }

    // MARK: Stored bodies

    private mutating func insert(
        _ row: ImageChange, of source: SourceImage, _ validation: ResourceValidation,
        in database: Connection
    ) throws {
        try putResource(
            row.key, source, validation, sql: MetadataStatements.resourceInsertion, in: database)
        let resource = database.lastInsertedRowID
        stored.insert(resource)
        newRows?.totals.count(resources: 1, sourceBytes: source.size.bytes)
        for variant in row.variants.withoutRepeatedRecipes {
            let name = try nameRow(of: variant.variant, in: database)
            if newRows != nil {
                let image = variant.image
                if try !MetadataStatements.isNamed(image.digest, in: database) {
                    newRows?.totals.count(files: 1, bytes: image.size.bytes)
                }
                newRows?.totals.count(
                    variants: 1, host: validation.location.host, format: image.format.rawValue,
                    name: name, isSuperseded: 0, bytes: image.size.bytes)
            }
            try insert(variant, of: resource, name: name, isSuperseded: 0, in: database)
            try putFreshness(
                VariantUses.VariantUse(
                    recipe: variant.variant.recipeText, name: name, isSuperseded: false),
                key: row.key, resource: resource, StoredFreshness(validation), in: database)
        }
        try finish(row, resource: resource, in: database)
    }

    private mutating func replaceBody(
        of previous: PreviousResource, by row: ImageChange,
        _ source: SourceImage, _ validation: ResourceValidation, in database: Connection
    ) throws -> [StoredImage] {
        try putResource(
            row.key, source, validation, sql: MetadataStatements.resourceUpdate, in: database)
        let resource = previous.id
        stored.insert(resource)
        if previous.sourceDigest != source.digest,
            !previous.urls.areOfImage(at: StoredURLs(validation.location))
        {
            try database.run(
                "DELETE FROM attribute WHERE resource_id = ?", .integer(resource))
        }
        var replaced: [StoredImage] = []
        if previous.sourceDigest != source.digest {
            // Variants of other recipes were made from the old body.
            replaced = try removeVariants(of: resource, key: row.key, in: database)
        }
        for variant in row.variants.withoutRepeatedRecipes {
            replaced += try putVariant(variant, of: resource, in: database)
        }
        try putFreshness(
            key: row.key, resource: resource, StoredFreshness(validation), in: database)
        try use(row.variants.map(\.variant), of: resource, in: database)
        try finish(row, resource: resource, in: database)
        return replaced.filter { !row.variants.name($0) }
    }

    private func putResource(
        _ key: String, _ source: SourceImage, _ validation: ResourceValidation, sql: String,
        in database: Connection
    ) throws {
        let (response, location) = (validation.response, validation.location)
        try database.run(
            sql, .text(key), .text(location.url), .init(location.finalURL), .text(location.host),
            .init(response.entityTag), .init(response.lastModified), .init(response.cacheControl),
            .init(response.expires), .init(response.vary), .init(response.date?.milliseconds),
            .init(validation.validatedAt), .init(validation.expiresAt), .init(source.size.bytes),
            .text(source.format.rawValue), .digest(source.digest), .init(source.widthInPixels),
            .init(source.heightInPixels), .init(location.permanent?.url),
            .init(response.contentType),
            .init(location.redirects), source.placeholder.map { .blob($0.thumbHash) } ?? .null,
            .init(source.placeholder?.colour.map { Int64($0.number) }),
            .init(location.permanent?.until.milliseconds), .init(location.listedURL))
    }

    private mutating func finish(
        _ row: ImageChange, resource: Int64, in database: Connection
    ) throws {
        try putAttributes(row.attributes, resource: resource, in: database)
        if !row.isIncomplete { try removeFailure(key: row.key, in: database) }
    }

    private typealias PreviousResource = (
        id: Int64, sourceDigest: ContentDigest, urls: StoredURLs
    )

    private func previousResource(
        key: String, in database: Connection
    ) throws -> PreviousResource? {
        try database.first(
            """
            SELECT id, source_sha256, url, coalesce(listed_url, url) FROM resource WHERE key = ?
            """, .text(key)
        ) {
            (
                try $0.integer(0), try $0.digest(1),
                StoredURLs(requested: try $0.text(2), listed: try $0.text(3))
            )
        }
    }

    private mutating func removeVariants(
        of resource: Int64, key: String, in database: Connection
    ) throws -> [StoredImage] {
        let removed = try database.all(
            """
            DELETE FROM variant WHERE resource_id = ?
            RETURNING sha256, format, width, height, bytes, recipe
            """, .integer(resource)
        ) { (image: try $0.storedImage(from: 0), recipe: try $0.text(5)) }
        for variant in removed {
            try removeFreshness(key: key, recipe: variant.recipe, in: database)
        }
        return removed.compactMap(\.image)
    }

    /// Writes a variant and returns the image that it replaces, if any.
    private mutating func putVariant(
        _ row: VariantChange, of resource: Int64, in database: Connection
    ) throws -> [StoredImage] {
        // These values are kept, also in ``freshness``, until the variant is used.
        var isSuperseded: Int64 = 0
        var name = try nameRow(of: row.variant, in: database)
        let replaced = try database.all(
            """
            DELETE FROM variant WHERE resource_id = ? AND recipe = ?
            RETURNING sha256, format, width, height, bytes, superseded, name
            """, .integer(resource), .text(row.variant.recipeText)
        ) { row in
            isSuperseded = try row.integer(5)
            name = try row.integer(6)
            return try row.storedImage(from: 0)
        }.compactMap(\.self)
        try insert(row, of: resource, name: name, isSuperseded: isSuperseded, in: database)
        return replaced
    }

    private func insert(
        _ row: VariantChange, of resource: Int64, name: Int64, isSuperseded: Int64,
        in database: Connection
    ) throws {
        let image = row.image
        try database.run(
            """
            INSERT INTO variant (resource_id, recipe, sha256, format, width, height, bytes,
                created_at, last_access_at, superseded, name, decoded, orientation)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11, ?12)
            """, .integer(resource), .text(row.variant.recipeText), .digest(image.digest),
            .text(image.format.rawValue), .init(image.widthInPixels), .init(image.heightInPixels),
            .init(image.size.bytes), .init(row.createdAt), .integer(isSuperseded), .integer(name),
            .integer(image.isDecoded ? 1 : 0), .init(image.orientation))
    }

    private mutating func nameRow(
        of variant: RequestedVariant, in database: Connection
    ) throws -> Int64 {
        if variant.name == .main { return VariantNames.main }
        if let known = names[variant.name] { return known }
        let row = try VariantNames.row(of: variant, in: database)
        names[variant.name] = row
        return row
    }

    // MARK: Unchanged bodies

    private mutating func update(
        _ resource: Int64, by change: ImageChange, _ validation: ResourceValidation?,
        _ used: [RequestedVariant], in database: Connection
    ) throws -> [StoredImage] {
        var replaced: [StoredImage] = []
        for variant in change.variants.withoutRepeatedRecipes {
            replaced += try putVariant(variant, of: resource, in: database)
        }
        replaced.removeAll(where: change.variants.name)
        if let validation {
            let response = validation.response
            try database.run(
                """
                UPDATE resource SET etag = ?2, last_modified = ?3, cache_control = ?4,
                    expires = ?5, vary = ?6, date = ?7, validated_at = ?8, expires_at = ?9,
                    url = ?10, listed_url = ?18, final_url = ?11, host = ?12,
                    fetched_at = coalesce(?13, fetched_at), permanent_url = ?14,
                    content_type = ?15, redirects = ?16, permanent_until = ?17
                WHERE id = ?1
                """, .integer(resource), .init(response.entityTag), .init(response.lastModified),
                .init(response.cacheControl), .init(response.expires), .init(response.vary),
                .init(response.date?.milliseconds), .init(validation.validatedAt),
                .init(validation.expiresAt), .text(validation.location.url),
                .init(validation.location.finalURL), .text(validation.location.host),
                .init(validation.fetchedAt?.milliseconds),
                .init(validation.location.permanent?.url),
                .init(response.contentType), .init(validation.location.redirects),
                .init(validation.location.permanent?.until.milliseconds),
                .init(validation.location.listedURL))
            try putFreshness(
                key: change.key, resource: resource,
                StoredFreshness(validation), in: database)
            if !change.isIncomplete { try removeFailure(key: change.key, in: database) }
        } else if !change.variants.isEmpty {
            if !change.isIncomplete { try removeFailure(key: change.key, in: database) }
            let freshness = try database.first(
                "SELECT validated_at, expires_at, vary FROM resource WHERE id = ?",
                .integer(resource)
            ) {
                StoredFreshness(
                    validatedAt: try $0.integer(0), expiresAt: try $0.integer(1),
                    vary: try $0.optionalText(2))
            }
            guard let freshness else {
                throw SQLiteError(code: .error, message: "the resource is gone")
            }
            try putFreshness(key: change.key, resource: resource, freshness, in: database)
        }
        try use(used, of: resource, in: database)
        try putAttributes(change.attributes, resource: resource, in: database)
        return replaced
    }

    /// Marks stored variants of a resource as in use. Usually they already are.
    private mutating func use(
        _ variants: [RequestedVariant], of resource: Int64, in database: Connection
    ) throws {
        var uses = VariantUses(try self.uses(of: resource, in: database))
        var used: [(name: Int64, recipe: String)] = []
        for variant in variants {
            used.append((try nameRow(of: variant, in: database), variant.recipeText))
        }
        let changed = uses.use(used)
        guard !changed.isEmpty else { return }
        let key = try database.first("SELECT key FROM resource WHERE id = ?", .integer(resource)) {
            try $0.text(0)
        }
        guard let key else { return }
        for row in changed {
            try database.run(
                """
                UPDATE variant SET name = ?3, superseded = ?4,
                    last_access_at = iif(?4, unixepoch() * 1000, last_access_at)
                WHERE resource_id = ?1 AND recipe = ?2
                """, .integer(resource), .text(row.recipe), .integer(row.name),
                .integer(row.isSuperseded ? 1 : 0))
            let fingerprint = self.fingerprint(key: key, recipe: row.recipe)
            try database.run(
                """
                UPDATE freshness SET superseded = ?3
                WHERE fingerprint = ?1 AND fingerprint_low = ?2
                """, .integer(fingerprint.upper), .integer(fingerprint.lower),
                .integer(row.freshnessMark))
        }
    }

    func uses(of resource: Int64, in database: Connection) throws -> [VariantUses.VariantUse] {
        try database.all(
            "SELECT recipe, name, superseded FROM variant WHERE resource_id = ? ORDER BY recipe",
            .integer(resource)
        ) {
            VariantUses.VariantUse(
                recipe: try $0.text(0), name: try $0.integer(1),
                isSuperseded: try $0.integer(2) != 0)
        }
    }

    // MARK: Attributes and failures

    private func putAttributes(
        _ attributes: [EntryAttribute], resource: Int64, in database: Connection
    ) throws {
        for attribute in attributes {
            try AttributeStore.put(attribute, resource: resource, in: database)
        }
    }

    mutating func removeFailure(key: String, in database: Connection) throws {
        guard try mayHaveFailures(in: database) else { return }
        try database.run("DELETE FROM failure WHERE key = ?", .text(key))
    }

    mutating func mayHaveFailures(in database: Connection) throws -> Bool {
        if let hasFailures { return hasFailures }
        let isAny = try FailureLog.isAny(in: database)
        hasFailures = isAny
        return isAny
    }

    static func isNamed(_ digest: ContentDigest, in database: Connection) throws -> Bool {
        try database.hasRow(nameOfDigest, .digest(digest))
    }

    static let nameOfDigest = "SELECT 1 FROM variant WHERE sha256 = ? LIMIT 1"

    static let resourceInsertion = """
        INSERT INTO resource (key, url, final_url, host, etag, last_modified, cache_control,
            expires, vary, date, fetched_at, validated_at, expires_at, source_bytes,
            source_format, source_sha256, source_width, source_height, permanent_url, content_type,
            redirects, thumbhash, color, permanent_until, listed_url)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
            ?18, ?19, ?20, ?21, ?22, ?23, ?24)
        """

    /// Keeps the placeholder unless a new one is given or the picture changes.
    static let resourceUpdate = """
        UPDATE resource SET url = ?2, listed_url = ?24, final_url = ?3, host = ?4, etag = ?5,
            last_modified = ?6, cache_control = ?7, expires = ?8, vary = ?9, date = ?10, fetched_at = ?11,
            validated_at = ?11, expires_at = ?12, source_bytes = ?13, source_format = ?14,
            source_sha256 = ?15, source_width = ?16, source_height = ?17, permanent_url = ?18,
            content_type = ?19, redirects = ?20, permanent_until = ?23,
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
    /// row. Compares the recipes' texts, as the table does: a quality does not affect a PNG.
    var withoutRepeatedRecipes: [VariantChange] {
        guard count > 1 else { return self }
        var recipes: Set<String> = []
        return filter { recipes.insert($0.variant.recipe.canonicalText).inserted }
    }
}
