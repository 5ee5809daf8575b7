import Hashing
package import PrefetchModel
internal import SQLite

/// A test whether a run's requests select a stored response by its `Vary` text.
package struct VaryTest: Sendable {
    /// Whether the result depends on the URLs.
    package let readsURLs: Bool
    let matches: @Sendable (_ text: String, _ url: String, _ finalURL: String) -> Bool

    package init(_ matches: @escaping @Sendable (String, String, String) -> Bool) {
        readsURLs = true
        self.matches = matches
    }

    package init(_ matches: @escaping @Sendable (String) -> Bool) {
        readsURLs = false
        self.matches = { text, _, _ in matches(text) }
    }
}

/// Reads the cache for one thread of a run, over a connection that never waits for the writer's.
package final class CacheReader {
    private let database: CacheDatabase
    private let varyTest: VaryTest
    private var knownVaries: [KnownVary: Bool] = [:]
    private let hasher = SHA256Hasher()

    private struct KnownVary: Hashable {
        let text: VaryFingerprint
        let group: Int?
    }

    /// Opens a connection. A test of `Vary` is made once per text and group of URLs.
    package init(_ directory: CacheDirectory, varyTest: VaryTest) throws(StorageError) {
        database = try CacheDatabase(directory: directory, access: .readOnly)
        self.varyTest = varyTest
    }

    // MARK: Freshness

    func freshnessRecords(
        of fingerprints: [VariantFingerprint]
    ) throws(StorageError) -> [FreshnessRecord?] {
        // In the order of the primary key, neighbouring look-ups share pages of the tree.
        let order = fingerprints.indices.sorted {
            fingerprints[$0].upper < fingerprints[$1].upper
        }
        return try database.read("looking entries up") { database in
            var records = [FreshnessRecord?](repeating: nil, count: fingerprints.count)
            let statement = try database.prepare(
                """
                SELECT fingerprint_low, resource_id, validated_at, expires_at, vary, superseded
                FROM freshness WHERE fingerprint = ?
                """)
            for index in order {
                try statement.bind(.integer(fingerprints[index].upper), at: 1)
                if try statement.step(), try statement.integer(0) == fingerprints[index].lower {
                    records[index] = try statement.freshnessRecord(from: 1)
                }
                statement.reset()
            }
            return records
        }
    }

    func freshnessTable(piece: Int, expectedRows: Int) throws(StorageError) -> FreshnessTable? {
        try database.read("reading the index") { database in
            var table = FreshnessTable(expectedCount: expectedRows)
            let statement = try database.prepare(
                """
                SELECT fingerprint, fingerprint_low, resource_id, validated_at, expires_at, vary,
                    superseded
                FROM freshness WHERE fingerprint BETWEEN ?1 AND ?2 ORDER BY fingerprint
                """)
            let keys = FreshnessTable.keys(ofPiece: piece)
            try statement.bind(.integer(keys.lowerBound), at: 1)
            try statement.bind(.integer(keys.upperBound), at: 2)
            while try statement.step() {
                let isHeld = table.append(
                    upper: try statement.integer(0), lower: try statement.integer(1),
                    try statement.freshnessRecord(from: 2))
                guard isHeld else { return nil }
            }
            table.seal()
            return table
        }
    }

    /// Whether a request selects the stored response (RFC 9111 §4.1), in an unchanged row. `test`
    /// is for other header fields than this run's usual ones. `group` is that of the entry's URL,
    /// among URLs for which a test that reads URLs has the same result; nil for none.
    package func matchesVary(
        _ record: FreshnessRecord, by test: VaryTest? = nil,
        group: @autoclosure () -> Int? = nil
    ) throws(StorageError) -> Bool {
        guard let vary = record.vary else { return true }
        let known = test == nil ? knownVary(vary, record, group) : nil
        if let known, let matches = knownVaries[known] { return matches }
        let row = try database.read("reading what a response varies on") { database in
            try database.first(
                "SELECT vary, url, COALESCE(final_url, url) FROM resource WHERE id = ?",
                .integer(record.resourceID)
            ) { (vary: try $0.optionalText(0), url: try $0.text(1), final: try $0.text(2)) }
        }
        // After a change of the row, its text does not belong to this fingerprint.
        guard let row, let text = row.vary, VaryFingerprint(text, hasher: hasher) == vary else {
            return false
        }
        let matches = (test ?? varyTest).matches(text, row.url, row.final)
        if let known { knownVaries[known] = matches }
        return matches
    }

    /// Nil if the row's own URLs must be read: they differ from the entry's.
    private func knownVary(
        _ vary: VaryFingerprint, _ record: FreshnessRecord, _ group: () -> Int?
    ) -> KnownVary? {
        guard varyTest.readsURLs else { return KnownVary(text: vary, group: nil) }
        guard !record.isKeyed, !record.isRedirected, let group = group() else { return nil }
        return KnownVary(text: vary, group: group)
    }

    // MARK: Stored images

    /// The stored variants of one recipe, for resources in any order; nil where none is stored.
    package func images(
        of resources: [Int64], recipe: Recipe
    ) throws(StorageError) -> [StoredImage?] {
        let order = resources.indices.sorted { resources[$0] < resources[$1] }
        return try database.read("looking up images") { database in
            var images = [StoredImage?](repeating: nil, count: resources.count)
            let statement = try database.prepare(
                """
                SELECT sha256, format, width, height, bytes, decoded, orientation FROM variant
                WHERE resource_id = ?1 AND recipe = ?2
                """)
            try statement.bind(.text(recipe.canonicalText), at: 2)
            for index in order {
                try statement.bind(.integer(resources[index]), at: 1)
                if try statement.step() {
                    images[index] = try statement.storedImage(from: 0, details: 5)
                }
                statement.reset()
            }
            return images
        }
    }

    func imageTable(of resources: Range<Int64>, recipe: Recipe) throws(StorageError) -> ImageTable {
        try database.read("reading the images") { database in
            var table = ImageTable(of: resources)
            try database.forEach(
                """
                SELECT sha256, format, width, height, bytes, resource_id, decoded, orientation
                FROM variant
                WHERE resource_id >= ?1 AND resource_id < ?2 AND recipe = ?3
                ORDER BY resource_id
                """, .integer(resources.lowerBound), .integer(resources.upperBound),
                .text(recipe.canonicalText)
            ) { row in
                guard let image = try row.storedImage(from: 0, details: 6) else { return }
                table.append(image, of: try row.integer(5))
            }
            return table
        }
    }

    /// The stored variant of a key and its expiry; nil without one. For entries with an image that
    /// another entry has stored since they were looked up.
    package func stored(
        key: String, recipe: Recipe
    ) throws(StorageError) -> (image: StoredImage, expiresAt: Timestamp)? {
        try database.read("looking up an image") { database in
            let statement = try database.prepare(
                """
                SELECT sha256, format, width, height, bytes, expires_at, decoded, orientation
                FROM resource JOIN variant ON id = resource_id WHERE key = ?1 AND recipe = ?2
                """)
            return try statement.first([.text(key), .text(recipe.canonicalText)]) { row in
                try row.storedImage(from: 0, details: 6).map { ($0, try row.time(5)) }
            } ?? nil
        }
    }

    package func resources(ofKeys keys: [String]) throws(StorageError) -> [Int64] {
        guard !keys.isEmpty else { return [] }
        return try database.read("looking up resources") { database in
            let statement = try database.prepare("SELECT id FROM resource WHERE key = ?")
            return try keys.compactMap { key in
                try statement.first([.text(key)]) { try $0.integer(0) }
            }
        }
    }

    /// The freshness of each key's resource, and whether every recipe's variant is stored or can be
    /// made without a download. A variant can be made from a stored original. It is stored if
    /// another recipe produced the same bytes. Nil for keys without stored variants.
    package func sources(
        of wanted: [(key: String, recipes: [Recipe])], sameRules: SameRules
    ) throws(StorageError) -> [(record: FreshnessRecord, isDerivable: Bool)?] {
        try database.read("looking up other variants") { database in
            let statement = try database.prepare(
                """
                SELECT id, validated_at, expires_at, resource.vary, superseded, source_format,
                    recipe, decoded, \(MarkedResources.keyed), \(MarkedResources.redirected)
                FROM resource JOIN variant ON id = resource_id WHERE key = ?
                """)
            return try wanted.map { key, recipes in
                let original = Recipe.original(filteredBy: recipes.first?.bodyFilter).canonicalText
                let stored = try statement.all([.text(key)]) { row in
                    (
                        record: FreshnessRecord(
                            resourceID: try row.integer(0), validatedAt: try row.time(1),
                            expiresAt: try row.time(2),
                            vary: try row.optionalText(3).map {
                                VaryFingerprint($0, hasher: hasher)
                            }, isSuperseded: try row.integer(4) != 0,
                            isKeyed: try row.integer(8) != 0,
                            isRedirected: try row.integer(9) != 0),
                        format: try row.text(5), recipe: try row.text(6),
                        isDecoded: try row.integer(7) != 0
                    )
                }
                guard let first = stored.first else { return nil }
                func effect(_ text: String) -> String {
                    Recipe.effectiveText(of: text, under: sameRules[first.format])
                }
                if let source = stored.first(where: {
                    $0.recipe == original
                        || !$0.isDecoded && Recipe.haveSameFilter($0.recipe, original)
                }) {
                    return (source.record, true)
                }
                let effects = Set(stored.map { effect($0.recipe) })
                return (
                    first.record,
                    recipes.allSatisfy { effects.contains(effect($0.canonicalText)) }
                )
            }
        }
    }

    /// The complete records of resources; nil for removed ones.
    package func copies(of resources: [Int64]) throws(StorageError) -> [CachedCopy?] {
        try database.read("looking up resources") { try CachedCopy.read(resources, in: $0) }
    }

    package func haveAttributes(
        _ wanted: [(resource: Int64, attributes: [EntryAttribute])]
    ) throws(StorageError) -> [Bool] {
        try database.read("looking up attributes") { database in
            try wanted.map { resource, attributes in
                try attributes.allSatisfy { attribute in
                    try AttributeStore.value(attribute.name, resource: resource, in: database)
                        == attribute.value
                }
            }
        }
    }

    package func wereMade(
        of wanted: [(resource: Int64, digest: ContentDigest)]
    ) throws(StorageError) -> [Bool] {
        try database.read("looking up sources") { database in
            let rows = try database.prepare("SELECT source_sha256 = ?2 FROM resource WHERE id = ?1")
            return try wanted.map { resource, digest in
                try rows.first([.integer(resource), .blob(digest.bytes)]) {
                    try $0.integer(0) != 0
                } ?? false
            }
        }
    }

    /// The URLs that redirects led to, without user information; nil without redirects.
    package func finalURLs(of resources: [Int64]) throws(StorageError) -> [String?] {
        try database.read("looking up URLs") { database in
            let rows = try database.prepare("SELECT final_url FROM resource WHERE id = ?")
            return try resources.map { resource in
                try rows.first([.integer(resource)]) { try $0.optionalText(0) } ?? nil
            }
        }
    }

    /// The URLs that resources were stored from and last listed by, without user information; nil
    /// for removed ones.
    package func urls(
        of resources: [Int64]
    ) throws(StorageError) -> [StoredURLs?] {
        guard !resources.isEmpty else { return [] }
        return try database.read("looking up URLs") { database in
            let rows = try database.prepare(
                "SELECT url, coalesce(listed_url, url) FROM resource WHERE id = ?1")
            return try resources.map { resource in
                try rows.first([.integer(resource)]) {
                    StoredURLs(requested: try $0.text(0), listed: try $0.text(1))
                }
            }
        }
    }

    // MARK: Failures

    /// Whether any failure is stored. Usually not, and no look-up is needed.
    package func hasFailures() throws(StorageError) -> Bool {
        try database.read("looking for failures") { database in
            try FailureLog.isAny(in: database)
        }
    }

    package func failures(ofKeys keys: [String]) throws(StorageError) -> [FailureRecord?] {
        try database.read("looking up failures") { database in
            let statement = try database.prepare(
                "SELECT \(FailureRecord.columns) FROM failure WHERE key = ?")
            return try keys.map { key in
                try statement.first([.text(key)]) { try FailureRecord($0) } ?? nil
            }
        }
    }

    /// The stored state of a host, even if outdated; nil without one.
    package func hostState(of host: String) throws(StorageError) -> HostState? {
        try database.read("looking up a host") { database in
            try database.first("SELECT \(HostState.columns) FROM host WHERE host = ?", .text(host))
            { try HostState($0) } ?? nil
        }
    }
}

/// Confined to the thread that created it: its caches have no lock.
@available(*, unavailable)
extension CacheReader: Sendable {}

extension Statement {
    /// Reads `resource_id, validated_at, expires_at, vary, superseded`.
    fileprivate func freshnessRecord(from column: Int32) throws -> FreshnessRecord {
        let mark = try integer(column + 4)
        return FreshnessRecord(
            resourceID: try integer(column), validatedAt: try time(column + 1),
            expiresAt: try time(column + 2),
            vary: try optionalInteger(column + 3).map(VaryFingerprint.init(value:)),
            isSuperseded: mark == 1, isMain: mark == 0)
    }

    /// Reads `sha256, format, width, height, bytes` from the columns that begin at `column`, and
    /// `decoded, orientation` from `details` on if given; nil for an unknown format.
    func storedImage(from column: Int32, details: Int32? = nil) throws -> StoredImage? {
        guard let format = ImageFormat(rawValue: try text(column + 1)) else { return nil }
        return StoredImage(
            digest: try digest(column), format: format,
            isDecoded: try details.map { try integer($0) != 0 } ?? true,
            widthInPixels: try count(column + 2), heightInPixels: try count(column + 3),
            orientation: try details.map { try count($0 + 1) } ?? 1,
            size: ByteCount(try count(column + 4)))
    }
}

/// The cache's complete record of one resource.
package struct CachedCopy: Sendable {
    package let resourceID: Int64
    /// The last validation, with the arrival time of the body.
    package let validation: ResourceValidation
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
            SELECT \(Statement.validationColumns), source_sha256, source_format, thumbhash
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
                    resourceID: identifier, validation: try row.validation(from: 0),
                    sourceDigest: try row.digest(17), sourceFormat: try row.text(18),
                    thumbHash: row.isNull(19) ? nil : try row.blob(19), images: images,
                    names: names)
            }
        }
    }
}
