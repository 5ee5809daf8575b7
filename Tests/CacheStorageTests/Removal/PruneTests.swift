import Foundation
import Hashing
import PrefetchModel
import SQLite
import SeededRandom
import Testing

@testable import CacheStorage

/// Pruning compared with a model, for random caches and rules.
@Suite(.timeLimit(.minutes(15)))
struct PruneTests {
    private static let day = Int64(86_400_000)
    private static let now = Timestamp(milliseconds: 20_000 * day)

    private static func ago(_ days: Int) -> Timestamp {
        Timestamp(milliseconds: now.milliseconds - Int64(days) * day)
    }

    private static func age(_ milliseconds: Int64?) -> Duration? {
        milliseconds.map { .milliseconds($0) }
    }

    /// The model of an image.
    private struct Image {
        let id: Int64
        let key: String
        let host: String
        let validatedAt: Timestamp
        let expiresAt: Timestamp
        var listedAt: Timestamp?
        var isGone: Bool
        var variants: [Variant]
    }

    private struct Variant: Hashable {
        let recipe: String
        let name: String
        let isSuperseded: Bool
        let accessedAt: Timestamp
        let content: Int
        let bytes: Int
    }

    private struct Model {
        var images: [Image] = []
        var listingsBegin: Timestamp?
        var lastListing: Timestamp?
        var nameUsedAt: [String: Timestamp] = [:]

        var usage: DiskUsage {
            let files = Dictionary(
                images.flatMap(\.variants).map { ($0.content, $0.bytes) }
            ) { first, _ in first }
            return DiskUsage(
                files: files.count, blocks: files.values.reduce(0) { $0 + ($1 + 4095) / 4096 })
        }

        /// `key recipe`, sorted.
        var rows: [String] {
            images.flatMap { image in image.variants.map { "\(image.key) \($0.recipe)" } }.sorted()
        }

        /// By the rules' definitions, one image or variant at a time.
        mutating func prune(_ rules: PruneRules) {
            let now = PruneTests.now
            let superseded = images.filter { $0.variants.contains(where: \.isSuperseded) }
                .map {
                    (
                        $0.variants.filter(\.isSuperseded).map(\.accessedAt).max() ?? .distantPast,
                        $0.id
                    )
                }
                .sorted { $0 < $1 }.map(\.1)
            let oldest = images.map { image in
                let times = image.variants.map(\.accessedAt) + [image.validatedAt]
                return (max(image.listedAt ?? .distantPast, times.max() ?? .distantPast), image.id)
            }.sorted { $0 < $1 }.map(\.1)
            images.removeAll { image in
                let listed = image.listedAt ?? listingsBegin ?? now
                let hasher = SHA256Hasher()
                let seen = max(listed, image.validatedAt)
                let used = max(seen, image.variants.map(\.accessedAt).max() ?? seen)
                return [
                    rules.isOfHost.map { $0(image.host) } ?? false,
                    rules.wanted.map {
                        !$0.contains(KeyFingerprint(image.key, hasher: hasher))
                    } ?? false,
                    rules[.gone] != nil && image.isGone,
                    PruneTests.age(rules[.unlistedFor]).map {
                        (lastListing ?? now).timeSince(seen) > $0
                    } ?? false,
                    PruneTests.age(rules[.unusedFor]).map {
                        (lastListing ?? now).timeSince(used) > $0
                    } ?? false,
                    PruneTests.age(rules[.expiredFor]).map {
                        now.timeSince(max(image.expiresAt, image.validatedAt)) > $0
                    } ?? false,
                ].contains(true)
            }
            if case .name(let name)? = rules.variant { drop { $0.name == name } }
            if let duration = PruneTests.age(rules[.variantsUnusedFor]) {
                let time = (nameUsedAt.values.max() ?? now).advanced(by: .zero - duration)
                let nameUsedAt = nameUsedAt
                drop { variant in
                    variant.accessedAt < time
                        && (variant.isSuperseded
                            || nameUsedAt[variant.name].map { $0 < time } ?? false)
                }
            }
            shrink(rules, superseded: superseded, oldest: oldest)
        }

        private mutating func drop(_ isMeant: (Variant) -> Bool) {
            for index in images.indices { images[index].variants.removeAll(where: isMeant) }
            images.removeAll { $0.variants.isEmpty }
        }

        private mutating func shrink(
            _ rules: PruneRules, superseded: [Int64], oldest: [Int64]
        ) {
            let blocks = rules[.maxSize].map { Int($0) / 4096 } ?? .max
            let files = rules[.maxFiles].map { Int($0) } ?? .max
            guard usage.blocks > blocks || usage.files > files else { return }
            let share = Double(rules[.lowWater] ?? 0) / 1_000_000
            func low(_ limit: Int) -> Int {
                limit == .max ? .max : Int((Double(limit) * share).rounded(.down))
            }
            let target = DiskUsage(files: low(files), blocks: low(blocks))
            func exceedsTarget() -> Bool {
                usage.blocks > target.blocks || usage.files > target.files
            }
            for id in superseded where exceedsTarget() {
                guard let index = images.firstIndex(where: { $0.id == id }),
                    images[index].variants.contains(where: { !$0.isSuperseded })
                else { continue }
                images[index].variants.removeAll(where: \.isSuperseded)
                if images[index].variants.isEmpty { images.remove(at: index) }
            }
            for id in oldest where exceedsTarget() { images.removeAll { $0.id == id } }
        }
    }

    /// Fills a cache by the same means as a run, and the model beside it.
    private func fill(
        _ cache: OpenCache, _ random: inout SplitMix
    ) throws -> (Model, bytes: [Int: [UInt8]]) {
        var model = Model()
        var contents: [Int: [UInt8]] = [:]
        let names = ["main", "web", "thumb"]
        // Mostly few share a file, at times nearly all do.
        let count = [60, 60, 3].randomElement(using: &random) ?? 60
        for number in 0..<Int.random(in: 1...60, using: &random) {
            let host = "http://h\(Int.random(in: 0..<4, using: &random))"
            let key = "\(host)/\(number)"
            let validatedAt = PruneTests.ago(Int.random(in: 0..<100, using: &random))
            let expiresAt = Timestamp(
                milliseconds: Bool.random(using: &random)
                    ? 0
                    : validatedAt.milliseconds
                        + Int64.random(in: 0..<60, using: &random) * PruneTests.day)
            var variants: [Variant] = []
            var rows: [VariantChange] = []
            for (position, name) in names.enumerated()
            where position == 0 || Bool.random(using: &random) {
                let content = Int.random(in: 0..<count, using: &random)
                if contents[content] == nil {
                    contents[content] =
                        (0..<Int.random(in: 1...20_000, using: &random))
                        .map { UInt8(truncatingIfNeeded: $0 &* 7 &+ content) } + [UInt8(content)]
                }
                let bytes = try #require(contents[content])
                let recipe = Recipe(encoding: .jpeg, quality: 40 + position)
                rows.append(
                    VariantChange(
                        RequestedVariant(name: try #require(VariantName(name)), recipe: recipe),
                        image: StoredImage(
                            digest: Sample.digest(bytes), format: .jpeg, widthInPixels: 3,
                            heightInPixels: 2, size: ByteCount(bytes.count)),
                        createdAt: PruneTests.ago(100)))
                variants.append(
                    Variant(
                        recipe: recipe.canonicalText, name: name,
                        isSuperseded: Int.random(in: 0..<4, using: &random) == 0,
                        accessedAt: PruneTests.ago(Int.random(in: 0..<100, using: &random)),
                        content: content, bytes: bytes.count))
            }
            for row in rows {
                let bytes = try #require(
                    contents.values.first { Sample.digest($0) == row.image.digest })
                try bytes.withUnsafeBytes {
                    try cache.content.store($0, as: row.image, originURL: key)
                }
            }
            let row = ImageChange(
                key: key,
                body: .new(
                    SourceImage(
                        digest: Sample.digest(Array(key.utf8)), format: .jpeg, widthInPixels: 3,
                        heightInPixels: 2, size: ByteCount(100)),
                    ResourceValidation(
                        location: ResourceLocation(url: key, finalURL: nil, host: host),
                        response: StoredResponse(entityTag: "\"e\""), fetchedAt: validatedAt,
                        validatedAt: validatedAt, expiresAt: expiresAt)),
                variants: rows)
            _ = try commit([.image(row)], in: cache)
            model.images.append(
                Image(
                    id: try largestResource(cache), key: key, host: host,
                    validatedAt: validatedAt, expiresAt: expiresAt, listedAt: nil, isGone: false,
                    variants: variants))
        }
        return (model, contents)
    }

    private func largestResource(_ cache: OpenCache) throws -> Int64 {
        try cache.database.read("testing") { database in
            try Statement(database, sql: "SELECT max(id) FROM resource")
                .first([]) { try $0.integer(0) } ?? 0
        }
    }

    /// Gives rows the times and marks that the model has, as runs long ago would have left them.
    private func age(
        _ model: inout Model, _ cache: OpenCache, _ random: inout SplitMix
    ) throws {
        var statements: [String] = []
        for name in ["main", "web", "thumb"] where Bool.random(using: &random) {
            let time = PruneTests.ago(Int.random(in: 0..<100, using: &random))
            model.nameUsedAt[name] = time
            statements.append(
                "UPDATE variant_name SET used_at = \(time.milliseconds) WHERE name = '\(name)'")
        }
        for index in model.images.indices {
            let image = model.images[index]
            for variant in image.variants {
                statements.append(
                    """
                    UPDATE variant SET last_access_at = \(variant.accessedAt.milliseconds),
                        superseded = \(variant.isSuperseded ? 1 : 0)
                    WHERE resource_id = \(image.id) AND recipe = '\(variant.recipe)'
                    """)
            }
            if Int.random(in: 0..<5, using: &random) == 0 {
                model.images[index].isGone = true
                statements.append(
                    """
                    INSERT INTO failure (key, url, host, reason, http_status, message, attempts, class,
                        runs_in_a_row, first_failed_at, last_failed_at, blacklisted_until)
                    VALUES ('\(image.key)', '\(image.key)', '\(image.host)', 'http-status', 404, '', 1,
                        'permanent', 1, 1, 1, 2)
                    """)
            }
        }
        try cache.database.write("testing") { try $0.execute(statements.joined(separator: ";\n")) }
        // Some caches have no recorded listing.
        guard Int.random(in: 0..<4, using: &random) > 0 else { return }
        // At times the last run was a while ago.
        let pause = [0, 0, 40].randomElement(using: &random) ?? 0
        for days in [90, 60, 20, 3, 0].map({ $0 + pause }) {
            var set = ResourceSet()
            let time = PruneTests.ago(days)
            for index in model.images.indices where Int.random(in: 0..<4, using: &random) == 0 {
                set.insert(model.images[index].id)
                model.images[index].listedAt = time
            }
            if !set.isEmpty { model.lastListing = time }
            try cache.listings.note(set, startedAt: time, at: time)
            model.listingsBegin = model.listingsBegin ?? time
        }
    }

    private func randomRules(_ model: Model, _ random: inout SplitMix) -> PruneRules {
        var rules = PruneRules()
        func chance(_ random: inout SplitMix) -> Bool { Int.random(in: 0..<4, using: &random) == 0 }
        func days(_ random: inout SplitMix) -> Int64 {
            Int64.random(in: 0..<100, using: &random) * PruneTests.day
        }
        if chance(&random) { rules[.unlistedFor] = days(&random) }
        if chance(&random) { rules[.unusedFor] = days(&random) }
        if chance(&random) { rules[.expiredFor] = days(&random) }
        if chance(&random) { rules[.gone] = 1 }
        if chance(&random) { rules[.variantsUnusedFor] = days(&random) }
        if chance(&random) { rules.variant = .name("web") }
        if chance(&random) { rules.isOfHost = { $0 == "http://h1" } }
        if chance(&random) {
            let hasher = SHA256Hasher()
            rules.wanted = Set(
                model.images.filter { _ in Bool.random(using: &random) }
                    .map { KeyFingerprint($0.key, hasher: hasher) })
        }
        if Bool.random(using: &random) {
            rules[.maxSize] = Int64.random(in: 0..<600_000, using: &random)
        }
        if chance(&random) { rules[.history] = 1000 }
        if chance(&random) { rules[.maxFiles] = Int64.random(in: 0..<60, using: &random) }
        rules[.lowWater] = Int64.random(in: 1...100, using: &random) * 10_000
        return rules
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func removesTheSameAsTheModel(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let folder = try TemporaryFolder()
        let path = folder.path + "/cache"
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        var (model, contents) = try fill(cache, &random)
        try age(&model, cache, &random)
        let rules = randomRules(model, &random)
        let pruning = CachePruning(rules, at: PruneTests.now)

        let catalog = try CacheCatalog(
            directory: CacheDirectory(path: path, access: .readOnly))
        let estimate = RemovalEstimate(catalog, variant: nil)
        let wouldEnd = try pruning.run(estimate) { _ in }
        let wouldBeLeft = try estimate.usage
        let removal = ImageRemoval(cache, variant: nil, at: PruneTests.now)
        let ended = try pruning.run(removal) { _ in }
        model.prune(rules)

        #expect(estimate.totals == removal.totals)
        #expect(try wouldBeLeft == removal.usage)
        #expect(wouldEnd && ended)
        #expect(try pruning.excess(of: removal.usage) == DiskUsage(files: 0, blocks: 0))
        let rows = try cache.database.read("testing") { database in
            try Statement(
                database,
                sql: "SELECT key || ' ' || recipe FROM resource JOIN variant ON id = resource_id"
            ).all([]) { try $0.text(0) }.sorted()
        }
        #expect(rows == model.rows)
        #expect(try removal.usage == model.usage)
        let files = try FileManager.default.subpathsOfDirectory(atPath: path + "/content")
            .filter { $0.contains(".") }.map { String($0.split(separator: "/")[1].prefix(64)) }
        let named = Set(
            model.images.flatMap(\.variants).compactMap { contents[$0.content].map(Sample.digest) })
        #expect(Set(files) == Set(named.map(\.description)))
        // A second time there is nothing left to do.
        let again = ImageRemoval(cache, variant: nil, at: PruneTests.now)
        _ = try pruning.run(again) { _ in }
        #expect(again.totals == RemovalTotals())
        try cache.close()
    }
}
