import Foundation
import Hashing
import PrefetchModel
import Testing

@testable import CacheStorage

@Suite(.timeLimit(.minutes(15)))
struct PartialStoreTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/cache" }
    private static let now = Timestamp(seconds: 1_795_219_200)
    private static let tag = PartialValidator.entityTag("\"e\"")
    private static let week: Int64 = 7 * 86400

    init() throws {
        folder = try TemporaryFolder()
    }

    private func opened() throws -> OpenCache {
        try #require(try OpenCache.open(path: path, waiting: .aMoment))
    }

    /// A body slightly above the minimum size, or of another size.
    private func body(_ byte: UInt8 = 1, count: Int = 1 << 20 + 1) -> [UInt8] {
        [byte] + [UInt8](repeating: 0x55, count: count - 2) + [byte]
    }

    @discardableResult
    private func keep(
        _ bytes: [UInt8], key: String = "k", url: String = "http://a/1",
        validator: PartialValidator = tag, total: Int? = nil, at seconds: Int64 = 0,
        in store: PartialStore
    ) throws -> Bool {
        try bytes.withUnsafeBytes {
            try store.store(
                PartialBody(url: url, count: $0.count, validator: validator, total: total),
                key: key, bytes: $0, at: Self.now.advanced(by: .seconds(seconds)))
        }
    }

    /// Takes a part into a buffer of that size; nil without one.
    private func take(
        _ size: Int = 1 << 20 + 1, key: String = "k", url: String = "http://a/1",
        from store: PartialStore
    ) throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: size)
        return try bytes.withUnsafeMutableBytes { try store.take(key: key, url: url, into: $0) }
            ? bytes : nil
    }

    private func files() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path + "/tmp").sorted()
    }

    private func fileName(_ key: String) -> String {
        "\(SHA256Hasher().digest(of: key)).partial"
    }

    private func rows() throws -> Int {
        try #require(
            Int(try queried("SELECT count(*) FROM partial", path + "/prefetch.sqlite")))
    }

    // MARK: Keeping and taking

    @Test func sameURLTakesABodyOnce() throws {
        let cache = try opened()
        let bytes = body()
        #expect(try keep(bytes, total: 9_000_000, in: cache.partials))
        #expect(try files() == [fileName("k")])
        let attributes = try FileManager.default.attributesOfItem(
            atPath: "\(path)/tmp/\(fileName("k"))")
        #expect((attributes[.posixPermissions] as? Int ?? 0o777) & 0o077 == 0)
        // Other keys and URLs get nothing and do not remove it.
        let size = bytes.count
        #expect(try take(size, key: "other", from: cache.partials) == nil)
        #expect(try take(size, url: "http://a/2", from: cache.partials) == nil)
        #expect(try cache.partials.part(key: "k", url: "http://a/2") == nil)
        let part = try #require(try cache.partials.part(key: "k", url: "http://a/1"))
        #expect(part.count == size)
        #expect(part.validator == Self.tag)
        #expect(part.total == 9_000_000)
        #expect(try take(size, from: cache.partials) == bytes)
        #expect(try take(size, from: cache.partials) == nil)
        #expect(try cache.partials.part(key: "k", url: "http://a/1") == nil)
        #expect(try files() == [])
        #expect(try rows() == 0)
    }

    @Test(arguments: [tag, .lastModified("Sun, 06 Nov 1994 08:49:37 GMT")])
    func nextRunFindsIt(validator: PartialValidator) throws {
        try keep(body(), key: "k'\";é", validator: validator, in: try opened().partials)
        let cache = try opened()
        #expect(try cache.log.removeOrphans(scansContent: true) == 0)
        let part = try #require(try cache.partials.part(key: "k'\";é", url: "http://a/1"))
        #expect(part.validator == validator)
        #expect(part.total == nil)
        #expect(try take(key: "k'\";é", from: cache.partials) == body())
        #expect(try files() == [])
        #expect(try rows() == 0)
    }

    @Test func laterBodyReplacesTheFirst() throws {
        let cache = try opened()
        try keep(body(1), in: cache.partials)
        try keep(body(2, count: 1 << 20 + 9), url: "http://b/1", at: 1, in: cache.partials)
        #expect(try files() == [fileName("k")])
        #expect(try rows() == 1)
        #expect(try take(from: cache.partials) == nil)
        #expect(
            try take(1 << 20 + 9, url: "http://b/1", from: cache.partials)
                == body(2, count: 1 << 20 + 9))
    }

    @Test func onlyLargeUnfinishedBodiesAreKept() throws {
        let cache = try opened()
        #expect(try !keep(body(count: 1 << 20), in: cache.partials))
        #expect(try !keep(body(count: 2_000_000), total: 2_000_000, in: cache.partials))
        #expect(try !keep(body(count: 2_000_000), total: 1_999_999, in: cache.partials))
        #expect(try files() == [])
        #expect(try rows() == 0)
        #expect(try keep(body(count: 2_000_000), total: 2_000_001, in: cache.partials))
    }

    // MARK: Limits

    @Test func evictsTheOldestForANewOne() throws {
        let cache = try opened()
        let store = try PartialStore(
            directory: cache.directory, database: cache.database, capacity: .mebibytes(4))
        for (key, seconds) in [("b", 2), ("c", 3), ("a", 1)] as [(String, Int64)] {
            try keep(body(), key: key, at: seconds, in: store)
        }
        // Three fit, each with three extra bytes; another does not.
        #expect(try keep(body(count: 1 << 20 + 2), key: "d", at: 4, in: store))
        #expect(try files() == ["b", "c", "d"].map(fileName).sorted())
        #expect(try rows() == 3)
        #expect(try keep(body(count: 3 << 20), key: "e", at: 5, in: store))
        #expect(try files() == ["e"].map(fileName))
        // A part that exceeds the limit removes nothing.
        #expect(try !keep(body(count: 4 << 20 + 1), key: "f", at: 6, in: store))
        #expect(try keep(body(count: 4 << 20), key: "e", at: 6, in: store))
        #expect(try files() == ["e"].map(fileName))
        #expect(try rows() == 1)
    }

    @Test func replacedBodyFreesItsSpace() throws {
        let cache = try opened()
        let store = try PartialStore(
            directory: cache.directory, database: cache.database, capacity: .mebibytes(4))
        try keep(body(), key: "a", at: 1, in: store)
        try keep(body(count: 2 << 20), key: "b", at: 2, in: store)
        try keep(body(count: 5 << 19), key: "b", at: 3, in: store)
        #expect(try files() == ["a", "b"].map(fileName).sorted())
    }

    @Test func removesOldAndFutureBodies() throws {
        let cache = try opened()
        let ages: [(String, Int64)] = [
            ("a", -Self.week - 1), ("b", -Self.week), ("c", -Self.week + 1), ("d", 3900),
            ("e", 3901),
        ]
        for (key, age) in ages {
            try keep(body(), key: key, in: cache.partials)
            try runSQL(
                "UPDATE partial SET created_at = created_at + \(age * 1000) WHERE key = '\(key)'",
                path + "/prefetch.sqlite")
        }
        let store = try PartialStore(directory: cache.directory, database: cache.database)
        #expect(try rows() == 5)
        try store.removeAll(olderThan: PartialStore.longestAge, at: Self.now)
        #expect(try files() == ["c", "d"].map(fileName).sorted())
        #expect(try rows() == 2)
        try keep(body(), key: "new", at: 2, in: store)
        #expect(try files() == ["d", "new"].map(fileName).sorted())
        try store.removeAll(olderThan: .zero, at: Self.now.advanced(by: .seconds(4000)))
        #expect(try files() == [])
        #expect(try rows() == 0)
    }

    @Test func discardsCompletedBodies() throws {
        let cache = try opened()
        try keep(body(), in: cache.partials)
        try keep(body(), key: "other", in: cache.partials)
        try cache.partials.discard(key: "k")
        try cache.partials.discard(key: "never there")
        #expect(try files() == [fileName("other")])
        #expect(try rows() == 1)
        #expect(try cache.partials.part(key: "k", url: "http://a/1") == nil)
    }

    @Test func refusesABufferOfAnotherSize() throws {
        let cache = try opened()
        try keep(body(), in: cache.partials)
        #expect(try take(1 << 20, from: cache.partials) == nil)
        #expect(try rows() == 0)
    }

    // MARK: Damage

    @Test(arguments: ["cut", "grown", "changed", "gone", "link", "fifo", "folder"])
    func removesADamagedFile(damage: String) throws {
        let cache = try opened()
        try keep(body(), in: cache.partials)
        try self.damage(fileName("k"), damage)
        #expect(try take(from: cache.partials) == nil)
        #expect(try rows() == 0)
        // A folder was not created by the store.
        #expect(try files() == (damage == "folder" ? [fileName("k")] : []))
    }

    @Test(arguments: ["cut", "grown", "gone", "link", "fifo"])
    func nextRunRemovesRowsWithoutFiles(damage: String) throws {
        let cache = try opened()
        try keep(body(), in: cache.partials)
        try keep(body(), key: "whole", in: cache.partials)
        try self.damage(fileName("k"), damage)
        _ = try cache.log.removeOrphans(scansContent: false)
        #expect(try rows() == 1)
        #expect(try files() == [fileName("whole")])
        #expect(try cache.partials.part(key: "k", url: "http://a/1") == nil)
        #expect(try take(key: "whole", from: cache.partials) == body())
    }

    private func damage(_ name: String, _ kind: String) throws {
        let file = "\(path)/tmp/\(name)"
        let bytes = body()
        switch kind {
        case "cut": try Data(bytes.dropLast()).write(to: URL(fileURLWithPath: file))
        case "grown": try Data(bytes + [0]).write(to: URL(fileURLWithPath: file))
        case "changed":
            try Data(bytes.dropLast() + [9]).write(to: URL(fileURLWithPath: file))
        default:
            try FileManager.default.removeItem(atPath: file)
            switch kind {
            case "link":
                let other = folder.path + "/other"
                try Data(bytes).write(to: URL(fileURLWithPath: other))
                try FileManager.default.createSymbolicLink(
                    atPath: file, withDestinationPath: other)
            case "fifo": #expect(mkfifo(file, 0o600) == 0)
            case "folder":
                try FileManager.default.createDirectory(
                    atPath: file, withIntermediateDirectories: false)
            default: break
            }
        }
    }

    @Test func removesOrphansAndUnreadableRows() throws {
        let cache = try opened()
        try keep(body(), in: cache.partials)
        try keep(body(), key: "small", in: cache.partials)
        try keep(body(), key: "whole", in: cache.partials)
        try runSQL(
            """
            UPDATE partial SET bytes = 5 WHERE key = 'small';
            UPDATE partial SET total = bytes WHERE key = 'whole';
            """, path + "/prefetch.sqlite")
        for name in ["1", fileName("other"), fileName("k") + ".new", "k.partial"] {
            _ = FileManager.default.createFile(atPath: "\(path)/tmp/\(name)", contents: Data([3]))
        }
        _ = try cache.log.removeOrphans(scansContent: false)
        #expect(try files() == [fileName("k")])
        #expect(try rows() == 1)
    }

    @Test func failedWriteLeavesNothing() throws {
        let cache = try opened()
        // A planted link at the temporary path is neither followed nor written to.
        let target = folder.path + "/target"
        try FileManager.default.createSymbolicLink(
            atPath: "\(path)/tmp/\(fileName("k")).new", withDestinationPath: target)
        #expect(throws: StorageError.self) { try keep(body(), in: cache.partials) }
        #expect(!FileManager.default.fileExists(atPath: target))
        #expect(try rows() == 0)
        #expect(try take(from: cache.partials) == nil)
        _ = try cache.log.removeOrphans(scansContent: false)
        #expect(try files() == [])
        #expect(try keep(body(), in: cache.partials))
    }

    @Test func failedRowLeavesNoFile() throws {
        let cache = try opened()
        try runSQL(
            """
            CREATE TRIGGER refusal BEFORE INSERT ON partial
            BEGIN SELECT raise(ABORT, 'no'); END;
            """, path + "/prefetch.sqlite")
        #expect(throws: StorageError.self) { try keep(body(), in: cache.partials) }
        #expect(try files() == [])
        #expect(try take(from: cache.partials) == nil)
    }
}
