import PrefetchModel
import SeededRandom
import Testing

@testable import CacheStorage
@testable import SQLite

/// Compares a group of changes, with new rows first and without triggers, with the same changes one
/// by one.
@Suite(.timeLimit(.minutes(15)))
struct GroupTests {
    private let folders: [TemporaryFolder]

    init() throws {
        folders = [try TemporaryFolder(), try TemporaryFolder()]
    }

    private static let recipes = [
        Recipe(), Recipe(encoding: .original), try? Recipe(specification: "png"),
    ].compactMap(\.self)
    private static let names: [VariantName] = [.main, VariantName("web")].compactMap(\.self)

    private enum Operation {
        case image(ImageChange)
        case resource(key: String, [VariantChange], validates: Bool)
        case used(keys: [String], [RequestedVariant])
        case failure(key: String)
        case lost(StoredImage)
    }

    @Test(arguments: 0..<30)
    func groupEqualsItsChangesOneByOne(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let caches = try folders.map { folder in
            try #require(
                try OpenCache.open(path: folder.path + "/cache", waiting: .aMoment))
        }
        let whole = caches[0].database
        let single = caches[1].database
        for _ in 0..<8 {
            let known = try keys(in: whole)
            let group = try (0..<Int.random(in: 1...25, using: &random)).map { _ in
                try operation(known: known, &random)
            }
            let replaced = try whole.write("committing") { database in
                var statements = MetadataStatements(run: 1)
                statements.beginTransaction()
                return try statements.apply(
                    group.compactMap { try change($0, in: database) }, in: database)
            }
            let replacedSingly = try single.write("committing") { database in
                var statements = MetadataStatements(run: 1)
                statements.beginTransaction()
                var replaced: [StoredImage] = []
                for operation in group {
                    guard let change = try change(operation, in: database) else { continue }
                    replaced += try statements.apply(change, in: database)
                }
                return replaced
            }
            #expect(Set(replaced) == Set(replacedSingly))
            let difference = try rows(in: whole).difference(from: rows(in: single))
            #expect(difference.isEmpty, "\(difference)")
            for database in [whole, single] {
                #expect(try database.read("summing up", TotalsCheck.difference) == nil)
            }
        }
    }

    /// Totals subtract damaged or foreign values exactly as the triggers added them.
    @Test(arguments: [-5, -5000, 1 << 50])
    func arbitraryRowsKeepTotalsConsistent(bytes: Int) throws {
        let cache = try #require(
            try OpenCache.open(path: folders[0].path + "/cache", waiting: .aMoment))
        try store(
            [
                Sample.row(key: "http://a/1", bytes: [1]),
                Sample.row(key: "http://a/2", bytes: [2]),
            ], in: cache)
        try cache.database.write("writing a row") { database in
            try Statement(
                database,
                sql: """
                    INSERT INTO variant (resource_id, recipe, sha256, format, width, height, bytes,
                        created_at, last_access_at)
                    SELECT id, 'other', ?, 'unheard-of', 1, 1, ?, 1, 1
                    FROM resource WHERE key = 'http://a/1'
                    """
            ).execute(.digest(Sample.digest([7])), .init(bytes))
        }
        let candidate = try #require(
            try RemovalCandidate.find(key: "http://a/1", in: cache.database))
        let removed = try cache.database.write("removing") { database in
            var statements = MetadataStatements(run: 1)
            statements.beginTransaction()
            return try statements.remove(images: [candidate.id], in: database)
        }
        #expect(removed.variants == 2)
        #expect(try cache.database.read("summing up", TotalsCheck.difference) == nil)
    }

    // MARK: Changes

    private func operation(known: [String], _ random: inout SplitMix) throws -> Operation {
        let key = "http://a/\(Int.random(in: 0..<12, using: &random))"
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5:
            var (row, _) = Sample.row(key: key, bytes: [UInt8.random(in: 0..<9, using: &random)])
            row.variants = variants(&random)
            let host = "http://\(["a", "b"].randomElement(using: &random) ?? "a")"
            row.changeValidation { $0.location.host = host }
            row.isIncomplete = Bool.random(using: &random)
            row.attributes = [
                try EntryAttribute(name: "n", value: [UInt8.random(in: 0...9, using: &random)])
            ]
            return .image(row)
        case 5:
            guard let key = known.randomElement(using: &random) else { return .failure(key: key) }
            return .resource(
                key: key, variants(&random), validates: Bool.random(using: &random))
        case 6:
            return .used(
                keys: known.filter { _ in Bool.random(using: &random) },
                variants(&random).map(\.variant))
        case 7:
            return .lost(image(&random))
        default:
            return .failure(key: key)
        }
    }

    private func image(_ random: inout SplitMix) -> StoredImage {
        let content = UInt8.random(in: 0..<9, using: &random)
        return StoredImage(
            digest: Sample.digest([content]), format: .png, widthInPixels: 1, heightInPixels: 1,
            size: ByteCount(5000 * Int(content)))
    }

    /// At least one variant, with different names.
    private func variants(_ random: inout SplitMix) -> [VariantChange] {
        GroupTests.names.prefix(Int.random(in: 1...2, using: &random)).map { name in
            let recipe = GroupTests.recipes.randomElement(using: &random) ?? Recipe()
            return VariantChange(
                RequestedVariant(name: name, recipe: recipe), image: image(&random),
                createdAt: Timestamp(milliseconds: 10))
        }
    }

    private func change(
        _ operation: Operation, in database: Connection
    ) throws -> MetadataChange? {
        func identifier(_ key: String) throws -> Int64? {
            try Statement(database, sql: "SELECT id FROM resource WHERE key = ?")
                .first([.text(key)]) { try $0.integer(0) }
        }
        switch operation {
        case .image(let row): return .image(row)
        case .failure(let key):
            return .failure(
                FailureRecord(
                    key: key, url: key, host: "http://a", reason: .httpStatus, httpStatus: 404,
                    curlCode: nil, message: "HTTP 404", attempts: 1, kind: .permanent,
                    failedAt: Timestamp(milliseconds: 10)))
        case .lost(let image): return .lost(image)
        case .used(let keys, let variants):
            return .used(resources: try keys.compactMap(identifier), variants)
        case .resource(let key, let variants, let validates):
            guard let id = try identifier(key) else { return nil }
            let validation = validates ? Sample.row(key: key, bytes: [1]).row.validation : nil
            return .image(
                ImageChange(
                    key: key,
                    body: .kept(resource: id, validation, used: variants.map(\.variant)),
                    variants: variants))
        }
    }

    // MARK: Rows

    private func keys(in database: CacheDatabase) throws -> [String] {
        try database.read("reading") { database in
            try Statement(database, sql: "SELECT key FROM resource ORDER BY key")
                .all([]) { try $0.text(0) }
        }
    }

    /// All rows without resource identifiers, which depend on the order.
    private func rows(in database: CacheDatabase) throws -> [String] {
        try database.read("reading") { database in
            try [
                """
                SELECT json_array('resource', key, url, host, expires_at, hex(source_sha256),
                    source_bytes) FROM resource
                """,
                """
                SELECT json_array('variant', key, recipe, hex(sha256), bytes, created_at, name,
                    superseded) FROM variant JOIN resource ON id = resource_id
                """,
                """
                SELECT json_array('freshness', key, fingerprint, fingerprint_low,
                    freshness.expires_at, superseded) FROM freshness JOIN resource ON id = resource_id
                """,
                """
                SELECT json_array('attribute', key, name, hex(value))
                FROM attribute JOIN resource ON id = resource_id
                """,
                "SELECT json_array('failure', key, attempts, reason) FROM failure",
                // Without the recipe: a name has one per run, but here it has many, and the first
                // in a group wins.
                "SELECT json_array('name', id, name) FROM variant_name",
                """
                SELECT json_array('total', host, format, name, superseded, variants, bytes)
                FROM total WHERE variants <> 0
                """,
                "SELECT json_array('usage', resources, source_bytes, files, file_bytes, blocks) FROM usage",
            ].flatMap { sql in
                try Statement(database, sql: sql).all([]) { try $0.text(0) }.sorted()
            }
        }
    }
}
