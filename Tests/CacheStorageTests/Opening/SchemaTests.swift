import Foundation
import PrefetchModel
import SQLite
import Testing

@testable import CacheStorage

/// The version of the schema, and caches of another one.
@Suite(.timeLimit(.minutes(15)))
struct SchemaTests {
    let folder: TemporaryFolder
    var path: String { folder.path + "/cache" }
    var database: String { path + "/prefetch.sqlite" }

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Makes a cache with an image.
    private func fill(_ path: String) throws {
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        try store([Sample.row(key: "http://a/1", bytes: [1, 2, 3])], in: cache)
        try cache.close()
    }

    @Test func newCacheHasTheVersion() throws {
        try fill(path)
        #expect(try queried("PRAGMA user_version", database) == "\(Schema.schemaVersion)")
        #expect(StorageVersions.schema == "\(Schema.schemaVersion)")
    }

    @Test func documentsHaveTheStatementsOfANewDatabase() throws {
        let cache = try #require(
            try OpenCache.openForRun(
                path: path, waiting: .aMoment, at: Timestamp(milliseconds: 1)))
        try cache.close()
        let stored = try queried("SELECT group_concat(sql, char(1)) FROM sqlite_schema", database)
            .split(separator: "\u{1}").map { normalized(String($0)) }
        let documented =
            try statements(in: document("cache.md"))
            + statements(in: "\n```sql\n\(document("schema.sql"))\n```\n")
        #expect(stored.count > 15)
        #expect(documented.filter { !stored.contains($0) } == [], "is not in the database")
        #expect(stored.filter { !documented.contains($0) } == [], "is not documented")
    }

    private func document(_ name: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: "docs/\(name)"), encoding: .utf8)
    }

    /// The statements of the blocks of SQL in a document.
    private func statements(in document: String) -> [String] {
        let blocks = document.matches(of: /(?s)\n```sql\n(.*?)\n```\n/).map { $0.output.1 }
        let text = blocks.joined(separator: "\n").replacing(#/--[^\n]*/#, with: "")
        // A trigger has semicolons in it.
        let starts = text.matches(of: #/(?m)^CREATE /#).map(\.range.lowerBound) + [text.endIndex]
        return zip(starts, starts.dropFirst()).map { normalized(String(text[$0..<$1])) }
    }

    /// The statement without the white space that means nothing.
    private func normalized(_ statement: String) -> String {
        var statement = statement.trimmingCharacters(in: .whitespacesAndNewlines)
        if statement.hasSuffix(";") { statement.removeLast() }
        return statement.replacing(/\s+/, with: " ").replacing(#/ ?([(),;]) ?/#) { $0.output.1 }
    }

    /// Otherwise each opening would make all tables to compare them.
    @Test func tablesAreKnownByTheirDigest() throws {
        let made = try SchemaPart.made.get()
        #expect(SchemaPart.digest(of: made).description == SchemaPart.digestOfAll)
    }

    /// A damaged header, since the tables are this version's.
    @Test func lostVersionIsDamage() throws {
        try fill(path)
        try runSQL("PRAGMA user_version = 0", database)
        let cache = try #require(
            try OpenCache.openForRun(
                path: path, waiting: .aMoment, at: Timestamp(milliseconds: 1)))
        #expect(cache.repair.damage?.message.contains("schema version is missing") == true)
        try cache.close()
        #expect(try queried("SELECT key FROM resource", database) == "http://a/1")
    }

    /// The ways in which commands open a cache: for themselves, or as the source of `merge`,
    /// `pull`, `--seed-cache` and `get --sink`.
    enum Opening: String, CaseIterable {
        case change, existing, run, read, examine, seed, mergedFirst, merge, pull, bucket

        func open(_ path: String, beside own: String) throws {
            func directory() throws -> CacheDirectory {
                try CacheDirectory(path: path, access: .readOnly)
            }
            switch self {
            case .change: _ = try OpenCache.open(path: path, waiting: .none)
            case .existing: _ = try OpenCache.open(path: path, creates: false, waiting: .none)
            case .run:
                _ = try OpenCache.openForRun(
                    path: path, waiting: .none, at: Timestamp(milliseconds: 1))
            case .read: _ = try CacheCatalog(directory: directory())
            case .examine: _ = try CacheCatalog(examining: directory())
            case .seed: _ = try SeedCache(path: path)
            case .mergedFirst:
                try OpenCache.checkSources([path], of: own, waiting: .none)
            case .merge:
                let cache = try #require(try OpenCache.open(path: own, waiting: .aMoment))
                _ = try cache.merge(
                    [path], workers: 1, waiting: .none, at: Timestamp(milliseconds: 1))
            case .pull: _ = try ContentFiles(of: directory())
            case .bucket:
                let bytes = try Array(
                    Data(contentsOf: URL(filePath: path + "/prefetch.sqlite")))
                _ = try RemoteCatalog(
                    path: path + "/prefetch.sqlite", size: ByteCount(bytes.count),
                    for: CacheDirectory(path: own, access: .existing)
                ) { Array(bytes[$0]) }
            }
        }
    }

    /// Also with a mark of damage.
    @Test(arguments: Opening.allCases, [(7, false), (7, true), (0, false), (0, true)])
    func anotherSchemaIsRefusedAndUntouched(
        _ opening: Opening, state: (version: Int, isSuspected: Bool)
    ) throws {
        let other = try makeOther(version: state.version)
        if state.isSuspected { try Data("!".utf8).write(to: URL(filePath: other + "/suspect")) }
        try expectRefusal(of: other, version: state.version, by: opening)
    }

    /// The rows are in a log without an index, which a merge reads from a copy.
    @Test(arguments: [Opening.change, .run, .read, .seed, .merge], [7, 0])
    func logOfAnotherSchemaIsUntouched(_ opening: Opening, version: Int) throws {
        let other = try makeOther(version: version)
        let connection = try Connection(
            path: other + "/prefetch.sqlite", access: .readWriteExisting)
        try connection.setKeepsLogAtClose(true)
        try connection.execute("PRAGMA journal_mode = WAL; PRAGMA user_version = \(version)")
        try connection.close()
        try FileManager.default.removeItem(atPath: other + "/prefetch.sqlite-shm")
        let log = FileManager.default.contents(atPath: other + "/prefetch.sqlite-wal")
        #expect(log?.isEmpty == false)
        try expectRefusal(of: other, version: version, by: opening)
    }

    private func makeOther(version: Int) throws -> String {
        let other = folder.path + "/other"
        try fill(other)
        try fill(path)
        try runSQL(
            "PRAGMA user_version = \(version); ALTER TABLE resource RENAME TO picture",
            other + "/prefetch.sqlite")
        return other
    }

    private func expectRefusal(of other: String, version: Int, by opening: Opening) throws {
        let before = try state(of: other)
        let error = #expect(throws: StorageError.self) {
            try opening.open(other, beside: path)
        }
        #expect(error?.code == .refused)
        #expect(
            error?.description
                == "\(other): has schema version \(version), and this prefetch reads version 1")
        #expect(error?.hint?.hasPrefix("use the prefetch that made it") == true)
        #expect(try state(of: other) == before)
        #expect(try queried("SELECT key FROM resource", database) == "http://a/1")
    }

    /// The content of all files, without an empty log and its index, which readers make.
    private func state(of path: String) throws -> [String: Data] {
        var files: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
            guard !name.hasSuffix("-shm"),
                let bytes = FileManager.default.contents(atPath: "\(path)/\(name)"),
                !name.hasSuffix("-wal") || !bytes.isEmpty
            else { continue }
            // The holder writes its name.
            files[name] = name == "lock" ? Data() : bytes
        }
        return files
    }

    @Test func wrongTotalsAreFoundAndRebuilt() throws {
        try fill(path)
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        #expect(try cache.database.read("testing") { try TotalsCheck.difference(in: $0) } == nil)
        #expect(try cache.database.usage() == DiskUsage(files: 1, blocks: 1))
        try runSQL("UPDATE usage SET blocks = 7", database)
        #expect(try cache.database.read("testing") { try TotalsCheck.difference(in: $0) } != nil)
        try cache.rebuildTotals()
        #expect(try cache.database.usage() == DiskUsage(files: 1, blocks: 1))
    }
}
