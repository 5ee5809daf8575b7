import Foundation
import PrefetchModel
import Testing

@testable import CacheStorage

/// The SQL conditions agree with the Swift ones.
@Suite(.timeLimit(.minutes(15)))
struct ListSelectionTests {
    private let folder: TemporaryFolder
    private let cache: OpenCache

    init() throws {
        folder = try TemporaryFolder()
        cache = try #require(try OpenCache.open(path: folder.path + "/cache", waiting: .aMoment))
    }

    private var database: String { folder.path + "/cache/prefetch.sqlite" }

    /// The keys of the rows and of the items, which must be equal.
    private func keys(_ selection: ListSelection) throws -> [String] {
        let catalog = try CacheCatalog(directory: cache.directory)
        var keys: [String] = []
        try catalog.forEachRow(of: selection) {
            keys.append(String(decoding: $0.key, as: UTF8.self))
        }
        var items: [String] = []
        try catalog.forEachItem(of: selection) { items.append($0.resource.key) }
        #expect(keys == items)
        return keys
    }

    @Test func selectsHostsByName() throws {
        let origins = [
            "http://example.com", "https://example.com", "http://example.com:8080",
            "https://example.com:8080", "https://example.com:80", "http://example.com.org",
            "http://sub.example.com", "http://[::1]", "http://[::1]:8080", "https://[::1:8080]",
            "http://example", "http://%", "http://_", "http://example.com:x", "http://*",
        ]
        for (index, origin) in origins.enumerated() {
            try store([Sample.row(key: origin, bytes: [UInt8(index)])], in: cache)
        }
        try runSQL("UPDATE resource SET host = key", database)
        let texts =
            origins + [
                "example.com", "example.com:8080", "EXAMPLE.com", "example", "[::1]", "[::1]:8080",
                "[", "[:", "[::1", "::1", "%", "_", "*", "?", "", "http://", "example.com:",
                "example.com:x", "'; DROP TABLE resource; --",
            ]
        for text in texts {
            var selection = ListSelection()
            selection.hosts = [HostName(text)]
            let expected = origins.filter { HostName(text).matches(origin: $0) }
            #expect(try keys(selection) == expected.sorted(), "\(text)")
        }
        var several = ListSelection()
        several.hosts = ["[::1]", "_"].map { HostName($0) }
        #expect(try keys(several) == ["http://[::1]", "http://[::1]:8080", "http://_"])
    }

    /// Compares all filters and orders with Swift implementations, over random rows.
    @Test func filtersAndSortsLikeSwift() throws {
        struct Row {
            let key: String
            let bytes, fetchedAt, validatedAt, expiresAt: Int
            let format: ImageFormat
        }
        var state: UInt64 = 20_261_123
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        let formats: [ImageFormat] = [.jpeg, .png, .webp]
        let rows = (0..<300).map { number in
            Row(
                key: "http://a/\(random(1000))-\(number)", bytes: random(20), fetchedAt: random(20),
                validatedAt: random(20), expiresAt: random(20), format: formats[random(3)])
        }
        try store(
            rows.enumerated().map {
                Sample.row(key: $1.key, bytes: [UInt8($0 & 255), UInt8($0 >> 8)])
            }, in: cache)
        let updates = rows.map { row in
            """
            UPDATE resource SET fetched_at = \(row.fetchedAt), validated_at = \(row.validatedAt),
                expires_at = \(row.expiresAt) WHERE key = '\(row.key)';
            UPDATE variant SET bytes = \(row.bytes), format = '\(row.format.rawValue)' WHERE resource_id =
                (SELECT id FROM resource WHERE key = '\(row.key)');
            """
        }
        try runSQL(updates.joined(separator: "\n"), database)
        for _ in 0..<200 {
            var selection = ListSelection()
            var expected = rows
            if random(3) == 0 {
                selection.formats = [formats[random(3)], .gif]
                expected = expected.filter { selection.formats.contains($0.format) }
            }
            if random(3) == 0 {
                let bound = random(20)
                selection.minimumBytes = ByteCount(bound)
                expected = expected.filter { $0.bytes >= bound }
            }
            if random(3) == 0 {
                let bound = random(20)
                selection.maximumBytes = ByteCount(bound)
                expected = expected.filter { $0.bytes <= bound }
            }
            if random(3) == 0 {
                let bound = random(20)
                selection.fetchedBefore = Timestamp(milliseconds: Int64(bound))
                expected = expected.filter { $0.fetchedAt < bound }
            }
            if random(3) == 0 {
                let bound = random(20)
                selection.fetchedAfter = Timestamp(milliseconds: Int64(bound))
                expected = expected.filter { $0.fetchedAt > bound }
            }
            if random(2) == 0 {
                let (validation, expiry, isFresh) = (random(20), random(20), random(2) == 0)
                selection.freshness.append(
                    ListSelection.FreshnessTest(
                        latestValidation: Timestamp(milliseconds: Int64(validation)),
                        latestExpired: Timestamp(milliseconds: Int64(expiry)), isFresh: isFresh))
                expected = expected.filter {
                    ($0.validatedAt <= validation && $0.expiresAt > expiry) == isFresh
                }
            }
            selection.order = ListSelection.Order.allCases[random(5)]
            selection.isReversed = random(2) == 0
            func isBefore(_ left: Row, _ right: Row) -> Bool {
                let (first, second) =
                    switch selection.order {
                    case .key, .host: (0, 0)
                    case .bytes: (right.bytes, left.bytes)
                    case .age: (left.fetchedAt, right.fetchedAt)
                    case .expiry: (left.expiresAt, right.expiresAt)
                    }
                return (first, left.key) < (second, right.key)
            }
            expected.sort(by: isBefore)
            if selection.isReversed { expected.reverse() }
            if random(2) == 0 {
                selection.limit = 1 + random(30)
                expected = Array(expected.prefix(selection.limit ?? 0))
            }
            #expect(try keys(selection) == expected.map(\.key), "\(selection)")
        }
    }

    @Test func rowsEqualItems() throws {
        let bytes = Array("same".utf8)
        try store(
            [
                Sample.row(key: "http://b/ü\u{1}", bytes: bytes),
                Sample.row(key: "http://a/1", bytes: bytes, recipe: Recipe(quality: 50)),
                Sample.row(key: "http://a/1", bytes: bytes, recipe: Recipe(quality: 60)),
            ], in: cache)
        try runSQL(
            """
            INSERT INTO variant_name (id, name, recipe) VALUES (7, 'web', 'r');
            UPDATE variant SET name = 7 WHERE recipe LIKE '%50%';
            UPDATE variant SET name = 8 WHERE recipe LIKE '%60%';
            """, database)
        let catalog = try CacheCatalog(directory: cache.directory)
        var items: [String] = []
        try catalog.forEachVariant {
            items.append(
                "\($0.resource.key) \($0.image.digest.bytes) \($0.image.format) "
                    + "\($0.image.size.bytes) \($0.name ?? "-") "
                    + "\($0.isSuperseded) \($0.validatedAt) \($0.expiresAt)")
        }
        var rows: [String] = []
        try catalog.forEachRow {
            rows.append(
                "\(String(decoding: $0.key, as: UTF8.self)) \(Array($0.digest)) \($0.format) "
                    + "\($0.sizeInBytes) \($0.name ?? "-") \($0.isSuperseded) \($0.validatedAt) "
                    + "\($0.expiresAt)")
        }
        #expect(rows == items && rows.count == 3)
        #expect(rows.map { $0.contains(" web ") } == [true, false, false], "\(rows)")
    }

    /// An error thrown by the caller ends the listing and is rethrown unchanged.
    @Test func callersErrorEndsTheListing() throws {
        struct Enough: Error {}
        try store((0..<3).map { Sample.row(key: "http://a/\($0)", bytes: [$0]) }, in: cache)
        let catalog = try CacheCatalog(directory: cache.directory)
        var seen = 0
        #expect(throws: Enough.self) {
            try catalog.forEachRow { _ in
                seen += 1
                if seen == 2 { throw Enough() }
            }
        }
        #expect(seen == 2)
        #expect(try keys(ListSelection()).count == 3)
    }
}
