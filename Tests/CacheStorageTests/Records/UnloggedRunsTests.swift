import Foundation
import PrefetchModel
import Testing

@testable import CacheStorage

/// Runs that a full disk kept out of the table.
@Suite(.timeLimit(.minutes(15)))
struct UnloggedRunsTests {
    private let folder: TemporaryFolder
    private let cache: OpenCache
    private var path: String { folder.path + "/cache" }

    init() throws {
        folder = try TemporaryFolder()
        cache = try #require(
            try OpenCache.open(path: folder.path + "/cache", waiting: .aMoment))
    }

    private static func time(_ seconds: Int64) -> Timestamp {
        Timestamp(seconds: 1_800_000_000 + seconds)
    }

    private static func run(_ seconds: Int64, _ manifest: String = "m") -> UnloggedRuns.UnloggedRun
    {
        UnloggedRuns.UnloggedRun(
            startedAt: time(seconds), endedAt: time(seconds + 1), exitStatus: 2, manifest: manifest)
    }

    private var log: UnloggedRuns { UnloggedRuns(cache.directory) }

    private func runs() throws -> [CacheCatalog.LoggedRun] {
        try CacheCatalog(directory: CacheDirectory(path: path, access: .readOnly)).runs()
    }

    @Test func fileKeepsItsSizeAndTheLastRuns() throws {
        #expect(log.all.isEmpty)
        for second in 0..<100 as Range<Int64> {
            log.add(Self.run(second, "a list\nanother"))
            let size = try FileManager.default.attributesOfItem(atPath: path + "/unlogged")[.size]
            #expect(size as? Int == 4096)
        }
        let all = log.all
        #expect((20..<100).contains(all.count))
        #expect(all.last == Self.run(99, "a list\nanother"))
        #expect(
            all == Array((100 - Int64(all.count)..<100).map { Self.run($0, "a list\nanother") }))
        // Names that do not fit are cut.
        log.add(Self.run(100, String(repeating: "x", count: 10_000)))
        #expect(log.all.last?.manifest.count == 200)
        log.reserve()
        #expect(log.all.isEmpty)
    }

    @Test func aDamagedFileIsIgnored() throws {
        for text in ["", "1 2", "x y z m\n", String(repeating: "1 2 3 m\n", count: 9000)] {
            try Data(text.utf8).write(to: URL(filePath: path + "/unlogged"))
            #expect(log.all.allSatisfy { $0.manifest == "m" })
        }
    }

    /// One run has no row, and another lacks its end.
    @Test func runsAreShownAndThenMovedIntoTheTable() throws {
        let first = try cache.log.begin(manifests: ["m"], at: Self.time(10))
        try cache.log.end(first, at: Self.time(11), exitStatus: 0, counters: RunCounters())
        #expect(log.all.isEmpty)
        _ = try cache.log.begin(manifests: ["m"], at: Self.time(20))
        log.add(Self.run(20))
        log.add(Self.run(30, "n"))
        let expected: [CacheCatalog.LoggedRun.End] = [
            .ended(at: Self.time(31), exitStatus: 2), .ended(at: Self.time(21), exitStatus: 2),
            .ended(at: Self.time(11), exitStatus: 0),
        ]
        #expect(try runs().map(\.ending) == expected)
        #expect(try runs().map(\.manifest) == ["n", "m", "m"])
        let last = try cache.log.begin(manifests: ["m"], at: Self.time(40))
        try cache.log.end(last, at: Self.time(41), exitStatus: 0, counters: RunCounters())
        #expect(log.all.isEmpty)
        #expect(try runs().dropFirst().map(\.ending) == expected)
        #expect(try runs().map(\.startedAt) == [40, 30, 20, 10].map(Self.time))
    }
}
