import Foundation
import PrefetchModel
import Testing

@testable import CacheStorage

/// Recovery at the start of a run after an unclean end.
@Suite(.timeLimit(.minutes(15)))
struct RecoveryTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/cache" }
    private var database: String { path + "/prefetch.sqlite" }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func openForRun() throws -> OpenCache {
        try #require(
            try OpenCache.openForRun(
                path: path, waiting: .aMoment, at: Timestamp(milliseconds: 1_790_000_000_000)))
    }

    private func time(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: milliseconds) }

    private func file(of row: ImageChange) -> String { path + "/" + row.image.relativePath }

    /// Simulates a run over two images, finished or not; rows have the time 10.
    private func leaveRun(
        bootID: String?, syncsFiles: Bool, ends: Bool
    ) throws -> [(row: ImageChange, bytes: [UInt8])] {
        let cache = try openForRun()
        let run = try cache.log.begin(
            manifests: ["m"], at: time(5), bootID: bootID, syncsFiles: syncsFiles)
        let samples = (1...2).map {
            Sample.row(key: "http://a/\($0)", bytes: [UInt8](repeating: UInt8($0), count: 100))
        }
        try store(samples, in: cache)
        if ends {
            try cache.log.end(run, at: time(20), exitStatus: 0, counters: RunCounters())
        }
        return samples
    }

    private func keys(in cache: OpenCache) throws -> [String] {
        var keys: [String] = []
        try CacheCatalog(directory: cache.directory).forEachVariant { keys.append($0.resource.key) }
        return keys
    }

    // MARK: Torn files

    @Test(arguments: [true, false])
    func comparesFilesOfUnsyncedRunsAfterAReboot(ends: Bool) throws {
        let samples = try leaveRun(bootID: "before", syncsFiles: false, ends: ends)
        // Of the same length but with other bytes: only the digest differs.
        try Data(repeating: 0, count: 100).write(to: URL(filePath: file(of: samples[0].row)))
        let cache = try openForRun()
        #expect(cache.repair.tornImages == 1)
        #expect(try keys(in: cache) == ["http://a/2"])
        #expect(!FileManager.default.fileExists(atPath: file(of: samples[0].row)))
        #expect(
            try Lookup(cache)(["http://a/1", "http://a/2"]).map { $0 == nil } == [true, false])
    }

    @Test func comparesThemOnce() throws {
        let samples = try leaveRun(bootID: "before", syncsFiles: false, ends: true)
        #expect(try openForRun().repair.tornImages == 0)
        try Data().write(to: URL(filePath: file(of: samples[0].row)))
        #expect(try openForRun().repair.tornImages == 0)
    }

    /// The page cache still has data that did not reach the disk.
    @Test func comparesNothingWithinOneBoot() throws {
        let samples = try leaveRun(
            bootID: BootID.current(), syncsFiles: false, ends: true)
        try Data(repeating: 0, count: 100).write(to: URL(filePath: file(of: samples[0].row)))
        #expect(try openForRun().repair.tornImages == 0)
    }

    @Test(arguments: [Data(), nil])
    func checksSizesAfterAKilledRun(left: Data?) throws {
        let samples = try leaveRun(bootID: BootID.current(), syncsFiles: true, ends: false)
        let url = URL(filePath: file(of: samples[1].row))
        try FileManager.default.removeItem(at: url)
        try left?.write(to: url)
        let cache = try openForRun()
        #expect(cache.repair.tornImages == 1)
        #expect(try keys(in: cache) == ["http://a/1"])
    }

    // MARK: Damage

    private static let damages: [String] = ["text", "noise", "NULL"]

    private func damage(_ kind: String) throws {
        switch kind {
        case "text":
            try Data("no database".utf8).write(to: URL(filePath: database))
        case "noise":
            let file = try FileHandle(forWritingTo: URL(filePath: database))
            // After the header and the schema, in the pages of tables.
            try file.seek(toOffset: 2 * 4096)
            try file.write(contentsOf: Data((0..<40_960).map { UInt8(truncatingIfNeeded: $0 * 7) }))
            try file.close()
        default:
            func edit(_ old: String, _ new: String, version: Int) throws {
                try runSQL(
                    """
                    PRAGMA writable_schema = ON;
                    UPDATE sqlite_schema SET sql = replace(sql, '\(old)', '\(new)')
                    WHERE name = 'variant';
                    PRAGMA schema_version = \(version);
                    """, database)
            }
            try edit("format TEXT NOT NULL", "format TEXT", version: 1000)
            try runSQL("UPDATE variant SET format = NULL", database)
            try edit("format TEXT", "format TEXT NOT NULL", version: 1001)
        }
    }

    @Test(arguments: damages)
    func replacesADamagedDatabaseAndKeepsFiles(kind: String) throws {
        let samples = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        try damage(kind)
        // One of the files is damaged, too.
        try Data(repeating: 9, count: 100).write(to: URL(filePath: file(of: samples[0].row)))
        do {
            let cache = try openForRun()
            let found = try #require(cache.repair.damage)
            #expect(found.name == "prefetch.sqlite.damaged-20260921T141320Z")
            #expect(!found.message.isEmpty)
            #expect(FileManager.default.fileExists(atPath: "\(path)/\(found.name)"))
            #expect(try keys(in: cache) == [])
            // When stored again, one file is compared and kept, the other is rewritten.
            let inode = try inode(of: samples[1].row)
            try store(samples, in: cache)
            #expect(try self.inode(of: samples[1].row) == inode)
            for (row, bytes) in samples {
                #expect(try Data(contentsOf: URL(filePath: file(of: row))) == Data(bytes))
            }
        }
        #expect(try openForRun().repair.damage == nil)
    }

    /// Like a kill between the removal of a row and of its file.
    @Test func nextRunCollectsRemainingFilesOfDroppedImages() throws {
        let samples = try leaveRun(bootID: BootID.current(), syncsFiles: true, ends: true)
        let file = file(of: samples[0].row)
        do {
            let cache = try openForRun()
            // A folder in the file's place cannot be unlinked.
            try FileManager.default.removeItem(atPath: file)
            try FileManager.default.createDirectory(
                atPath: file, withIntermediateDirectories: false)
            try cache.dropImages([samples[0].row.image], at: time(30))
            try cache.close()
        }
        try FileManager.default.removeItem(atPath: file)
        try Data([1]).write(to: URL(filePath: file))
        let cache = try openForRun()
        #expect(try keys(in: cache) == ["http://a/2"])
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func keepsOrphansFromBeforeTheDamageOnly() throws {
        let samples = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        try damage("text")
        let later = Sample.row(key: "http://a/3", bytes: [3])
        do {
            let cache = try openForRun()
            _ = try cache.log.begin(manifests: ["m"], at: time(30), bootID: nil)
            try later.bytes.withUnsafeBytes {
                try cache.content.store($0, as: later.row.image, originURL: "http://a/3")
            }
        }
        _ = try openForRun()
        #expect(FileManager.default.fileExists(atPath: file(of: samples[0].row)))
        #expect(!FileManager.default.fileExists(atPath: file(of: later.row)))
    }

    /// SQLite treats it as an empty database.
    @Test func emptyDatabaseFileCountsAsMissing() throws {
        let samples = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        try Data().write(to: URL(filePath: database))
        for _ in 1...2 {
            let cache = try openForRun()
            #expect(try keys(in: cache) == [])
            #expect(FileManager.default.fileExists(atPath: file(of: samples[0].row)))
        }
    }

    /// A run may not notice damage that a command has found.
    @Test func nextRunChecksDamageThatACommandFound() throws {
        _ = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        try damage("NULL")
        let directory = try CacheDirectory(path: path, access: .readOnly)
        #expect(throws: StorageError.self) {
            try CacheCatalog(directory: directory).forEachVariant { _ in }
        }
        #expect(FileManager.default.fileExists(atPath: path + "/suspect"))
        #expect(try openForRun().repair.damage != nil)
        #expect(!FileManager.default.fileExists(atPath: path + "/suspect"))
    }

    @Test func refusesAnotherProgramsDatabase() throws {
        _ = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        try FileManager.default.removeItem(atPath: database)
        try runSQL("CREATE TABLE t (a)", database)
        let before = try Data(contentsOf: URL(filePath: database))
        #expect(throws: StorageError.self) { try openForRun() }
        #expect(try Data(contentsOf: URL(filePath: database)) == before)
    }

    /// SQLite treats such a file as an empty database, but its contents are lost.
    @Test(arguments: ["x", "\0", "\n\n"])
    func oneByteFileIsADamagedDatabase(text: String) throws {
        let samples = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        try Data(text.utf8).write(to: URL(filePath: database))
        #expect {
            try OpenCache.open(path: path, creates: false, waiting: .none)
        } throws: {
            ($0 as? StorageError)?.isDamage == true
        }
        #expect(try Data(contentsOf: URL(filePath: database)) == Data(text.utf8))
        let cache = try openForRun()
        #expect(cache.repair.damage != nil)
        // Files without rows are reused by the next run.
        for sample in samples {
            #expect(FileManager.default.fileExists(atPath: file(of: sample.row)))
        }
    }

    @Test func reportsImagesWithoutADatabase() throws {
        _ = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        for suffix in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: database + suffix)
        }
        #expect(try openForRun().repair.hadNoDatabase)
        #expect(try !openForRun().repair.hadNoDatabase)
    }

    /// A temporary disk error makes a valid database look damaged.
    @Test func salvagesWithoutAFindingOnlyTheSecondTime() throws {
        _ = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        do {
            let cache = try openForRun()
            #expect(try !cache.noteDamage())
        }
        do {
            let cache = try openForRun()
            #expect(cache.repair.damage == nil)
            #expect(try keys(in: cache).count == 2)
            #expect(try cache.noteDamage())
        }
        let cache = try openForRun()
        #expect(cache.repair.damage != nil)
        #expect(cache.repair.salvage?.salvaged.images == 2)
        #expect(try keys(in: cache).count == 2)
    }

    // MARK: References to resources

    /// A run would report such resources as fresh, but `get` could not find them.
    @Test func removesFreshnessWithoutAVariant() throws {
        let samples = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        try runSQL("DELETE FROM variant WHERE resource_id = 2", database)
        let cache = try openForRun()
        #expect(cache.repair.damage == nil)
        let lookup = try Lookup(cache)
        #expect(try lookup(["http://a/1"]) != [nil])
        #expect(try lookup(["http://a/2"]) == [nil])
        #expect(!FileManager.default.fileExists(atPath: file(of: samples[1].row)))
    }

    // MARK: Obstacles

    /// Root ignores a file's permissions, but cannot unlink a folder.
    @Test func failedCleanUpIsNoError() throws {
        let samples = try leaveRun(bootID: "before", syncsFiles: true, ends: false)
        let digest = String(repeating: "0", count: 64)
        for folder in ["tmp/folder", "content/00/\(digest).png"] {
            try FileManager.default.createDirectory(
                atPath: path + "/" + folder, withIntermediateDirectories: true)
        }
        for _ in 0..<2 {
            let cache = try openForRun()
            #expect(cache.repair.untidy?.code == .system(EISDIR))
            #expect(try keys(in: cache).count == samples.count)
            let run = try cache.log.begin(manifests: ["m"], at: time(30))
            try cache.log.end(run, at: time(40), exitStatus: 0, counters: RunCounters())
        }
        for folder in ["tmp/folder", "content/00/\(digest).png"] {
            try FileManager.default.removeItem(atPath: path + "/" + folder)
        }
        #expect(try openForRun().repair.untidy == nil)
    }

    @Test func remainderOfARemovedCacheIsACache() throws {
        let samples = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        for name in [
            "CACHEDIR.TAG", "prefetch.sqlite", "prefetch.sqlite-wal", "prefetch.sqlite-shm",
        ] {
            try? FileManager.default.removeItem(atPath: path + "/" + name)
        }
        #expect(try openForRun().repair.hadNoDatabase)
        #expect(FileManager.default.fileExists(atPath: file(of: samples[0].row)))
    }

    @Test(arguments: ["content/ab/other.png", "content/abc/x", "content/x", "other"])
    func foreignFolderIsNoRemainderOfACache(name: String) throws {
        let file = URL(filePath: path + "/" + name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data().write(to: file)
        #expect(throws: StorageError.self) { try openForRun() }
    }

    @Test func removesRowsOfOldRuns() throws {
        let cache = try openForRun()
        func note(_ number: Int64) throws {
            let run = try cache.log.begin(manifests: ["m"], at: time(number))
            try cache.log.end(run, at: time(number), exitStatus: 0, counters: RunCounters())
        }
        for number in Int64(0)..<10 { try note(number) }
        // As after 9,993 further runs. Their other effects do not matter.
        try runSQL(
            "UPDATE run SET id = 10003 WHERE id = (SELECT max(id) FROM run)", database)
        try note(10)
        #expect(
            try queried("SELECT json_group_array(id) FROM run", database)
                == "[5,6,7,8,9,10003,10004]")
    }

    /// Identifiers are reused, and other programs do not enforce foreign keys.
    @Test func manualRemovalLeavesNoRowsOfTheResource() throws {
        _ = try leaveRun(bootID: "before", syncsFiles: true, ends: true)
        try runSQL("DELETE FROM resource WHERE key = 'http://a/2'", database)
        let cache = try openForRun()
        #expect(try Lookup(cache)(["http://a/2"]) == [nil])
        try store([Sample.row(key: "http://a/9", bytes: [9])], in: cache)
        #expect(try Lookup(cache)(["http://a/2"]) == [nil])
        for table in ["variant", "freshness"] {
            #expect(try queried("SELECT count(*) FROM \(table)", database) == "2")
        }
    }

    // MARK: The writer's queue

    /// The next commit may be late or never happen, so a checkpoint also removes replaced files.
    @Test func checkpointRemovesReplacedFiles() async throws {
        let cache = try openForRun()
        let old = Sample.row(key: "http://a/1", bytes: [1])
        try store([old], in: cache)
        var configuration = MetadataWriter.WriterConfiguration()
        configuration.checkpointInterval = .milliseconds(1)
        let writer = try MetadataWriter(cache, run: 1, configuration: configuration)
        let new = Sample.row(key: "http://a/1", bytes: [2])
        try new.bytes.withUnsafeBytes {
            try cache.content.store($0, as: new.row.image, originURL: "http://a/1")
        }
        writer.enqueue(.image(new.row), token: 1)
        let writing = Thread { try? writer.run { _ in } }
        writing.start()
        let deadline = ContinuousClock.now + .seconds(60)
        while FileManager.default.fileExists(atPath: file(of: old.row)), .now < deadline {
            await Task.yield()
        }
        #expect(!FileManager.default.fileExists(atPath: file(of: old.row)))
        writer.finish()
        while !writing.isFinished, .now < deadline { await Task.yield() }
    }

    @Test func countsChangesQueuedForTheWriter() throws {
        let cache = try openForRun()
        let writer = try MetadataWriter(cache, run: 1, configuration: .init())
        var row = Sample.row(key: "http://a/1", bytes: [1])
        row.row.changeValidation {
            $0.response.cacheControl = String(repeating: "x", count: 100_000)
        }
        try row.bytes.withUnsafeBytes {
            try cache.content.store($0, as: row.row.image, originURL: "http://a/1")
        }
        writer.enqueue(.image(row.row), token: 1)
        #expect(writer.backlog > ByteCount(100_000))
        #expect(writer.backlog < ByteCount(110_000))
        writer.finish()
        try writer.run { _ in }
        #expect(writer.backlog == ByteCount(0))
    }

    private func inode(of row: ImageChange) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: file(of: row))
        return try #require(attributes[.systemFileNumber] as? Int)
    }
}
