import CacheStorage
import Foundation
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct CacheCatalogTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/cache" }
    private var database: String { path + "/prefetch.sqlite" }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func opened() throws -> OpenCache {
        try #require(try OpenCache.open(path: path, waiting: .aMoment))
    }

    private func catalog(_ cache: OpenCache) throws -> CacheCatalog {
        try CacheCatalog(directory: cache.directory)
    }

    /// The listing in a compact form for assertions.
    private func listed(_ catalog: CacheCatalog) throws -> [String] {
        var lines: [String] = []
        try catalog.forEachItem(of: ListSelection()) { item in
            let attributes = item.attributes.map { "\($0.name)=\($0.value)" }
            lines.append(
                ([item.resource.key, item.recipe] + attributes).joined(separator: " "))
        }
        return lines
    }

    // MARK: Opening for a change

    @Test func openExistingCreatesNothing() throws {
        #expect(throws: StorageError.self) {
            try OpenCache.open(path: path, creates: false, waiting: .none)
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test(arguments: [[], ["CACHEDIR.TAG"]])
    func openExistingKeepsForeignFolders(names: [String]) throws {
        do { _ = try opened() }
        for name in try FileManager.default.contentsOfDirectory(atPath: path)
        where !names.contains(name) {
            try FileManager.default.removeItem(atPath: "\(path)/\(name)")
        }
        #expect(throws: StorageError.self) {
            try OpenCache.open(path: path, creates: false, waiting: .none)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: path) == names)
    }

    @Test func openExistingTakesTheLock() throws {
        let first = try opened()
        #expect(try OpenCache.open(path: path, creates: false, waiting: .none) == nil)
        withExtendedLifetime(first) {}
    }

    // MARK: Attributes

    @Test func attributesAreListedWithEachVariant() throws {
        let cache = try opened()
        let bytes = Array("same".utf8)
        try store(
            [
                Sample.row(key: "http://b/none", bytes: bytes),
                Sample.row(key: "http://a/two", bytes: bytes, recipe: Recipe(quality: 50)),
                Sample.row(key: "http://a/two", bytes: bytes, recipe: Recipe(quality: 60)),
                Sample.row(key: "http://c/one", bytes: bytes),
            ], in: cache)
        for (key, name, value) in [
            ("http://a/two", "z", [0, 10, 255]), ("http://a/two", "B", []),
            ("http://a/two", "é", [1]), ("http://c/one", "only", [2]),
        ] as [(String, String, [UInt8])] {
            let attribute = try EntryAttribute(name: name, value: value)
            #expect(try cache.attributes.set(attribute, key: key))
        }
        let (first, second) = (Recipe(quality: 50), Recipe(quality: 60))
        let usual = Recipe().canonicalText
        #expect(
            try listed(catalog(cache)) == [
                "http://a/two \(first.canonicalText) B=[] z=[0, 10, 255] é=[1]",
                "http://a/two \(second.canonicalText) B=[] z=[0, 10, 255] é=[1]",
                "http://b/none \(usual)",
                "http://c/one \(usual) only=[2]",
            ])
        var plain = 0
        try catalog(cache).forEachVariant { item in
            plain += 1
            #expect(item.attributes.isEmpty)
        }
        #expect(plain == 4)
    }

    /// The colour only fills the space of an image that is not loaded yet.
    @Test func seedGivesImagesWithoutTheirImpossibleColour() throws {
        let cache = try opened()
        try store([Sample.row(key: "http://a/1", bytes: [1])], in: cache)
        try runSQL("UPDATE resource SET thumbhash = x'0102030405', color = 1 << 24", database)
        let wanted = [(key: "http://a/1", recipes: [Recipe().canonicalText])]
        let copy = try #require(try catalog(cache).copies(of: wanted)[0])
        let placeholder = try #require(copy.source.placeholder)
        #expect(placeholder.thumbHash == [1, 2, 3, 4, 5] && placeholder.colour == nil)
    }

    @Test func attributesAreRemovedWithTheirResource() throws {
        let cache = try opened()
        try store(
            ["http://a/1", "http://a/2"].map { Sample.row(key: $0, bytes: [1]) }, in: cache)
        for key in ["http://a/1", "http://a/2"] {
            let attribute = try EntryAttribute(name: "n", value: [7])
            #expect(try cache.attributes.set(attribute, key: key))
        }
        let catalog = try catalog(cache)
        let resources = try ["http://a/1", "http://a/2"].map {
            try #require(try catalog.resource(of: $0))
        }
        try runSQL(
            "PRAGMA foreign_keys = ON; DELETE FROM resource WHERE key = 'http://a/1'", database)
        #expect(try catalog.attributes(of: resources[0]).isEmpty)
        #expect(try catalog.attribute("n", of: resources[0]) == nil)
        #expect(try catalog.attribute("n", of: resources[1]) == [7])
        #expect(try catalog.resource(of: "http://a/1") == nil)
    }

    @Test func replacedBodyKeepsAttributes() throws {
        let cache = try opened()
        try store([Sample.row(key: "http://a/1", bytes: [1])], in: cache)
        let attribute = try EntryAttribute(name: "n", value: [7])
        #expect(try cache.attributes.set(attribute, key: "http://a/1"))
        try store([Sample.row(key: "http://a/1", bytes: [2])], in: cache)
        #expect(try listed(catalog(cache)) == ["http://a/1 \(Recipe().canonicalText) n=[7]"])
    }

    @Test(arguments: [
        "'; DROP TABLE attribute; --", "\"", "`", "%", "_", "?1", ":key", "\\", "a;b", "*",
    ])
    func keysAndNamesAreBoundAsText(text: String) throws {
        let cache = try opened()
        try store(
            ["http://a/1", text].map { Sample.row(key: $0, bytes: [1]) }, in: cache)
        let attribute = try EntryAttribute(name: text, value: [7])
        #expect(try cache.attributes.set(attribute, key: text))
        #expect(try !cache.attributes.set(attribute, key: text + "'"))
        let catalog = try catalog(cache)
        let resource = try #require(try catalog.resource(of: text))
        #expect(try catalog.attributes(of: resource) == [attribute])
        let other = try #require(try catalog.resource(of: "http://a/1"))
        #expect(try catalog.attributes(of: other).isEmpty)
        #expect(try cache.attributes.remove(text + "'", key: text) == false)
        #expect(try cache.attributes.remove(text, key: text) == true)
        #expect(try catalog.attributes(of: resource).isEmpty)
        #expect(try cache.failures.remove(key: text) == false)
    }

    // MARK: Failures

    private func failure(
        _ key: String, _ reason: FailureReason = .httpStatus, host: String = "http://a"
    ) -> MetadataChange {
        .failure(
            FailureRecord(
                key: key, url: key, host: host, reason: reason, httpStatus: 404, curlCode: nil,
                message: "m", attempts: 2, kind: .permanent, failedAt: Timestamp(milliseconds: 5)))
    }

    private func failedKeys(_ cache: OpenCache) throws -> [String] {
        var keys: [String] = []
        try catalog(cache).forEachFailure { keys.append($0.key) }
        return keys
    }

    @Test func listsFailuresInKeyOrder() throws {
        let cache = try opened()
        _ = try commit(["c", "", "a", "é", "B"].map { failure($0) }, in: cache)
        #expect(try failedKeys(cache) == ["", "B", "a", "c", "é"])
    }

    @Test func callerCanEndTheListing() throws {
        struct Enough: Error {}
        let cache = try opened()
        _ = try commit((0..<9).map { failure("\($0)") }, in: cache)
        var count = 0
        #expect(throws: Enough.self) {
            try catalog(cache).forEachFailure { _ in
                count += 1
                if count == 3 { throw Enough() }
            }
        }
        #expect(count == 3)
    }

    @Test func removesSelectedFailures() throws {
        let cache = try opened()
        _ = try commit(
            [failure("a", .dns), failure("b", .tls), failure("c", .dns)], in: cache)
        #expect(try cache.failures.removeAll { $0.reason == .dns } == 2)
        #expect(try failedKeys(cache) == ["b"])
        #expect(try cache.failures.remove(key: "b"))
        #expect(try !cache.failures.remove(key: "b"))
    }

    /// The table is read in pieces of 10,000 rows, with writes in between.
    @Test func removesAndSettlesManyFailuresInPieces() throws {
        let cache = try opened()
        let numbers = 0..<25_001
        _ = try commit(numbers.map { failure($0 == 0 ? "" : "http://a/\($0)") }, in: cache, run: 3)
        var settled = 0
        try cache.failures.settle(run: 3) { _ in
            settled += 1
            return (.permanent, 1, Timestamp(milliseconds: 9), host: nil)
        }
        #expect(settled == numbers.count)
        var seen = 0
        let removed = try cache.failures.removeAll { record in
            seen += 1
            return record.key.hasSuffix("7")
        }
        #expect(seen == numbers.count && removed == 2500)
        let sums = try catalog(cache).statistics(
            isFresh: { _, _ in true }, isBlacklisted: { $0.blacklistedUntil != nil })
        let counts = sums.failures
        #expect(counts.failures + counts.exclusions == numbers.count - removed)
        #expect(counts.blacklisted == counts.failures)
        #expect(try cache.failures.removeAll() == numbers.count - removed)
        #expect(try failedKeys(cache) == [])
    }

    @Test func skipsUnreadableFailuresAndRemovesThemWithAll() throws {
        let cache = try opened()
        _ = try commit([failure("a"), failure("b")], in: cache)
        try runSQL("UPDATE failure SET reason = 'of another version' WHERE key = 'a'", database)
        #expect(try failedKeys(cache) == ["b"])
        #expect(try cache.failures.removeAll { _ in true } == 1)
        #expect(try cache.failures.removeAll() == 1)
    }

    @Test func countsStaleImagesByTheCallersRule() throws {
        let cache = try opened()
        try store(
            (1...5).map { Sample.row(key: "\($0)", bytes: [1], expiresAt: $0 * 100) }, in: cache)
        let sums = try catalog(cache).statistics(
            isFresh: { validatedAt, expiresAt in
                validatedAt == Timestamp(milliseconds: 10) && expiresAt.milliseconds > 200
            }, isBlacklisted: { _ in false })
        #expect(sums.resources == 5 && sums.expired == 2)
    }
}
