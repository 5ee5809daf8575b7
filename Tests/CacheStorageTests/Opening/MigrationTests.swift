import Foundation
import PrefetchModel
import Testing

@testable import CacheStorage

/// Databases as shipped versions left them. What is here is frozen like the migrations themselves:
/// these are the caches that people have.
@Suite(.timeLimit(.minutes(5)))
struct MigrationTests {
    let folder: TemporaryFolder
    var path: String { folder.path + "/cache" }
    var database: String { path + "/prefetch.sqlite" }

    init() throws {
        folder = try TemporaryFolder()
    }

    static let version1 = """
        PRAGMA application_id = 1886545507;
        PRAGMA journal_mode = WAL;
        CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
        INSERT INTO grdb_migrations VALUES ('1');
        CREATE TABLE resource (
            id INTEGER PRIMARY KEY,
            key TEXT NOT NULL UNIQUE,
            url TEXT NOT NULL,
            final_url TEXT,
            host TEXT NOT NULL,
            etag TEXT,
            last_modified TEXT,
            cache_control TEXT,
            vary TEXT,
            date INTEGER,
            fetched_at INTEGER NOT NULL,
            validated_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            source_bytes INTEGER NOT NULL,
            source_format TEXT NOT NULL,
            source_sha256 BLOB NOT NULL CHECK (length(source_sha256) = 32),
            source_width INTEGER NOT NULL,
            source_height INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE variant (
            resource_id INTEGER NOT NULL
                REFERENCES resource (id) ON DELETE CASCADE,
            recipe TEXT NOT NULL,
            sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
            format TEXT NOT NULL,
            width INTEGER NOT NULL,
            height INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            last_access_at INTEGER NOT NULL,
            PRIMARY KEY (resource_id, recipe)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX variant_sha256 ON variant (sha256);
        CREATE TABLE run (
            id INTEGER PRIMARY KEY,
            started_at INTEGER NOT NULL,
            ended_at INTEGER,
            manifest TEXT NOT NULL,
            exit_status INTEGER,
            counters TEXT
        ) STRICT;
        INSERT INTO resource VALUES
            (1, 'http://a/1', 'http://a/1', NULL, 'http://a', '"e1"', NULL, 'max-age=60', NULL,
                1000, 2000, 2000, 62000, 3, 'png', zeroblob(32), 3, 2),
            (7, 'http://a/7', 'http://a/7', 'http://b/7', 'http://a', NULL,
                'Sat, 21 Nov 2026 00:00:00 GMT', NULL, 'Accept-Encoding', NULL, 3000, 3000, 4000,
                3, 'png', zeroblob(32), 3, 2);
        INSERT INTO variant VALUES
            (1, 'same;q=85;strip=safe', X'\(digest)', 'png', 3, 2, 3, 2000, 2000),
            (1, 'original', zeroblob(32), 'png', 3, 2, 3, 2000, 2000),
            (7, 'same;q=85;strip=safe', X'\(digest)', 'png', 3, 2, 3, 3000, 3000);
        INSERT INTO run VALUES (1, 1000, 5000, 'm.txt', 0, '{"entries":2}');
        """

    private static let digest = String(repeating: "ab", count: 32)

    static let version2 =
        version1 + """

            INSERT INTO grdb_migrations VALUES ('2');
            ALTER TABLE resource ADD COLUMN expires TEXT;

            CREATE TABLE freshness (
                fingerprint INTEGER PRIMARY KEY,
                fingerprint_low INTEGER NOT NULL,
                resource_id INTEGER NOT NULL,
                validated_at INTEGER NOT NULL,
                expires_at INTEGER NOT NULL,
                vary INTEGER
            ) STRICT;

            CREATE TABLE attribute (
                resource_id INTEGER NOT NULL
                    REFERENCES resource (id) ON DELETE CASCADE,
                name TEXT NOT NULL
                    CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 255),
                value BLOB NOT NULL CHECK (length(value) <= 65536),
                PRIMARY KEY (resource_id, name)
            ) STRICT, WITHOUT ROWID;

            CREATE TABLE failure (
                key TEXT PRIMARY KEY,
                url TEXT NOT NULL,
                host TEXT NOT NULL,
                reason TEXT NOT NULL,
                http_status INTEGER,
                curl_code INTEGER,
                message TEXT NOT NULL,
                attempts INTEGER NOT NULL,
                class TEXT NOT NULL CHECK (class IN ('permanent', 'transient')),
                runs_in_a_row INTEGER NOT NULL,
                first_failed_at INTEGER NOT NULL,
                last_failed_at INTEGER NOT NULL,
                blacklisted_until INTEGER,
                run_id INTEGER
            ) STRICT, WITHOUT ROWID;

            CREATE INDEX failure_run_id ON failure (run_id) WHERE run_id IS NOT NULL;
            UPDATE resource SET expires = 'Sat, 21 Nov 2026 00:01:02 GMT' WHERE id = 1;
            UPDATE resource SET vary = 'accept: image/png' WHERE id = 7;
            INSERT INTO freshness VALUES (5, 6, 1, 2000, 62000, NULL), (-5, -6, 7, 3000, 4000, 9);
            INSERT INTO attribute VALUES (7, 'note', X'00ff');
            INSERT INTO failure VALUES ('http://a/9', 'http://a/9', 'http://a', 'http-status', 404, NULL,
                'HTTP status 404', 3, 'permanent', 2, 1000, 2000, 3602000, NULL);
            """

    /// A cache of that version, as the commands find it.
    func make(_ version: Int) throws {
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700])
        try "Signature: 8a477f597d28d172789f06886806bc55\n".write(
            toFile: path + "/CACHEDIR.TAG", atomically: false, encoding: .utf8)
        let text =
            switch version {
            case 1: MigrationTests.version1
            case 2: MigrationTests.version2
            case 6: MigrationTests.version6
            default: MigrationTests.version7
            }
        try runSQL(text, database)
    }

    @Test func aCacheOfVersion1KeepsAllThatItHas() throws {
        try make(1)
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        let lookup = try Lookup(cache) { _ in false }
        let records = try lookup(["http://a/1", "http://a/7", "http://a/8"])
        #expect(records.map { $0?.resourceID } == [1, 7, nil])
        #expect(records[0]?.validatedAt == Timestamp(milliseconds: 2000))
        #expect(records[0]?.expiresAt == Timestamp(milliseconds: 62000))
        let originals = try lookup(
            ["http://a/1", "http://a/7"], recipe: Recipe(encoding: .original))
        #expect(originals.map { $0?.resourceID } == [1, nil])
        // What varied was kept without the values: it is asked for anew.
        #expect(try lookup.reader.matchesVary(#require(records[0])))
        #expect(try !lookup.reader.matchesVary(#require(records[1])))
        let copy = try #require(try lookup.reader.copies(of: [7])[0])
        #expect(copy.response.lastModified == "Sat, 21 Nov 2026 00:00:00 GMT")
        #expect(copy.response.expires == nil)
        #expect(copy[Recipe().canonicalText]?.digest.description == MigrationTests.digest)
        // Of two variants one is in use, and the copy of it in `freshness` says the same.
        let used = try queried(
            """
            SELECT group_concat(used) FROM (
                SELECT sum(NOT superseded) AS used FROM variant GROUP BY resource_id)
            """, database)
        #expect(used == "1,1")
        #expect(try queried("SELECT sum(superseded) FROM variant", database) == "1")
        #expect(try queried("SELECT sum(superseded) FROM freshness", database) == "1")
        #expect(try cache.log.lastRunMayHaveLeftStrays() == false)
    }

    @Test func aCacheOfVersion2KeepsAllThatItHas() throws {
        try make(2)
        let tables = ["resource", "variant", "freshness", "attribute", "failure", "run"]
        let columns = try tables.map { try self.columns(of: $0) }
        let before = try zip(tables, columns).map { try text(of: $0, columns: $1) }
        #expect(before.allSatisfy { !$0.isEmpty && $0 != "None" })
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        let after = try zip(tables, columns).map { try text(of: $0, columns: $1) }
        #expect(after == before)
        let reader = try CacheReader(cache) { _ in false }
        let copy = try #require(try reader.copies(of: [7])[0])
        #expect(copy.permanentURL == nil)
        #expect(copy.responseURL == "http://b/7")
        #expect(copy.response.vary == "accept: image/png")
        #expect(try cache.hosts.all(at: Timestamp(milliseconds: 5000)) == [])
        #expect(try cache.partials.part(key: "http://a/9", url: "http://a/9") == nil)
        #expect(try cache.log.lastRunMayHaveLeftStrays() == false)
    }

    /// Nothing else was stored.
    @Test(arguments: [1, 2, 6, 7])
    func imagesOfOlderVersionsAreDecoded(version: Int) throws {
        try make(version)
        let cache = try #require(try OpenCache.open(path: path, waiting: .none))
        #expect(try queried("SELECT group_concat(DISTINCT decoded) FROM variant", database) == "1")
        let reader = try CacheReader(cache) { _ in false }
        let images = try #require(try reader.copies(of: [1])[0]).images
        #expect(images.count == 2 && images.allSatisfy(\.image.isDecoded))
    }

    @Test(arguments: [1, 2])
    func variantsOfOlderVersionsAreMain(version: Int) throws {
        try make(version)
        _ = try #require(try OpenCache.open(path: path, waiting: .none))
        #expect(try queried("SELECT group_concat(DISTINCT name) FROM variant", database) == "0")
        #expect(
            try queried("SELECT group_concat(id || name) FROM variant_name", database) == "0main")
    }

    /// Of two resources with three variants and two different files, each of 3 bytes.
    @Test(arguments: [1, 2, 6, 7])
    func totalsOfOlderCachesAreSummedUp(version: Int) throws {
        try make(version)
        let cache = try #require(try OpenCache.open(path: path, waiting: .aMoment))
        #expect(try cache.database.read("testing") { try TotalsCheck.difference(in: $0) } == nil)
        #expect(try cache.usage() == DiskUsage(files: 2, blocks: 2))
        let counts = "SELECT resources || ' ' || source_bytes || ' ' || file_bytes FROM usage"
        #expect(try queried(counts, database) == "2 6 6")
        #expect(try queried("SELECT sum(variants) FROM total", database) == "3")
        // And what is wrong with them is seen.
        try runSQL("UPDATE usage SET blocks = 7", database)
        #expect(try cache.database.read("testing") { try TotalsCheck.difference(in: $0) } != nil)
        try cache.rebuildTotals()
        #expect(try cache.usage() == DiskUsage(files: 2, blocks: 2))
    }

    private func columns(of table: String) throws -> String {
        try queried(
            "SELECT group_concat('quote(' || name || ')') FROM pragma_table_info('\(table)')",
            database)
    }

    /// All values of a table, as SQL literals.
    private func text(of table: String, columns: String) throws -> String {
        let row = columns.replacing(",", with: " || ', ' || ")
        return try queried("SELECT group_concat(\(row), '; ') FROM \(table)", database)
    }

    @Test(arguments: [1, 2, 6, 7])
    func readingCommandsAskForTheRunThatMigrates(version: Int) throws {
        try make(version)
        let directory = try CacheDirectory(path: path, access: .readOnly)
        let error = #expect(throws: StorageError.self) {
            try CacheCatalog(directory: directory)
        }
        #expect(error?.message.contains("older version") == true)
        #expect(error?.hint?.contains("prefetch run") == true)
    }

    /// A new cache and a migrated one have the same tables.
    @Test(arguments: [1, 2, 6, 7])
    func migratedAndNewCachesHaveTheSameSchema(version: Int) throws {
        try make(version)
        let new = folder.path + "/new"
        for path in [path, new] { _ = try OpenCache.open(path: path, waiting: .aMoment) }
        let schemas = try [path, new].map { path in
            let output = folder.path + "/schema.txt"
            try runSQL(
                """
                ATTACH '\(output)' AS other;
                CREATE TABLE other.texts AS
                    SELECT name, replace(replace(replace(sql, ' ', ''), char(10), ''), '"', '')
                        AS sql FROM main.sqlite_schema ORDER BY name;
                """, path + "/prefetch.sqlite")
            defer { try? FileManager.default.removeItem(atPath: output) }
            return try Data(contentsOf: URL(fileURLWithPath: output))
        }
        #expect(schemas[0].count > 4096)
        #expect(schemas[0] == schemas[1])
    }
}
