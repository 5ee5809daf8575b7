import PrefetchModel
import Testing

@testable import CacheStorage

/// The variants of a resource in use, and their names.
@Suite(.timeLimit(.minutes(15)))
struct VariantUsesTests {
    /// Rows as `recipe:name`, with `-` if superseded; uses as `name=recipe`. Names are row numbers;
    /// 0 is main.
    struct Case: CustomTestStringConvertible {
        let rows: String
        let used: String
        let result: String
        var testDescription: String { "\(rows) and \(used)" }
    }

    static let cases = [
        Case(rows: "a:0", used: "0=a", result: "a:0"),
        Case(rows: "a:0 b:0", used: "0=b", result: "a:0- b:0"),
        Case(rows: "a:0- b:0", used: "0=a", result: "a:0 b:0-"),
        // A variant that is not stored supersedes nothing.
        Case(rows: "a:0", used: "0=b", result: "a:0"),
        // Other names keep their variants.
        Case(rows: "a:0 b:1 c:1", used: "1=c", result: "a:0 b:1- c:1"),
        Case(rows: "a:0 b:1 c:0", used: "0=c", result: "a:0- b:1 c:0"),
        // A failed variant leaves the previous one of its name.
        Case(rows: "a:0 b:1 c:0", used: "0=c 1=d", result: "a:0- b:1 c:0"),
        // Of several names main, else the first.
        Case(rows: "a:1", used: "0=a 1=a", result: "a:0"),
        Case(rows: "a:0-", used: "2=a 1=a", result: "a:2"),
        Case(rows: "a:1", used: "2=a 1=a", result: "a:1"),
        // A variant in use by a name outside the run keeps that name.
        Case(rows: "a:0", used: "1=a", result: "a:0"),
        Case(rows: "a:1 b:0", used: "0=a", result: "a:0 b:0-"),
        Case(rows: "a:2 b:1", used: "1=a", result: "a:2 b:1-"),
        // A variant abandoned by its name gets the name that still uses it.
        Case(rows: "a:1 b:1", used: "1=b 2=a", result: "a:2 b:1"),
        Case(rows: "a:0- b:0", used: "0=b 1=a", result: "a:1 b:0"),
        Case(rows: "a:0- b:0", used: "1=a", result: "a:1 b:0"),
        // Swapped names.
        Case(rows: "a:0 b:1", used: "0=b 1=a", result: "a:1 b:0"),
    ]

    @Test(arguments: cases) func namesSupersedeOnlyTheirVariants(_ sample: Case) {
        var uses = VariantUses(VariantUsesTests.rows(sample.rows))
        let used = sample.used.split(separator: " ").map { text in
            let parts = text.split(separator: "=")
            return (name: Int64(parts[0]) ?? -1, recipe: String(parts[1]))
        }
        let before = uses.rows
        let changed = uses.use(used)
        let expected = VariantUsesTests.rows(sample.result)
        #expect(uses.rows == expected)
        #expect(changed == zip(before, expected).filter { $0 != $1 }.map(\.1))
        // Repeating the run changes nothing.
        #expect(uses.use(used).isEmpty)
    }

    private static func rows(_ text: String) -> [VariantUses.VariantUse] {
        text.split(separator: " ").map { text in
            let parts = text.split(separator: ":")
            return VariantUses.VariantUse(
                recipe: String(parts[0]),
                name: Int64(parts[1].filter { $0 != "-" }) ?? -1,
                isSuperseded: parts[1].hasSuffix("-"))
        }
    }

    // MARK: In the database

    @Test func namesKeepTheirRows() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/cache"
        let cache = try #require(try OpenCache.open(path: path, waiting: .none))
        let catalog = try CacheCatalog(directory: CacheDirectory(path: path, access: .readOnly))
        #expect(
            try catalog.variantNames()
                == [NotedVariant(name: "main", recipe: Recipe().canonicalText)])
        let web = try #require(VariantName("web"))
        func begin(_ variants: [RequestedVariant]) throws {
            _ = try cache.log.begin(
                manifests: ["m"], at: Timestamp(milliseconds: 1), variants: variants)
        }
        let rows = "SELECT group_concat(id || name || '=' || recipe, ' ') FROM variant_name"
        try begin([RequestedVariant(name: web, recipe: Recipe(encoding: .png))])
        try begin([RequestedVariant(name: .main, recipe: Recipe(quality: 9))])
        try begin([RequestedVariant(name: web, recipe: Recipe(encoding: .original))])
        #expect(
            try queried(rows, path + "/prefetch.sqlite")
                == "0main=same;q=9;strip=safe 1web=original")
        #expect(try catalog.variantNames().map(\.name) == ["main", "web"])
    }

    /// Two names of a run may have the same recipe, even before anything is stored. A setting that
    /// does not affect the format, such as a PNG's quality, does not make another recipe.
    @Test func namesWithOneRecipeShareARow() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/cache"
        let cache = try #require(try OpenCache.open(path: path, waiting: .none))
        var sample = Sample.row(key: "http://a/1", bytes: [1])
        for (name, quality) in [("a", 85), ("b", 40)] {
            var row = sample.row.variants[0]
            row.variant = RequestedVariant(
                name: try #require(VariantName(name)),
                recipe: Recipe(encoding: .png, quality: quality))
            sample.row.variants.append(row)
        }
        for _ in 0..<2 {
            // Both are pinned.
            for _ in 0..<2 {
                try sample.bytes.withUnsafeBytes {
                    try cache.content.store(
                        $0, as: sample.row.image, originURL: sample.row.key)
                }
            }
            try store([sample], in: cache)
            let database = path + "/prefetch.sqlite"
            #expect(
                try queried(
                    "SELECT group_concat(recipe || superseded || name, ' ') FROM variant", database)
                    == "png;strip=safe01 same;q=85;strip=safe00")
            #expect(
                try queried(
                    "SELECT group_concat(superseded) FROM (SELECT superseded FROM freshness ORDER BY 1)",
                    database) == "0,2")
        }
    }

    /// Another program may have removed the name.
    @Test func listsAndCountsVariantsWithoutAName() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/cache"
        let cache = try #require(try OpenCache.open(path: path, waiting: .none))
        var sample = Sample.row(key: "http://a/1", bytes: [1])
        var web = sample.row.variants[0]
        web.variant = RequestedVariant(
            name: try #require(VariantName("web")), recipe: Recipe(encoding: .png))
        sample.row.variants.append(web)
        try store([sample], in: cache)
        let catalog = try CacheCatalog(directory: CacheDirectory(path: path, access: .readOnly))
        func names() throws -> [String?] {
            try catalog.variants(of: "http://a/1").map(\.name)
        }
        func counts() throws -> ([String], [Int]) {
            let statistics = try catalog.statistics(
                isFresh: { _, _ in true }, isBlacklisted: { _ in false })
            return (
                statistics.variants.names.map(\.name), statistics.variants.formats.map(\.variants)
            )
        }
        #expect(try names() == ["web", "main"])
        #expect(try counts() == (["main", "web"], [2]))
        try runSQL("DELETE FROM variant_name WHERE id > 0", path + "/prefetch.sqlite")
        #expect(try names() == [nil, "main"])
        #expect(try counts() == (["main"], [2]))
    }
}
