import CacheStorage
import Foundation
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(5)))
struct CacheStorageTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/cache" }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func opened() throws -> OpenCache {
        try #require(try OpenCache.open(path: path, waiting: .none))
    }

    /// Stores rows as a run does and waits for their commit.
    private func store(_ rows: [(row: ImageRow, bytes: [UInt8])], in cache: OpenCache) throws {
        let writer = MetadataWriter(
            database: cache.database, content: cache.content,
            configuration: MetadataWriter.Configuration())
        for (index, item) in rows.enumerated() {
            try item.bytes.withUnsafeBytes {
                try cache.content.store($0, as: item.row.image, originURL: item.row.url)
            }
            writer.enqueue(item.row, token: index)
        }
        writer.finish()
        var committed: [Int] = []
        try writer.run { committed += $0 }
        #expect(committed == Array(rows.indices))
    }

    private func contentFiles() throws -> [String] {
        let content = URL(fileURLWithPath: path + "/content")
        return try FileManager.default.subpathsOfDirectory(atPath: content.path)
            .filter { $0.contains(".") }.sorted()
    }

    // MARK: Layout

    @Test func makesAPrivateFolderThatIsTaggedAsACache() throws {
        let cache = try opened()
        try store([Sample.row(key: "http://a/1", bytes: [1])], in: cache)
        let tag = try String(contentsOfFile: path + "/CACHEDIR.TAG", encoding: .utf8)
        #expect(tag.hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
        for name in ["", "/content", "/tmp"] {
            #expect(try mode(path + name) == 0o700, "\(name)")
        }
        for name in ["/prefetch.sqlite", "/prefetch.sqlite-wal", "/lock", "/CACHEDIR.TAG"] {
            #expect(try mode(path + name) == 0o600, "\(name)")
        }
        for file in try contentFiles() { #expect(try mode("\(path)/content/\(file)") == 0o600) }
    }

    private func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? Int)
    }

    @Test func refusesAFolderThatHoldsSomethingElse() throws {
        try FileManager.default.createDirectory(
            atPath: path + "/content", withIntermediateDirectories: true)
        try Data("precious".utf8).write(to: URL(fileURLWithPath: path + "/content/thesis.txt"))
        #expect(throws: StorageError.self) { try OpenCache.open(path: path, waiting: .none) }
        #expect(FileManager.default.fileExists(atPath: path + "/content/thesis.txt"))
        #expect(!FileManager.default.fileExists(atPath: path + "/prefetch.sqlite"))
    }

    @Test(arguments: ["content", "tmp", "prefetch.sqlite", "lock"])
    func refusesSymbolicLinksInsideTheFolder(name: String) throws {
        do { _ = try opened() }
        let target = folder.path + "/elsewhere"
        try FileManager.default.moveItem(atPath: "\(path)/\(name)", toPath: target)
        try FileManager.default.createSymbolicLink(
            atPath: "\(path)/\(name)", withDestinationPath: target)
        #expect(throws: StorageError.self) { try OpenCache.open(path: path, waiting: .none) }
    }

    @Test func refusesAFolderThatEverybodyCanWrite() throws {
        do { _ = try opened() }
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: path)
        let error = #expect(throws: StorageError.self) {
            try OpenCache.open(path: path, waiting: .none)
        }
        #expect(error?.hint?.contains("chmod") == true)
    }

    @Test func oneRunHoldsTheCacheAtATime() throws {
        let first = try opened()
        #expect(try OpenCache.open(path: path, waiting: .none) == nil)
        #expect(try OpenCache.open(path: path, waiting: .upTo(.milliseconds(100))) == nil)
        withExtendedLifetime(first) {}
    }

    // MARK: Databases that are not ours

    @Test func refusesADatabaseOfAnotherProgramAndLeavesItAlone() throws {
        do { _ = try opened() }
        for name in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: path + "/prefetch.sqlite" + name)
        }
        try runSQL("CREATE TABLE theirs (x); PRAGMA user_version = 7", path + "/prefetch.sqlite")
        let before = try Data(contentsOf: URL(fileURLWithPath: path + "/prefetch.sqlite"))
        let error = #expect(throws: StorageError.self) {
            try OpenCache.open(path: path, waiting: .none)
        }
        #expect(error?.message.contains("another program") == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + "/prefetch.sqlite")) == before)
    }

    @Test func refusesANewerSchema() throws {
        do { _ = try opened() }
        try runSQL(
            "INSERT INTO grdb_migrations VALUES ('from the future')", path + "/prefetch.sqlite")
        let error = #expect(throws: StorageError.self) {
            try OpenCache.open(path: path, waiting: .none)
        }
        #expect(error?.message.contains("newer") == true)
    }

    @Test func saysThatADatabaseIsDamaged() throws {
        do { _ = try opened() }
        try Data(repeating: 0x41, count: 8192)
            .write(to: URL(fileURLWithPath: path + "/prefetch.sqlite"))
        let error = #expect(throws: StorageError.self) {
            try OpenCache.open(path: path, waiting: .none)
        }
        #expect(error?.hint?.contains("damaged") == true)
    }

    private func runSQL(_ sql: String, _ database: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "python3", "-c",
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()",
            database, sql,
        ]
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }

    // MARK: Rows and files

    @Test func storesAndFindsVariantsByKeyAndRecipe() throws {
        let cache = try opened()
        let sample = Sample.row(key: "http://a/1", bytes: Array("one".utf8), expiresAt: 5000)
        try store([sample], in: cache)
        let index = try CacheIndex(cache.database, recipe: sample.row.recipe)
        let hasher = SHA256Hasher()
        let record = try #require(index[KeyFingerprint("http://a/1", hasher: hasher)])
        #expect(record.image == sample.row.image)
        #expect(record.isFresh(at: Timestamp(milliseconds: 4999)))
        #expect(!record.isFresh(at: Timestamp(milliseconds: 5000)))
        #expect(index[KeyFingerprint("http://a/2", hasher: hasher)] == nil)
        #expect(try CacheIndex(cache.database, recipe: Recipe(quality: 50)).count == 0)
        let catalog = try CacheCatalog(directory: cache.directory)
        #expect(try catalog.variants(of: "http://a/1").map(\.image) == [sample.row.image])
        let file = try #require(catalog.wholeFile(of: sample.row.image))
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == Data("one".utf8))
    }

    @Test func sharesOneFileAmongEqualImagesUntilTheLastRowGoes() throws {
        let cache = try opened()
        let bytes = Array("same".utf8)
        try store(
            [
                Sample.row(key: "http://a/1", bytes: bytes),
                Sample.row(key: "http://a/2", bytes: bytes),
            ], in: cache)
        #expect(try contentFiles().count == 1)
        try store([Sample.row(key: "http://a/1", bytes: [1])], in: cache)
        #expect(try contentFiles().count == 2)
        try store([Sample.row(key: "http://a/2", bytes: [2])], in: cache)
        let names = try contentFiles().map { String($0.split(separator: "/")[1].prefix(64)) }
        #expect(Set(names) == Set([[1], [2]].map { Sample.digest($0).description }))
    }

    @Test func keepsAFileWhoseRowIsOnItsWay() throws {
        let cache = try opened()
        let bytes = Array("pinned".utf8)
        let first = Sample.row(key: "http://a/1", bytes: bytes)
        try store([first], in: cache)
        // Another entry's row with the same image has its file in place and is not committed.
        try bytes.withUnsafeBytes {
            try cache.content.store($0, as: first.row.image, originURL: "http://a/2")
        }
        try store([Sample.row(key: "http://a/1", bytes: [9])], in: cache)
        #expect(try contentFiles().count == 2)
        cache.content.unpin(first.row.image.digest)
    }

    @Test func dropsVariantsOfOtherRecipesWhenTheBodyIsReplaced() throws {
        let cache = try opened()
        try store(
            [Sample.row(key: "http://a/1", bytes: [1], recipe: Recipe(quality: 50))], in: cache)
        try store([Sample.row(key: "http://a/1", bytes: [2])], in: cache)
        let items = try CacheCatalog(directory: cache.directory).variants(of: "http://a/1")
        #expect(items.map(\.recipe) == [Recipe().canonicalText])
        #expect(try contentFiles().count == 1)
    }

    @Test func replacesADamagedFileOfTheSameName() throws {
        let cache = try opened()
        let sample = Sample.row(key: "http://a/1", bytes: Array("whole".utf8))
        try store([sample], in: cache)
        let file = try #require(
            try CacheCatalog(directory: cache.directory).wholeFile(of: sample.row.image))
        try Data("wh".utf8).write(to: URL(fileURLWithPath: file))
        #expect(try CacheCatalog(directory: cache.directory).wholeFile(of: sample.row.image) == nil)
        try store([sample], in: cache)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == Data("whole".utf8))
    }

    @Test(arguments: MetadataWriter.Durability.allCases)
    func commitsEveryGroupUnderEachDurability(durability: MetadataWriter.Durability) throws {
        let cache = try opened()
        var configuration = MetadataWriter.Configuration()
        configuration.groupRows = 7
        configuration.durability = durability
        let writer = MetadataWriter(
            database: cache.database, content: cache.content, configuration: configuration)
        for number in 0..<100 {
            let (row, bytes) = Sample.row(key: "http://a/\(number)", bytes: [UInt8(number)])
            try bytes.withUnsafeBytes {
                try cache.content.store($0, as: row.image, originURL: row.url)
            }
            writer.enqueue(row, token: number)
        }
        writer.finish()
        var groups: [[Int]] = []
        try writer.run { groups.append($0) }
        #expect(groups.flatMap(\.self) == Array(0..<100))
        #expect(groups.allSatisfy { $0.count <= 7 })
        #expect(try CacheIndex(cache.database, recipe: Recipe()).count == 100)
    }

    // MARK: Strays

    @Test func collectsStraysAfterAnInterruptedRunOnly() throws {
        let cache = try opened()
        let sample = Sample.row(key: "http://a/1", bytes: [1])
        try store([sample], in: cache)
        let stray = Sample.row(key: "http://a/2", bytes: [2])
        try stray.bytes.withUnsafeBytes {
            try cache.content.store($0, as: stray.row.image, originURL: "http://a/2")
        }
        _ = FileManager.default.createFile(atPath: path + "/tmp/3", contents: Data([3]))
        #expect(try cache.log.lastRunMayHaveLeftStrays() == false)
        let run = try cache.log.begin(manifests: ["m"], at: Timestamp(milliseconds: 1))
        #expect(try cache.log.lastRunMayHaveLeftStrays())
        #expect(try cache.log.collectStrays(scansContent: false) == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path + "/tmp") == [])
        #expect(try cache.log.collectStrays(scansContent: true) == 1)
        #expect(try contentFiles().count == 1)
        try cache.log.end(
            run, at: Timestamp(milliseconds: 2), exitStatus: 0, counters: RunCounters())
        #expect(try cache.log.lastRunMayHaveLeftStrays() == false)
    }

    @Test func hashesAsTheStandardSays() {
        // FIPS 180-4's example "abc".
        #expect(
            Sample.digest(Array("abc".utf8)).description
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }
}

/// Rows without images behind them: the storage does not look into the bytes.
enum Sample {
    static func digest(_ bytes: [UInt8]) -> ContentDigest {
        bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
    }

    static func row(
        key: String, bytes: [UInt8], recipe: Recipe = Recipe(), expiresAt: Int64 = 1000
    ) -> (row: ImageRow, bytes: [UInt8]) {
        let image = StoredImage(
            digest: digest(bytes), format: .png, widthInPixels: 3, heightInPixels: 2,
            size: ByteCount(bytes.count))
        let row = ImageRow(
            key: key, url: key, finalURL: nil, host: "http://a", entityTag: "\"e\"",
            lastModified: nil, cacheControl: nil, vary: nil, date: nil,
            fetchedAt: Timestamp(milliseconds: 10), expiresAt: Timestamp(milliseconds: expiresAt),
            sourceSize: ByteCount(bytes.count), sourceFormat: .png, sourceDigest: digest(bytes),
            sourceWidthInPixels: 3, sourceHeightInPixels: 2, recipe: recipe, image: image)
        return (row, bytes)
    }
}

/// A folder of a test's own, removed with it.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "prefetch-tests-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700])
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}
