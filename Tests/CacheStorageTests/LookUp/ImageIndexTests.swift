import PrefetchModel
import Testing

@testable import CacheStorage

@Suite(.timeLimit(.minutes(15)))
struct ImageIndexTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/cache" }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func images(
        _ cache: OpenCache, of resources: [Int64], expectedLookups: Int,
        recipe: Recipe = Recipe()
    ) throws -> [StoredImage?] {
        let reader = try CacheReader(cache.directory, varyTest: VaryTest { _ in true })
        let index = try ImageIndex(
            CacheCatalog(cache), recipe: recipe, expectedLookups: expectedLookups)
        return try index.images(of: resources, with: reader)
    }

    /// Long lists read the table into memory; both strategies must agree.
    @Test func tableInMemoryEqualsLookUps() throws {
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        let other = Recipe(encoding: .original)
        try store(
            (0..<100).map {
                Sample.row(
                    key: "http://a/\($0)", bytes: Array("\($0)".utf8),
                    recipe: $0 % 3 == 0 ? other : Recipe())
            }, in: cache)
        try runSQL(
            """
            DELETE FROM resource WHERE id IN (1, 40, 41, 42);
            UPDATE variant SET format = 'unknown' WHERE resource_id = 50;
            UPDATE variant SET bytes = 8589934592 WHERE resource_id = 51;
            UPDATE variant SET format = 'jpeg', width = 70000, height = 1 WHERE resource_id = 53;
            """, path + "/prefetch.sqlite")
        // Unknown identifiers, unsorted, and one repeated.
        let asked =
            [Int64.min, -1, 0, 101, 1_000_000, .max, 53] + (1...100).reversed().map(Int64.init)
        for recipe in [Recipe(), other, Recipe(encoding: .png)] {
            let looked = try images(cache, of: asked, expectedLookups: 0, recipe: recipe)
            let held = try images(cache, of: asked, expectedLookups: .max, recipe: recipe)
            #expect(looked == held)
        }
        let found = try images(cache, of: asked, expectedLookups: .max)
        #expect(found.count { $0 != nil } > 50)
        #expect(found[6]?.widthInPixels == 70_000)
    }

    @Test func longListsSwitchToTheTableInMemory() throws {
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        try store([Sample.row(key: "http://a/1", bytes: [1])], in: cache)
        let reader = try CacheReader(cache.directory, varyTest: VaryTest { _ in true })
        let index = try ImageIndex(CacheCatalog(cache), recipe: Recipe())
        // The table is read after 20,000 look-ups; the results must not change then.
        for _ in 0..<4 {
            let images = try index.images(
                of: [1] + [Int64](repeating: 9, count: 9_000), with: reader)
            #expect(images[0]?.size == ByteCount(1))
            #expect(images.dropFirst().allSatisfy { $0 == nil })
        }
    }
}
