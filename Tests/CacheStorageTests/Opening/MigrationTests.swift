import PrefetchModel
import SQLite
import Testing

@testable import CacheStorage

/// Migration of a cache, from version 1 of the schema, and to an artificial fourth version.
@Suite(.timeLimit(.minutes(5)))
struct MigrationTests {
    let folder: TemporaryFolder
    var path: String { folder.path + "/cache" }
    var database: String { path + "/prefetch.sqlite" }

    /// The migrator of a future version, which adds a column and moves the hosts to another table.
    private static let future = Migrator(
        table: Schema.versionTable,
        Schema.migrator.migrations + [
            Migrator.Migration("4") {
                try $0.execute(
                    """
                    ALTER TABLE resource ADD COLUMN note TEXT NOT NULL DEFAULT 'none';
                    CREATE TABLE pause (host TEXT PRIMARY KEY, until INTEGER) STRICT;
                    INSERT INTO pause SELECT host, cooling_until FROM host;
                    DROP TABLE host;
                    """)
            }
        ])

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Makes a cache with an image and a host.
    private func fill() throws {
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        try store([Sample.row(key: "http://a/1", bytes: [1, 2, 3])], in: cache)
        try cache.hosts.save([
            HostState(
                host: "http://a", concurrency: 2, failuresInARow: 1,
                coolingUntil: Timestamp(milliseconds: 7),
                updatedAt: Timestamp(milliseconds: 5))
        ])
        try cache.close()
    }

    private func migrate() throws {
        let connection = try Connection(path: database, access: .readWrite)
        try MigrationTests.future.migrate(connection)
        try connection.close()
    }

    @Test func newCacheHasAllVersions() throws {
        try fill()
        #expect(Schema.migrator.migrations.map(\.identifier) == ["1", "2", "3"])
        #expect(try queried("SELECT group_concat(identifier) FROM migration", database) == "1,2,3")
    }

    /// Otherwise each opening would make all versions of the schema.
    @Test func newestSchemaIsKnownByItsDigest() throws {
        let newest = try #require(try SchemaPart.versions.get().last)
        #expect(SchemaPart.digest(of: newest).description == SchemaPart.newest)
    }

    /// Rows of version 1 state no orientation. Readers refuse them until a run has migrated them.
    @Test func firstVersionIsMigrated() throws {
        try fill()
        try runSQL(
            """
            ALTER TABLE variant DROP COLUMN orientation;
            ALTER TABLE host DROP COLUMN interval_us;
            ALTER TABLE host DROP COLUMN latency_us;
            ALTER TABLE host DROP COLUMN limited_by;
            DELETE FROM migration WHERE identifier > 1
            """, database)
        let directory = try CacheDirectory(path: path, access: .readOnly)
        #expect(throws: StorageError.self) { try CacheCatalog(directory: directory) }
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        #expect(cache.repair.salvage == nil)
        try cache.database.findDamage(.thorough)
        try cache.close()
        let items = try CacheCatalog(directory: directory).variants(of: "http://a/1")
        #expect(items.map(\.image.orientation) == [1])
        #expect(try queried("SELECT group_concat(identifier) FROM migration", database) == "1,2,3")
    }

    @Test func anotherVersionKeepsTheRows() throws {
        try fill()
        try migrate()
        #expect(
            try queried("SELECT group_concat(identifier) FROM migration", database) == "1,2,3,4")
        #expect(
            try queried("SELECT key || note FROM resource", database) == "http://a/1none")
        #expect(try queried("SELECT host || until FROM pause", database) == "http://a7")
        #expect(try queried("SELECT sum(variants) FROM total", database) == "1")
        // The triggers still hold.
        try runSQL("DELETE FROM resource", database)
        #expect(try queried("SELECT count(*) FROM variant", database) == "0")
        #expect(try queried("SELECT resources + files FROM usage", database) == "0")
    }

    @Test func newerVersionIsRefused() throws {
        try fill()
        try migrate()
        let error = #expect(throws: StorageError.self) {
            try OpenCache.open(path: path, waiting: .none)
        }
        #expect(error?.message.contains("newer version") == true)
        let directory = try CacheDirectory(path: path, access: .readOnly)
        let readError = #expect(throws: StorageError.self) {
            try CacheCatalog(directory: directory)
        }
        #expect(readError?.message.contains("newer version") == true)
        #expect(try queried("SELECT count(*) FROM pause", database) == "1")
    }

    /// Readers cannot migrate; they name the command that does.
    @Test func readersRefuseAnOlderVersion() throws {
        try fill()
        try runSQL("DELETE FROM migration WHERE identifier > 1", database)
        let directory = try CacheDirectory(path: path, access: .readOnly)
        let error = #expect(throws: StorageError.self) {
            try CacheCatalog(directory: directory)
        }
        #expect(error?.message.contains("older version") == true)
        #expect(error?.hint?.contains("prefetch run") == true)
    }

    @Test func wrongTotalsAreFoundAndRebuilt() throws {
        try fill()
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        #expect(try cache.database.read("testing") { try TotalsCheck.difference(in: $0) } == nil)
        #expect(try cache.usage() == DiskUsage(files: 1, blocks: 1))
        try runSQL("UPDATE usage SET blocks = 7", database)
        #expect(try cache.database.read("testing") { try TotalsCheck.difference(in: $0) } != nil)
        try cache.rebuildTotals()
        #expect(try cache.usage() == DiskUsage(files: 1, blocks: 1))
    }
}
