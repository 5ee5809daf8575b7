import CacheStorage
import Foundation
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct CacheStorageTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/cache" }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func opened() throws -> OpenCache {
        try #require(try OpenCache.open(path: path, waiting: .aMoment))
    }

    private func contentFiles() throws -> [String] {
        let content = URL(fileURLWithPath: path + "/content")
        return try FileManager.default.subpathsOfDirectory(atPath: content.path)
            .filter { $0.contains(".") }.sorted()
    }

    // MARK: Layout

    /// A restored cache may lack a small file.
    @Test func recognisesACacheWithoutTagByItsDatabase() throws {
        _ = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        let tag = path + "/CACHEDIR.TAG"
        try FileManager.default.removeItem(atPath: tag)
        _ = try CacheDirectory(path: path, access: .readOnly)
        #expect(!FileManager.default.fileExists(atPath: tag))
        _ = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        #expect(FileManager.default.fileExists(atPath: tag))
    }

    /// A process may be killed between creating and writing it.
    @Test func completesAnEmptyTag() throws {
        let tag = path + "/CACHEDIR.TAG"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        #expect(FileManager.default.createFile(atPath: tag, contents: nil))
        _ = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        let text = try String(contentsOfFile: tag, encoding: .utf8)
        #expect(text.hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
    }

    @Test func createsAPrivateTaggedFolder() throws {
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

    @Test func refusesANonEmptyFolder() throws {
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

    @Test(arguments: [
        "/proc/.cache/prefetch", "/sys/prefetch", "/dev/null/prefetch",
        "/tmp/" + String(repeating: "n", count: 300),
    ])
    func namesTheFlagWhereNoFolderCanBeMade(path: String) throws {
        let error = #expect(throws: StorageError.self) {
            try OpenCache.open(path: path, waiting: .none)
        }
        #expect(error?.hint?.contains("--cache-dir") == true, "\(error?.description ?? "")")
    }

    @Test func refusesAWorldWritableFolder() throws {
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

    @Test func refusesAndKeepsAnotherProgramsDatabase() throws {
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

    @Test func reportsADamagedDatabase() throws {
        do { _ = try opened() }
        try Data(repeating: 0x41, count: 8192)
            .write(to: URL(fileURLWithPath: path + "/prefetch.sqlite"))
        let error = #expect(throws: StorageError.self) {
            try OpenCache.open(path: path, waiting: .none)
        }
        #expect(error?.hint?.contains("damaged") == true)
    }

    // MARK: Rows and files

    @Test func storesAndFindsVariantsByKeyAndRecipe() throws {
        let cache = try opened()
        let sample = Sample.row(key: "http://a/1", bytes: Array("one".utf8), expiresAt: 5000)
        try store([sample], in: cache)
        let lookup = try Lookup(cache)
        let records = try lookup(["http://a/2", "http://a/1"])
        #expect(records[0] == nil)
        let record = try #require(records[1])
        #expect(record.validatedAt == Timestamp(milliseconds: 10))
        #expect(record.expiresAt == Timestamp(milliseconds: 5000))
        #expect(
            try lookup.reader.images(of: [record.resourceID], recipe: sample.row.recipe)
                == [sample.row.image])
        #expect(try lookup(["http://a/1"], recipe: Recipe(quality: 50)) == [nil])
        let catalog = try CacheCatalog(directory: cache.directory)
        #expect(try catalog.variants(of: "http://a/1").map(\.image) == [sample.row.image])
        let file = try #require(catalog.wholeFile(of: sample.row.image))
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == Data("one".utf8))
    }

    @Test func equalImagesShareAFileUntilTheLastRowIsRemoved() throws {
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

    @Test func keepsAFileWithAPendingRow() throws {
        let cache = try opened()
        let bytes = Array("pinned".utf8)
        let first = Sample.row(key: "http://a/1", bytes: bytes)
        try store([first], in: cache)
        // The same image of another entry: its file is in place, but its row is not committed.
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
        var configuration = MetadataWriter.WriterConfiguration()
        configuration.groupRows = 7
        configuration.durability = durability
        var changes: [MetadataChange] = []
        for number in 0..<100 {
            let (row, bytes) = Sample.row(key: "http://a/\(number)", bytes: [UInt8(number)])
            try bytes.withUnsafeBytes {
                try cache.content.store($0, as: row.image, originURL: row.key)
            }
            changes.append(.image(row))
        }
        let groups = try commit(changes, in: cache, configuration: configuration)
        #expect(groups.flatMap(\.self) == Array(0..<100))
        #expect(groups.allSatisfy { $0.count <= 7 })
        let records = try Lookup(cache)((0..<100).map { "http://a/\($0)" })
        #expect(!records.contains(nil))
    }

    // MARK: Orphaned files

    @Test func collectsOrphansOnlyAfterAnInterruptedRun() throws {
        let cache = try opened()
        let sample = Sample.row(key: "http://a/1", bytes: [1])
        try store([sample], in: cache)
        let stray = Sample.row(key: "http://a/2", bytes: [2])
        try stray.bytes.withUnsafeBytes {
            try cache.content.store($0, as: stray.row.image, originURL: "http://a/2")
        }
        _ = FileManager.default.createFile(atPath: path + "/tmp/3", contents: Data([3]))
        // Before the first run, the state is unknown.
        #expect(try cache.log.lastRunMayHaveLeftOrphans())
        let first = try cache.log.begin(manifests: ["m"], at: Timestamp(milliseconds: 1))
        try cache.log.end(
            first, at: Timestamp(milliseconds: 2), exitStatus: 0, counters: RunCounters())
        #expect(try cache.log.lastRunMayHaveLeftOrphans() == false)
        let run = try cache.log.begin(manifests: ["m"], at: Timestamp(milliseconds: 1))
        #expect(try cache.log.lastRunMayHaveLeftOrphans())
        #expect(try cache.log.removeOrphans(scansContent: false) == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path + "/tmp") == [])
        #expect(try cache.log.removeOrphans(scansContent: true) == 1)
        #expect(try contentFiles().count == 1)
        try cache.log.end(
            run, at: Timestamp(milliseconds: 2), exitStatus: 0, counters: RunCounters())
        #expect(try cache.log.lastRunMayHaveLeftOrphans() == false)
    }

    @Test func hashesAsFIPS180Specifies() {
        // FIPS 180-4's example "abc".
        #expect(
            Sample.digest(Array("abc".utf8)).description
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }
}
