import CacheStorage
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct FullCacheTests {
    /// Three images of a block each; one more had no room.
    @Test func memoryHoldsWhateverHasChanged() throws {
        let folder = try TemporaryFolder()
        let cache = try #require(
            try OpenCache.open(path: folder.path + "/cache", waiting: .aMoment))
        try store((1...3).map { Sample.row(key: "http://a/\($0)", bytes: [$0]) }, in: cache)
        var listed = ResourceSet()
        for key in ["http://a/1", "http://a/2", "http://a/3"] {
            listed.insert(try #require(try Lookup(cache)([key], recipe: Recipe())[0]).resourceID)
        }
        let full = FullCache(needed: ByteCount(2 * 4096), probes: 4)
        func fitting(_ blocks: Int, _ listed: ResourceSet?) throws -> Int? {
            let found = try cache.fullness(within: ByteCount(blocks * 4096), listed: listed)
            #expect(found?.memory == full)
            return found?.fitting
        }
        #expect(try cache.fullness(within: ByteCount(4096), listed: listed) == nil)
        try cache.note(full)
        #expect(try fitting(2, listed) == 0 && fitting(3, listed) == 0 && fitting(4, listed) == 0)
        // A larger limit counts once an image fits, as do fewer images.
        #expect(try fitting(5, listed) == 1 && fitting(9, listed) == 3)
        // Unlisted images can be evicted, unless the lists are not whole.
        #expect(try fitting(3, ResourceSet()) == nil && fitting(3, nil) == 0)
        // Lost files leave a row of their resource behind, and nothing to evict.
        try runSQL(
            """
            DELETE FROM variant WHERE resource_id = 1;
            DELETE FROM freshness WHERE resource_id = 1
            """, folder.path + "/cache/prefetch.sqlite")
        var others = ResourceSet()
        for resource in Int64(2)...3 { others.insert(resource) }
        #expect(try fitting(4, others) == 1)
        try cache.note(nil)
        #expect(try cache.fullness(within: ByteCount(4096), listed: listed) == nil)
    }
}
