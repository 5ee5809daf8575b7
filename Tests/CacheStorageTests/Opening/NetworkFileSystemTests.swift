import CacheStorage
import Foundation
import PrefetchModel
import Testing

/// Caches on file systems that do not support SQLite's write-ahead log.
@Suite(.timeLimit(.minutes(15)))
struct NetworkFileSystemTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/cache" }
    private var database: String { path + "/prefetch.sqlite" }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func opened(_ fileSystem: FileSystem? = nil) throws -> OpenCache {
        try #require(
            try OpenCache.open(path: path, waiting: .aMoment, fileSystem: fileSystem))
    }

    /// Byte 18 of the file (SQLite's file format, section 1.3): 1 with a journal, 2 with a log.
    private func hasLog() throws -> Bool {
        let bytes = try Data(contentsOf: URL(filePath: database))
        #expect(bytes[18] == bytes[19])
        return bytes[18] == 2
    }

    private func companions() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path)
            .filter { $0.hasPrefix("prefetch.sqlite-") }.sorted()
    }

    private func add(_ numbers: Range<UInt8>, to cache: OpenCache) throws {
        try store(numbers.map { Sample.row(key: "http://a/\($0)", bytes: [$0]) }, in: cache)
    }

    private func count() throws -> String { try queried("SELECT count(*) FROM variant", database) }

    @Test func newCacheUsesARollbackJournal() throws {
        let cache = try opened(.nfs)
        #expect(cache.beginsWithoutLog && cache.directory.fileSystem.name == "nfs")
        try add(0..<5, to: cache)
        #expect(try !hasLog() && companions() == [])
        #expect(try count() == "5")
    }

    @Test func movedCacheSwitchesJournalModeOnce() throws {
        do {
            let cache = try opened()
            #expect(!cache.beginsWithoutLog)
            try add(0..<3, to: cache)
        }
        #expect(try hasLog())
        do {
            let cache = try opened(.nfs)
            #expect(cache.beginsWithoutLog)
            #expect(try !hasLog() && companions() == [])
            try add(3..<6, to: cache)
        }
        do { #expect(try !opened(.nfs).beginsWithoutLog) }
        #expect(try count() == "6")
        do {
            let cache = try opened()
            #expect(!cache.beginsWithoutLog)
            try add(6..<9, to: cache)
            #expect(try hasLog())
        }
        #expect(try count() == "9")
    }

    /// The log of a killed run is moved into the database.
    @Test func keepsLogOfAKilledRun() throws {
        let cache = try opened()
        try add(0..<1, to: cache)
        try runSQL(
            """
            PRAGMA wal_autocheckpoint = 0;
            INSERT INTO property VALUES ('seen', 1);
            """, database)
        let copy = folder.path + "/copy"
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        let log = try FileManager.default.attributesOfItem(atPath: copy + "/prefetch.sqlite-wal")
        #expect(try #require(log[.size] as? Int) > 0)
        let moved = try #require(
            try OpenCache.open(path: copy, waiting: .aMoment, fileSystem: .nfs))
        #expect(moved.beginsWithoutLog)
        #expect(
            try queried("SELECT value FROM property WHERE name = 'seen'", copy + "/prefetch.sqlite")
                == "1")
        withExtendedLifetime(cache) {}
    }

    /// A run's readers have their own connections, and commits wait for them.
    @Test func readersAndWriterAlternate() async throws {
        let cache = try opened(.nfs)
        try add(0..<50, to: cache)
        try await withThrowingTaskGroup { group in
            for _ in 0..<3 {
                group.addTask {
                    let reader = try CacheReader(cache.directory, varyTest: VaryTest { _ in true })
                    for round in 0..<200 {
                        let key = "http://a/\(round % 50)"
                        #expect(try reader.stored(key: key, recipe: Recipe()) != nil)
                    }
                }
            }
            for number in UInt8(50)..<90 { try add(number..<(number + 1), to: cache) }
            try await group.waitForAll()
        }
        #expect(try count() == "90" && companions() == [])
    }

    /// A read-only connection must not ignore a hot journal, which must be rolled back.
    @Test func readerRefusesAHotJournal() throws {
        do { try add(0..<1, to: opened(.nfs)) }
        let journal = URL(filePath: database + "-journal")
        let script = """
            import os, sqlite3, sys
            base = sqlite3.connect(sys.argv[1], isolation_level=None)
            base.execute("PRAGMA cache_size = 1")
            base.execute("BEGIN IMMEDIATE")
            base.execute("CREATE TABLE filler (x)")
            base.executemany("INSERT INTO filler VALUES (?)", [("x" * 1000,)] * 3000)
            os._exit(0)
            """
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/python3")
        process.arguments = ["-I", "-S", "-c", script, database]
        try process.run()
        process.waitUntilExit()
        #expect(try Data(contentsOf: journal).count > 0)
        // The next writable connection rolls it back.
        #expect(try opened(.nfs).beginsWithoutLog == false)
        #expect(try count() == "1" && companions() == [])
        #expect(
            try queried("SELECT count(*) FROM sqlite_schema WHERE name = 'filler'", database)
                == "0")
    }

    @Test(arguments: [
        (0x6969 as UInt32, "nfs", true), (0xFF53_4D42, "cifs", true), (0xFE53_4D42, "smb2", true),
        (0x0102_1997, "9p", true), (0x6573_5546, "fuse", true), (0xEF53, "ext4", false),
        (0x5846_5342, "xfs", false), (0x0102_1994, "tmpfs", false), (0x794C_7630, "overlay", false),
        (0x12, "0x12", false),
    ])
    func recognisesNetworkFileSystems(type: UInt32, name: String, isNetwork: Bool) {
        let fileSystem = FileSystem(type: type)
        #expect(fileSystem.name == name && fileSystem.isNetwork == isNetwork)
    }

    @Test func detectsThisMachinesFileSystem() throws {
        let cache = try opened()
        let room = try #require(cache.directory.room)
        #expect(room.total.bytes >= room.free.bytes && room.total.bytes > 0 && !room.isReadOnly)
        #expect(!cache.directory.fileSystem.name.isEmpty)
    }
}
