import CacheStorage
import Foundation
import Hashing
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct MetadataChangeTests {
    private let folder: TemporaryFolder
    private let cache: OpenCache

    init() throws {
        folder = try TemporaryFolder()
        cache = try #require(try OpenCache.open(path: folder.path + "/cache", waiting: .aMoment))
    }

    private func time(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: milliseconds) }

    private func resource(of key: String, recipe: Recipe = Recipe()) throws -> Int64 {
        try #require(try Lookup(cache)([key], recipe: recipe)[0]).resourceID
    }

    // MARK: Resources

    @Test func validationRenewsAllVariantsAndKeepsImages() throws {
        let bytes = Array("body".utf8)
        let original = Recipe(encoding: .original)
        try store(
            [
                Sample.row(key: "http://a/1", bytes: bytes),
                Sample.row(key: "http://a/1", bytes: bytes, recipe: original),
                Sample.row(key: "http://a/2", bytes: [2]),
            ], in: cache)
        let identifier = try resource(of: "http://a/1")
        let validation = ResourceValidation(
            location: ResourceLocation(
                url: "http://a/1", finalURL: "http://b/1", host: "http://a"),
            response: StoredResponse(
                entityTag: "\"new\"", cacheControl: "max-age=9", vary: "accept: x",
                date: time(70)),
            validatedAt: time(100), expiresAt: time(9100))
        _ = try commit(
            [
                .image(
                    ImageChange(
                        key: "http://a/1",
                        body: .kept(resource: identifier, validation, used: .main())))
            ], in: cache)
        let lookup = try Lookup(cache) { $0 == "accept: x" }
        for recipe in [Recipe(), original] {
            let record = try #require(try lookup(["http://a/1"], recipe: recipe)[0])
            #expect(record.validatedAt == time(100))
            #expect(record.expiresAt == time(9100))
            #expect(try lookup.reader.matchesVary(record))
        }
        #expect(try lookup(["http://a/2"])[0]?.expiresAt == time(1000))
        let copy = try #require(try lookup.reader.copies(of: [identifier])[0])
        #expect(copy.validation.response == validation.response)
        #expect(copy.validation.location.finalURL == "http://b/1")
        #expect(copy.validation.fetchedAt == time(10))
        #expect(copy.images.count == 2)
    }

    @Test func storesPermanentRedirectsUntilTheyEnd() throws {
        var sample = Sample.row(key: "http://a/1", bytes: [1])
        sample.row.changeValidation {
            $0.location.finalURL = "http://c/1"
            $0.location.permanent = PermanentTarget(url: "http://b/1", until: time(50))
        }
        try store([sample, Sample.row(key: "http://a/2", bytes: [2])], in: cache)
        let reader = try Lookup(cache).reader
        let identifiers = [try resource(of: "http://a/1"), try resource(of: "http://a/2")]
        func targets() throws -> [PermanentTarget?] {
            try reader.copies(of: identifiers).map { $0?.validation.location.permanent }
        }
        let first = PermanentTarget(url: "http://b/1", until: time(50))
        let second = PermanentTarget(url: "http://b/2", until: time(170))
        #expect(try targets() == [first, nil])
        #expect(
            try reader.copies(of: identifiers).map { $0?.validation.location.url } == [
                "http://a/1", "http://a/2",
            ])
        func validate(_ index: Int, _ permanent: PermanentTarget?) throws {
            let validation = ResourceValidation(
                location: ResourceLocation(
                    url: "http://a/\(index + 1)", finalURL: "http://c/1",
                    permanent: permanent, host: "http://a"),
                response: StoredResponse(), validatedAt: time(100), expiresAt: time(9100))
            _ = try commit(
                [
                    .image(
                        ImageChange(
                            key: "http://a/\(index + 1)",
                            body: .kept(
                                resource: identifiers[index], validation, used: .main())))
                ], in: cache)
        }
        try validate(1, second)
        #expect(try targets() == [first, second])
        try validate(0, nil)
        #expect(try targets() == [nil, second])
        // Another body of the same key, with and without a permanent redirect.
        try store([sample, Sample.row(key: "http://a/2", bytes: [3])], in: cache)
        #expect(try targets() == [first, nil])
    }

    /// Attributes are another image's if neither the bytes nor a URL of the line are the same.
    @Test(arguments: [
        ("http://m/7", "http://x/1", 2, true), ("http://m/8", "http://x/1", 2, true),
        ("http://x/1?sig=2", nil, 2, true), ("http://y/1", nil, 1, true),
        ("http://y/1", nil, 2, false), ("http://y/1", "http://y/2", 2, false),
    ])
    func attributesStayWithTheirImage(url: String, listed: String?, body: UInt8, stay: Bool) throws
    {
        func change(_ url: String, _ listed: String?, _ byte: UInt8) -> (ImageChange, [UInt8]) {
            var sample = Sample.row(key: "k", bytes: [byte])
            sample.row.changeValidation {
                $0.location = ResourceLocation(
                    url: url, listedURL: listed, finalURL: nil, host: "http://h")
            }
            return sample
        }
        var first = change("http://m/7", "http://x/1", 1)
        first.0.attributes = [try EntryAttribute(name: "note", value: [1])]
        try store([first], in: cache)
        try store([change(url, listed, body)], in: cache)
        let database = folder.path + "/cache/prefetch.sqlite"
        #expect(try queried("SELECT count(*) FROM attribute", database) == (stay ? "1" : "0"))
        let urls = try Lookup(cache).reader.urls(of: [try resource(of: "k")])
        #expect(urls == [StoredURLs(requested: url, listed: listed ?? url)])
    }

    @Test func findsAStoredImageByKey() throws {
        let sample = Sample.row(key: "http://a/é'\"", bytes: [1], expiresAt: 77)
        let original = Recipe(encoding: .original)
        let reader = try Lookup(cache).reader
        #expect(try reader.stored(key: "http://a/é'\"", recipe: Recipe()) == nil)
        try store([sample, Sample.row(key: "http://a/2", bytes: [2])], in: cache)
        for _ in 0..<2 {
            let found = try #require(try reader.stored(key: "http://a/é'\"", recipe: Recipe()))
            #expect(found.image == sample.row.image)
            #expect(found.expiresAt == time(77))
            #expect(try reader.stored(key: "http://a/é'\"", recipe: original) == nil)
            #expect(try reader.stored(key: "http://a/3", recipe: Recipe()) == nil)
        }
        _ = try commit([.lost(sample.row.image)], in: cache)
        #expect(try reader.stored(key: "http://a/é'\"", recipe: Recipe()) == nil)
    }

    @Test func derivedVariantIsAsFreshAsItsOriginal() throws {
        let original = Recipe(encoding: .original)
        try store(
            [Sample.row(key: "http://a/1", bytes: [1], recipe: original, expiresAt: 5000)],
            in: cache)
        let identifier = try resource(of: "http://a/1", recipe: original)
        let small = Sample.row(key: "http://a/1", bytes: [7]).row.image
        try [UInt8](arrayLiteral: 7).withUnsafeBytes {
            try cache.content.store($0, as: small, originURL: "http://a/1")
        }
        let change = ImageChange(
            key: "http://a/1", body: .kept(resource: identifier, nil, used: .main()),
            variants: [
                VariantChange(
                    RequestedVariant(name: .main, recipe: Recipe()), image: small,
                    createdAt: time(50))
            ])
        _ = try commit([.image(change)], in: cache)
        let lookup = try Lookup(cache)
        let record = try #require(try lookup(["http://a/1"])[0])
        #expect(record.expiresAt == time(5000))
        #expect(try lookup.reader.images(of: [identifier], recipe: Recipe()) == [small])
        #expect(try lookup(["http://a/1"], recipe: original)[0] != nil)
    }

    @Test func newBodyRemovesAllVariantsAndFreshness() throws {
        let original = Recipe(encoding: .original)
        try store(
            [
                Sample.row(key: "http://a/1", bytes: [1]),
                Sample.row(key: "http://a/1", bytes: [1], recipe: original),
                Sample.row(key: "http://a/1", bytes: [2], recipe: Recipe(quality: 7)),
            ], in: cache)
        let lookup = try Lookup(cache)
        #expect(try lookup(["http://a/1"]) == [nil])
        #expect(try lookup(["http://a/1"], recipe: original) == [nil])
        #expect(try lookup(["http://a/1"], recipe: Recipe(quality: 7))[0] != nil)
    }

    @Test func refusesADamagedOriginal() throws {
        let sample = Sample.row(key: "http://a/1", bytes: Array("whole".utf8))
        try store([sample], in: cache)
        let hasher = SHA256Hasher()
        func look() -> String {
            switch cache.directory.bytes(of: sample.row.image, hasher: hasher) {
            case .whole(let bytes): bytes == sample.bytes ? "whole" : "other bytes"
            case .damaged: "damaged"
            case .unreadable(let error): "\(error)"
            }
        }
        #expect(look() == "whole")
        let path = cache.directory.path(of: sample.row.image)
        for damage in ["hole!", "who", ""] {
            try Data(damage.utf8).write(to: URL(fileURLWithPath: path))
            #expect(look() == "damaged", "\(damage)")
        }
        try FileManager.default.removeItem(atPath: path)
        #expect(mkfifo(path, 0o600) == 0)
        #expect(look() == "damaged")
    }

    /// Another entry may store the same bytes while the damaged file has their name and size.
    @Test func rewritesADamagedFileWithoutARowMeanwhile() throws {
        let sample = Sample.row(key: "http://a/1", bytes: Array("whole".utf8))
        try store([sample], in: cache)
        let path = cache.directory.path(of: sample.row.image)
        try Data("hole!".utf8).write(to: URL(fileURLWithPath: path))
        _ = try commit([.lost(sample.row.image)], in: cache)
        #expect(try Lookup(cache)(["http://a/1"]) == [nil])
        #expect(!FileManager.default.fileExists(atPath: path))
        try Data("hole!".utf8).write(to: URL(fileURLWithPath: path))
        try store([sample], in: cache)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("whole".utf8))
    }

    // MARK: The log

    /// Like `prefetch list | less`.
    @Test func foreignReaderDelaysNoWriter() async throws {
        try store([Sample.row(key: "http://a/1", bytes: [1])], in: cache)
        let database = folder.path + "/cache/prefetch.sqlite"
        let holder = Process()
        holder.executableURL = URL(filePath: "/usr/bin/python3")
        holder.arguments = [
            "-I", "-S", "-c",
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute('BEGIN'); c.execute('SELECT * FROM resource').fetchall()
            print('reading', flush=True); sys.stdin.read()
            """, database,
        ]
        let (input, output) = (Pipe(), Pipe())
        holder.standardInput = input
        holder.standardOutput = output
        try holder.run()
        defer {
            try? input.fileHandleForWriting.close()
            holder.waitUntilExit()
        }
        #expect(!output.fileHandleForReading.availableData.isEmpty)
        let start = ContinuousClock.now
        try store([Sample.row(key: "http://a/1", bytes: [2])], in: cache)
        try cache.synchronize()
        // The connection's busy time-out is ten seconds and must not be waited for.
        #expect(.now - start < .seconds(5))
        // The reader keeps the log, but not the replaced file, which would become an orphan.
        #expect(try cache.log.removeOrphans(scansContent: true) == 0)
        let content = folder.path + "/cache/content"
        let files = try FileManager.default.subpathsOfDirectory(atPath: content).filter {
            $0.contains(".")
        }
        #expect(files.count == 1)
    }

    @Test func truncatesALongLog() throws {
        let log = folder.path + "/cache/prefetch.sqlite-wal"
        func size() throws -> Int {
            let attributes = try FileManager.default.attributesOfItem(atPath: log)
            return try #require(attributes[.size] as? Int)
        }
        var longest = 0
        for _ in 0..<400 {
            let run = try cache.log.begin(
                manifests: [String(repeating: "m", count: 9_000)], at: time(1))
            try cache.log.end(run, at: time(2), exitStatus: 0, counters: RunCounters())
            try cache.synchronizeLongLog()
            longest = max(longest, try size())
        }
        #expect(longest > 500_000)
        #expect(longest < 2_000_000)
    }

    // MARK: Attributes

    @Test func attributesLiveAsLongAsTheirResource() throws {
        var sample = Sample.row(key: "http://a/1", bytes: [1])
        sample.row.attributes = [
            try EntryAttribute(name: "a", value: [0, 10, 255]),
            try EntryAttribute(name: "b", value: []),
        ]
        try store([sample], in: cache)
        try store([Sample.row(key: "http://a/1", bytes: [2])], in: cache)
        let reader = try Lookup(cache).reader
        let identifier = try resource(of: "http://a/1")
        func has(_ attributes: [EntryAttribute]) throws -> Bool {
            try reader.haveAttributes([(identifier, attributes)]) == [true]
        }
        #expect(try has(sample.row.attributes))
        let other = try EntryAttribute(name: "a", value: [0, 10])
        #expect(try !has([other]))
        let change = ImageChange(
            key: "http://a/1", body: .kept(resource: identifier, nil, used: .main()),
            attributes: [other])
        _ = try commit([.image(change)], in: cache)
        #expect(
            try has([other, sample.row.attributes[1]]))
        try runSQL(
            "PRAGMA foreign_keys = ON; DELETE FROM resource", folder.path + "/cache/prefetch.sqlite"
        )
        #expect(try !has([other]))
    }

    // MARK: Failures

    private func failure(
        _ key: String, kind: FailureClass = .permanent, at milliseconds: Int64
    ) -> MetadataChange {
        .failure(
            FailureRecord(
                key: key, url: key, host: "http://a", reason: .httpStatus, httpStatus: 404,
                curlCode: nil, message: "HTTP 404", attempts: 1, kind: kind,
                failedAt: time(milliseconds)))
    }

    private func settled(_ run: Int64, blacklistedUntil: Timestamp?) throws {
        try cache.failures.settle(run: run) { record in
            (.permanent, record.streak.runsInARow + 1, blacklistedUntil, host: nil)
        }
    }

    @Test func failureCountsAfterItsRunHasEnded() throws {
        let reader = try Lookup(cache).reader
        #expect(try !reader.hasFailures())
        _ = try commit([failure("http://a/1", at: 5)], in: cache, run: 1)
        #expect(try reader.hasFailures())
        let noted = try #require(try reader.failures(ofKeys: ["http://a/1"])[0])
        #expect(noted.streak.runsInARow == 0)
        #expect(noted.blacklistedUntil == nil)
        // Another run's end does not affect this one.
        try settled(2, blacklistedUntil: time(99))
        #expect(try reader.failures(ofKeys: ["http://a/1"])[0]?.streak.runsInARow == 0)
        try settled(1, blacklistedUntil: time(99))
        for _ in 0..<2 {
            let counted = try #require(try reader.failures(ofKeys: ["http://a/1"])[0])
            #expect(counted.streak.runsInARow == 1)
            #expect(counted.blacklistedUntil == time(99))
            // Only once.
            try settled(1, blacklistedUntil: nil)
        }
        _ = try commit([failure("http://a/1", at: 8)], in: cache, run: 3)
        let again = try #require(try reader.failures(ofKeys: ["http://a/1"])[0])
        #expect(again.streak.attempts == 2)
        #expect(again.streak.firstFailedAt == time(5))
        #expect(again.streak.lastFailedAt == time(8))
        #expect(again.blacklistedUntil == time(99))
    }

    @Test func newURLOfAKeyResetsItsFailure() throws {
        _ = try commit([failure("logo", at: 5)], in: cache, run: 1)
        try settled(1, blacklistedUntil: time(99))
        var other = FailureRecord(
            key: "logo", url: "http://b/2", host: "http://b", reason: .httpStatus, httpStatus: 404,
            curlCode: nil, message: "", attempts: 1, kind: .permanent, failedAt: time(50))
        _ = try commit([.failure(other)], in: cache, run: 2)
        let reader = try Lookup(cache).reader
        let noted = try #require(try reader.failures(ofKeys: ["logo"])[0])
        #expect(noted.url == "http://b/2")
        #expect(noted.streak.runsInARow == 0 && noted.streak.attempts == 1)
        #expect(noted.blacklistedUntil == nil && noted.streak.firstFailedAt == time(50))
        try settled(2, blacklistedUntil: time(120))
        other.streak.lastFailedAt = time(60)
        _ = try commit([.failure(other)], in: cache, run: 3)
        let again = try #require(try reader.failures(ofKeys: ["logo"])[0])
        #expect(again.streak.runsInARow == 1 && again.streak.attempts == 2)
        #expect(again.blacklistedUntil == time(120))
    }

    @Test func unrelatedFailureKeepsThePreviousState() throws {
        _ = try commit([failure("http://a/1", at: 5)], in: cache, run: 1)
        try cache.failures.settle(run: 1) { _ in nil }
        let reader = try Lookup(cache).reader
        #expect(try reader.failures(ofKeys: ["http://a/1"])[0]?.streak.runsInARow == 0)
        try settled(1, blacklistedUntil: time(99))
        #expect(try reader.failures(ofKeys: ["http://a/1"])[0]?.blacklistedUntil == nil)
    }

    @Test func successRemovesTheFailure() throws {
        _ = try commit(
            [failure("http://a/1", at: 5), failure("http://a/2", at: 5), failure("x", at: 5)],
            in: cache)
        try store([Sample.row(key: "http://a/1", bytes: [1])], in: cache)
        let reader = try Lookup(cache).reader
        #expect(try reader.failures(ofKeys: ["http://a/1"])[0] == nil)
        #expect(try reader.failures(ofKeys: ["http://a/2"])[0] != nil)
        #expect(try cache.failures.remove(key: "http://a/2"))
        #expect(try !cache.failures.remove(key: "http://a/2"))
        #expect(try cache.failures.removeAll { $0.key != "x" } == 0)
        #expect(try cache.failures.removeAll() == 1)
        #expect(try !reader.hasFailures())
    }

    @Test func settlesManyFailuresInPieces() throws {
        let count = 21_000
        var configuration = MetadataWriter.WriterConfiguration()
        configuration.groupRows = count
        _ = try commit(
            (0..<count).map { failure("http://a/\($0)", at: 5) }, in: cache,
            configuration: configuration)
        try settled(1, blacklistedUntil: time(77))
        #expect(try cache.failures.removeAll { $0.blacklistedUntil == time(77) } == count)
    }
}
