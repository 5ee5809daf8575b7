import CacheStorage
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct FullCacheTests {
    /// Three images of a block each; one more had no room.
    @Test func memoryHoldsWhileNothingHasChanged() throws {
        let folder = try TemporaryFolder()
        let cache = try #require(
            try OpenCache.open(path: folder.path + "/cache", waiting: .aMoment))
        try store((1...3).map { Sample.row(key: "http://a/\($0)", bytes: [$0]) }, in: cache)
        var listed = ResourceSet()
        for key in ["http://a/1", "http://a/2", "http://a/3"] {
            listed.insert(try #require(try Lookup(cache)([key], recipe: Recipe())[0]).resourceID)
        }
        func fullness(_ blocks: Int, _ listed: ResourceSet?) throws -> FullCache? {
            try cache.fullness(within: ByteCount(blocks * 4096), listed: listed)
        }
        #expect(try fullness(3, listed) == nil)
        let full = FullCache(needed: ByteCount(2 * 4096), probes: 4)
        try cache.note(full)
        #expect(try fullness(3, listed) == full)
        // A larger limit counts once the image fits, as do fewer images.
        #expect(try fullness(4, listed) == full && fullness(5, listed) == nil)
        // Unlisted images can be evicted, unless the lists are not whole.
        #expect(try fullness(3, ResourceSet()) == nil && fullness(3, nil) == full)
        try cache.note(nil)
        #expect(try fullness(3, listed) == nil)
    }
}
