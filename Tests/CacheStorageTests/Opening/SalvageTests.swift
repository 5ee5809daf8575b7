import Foundation
import PrefetchModel
import Testing

@testable import CacheStorage

/// Salvage of a damaged database with its snapshot. `Scripts/torture/damage salvage` runs hundreds
/// of cases.
@Suite(.timeLimit(.minutes(15)))
struct SalvageTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/cache" }
    private var database: String { path + "/prefetch.sqlite" }
    private var snapshot: String { path + "/snapshot.sqlite" }
    private let now = Timestamp(milliseconds: 1_790_000_000_000)

    init() throws {
        folder = try TemporaryFolder()
    }

    private func openForRun() throws -> OpenCache {
        try #require(try OpenCache.openForRun(path: path, waiting: .aMoment, at: now))
    }

    private func keys(in cache: OpenCache) throws -> Set<String> {
        var keys: Set<String> = []
        try CacheCatalog(directory: cache.directory).forEachVariant { keys.insert($0.resource.key) }
        return keys
    }

    private static let samples = (1...200).map {
        Sample.row(key: "http://a/\($0)", bytes: [UInt8]("image \($0)".utf8))
    }
    private static let allKeys = Set(samples.map(\.row.key))

    /// A finished run over all samples, with or without a snapshot.
    private func fill(takesSnapshot: Bool = false) throws {
        let cache = try openForRun()
        let run = try cache.log.begin(manifests: ["m"], at: now, bootID: BootID.current())
        try store(SalvageTests.samples, in: cache)
        try cache.log.end(run, at: now, exitStatus: 0, counters: RunCounters())
        if takesSnapshot { try cache.takeSnapshot(at: now) { false } }
        try cache.close()
    }

    private func zero(_ range: Range<Int>, in path: String) throws {
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.seek(toOffset: UInt64(range.lowerBound))
        try file.write(contentsOf: Data(count: range.count))
        try file.close()
    }

    private func pages(of table: String, in path: String) throws -> [Int] {
        try queried(
            """
            SELECT group_concat(pageno) FROM dbstat WHERE name = '\(table)' AND pagetype = 'leaf'
            """, path
        ).split(separator: ",").compactMap { Int($0) }
    }

    // MARK: Rows

    @Test func salvagesAllRowsWithoutTheFirstPage() throws {
        try fill()
        try zero(0..<4096, in: database)
        let cache = try openForRun()
        #expect(cache.repair.salvage?.salvaged.images == 200)
        #expect(cache.repair.salvage?.salvaged.runs == 1)
        #expect(try keys(in: cache) == SalvageTests.allKeys)
        // Salvaged entries are warm.
        #expect(try Lookup(cache)(["http://a/1", "http://a/200"]).allSatisfy { $0 != nil })
        try cache.database.findDamage(.thorough)
    }

    @Test func damagedPageLosesOnlyItsRows() throws {
        try fill()
        let leaves = try pages(of: "resource", in: database)
        try #require(leaves.count > 4)
        let page = leaves[leaves.count / 2]
        let lost = try Int(
            #require(
                Int(queried("SELECT ncell FROM dbstat WHERE pageno = \(page)", database))))
        try zero((page - 1) * 4096..<page * 4096, in: database)
        let cache = try openForRun()
        #expect(try keys(in: cache).count == 200 - lost)
        #expect(try keys(in: cache).isSubset(of: SalvageTests.allKeys))
    }

    /// No interior page refers to its leaves any more.
    @Test func findsRowsBelowADamagedRoot() throws {
        try fill()
        for table in ["resource", "variant"] {
            let root = try #require(
                Int(queried("SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'", database))
            )
            try zero((root - 1) * 4096..<root * 4096, in: database)
        }
        let cache = try openForRun()
        // A root page of `variant` has rows, too.
        #expect(try keys(in: cache).count >= 195)
    }

    /// A leaf page replaces the root, which refers only to that leaf.
    @Test func unreachableDigestEntriesConfirmRows() throws {
        try fill()
        let leaf = try #require(try pages(of: "variant_sha256", in: database).first)
        let root = try #require(
            Int(
                queried(
                    "SELECT rootpage FROM sqlite_schema WHERE name = 'variant_sha256'", database)))
        try #require(root != leaf)
        let file = try FileHandle(forUpdating: URL(filePath: database))
        try file.seek(toOffset: UInt64((leaf - 1) * 4096))
        let bytes = try #require(try file.read(upToCount: 4096))
        try file.seek(toOffset: UInt64((root - 1) * 4096))
        try file.write(contentsOf: bytes)
        try file.close()
        let cache = try openForRun()
        // The root has its own entries.
        #expect(try keys(in: cache).count >= 195)
        try cache.database.findDamage(.thorough)
    }

    /// Every opening compares the schema.
    @Test(arguments: [
        ("property", "value INTEGER", "valuf INTEGER"), ("run", "exit_status", "exit_statur"),
        ("variant", "format TEXT", "formau TEXT"),
        ("variant_added", "variants + 1", "variants - 1"),
    ])
    func alteredSchemaIsDamage(name: String, text: String, altered: String) throws {
        try fill()
        try runSQL(
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, '\(text)', '\(altered)') WHERE name = '\(name)';
            PRAGMA schema_version = 1000;
            """, database)
        #expect(
            try queried(
                "SELECT instr(sql, '\(altered)') > 0 FROM sqlite_schema WHERE name = '\(name)'",
                database) == "1")
        let cache = try openForRun()
        #expect(cache.repair.damage != nil)
        #expect(try keys(in: cache) == SalvageTests.allKeys)
        try cache.database.findDamage(.thorough)
    }

    @Test func omitsRowsWithoutFiles() throws {
        try fill()
        let image = SalvageTests.samples[0].row.image
        try FileManager.default.removeItem(atPath: path + "/" + image.relativePath)
        try zero(0..<4096, in: database)
        let cache = try openForRun()
        #expect(cache.repair.salvage?.lostFiles == 1)
        #expect(try keys(in: cache) == SalvageTests.allKeys.subtracting(["http://a/1"]))
    }

    /// A row with a digest that belongs to another row according to the index.
    @Test func omitsRowsThatIndexesContradict() throws {
        try fill()
        try runSQL(
            """
            PRAGMA writable_schema = ON;
            DELETE FROM sqlite_schema WHERE name = 'variant_sha256';
            PRAGMA schema_version = 1000;
            """, database)
        // The index is unchanged: the update did not know it.
        let index = try queried(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'variant'", database)
        #expect(index == "1")
        let other = SalvageTests.samples[1].row.image.digest
        try runSQL(
            "UPDATE variant SET sha256 = x'\(other)' WHERE resource_id = 1;", database)
        try restoreIndex()
        let cache = try openForRun()
        #expect(cache.repair.damage != nil)
        #expect(try keys(in: cache) == SalvageTests.allKeys.subtracting(["http://a/1"]))
    }

    /// The index's root is the same as in another database with this schema.
    private func restoreIndex() throws {
        let other = folder.path + "/other"
        do {
            let cache = try #require(try OpenCache.open(path: other, waiting: .aMoment))
            try cache.close()
        }
        let root = try queried(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'variant_sha256'",
            other + "/prefetch.sqlite")
        try runSQL(
            """
            PRAGMA writable_schema = ON;
            INSERT INTO sqlite_schema VALUES ('index', 'variant_sha256', 'variant', \(root),
                'CREATE INDEX variant_sha256 ON variant (sha256)');
            PRAGMA schema_version = 1001;
            """, database)
    }

    // MARK: The snapshot

    @Test func addsMissingRowsFromTheSnapshot() throws {
        try fill(takesSnapshot: true)
        for page in try pages(of: "resource", in: database).prefix(3) {
            try zero((page - 1) * 4096..<page * 4096, in: database)
        }
        let cache = try openForRun()
        let report = try #require(cache.repair.salvage)
        #expect(report.restored.images > 0 && report.snapshotTime != nil)
        #expect(report.salvaged.images + report.restored.images == 200)
        #expect(try keys(in: cache) == SalvageTests.allKeys)
    }

    @Test func restoresAMissingDatabaseFromTheSnapshot() throws {
        try fill(takesSnapshot: true)
        try FileManager.default.removeItem(atPath: database)
        let cache = try openForRun()
        #expect(cache.repair.hadNoDatabase)
        #expect(cache.repair.salvage?.restored.images == 200)
        #expect(try keys(in: cache) == SalvageTests.allKeys)
    }

    /// Removed images have no files.
    @Test func snapshotRestoresNoRemovedImages() throws {
        try fill(takesSnapshot: true)
        do {
            let cache = try openForRun()
            try cache.dropImages([SalvageTests.samples[4].row.image], at: now)
            try cache.close()
        }
        try zero(0..<8192, in: database)
        let cache = try openForRun()
        #expect(try keys(in: cache) == SalvageTests.allKeys.subtracting(["http://a/5"]))
    }

    /// After a kill at any moment while the salvaged database replaces the damaged one.
    @Test(arguments: [false, true])
    func interruptedReplacementRestoresDatabaseAndLog(isLogAside: Bool) throws {
        try fill()
        // Readers keep the rows of a later run in the log.
        let log = database + "-wal"
        do {
            let cache = try openForRun()
            try cache.hosts.save([
                HostState(
                    host: "http://a", concurrency: 2, failuresInARow: 0, coolingUntil: nil,
                    updatedAt: now)
            ])
            try Data(contentsOf: URL(filePath: log)).write(to: URL(filePath: folder.path + "/log"))
            try Data(contentsOf: URL(filePath: database)).write(
                to: URL(filePath: folder.path + "/database"))
            try cache.close()
        }
        let files = FileManager.default
        try files.removeItem(atPath: database)
        try files.moveItem(atPath: folder.path + "/database", toPath: database)
        let aside = database + ".damaged-20260101T000000Z"
        try files.linkItem(atPath: database, toPath: aside)
        try files.moveItem(
            atPath: folder.path + "/log", toPath: (isLogAside ? aside : database) + "-wal")
        for path in [database, aside, log, aside + "-wal"] where files.fileExists(atPath: path) {
            try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        }
        let cache = try openForRun()
        #expect(try cache.hosts.all(at: now).map(\.host) == ["http://a"])
        #expect(try keys(in: cache) == SalvageTests.allKeys)
        #expect(!files.fileExists(atPath: aside) && !files.fileExists(atPath: aside + "-wal"))
    }

    @Test func takesASnapshotOnceADay() throws {
        try fill(takesSnapshot: true)
        let first = try inode(of: snapshot)
        let cache = try openForRun()
        let taken = try #require(cache.directory.snapshotTime)
        try cache.takeSnapshot(at: taken.advanced(by: .seconds(86_399))) { false }
        #expect(try inode(of: snapshot) == first)
        try cache.takeSnapshot(at: taken.advanced(by: .seconds(86_400))) { false }
        #expect(try inode(of: snapshot) != first)
        #expect(try queried("PRAGMA integrity_check", snapshot) == "ok")
    }

    @Test func damagedDatabaseKeepsTheLastSnapshot() throws {
        try fill(takesSnapshot: true)
        let first = try inode(of: snapshot)
        let page = try #require(try pages(of: "variant", in: database).last)
        try zero((page - 1) * 4096..<page * 4096, in: database)
        // Large databases are not checked before each run, and this call opens it unchecked.
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        #expect {
            try cache.takeSnapshot(at: now.advanced(by: .seconds(1_000_000_000))) { false }
        } throws: {
            ($0 as? StorageError)?.isDamage == true
        }
        #expect(try inode(of: snapshot) == first)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path + "/tmp").isEmpty)
    }

    @Test(arguments: [1, 2])
    func stoppedSnapshotKeepsTheLastOne(steps: Int) throws {
        try fill(takesSnapshot: true)
        let first = try inode(of: snapshot)
        let cache = try openForRun()
        var asked = 0
        try cache.takeSnapshot(at: now.advanced(by: .seconds(1_000_000_000))) {
            asked += 1
            return asked >= steps
        }
        #expect(asked >= steps)
        #expect(try inode(of: snapshot) == first)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path + "/tmp").isEmpty)
    }

    private func inode(of path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.systemFileNumber] as? Int)
    }
}
