import Foundation
import Hashing
import PrefetchModel
import Testing

@testable import CacheStorage

/// The files that a merge would take from caches that have rows alone, as after a pull.
@Suite(.timeLimit(.minutes(15)))
struct MergePlanTests {
    private static let now = Timestamp(milliseconds: 1_790_000_000_000)

    private let folder: TemporaryFolder
    private var other: String { folder.path + "/other" }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func bytes(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 100) }

    /// Makes a cache with an image of each key, validated at a time.
    private func make(
        _ path: String, _ images: [(key: String, number: UInt8)], validatedAt: Int64
    ) throws -> OpenCache {
        let cache = try #require(
            try OpenCache.openForRun(path: path, waiting: .aMoment, at: MergePlanTests.now))
        try store(
            images.map { Sample.row(key: "http://a/\($0.key)", bytes: bytes($0.number)) },
            in: cache)
        try cache.synchronize()
        try runSQL("UPDATE resource SET validated_at = \(validatedAt)", path + "/prefetch.sqlite")
        return cache
    }

    private func plan(
        _ cache: OpenCache, besides lost: [UInt8] = []
    ) throws -> Set<ContentDigest> {
        let files = try cache.filesToMerge(
            [other], besides: Set(lost.map { Sample.digest(bytes($0)) }), at: MergePlanTests.now)
        return Set(try files.next(after: nil, limit: 100).map(\.digest))
    }

    private func digests(_ numbers: [UInt8]) -> Set<ContentDigest> {
        Set(numbers.map { Sample.digest(bytes($0)) })
    }

    /// Rows of the other cache: 1, 2 and 3.
    private func makeOther(validatedAt: Int64) throws {
        _ = try make(other, [("1", 1), ("2", 2), ("3", 3)], validatedAt: validatedAt)
        try FileManager.default.removeItem(atPath: other + "/content")
    }

    @Test func aLosingRowHasNoFiles() throws {
        try makeOther(validatedAt: 10)
        let cache = try make(folder.path + "/cache", [("2", 7)], validatedAt: 20)
        #expect(try plan(cache) == digests([1, 3]))
        // The plan changes nothing.
        #expect(try cache.database.usage().files == 1)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/cache/tmp")
        #expect(names.isEmpty)
    }

    @Test func aRowWithoutItsFilesLoses() throws {
        try makeOther(validatedAt: 10)
        let cache = try make(folder.path + "/cache", [("2", 7)], validatedAt: 5)
        #expect(try plan(cache) == digests([1, 2, 3]))
        #expect(try plan(cache, besides: [2]) == digests([1, 3]))
    }

    /// The rows of the open cache may be in its log.
    @Test func equalRowsNameTheirFiles() throws {
        try makeOther(validatedAt: 10)
        let cache = try make(folder.path + "/cache", [("1", 1), ("2", 2)], validatedAt: 10)
        #expect(try plan(cache).isSuperset(of: digests([3])))
        #expect(try plan(cache).isSubset(of: digests([1, 2, 3])))
    }
}
