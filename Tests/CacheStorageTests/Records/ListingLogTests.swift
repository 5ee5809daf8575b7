import Foundation
import PrefetchModel
import SQLite
import SeededRandom
import Testing

@testable import CacheStorage

/// The log of the resources that runs have listed, and when.
@Suite(.timeLimit(.minutes(15)))
struct ListingLogTests {
    private static let hour = Int64(3_600_000)
    private static let day = 24 * hour
    /// A Wednesday, 10:00 UTC.
    private static let start = Timestamp(milliseconds: 20_000 * day + 10 * hour)

    private func withCache(_ body: (OpenCache) throws -> Void) throws {
        let folder = try TemporaryFolder()
        let cache = try #require(
            try OpenCache.open(path: folder.path + "/cache", waiting: .aMoment))
        try body(cache)
        try cache.close()
    }

    private func set(_ ids: some Sequence<Int64>) -> ResourceSet {
        var set = ResourceSet()
        for id in ids { set.insert(id) }
        return set
    }

    private func note(
        _ cache: OpenCache, _ ids: some Sequence<Int64>, at milliseconds: Int64
    ) throws {
        let time = Timestamp(milliseconds: milliseconds)
        try cache.listings.note(set(ids), startedAt: time, at: time)
    }

    private func lastListed(_ cache: OpenCache) throws -> LastListed {
        try cache.database.read("testing") { try LastListed.read(in: $0) }
    }

    /// A run without whole lists may have listed any resource, but later than all others only
    /// the resources that it knows of.
    @Test func partialListsListAllResources() throws {
        try withCache { cache in
            try cache.database.write("testing") { database in
                for id in Int64(1)...9 {
                    try database.execute(
                        """
                        INSERT INTO resource (id, key, url, host, fetched_at, validated_at,
                            expires_at, source_bytes, source_format, source_sha256, source_width,
                            source_height)
                        VALUES (\(id), 'k\(id)', 'http://a/\(id)', 'http://a', 0, 0, 0, 1, 'png',
                            zeroblob(32), 1, 1)
                        """)
                }
            }
            let now = ListingLogTests.start.milliseconds
            try note(cache, 1...9, at: now - 40 * ListingLogTests.day)
            let time = Timestamp(milliseconds: now)
            try cache.listings.note(set(1...4), isWhole: false, startedAt: time, at: time)
            let listed = try lastListed(cache)
            for id in Int64(1)...9 {
                let expected = id <= 4 ? now : now - 1
                #expect(listed.time(of: id) == Timestamp(milliseconds: expected), "\(id)")
            }
        }
    }

    /// Listings of a run with a clock ten years ahead get the time of the first run after it.
    @Test func correctsTimesFromTheFuture() throws {
        try withCache { cache in
            let now = ListingLogTests.start.milliseconds
            try note(cache, 1...9, at: now + 3650 * ListingLogTests.day)
            try note(cache, 5...6, at: now)
            try note(cache, 6...7, at: now + 40 * ListingLogTests.day)
            let listed = try lastListed(cache)
            #expect(listed.begin == Timestamp(milliseconds: now))
            #expect(listed.latest == Timestamp(milliseconds: now + 40 * ListingLogTests.day))
            for id in [1, 5, 9] as [Int64] {
                #expect(listed.time(of: id) == Timestamp(milliseconds: now), "\(id)")
            }
            #expect(listed.time(of: 7) == listed.latest)
        }
    }

    /// Random runs over two years, compared with a model that keeps all listings. A time is never
    /// too early, and late only by the error of merging; the table stays small.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func mergedTimesStayWithinTheirPeriod(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        try withCache { cache in
            var model: [Int64: Int64] = [:]
            var now = ListingLogTests.start.milliseconds
            for _ in 0..<400 {
                now += Int64.random(
                    in: 0..<[
                        ListingLogTests.hour / 2, ListingLogTests.day, 4 * ListingLogTests.day,
                    ]
                    .randomElement(using: &random)!, using: &random)
                let first = Int64.random(in: 1..<60_000, using: &random)
                let ids = first...(first + Int64.random(in: 0..<20_000, using: &random))
                try note(cache, ids, at: now)
                for id in ids { model[id] = now }
            }
            let listed = try lastListed(cache)
            for (id, time) in model {
                let age = now - time
                let found = listed.time(of: id)?.milliseconds
                if age < ListingLogTests.day {
                    let found = try #require(found)
                    #expect(found >= time && found - time < ListingLogTests.hour)
                } else if age < 30 * ListingLogTests.day {
                    let found = try #require(found)
                    #expect(found >= time && found - time < ListingLogTests.day)
                } else if age < 358 * ListingLogTests.day {
                    let found = try #require(found)
                    #expect(found >= time && found - time < 7 * ListingLogTests.day)
                } else if age > 366 * ListingLogTests.day {
                    #expect(found == nil)
                }
            }
            let rows = try cache.database.read("testing") { try ListingLog.rows(in: $0).count }
            #expect(rows <= 25 + 31 + 54)
        }
    }

    /// Runs over one list within an hour write their set once.
    @Test func writesAnEqualListOnce() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/cache"
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        for minute in Int64(0)..<5 {
            try note(cache, 1...1000, at: ListingLogTests.start.milliseconds + minute * 60_000)
        }
        try cache.close()
        let database = path + "/prefetch.sqlite"
        #expect(
            try queried("SELECT count(*) || ' ' || (last_at - first_at) FROM listing", database)
                == "1 240000")
    }

    /// Resources of a damaged set count as listed, so that a bad block evicts nothing.
    @Test func damagedSetMakesNothingUnlisted() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/cache"
        let later = ListingLogTests.start.milliseconds + 3 * ListingLogTests.day
        do {
            let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
            try note(cache, 1...10, at: ListingLogTests.start.milliseconds)
            try note(cache, 5...20, at: later)
            try cache.close()
        }
        try runSQL(
            "UPDATE listing SET resources = x'000102' WHERE last_at = \(later)",
            path + "/prefetch.sqlite")
        let again = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        let listed = try lastListed(again)
        #expect(listed.begin?.milliseconds == later)
        #expect(listed.time(of: 7)?.milliseconds == later)
        // It is not merged away either.
        try note(again, 1...2, at: later + 40 * ListingLogTests.day)
        #expect(try lastListed(again).time(of: 7)?.milliseconds == later)
        try again.close()
    }
}
