import PrefetchModel
import SQLite
import Testing

@testable import CacheStorage

/// Failures that are their host's.
@Suite(.timeLimit(.minutes(15)))
struct FailureLogTests {
    private let folder: TemporaryFolder
    private let cache: OpenCache
    private static let now = Timestamp(seconds: 1_800_000_000)

    init() throws {
        folder = try TemporaryFolder()
        cache = try #require(
            try OpenCache.open(path: folder.path + "/cache", waiting: .aMoment))
    }

    private static func failure(
        _ key: String, _ status: Int = 404, daysAgo: Int = 0, conditions: String? = nil
    ) -> FailureRecord {
        FailureRecord(
            key: key, url: key, host: "http://a", reason: .httpStatus, httpStatus: status,
            curlCode: nil, message: "", attempts: 1, kind: .permanent,
            failedAt: now.advanced(by: .seconds(-daysAgo * 86400)), conditions: conditions)
    }

    private func record(_ key: String) throws -> FailureRecord? {
        let reader = try CacheReader(cache.directory, varyTest: VaryTest { _ in true })
        return try reader.failures(ofKeys: [key])[0]
    }

    @Test func aProbeThatFailsKeepsItsRowAndItsTurn() throws {
        let later = Self.now.advanced(by: .seconds(86400))
        _ = try commit([.failure(Self.failure("http://a/1", daysAgo: 2))], in: cache)
        try cache.failures.settle(run: 1) { _ in (.permanent, 1, later, .fault) }
        #expect(try record("http://a/1")?.hostMark == .fault)
        _ = try commit([.failure(Self.failure("http://a/1", 500))], in: cache, run: 2)
        try cache.failures.settle(run: 2) { record in
            #expect(record.former?.hostMark == .fault)
            return nil
        }
        let row = try #require(try record("http://a/1"))
        #expect(row.httpStatus == 404)
        #expect(row.hostMark == .fault)
        #expect(row.blacklistedUntil == later)
        #expect(row.streak.lastFailedAt == Self.now)
    }

    /// Only blacklisted failures of stored images become their host's, and end with it.
    @Test func hostsAreBlamedForStoredImages() throws {
        try store([Sample.row(key: "http://a/1", bytes: [1])], in: cache)
        let later = Self.now.advanced(by: .seconds(3600))
        let keys = ["http://a/1", "http://a/2"]
        _ = try commit(
            keys.map { .failure(Self.failure($0, conditions: "max-redirects=9")) }, in: cache)
        try cache.failures.settle(run: 1) { _ in (.permanent, 2, later, nil) }
        #expect(try keys.map { try record($0)?.isStored } == [true, false])
        let end = Self.now.advanced(by: .seconds(86400))
        try cache.failures.settle(run: 2, isOfFault: { _ in end }) { _ in nil }
        #expect(try keys.map { try record($0)?.hostMark } == [.fault, nil])
        #expect(try keys.map { try record($0)?.blacklistedUntil } == [end, later])
        try cache.failures.settle(run: 3, isOver: { $0.hostMark == .fault }) { _ in nil }
        #expect(try record("http://a/1")?.blacklistedUntil == nil)
        #expect(try record("http://a/1")?.conditions == "max-redirects=9")
        #expect(try record("http://a/2")?.blacklistedUntil == later)
    }

    /// A known failure must not become new: it is blacklisted, its host is given up, or it
    /// continues in another way.
    @Test func pruningHistoryKeepsFailuresThatContinue() throws {
        let keys = ["old", "blacklisted", "refused", "down"].map { "http://\($0)/1" }
        var records = keys.map { Self.failure($0, daysAgo: 9) }
        records[3].host = "http://down"
        _ = try commit(records.map { .failure($0) }, in: cache)
        try cache.failures.settle(run: 1) { record in
            let end = Self.now.advanced(by: .seconds(-3600))
            return (.permanent, 1, record.key == keys[1] ? end : nil, nil)
        }
        _ = try commit([.harmlessFailure(Self.failure(keys[2], 403))], in: cache)
        #expect(try record(keys[2])?.httpStatus == 404)
        try cache.hosts.save([
            HostState(
                host: "http://down", concurrency: nil, failuresInARow: 3, coolingUntil: nil,
                updatedAt: Self.now)
        ])
        var rules = PruneRules()
        rules[.history] = 2 * 86_400_000
        let removal = ImageRemoval(cache, variant: nil, at: Self.now)
        _ = try CachePruning(rules, at: Self.now).run(removal) { _ in }
        #expect(removal.totals.failures == 1)
        #expect(try keys.map { try record($0) != nil } == [false, true, true, true])
    }

    /// By key, or by URL where the key is another text.
    @Test func countsTheListedImagesOfAHost() throws {
        let keys = ["http://a/1", "http://a/2", "http://a:81/1", "http://ab/1", "name"]
        try store(
            keys.enumerated().map { Sample.row(key: $1, bytes: [UInt8($0)]) }, in: cache)
        try cache.database.write("testing") {
            try $0.run("UPDATE resource SET url = 'http://a/3' WHERE key = 'name'")
        }
        var listed = ResourceSet()
        for resource in 1...5 as ClosedRange<Int64> { listed.insert(resource) }
        func count(_ host: String, _ limit: Int = 100) throws -> Int {
            try cache.listings.countStored(of: host, in: listed, upTo: limit)
        }
        #expect(try count("http://a") == 3)
        #expect(try count("http://a:81") == 1)
        #expect(try count("http://b") == 0)
        #expect(try count("http://a", 1) == 2)
        listed = ResourceSet()
        #expect(try count("http://a") == 0)
    }
}
