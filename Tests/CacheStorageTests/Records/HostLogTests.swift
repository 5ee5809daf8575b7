import Foundation
import PrefetchModel
import Testing

@testable import CacheStorage

@Suite(.timeLimit(.minutes(15)))
struct HostLogTests {
    private let folder: TemporaryFolder
    private let cache: OpenCache
    private static let now = Timestamp(seconds: 1_795_219_200)
    private static let week = Duration.seconds(7 * 86400)

    init() throws {
        folder = try TemporaryFolder()
        cache = try #require(try OpenCache.open(path: folder.path + "/cache", waiting: .aMoment))
    }

    private func all(at now: Timestamp = now) throws -> [HostState] {
        try cache.hosts.all(at: now).sorted { $0.host < $1.host }
    }

    private func later(_ seconds: Int64) -> Timestamp {
        HostLogTests.now.advanced(by: .seconds(seconds))
    }

    private func sql(_ text: String) throws {
        try runSQL(text, folder.path + "/cache/prefetch.sqlite")
    }

    @Test func returnsSavedHosts() throws {
        let states = [
            HostState(host: "http://a", concurrency: 1, updatedAt: Self.now),
            HostState(host: "http://b:81", failuresInARow: 12, updatedAt: later(-5)),
            HostState(host: "http://c", coolingUntil: later(300), updatedAt: Self.now),
            HostState(
                host: "https://d'\"; DROP TABLE host", concurrency: 3, failuresInARow: 2,
                coolingUntil: Self.now.advanced(by: Self.week), updatedAt: Self.now),
        ]
        try cache.hosts.save(states)
        #expect(try all() == states)
        try cache.hosts.save([])
        #expect(try all() == states)
    }

    @Test func removesHostsBackToNormal() throws {
        try cache.hosts.save(
            ["a", "b", "c", "d"].map {
                HostState(host: "http://\($0)", concurrency: 2, updatedAt: Self.now)
            })
        try cache.hosts.save([
            HostState(host: "http://a", updatedAt: later(1)),
            HostState(host: "http://b", concurrency: 5, updatedAt: later(1)),
            // A pause that ended before the row's time has no effect.
            HostState(host: "http://c", coolingUntil: later(1), updatedAt: later(1)),
            HostState(host: "http://new", updatedAt: later(1)),
        ])
        #expect(
            try all() == [
                HostState(host: "http://b", concurrency: 5, updatedAt: later(1)),
                HostState(host: "http://d", concurrency: 2, updatedAt: Self.now),
            ])
        let database = folder.path + "/cache/prefetch.sqlite"
        #expect(try queried("SELECT count(*) FROM host", database) == "2")
    }

    @Test func cutsLongPauses() throws {
        for until in [Self.now.advanced(by: Self.week + .milliseconds(1)), .distantFuture] {
            let state = HostState(host: "http://a", coolingUntil: until, updatedAt: Self.now)
            try cache.hosts.save([state])
            #expect(try all().map(\.coolingUntil) == [Self.now.advanced(by: Self.week)])
        }
    }

    @Test func skipsDamagedRows() throws {
        try cache.hosts.save([HostState(host: "http://a", concurrency: 1, updatedAt: Self.now)])
        let time = Self.now.milliseconds
        try sql(
            """
            INSERT INTO host (host, concurrency, failures_in_a_row, cooling_until, updated_at) VALUES ('http://b', 0, 1, NULL, \(time)),
                ('http://c', -1, 1, NULL, \(time)), ('http://d', 1, -1, NULL, \(time)),
                ('', 1, 1, NULL, \(time)), ('http://e', NULL, 0, NULL, \(time));
            """)
        #expect(try all().map(\.host) == ["http://a"])
    }

    @Test func ignoresImpossibleTimes() throws {
        let time = Self.now.milliseconds
        let step = Timestamp.toleratedClockStep.wholeMilliseconds
        let week = Self.week.wholeMilliseconds
        try sql(
            """
            INSERT INTO host (host, concurrency, failures_in_a_row, cooling_until, updated_at) VALUES ('http://a', 1, 0, NULL, \(time + step)),
                ('http://b', 1, 0, NULL, \(time + step + 1)),
                ('http://c', 1, 0, NULL, \(Int64.max)),
                ('http://d', NULL, 0, \(time + week), \(time)),
                ('http://e', NULL, 0, \(time + week + 1), \(time)),
                ('http://f', NULL, 4, \(Int64.max), \(time)),
                ('http://g', 1, 0, \(Int64.min), \(Int64.min));
            """)
        let states = try all()
        #expect(states.map(\.host) == ["http://a", "http://d", "http://f", "http://g"])
        #expect(states[1].coolingUntil == Self.now.advanced(by: Self.week))
        #expect(states[2].coolingUntil == nil)
        #expect(states[2].failuresInARow == 4)
    }

    /// Every number of a row, as a damaged database or another cache may hold it.
    @Test(arguments: [
        "concurrency", "failures_in_a_row", "cooling_until", "updated_at", "interval_us",
        "latency_us",
    ])
    func boundsEveryNumber(column: String) throws {
        let time = Self.now.milliseconds
        let values: [Int64] = [
            .min, -1, 0, 1, 10_000_000, 10_000_001, 86_400_000_000, 86_400_000_001,
            1_000_000_000_000_000, 1 << 53, .max - 1, .max,
        ]
        for value in values {
            try sql(
                """
                INSERT OR REPLACE INTO host VALUES
                    ('http://a', 2, 1, \(time + 1000), \(time), 1000, 1000, 'refusals');
                UPDATE host SET \(column) = \(value);
                """)
            for state in try all() {
                #expect((1...65_535).contains(state.concurrency ?? 1), "\(value)")
                #expect((0...65_535).contains(state.failuresInARow), "\(value)")
                #expect(state.interval ?? .seconds(1) > .zero, "\(value)")
                #expect(state.interval ?? .zero <= .seconds(10), "\(value)")
                #expect(state.latency ?? .zero <= .seconds(86_400), "\(value)")
                #expect(state.coolingUntil ?? Self.now <= later(7 * 86_400 + 3900), "\(value)")
            }
            let isPace = ["interval_us", "latency_us"].contains(column)
            #expect(
                try cache.hosts.longWaits(at: Self.now).map(\.host)
                    == (isPace && value > 86_400_000_000
                        || column == "cooling_until" && value > time + 86_400_000
                        ? ["http://a"] : []),
                "\(value)")
        }
    }

    @Test func namesLongWaits() throws {
        try cache.hosts.save([
            HostState(host: "http://a", coolingUntil: later(86_401), updatedAt: Self.now),
            HostState(host: "http://b", coolingUntil: later(86_400), updatedAt: Self.now),
        ])
        let waits = try cache.hosts.longWaits(at: Self.now)
        #expect(waits.map(\.host) == ["http://a"])
        #expect(waits.map(\.pausedUntil) == [later(86_401)])
    }

    @Test func removesOldAndFutureHosts() throws {
        try cache.hosts.save(
            [("a", -101), ("b", -100), ("c", 0), ("d", 3900), ("e", 3901)].map {
                HostState(host: "http://\($0.0)", concurrency: 1, updatedAt: later($0.1))
            })
        try cache.hosts.forget(olderThan: .seconds(100), at: Self.now)
        #expect(try all(at: later(10_000)).map(\.host) == ["http://b", "http://c", "http://d"])
        try cache.hosts.forget(olderThan: .seconds(Int64.max), at: Self.now)
        #expect(try all(at: later(10_000)).count == 3)
    }

    // MARK: Names

    @Test(arguments: [
        ("http://example.com", ["example.com", "EXAMPLE.com", "http://example.com"]),
        (
            "https://example.com:8443",
            ["example.com", "EXAMPLE.com", "example.com:8443", "https://EXAMPLE.com:8443"]
        ),
        ("http://[::1]:8080", ["[::1]", "[::1]:8080", "http://[::1]:8080"]),
        ("http://[::1]", ["[::1]", "http://[::1]"]),
    ])
    func matchesUsersHostNames(origin: String, names: [String]) {
        let all = [
            "example.com", "EXAMPLE.com", "http://example.com", "example.com:8443",
            "https://EXAMPLE.com:8443", "https://example.com", "example.com:84", "example",
            "xample.com", "example.com.", "http://example", "[::1]", "[::1]:8080",
            "http://[::1]:8080", "http://[::1]", "[:", "[", "::1", "", "%", "example.com:",
        ]
        #expect(all.filter { HostName($0).matches(origin: origin) } == names)
    }

    @Test func removesNamedHostsAndReportsUnknownOnes() throws {
        let hosts = ["http://a", "https://a:444", "http://b", "http://a.b", "http://%"]
        try cache.hosts.save(
            hosts.map { HostState(host: $0, concurrency: 1, updatedAt: Self.now) })
        let names = ["A", "c", "http://b:80", "%"].map { HostName($0) }
        let result = try cache.hosts.removeAll(named: names)
        #expect(result.count == 3)
        #expect(result.unknown == [HostName("c"), HostName("http://b:80")])
        #expect(try all().map(\.host) == ["http://a.b", "http://b"])
        #expect(try cache.hosts.removeAll() == 2)
        #expect(try cache.hosts.removeAll() == 0)
    }

    // MARK: Listing

    @Test func listsEffectiveStatesWithFailures() throws {
        let time = Self.now.milliseconds
        let week = Self.week.wholeMilliseconds
        try cache.hosts.save([
            HostState(host: "http://b", concurrency: 1, updatedAt: Self.now),
            HostState(host: "http://d", coolingUntil: later(10), updatedAt: Self.now),
        ])
        try sql(
            """
            INSERT INTO host (host, concurrency, failures_in_a_row, cooling_until, updated_at) VALUES ('http://e', NULL, 0, \(time + 2 * week), \(time)),
                ('http://f', 0, 1, NULL, \(time)), ('http://g', 1, 1, NULL, \(Int64.max));
            INSERT INTO failure (key, url, host, reason, message, attempts, class, runs_in_a_row,
                first_failed_at, last_failed_at, blacklisted_until)
            SELECT 'k' || value, 'u', iif(value < 3, 'http://a', 'http://g'), 'dns', '', 1,
                'transient', 1, \(time), \(time) + value, iif(value % 2, 7, NULL)
            FROM json_each('[0, 1, 2, 3]');
            """)
        let catalog = try CacheCatalog(directory: cache.directory)
        func listed(at now: Timestamp) throws -> [String] {
            var lines: [String] = []
            try catalog.forEachHost(
                at: now,
                isBlacklisted: { until, failedAt in
                    #expect((until == nil) == (failedAt.milliseconds - time).isMultiple(of: 2))
                    return until == Timestamp(milliseconds: 7)
                },
                {
                    let state = $0.state == nil ? "-" : "known"
                    lines.append("\($0.name) \(state) \($0.failures) \($0.blacklisted)")
                })
            return lines
        }
        #expect(
            try listed(at: Self.now) == [
                "http://a - 3 1", "http://b known 0 0", "http://d known 0 0", "http://g - 1 1",
            ])
        // Its pause has ended.
        #expect(
            try listed(at: later(11)) == ["http://a - 3 1", "http://b known 0 0", "http://g - 1 1"])
        try sql("DELETE FROM host; DELETE FROM failure;")
        #expect(try listed(at: Self.now).isEmpty)
    }
}
