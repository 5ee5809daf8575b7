import Foundation
import Hashing
import TestSupport
import Testing

/// Databases that another program has changed, given to every command that opens one.
@Suite(.timeLimit(.minutes(20)))
struct ForeignDatabaseTests {
    /// Takes hours in one instruction, or a gigabyte where large values are allowed.
    private static let costly = "instr(zeroblob(30000000), zeroblob(15000000) || x''01'')"
    private static let endless =
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i"

    /// Changes the SQL of a part of the schema.
    private static func edit(_ name: String, _ old: String, _ new: String) -> String {
        """
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(sql, '\(old)', '\(new)') WHERE name = '\(name)';
        """
    }

    private static let hostile: [(name: String, sql: String)] = [
        (
            "a generated column",
            edit(
                "resource", "color INTEGER",
                """
                color INTEGER, zz TEXT GENERATED ALWAYS AS (hex(zeroblob(480000000))) VIRTUAL
                """)
        ),
        ("a column that is generated", edit("resource", "etag TEXT", "etag TEXT AS (\(costly))")),
        ("a CHECK constraint", edit("run", "counters TEXT", "counters TEXT CHECK (\(costly))")),
        (
            "a default value",
            edit(
                "host", "concurrency INTEGER",
                """
                concurrency INTEGER DEFAULT (\(costly))
                """)
        ),
        (
            "an index on an expression",
            """
            CREATE INDEX zz ON resource (abs(id));
            \(edit("zz", "abs(id)", costly))
            """
        ),
        (
            "a partial index",
            """
            CREATE INDEX zz ON variant (name) WHERE name > 7; \(edit("zz", "name > 7", costly))
            """
        ),
        ("a column of an index", edit("variant_sha256", "sha256", "recipe")),
        (
            "a view",
            """
            ALTER TABLE resource RENAME TO zz;
            CREATE VIEW resource AS \(endless) AS id, 'k' AS key FROM n;
            """
        ),
        (
            "a virtual table",
            """
            DROP TABLE attribute;
            CREATE VIRTUAL TABLE attribute USING fts4 (resource_id, name, value);
            """
        ),
        (
            "a trigger",
            """
            CREATE TRIGGER zz AFTER INSERT ON run BEGIN DELETE FROM resource; END;
            """
        ),
        ("another trigger", edit("resource_added", "resources + 1", "resources + 2")),
        (
            "a costly table",
            """
            CREATE TABLE zz (a CHECK (a < 7)); INSERT INTO zz VALUES (1);
            \(edit("zz", "a < 7", costly))
            """
        ),
        (
            "a large schema",
            """
            PRAGMA writable_schema = ON;
            INSERT INTO sqlite_schema WITH RECURSIVE n(i) AS (
                VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
            SELECT 'view', 'v' || i, 'v' || i, 0, 'CREATE VIEW v' || i || ' AS SELECT 1' FROM n;
            """
        ),
        ("a long value", "UPDATE run SET manifest = CAST(zeroblob(80000000) AS TEXT)"),
    ]

    /// Parts of other programs that compute nothing.
    private static let harmless = """
        ALTER TABLE resource ADD COLUMN note TEXT NOT NULL DEFAULT 'none';
        CREATE TABLE theirs (a PRIMARY KEY, b VARCHAR(20)); CREATE VIEW seen AS SELECT * FROM theirs;
        CREATE INDEX theirs_too ON resource (host, note);
        CREATE TRIGGER theirs_as_well AFTER DELETE ON theirs BEGIN SELECT 1; END;
        """

    /// Commands by the way in which they open `bad/prefetch.sqlite` or its copy in a bucket, and
    /// whether they must name the damage.
    private static let openers: [(arguments: [String], saysWhat: String?)] = [
        (["list"], "damaged"), (["stats"], "damaged"), (["get", "URL"], "damaged"),
        (["export", "out", "--layout", "mirror"], "damaged"), (["doctor"], nil), (["verify"], nil),
        (["get", "URL", "--caches", "shard-{shard}"], "damaged"),
        (["run", "manifest.txt", "--cache-dir", "seeded", "--seed-cache", "bad"], "not used"),
        (["merge", "merged", "bad"], "bad: damaged"),
        (["pull", "s3://b/p", "--sink-credentials", "none", "--cache-dir", "pulled"], "0-of-1"),
        (
            [
                "get", "URL", "--sink", "s3://b/p", "--sink-credentials", "none", "--cache-dir",
                "got",
            ],
            "damaged"
        ), (["attr", "set", "URL", "a", "b"], "damaged"), (["verify", "--repair"], nil),
        (["run", "manifest.txt", "--cache-dir", "restored"], nil),
        // The last one replaces it.
        (["run", "manifest.txt"], "salvaged"),
    ]

    /// Makes a cache, changes its database, and makes copies for all commands.
    private func withBad(
        _ sql: String, _ body: (Workspace, [String], [String: String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let urls = (0..<3).map { index in
                origin.serve("/\(index).png", .image(Fixtures.png(seed: index)))
                return origin.url("/\(index).png")
            }
            try await withWorkspace(measuresMemory: true) { workspace in
                let list = try workspace.manifest(urls)
                let made = try await workspace.run("run", list, "--cache-dir", "bad", "--ttl", "1h")
                #expect(made.status == 0, "\(made)")
                try await workspace.runSQL(sql, of: "bad")
                let files = FileManager.default
                for copy in ["/shard-0", "/restored"] {
                    try files.copyItem(
                        atPath: workspace.folder + "/bad", toPath: workspace.folder + copy)
                }
                let restored = workspace.folder + "/restored"
                try? files.removeItem(atPath: restored + "/snapshot.sqlite")
                try files.moveItem(
                    atPath: restored + "/prefetch.sqlite", toPath: restored + "/snapshot.sqlite")
                let bytes = Array(
                    try Data(contentsOf: URL(filePath: workspace.folder + "/bad/prefetch.sqlite")))
                let digest = bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
                let done = """
                    {"type": "summary", "database": {"sha256": "\(digest)", "bytes": \(bytes.count)}}
                    """
                let bucket = Bucket(
                    on: origin,
                    [
                        "p/shards/0-of-1/_DONE.json": Array(done.utf8),
                        "p/shards/0-of-1/\(digest).sqlite": bytes,
                    ])
                try await body(workspace, urls, Bucket.environment(origin))
                withExtendedLifetime(bucket) {}
            }
        }
    }

    @Test(arguments: hostile.indices)
    func hostileSchemasAreRefusedOrSalvaged(index: Int) async throws {
        let (name, sql) = Self.hostile[index]
        try await withBad(sql) { workspace, urls, environment in
            for (arguments, saysWhat) in Self.openers {
                let hasOwn = ["--cache-dir", "merge"].contains { arguments.contains($0) }
                var command = workspace.command(
                    arguments.map { $0 == "URL" ? urls[0] : $0 }
                        + (hasOwn ? [] : ["--cache-dir", "bad"]))
                command.environment.merge(environment) { $1 }
                command.timeLimit = .seconds(30)
                let result = try await command.run()
                let text = "\(name), \(arguments.joined(separator: " ")): \(result)"
                #expect(result.status.map { (0...2).contains($0) } == true, "\(text)")
                #expect(result.peakMemoryInBytes ?? 0 < 150_000_000, "\(text)")
                // No command needs to read the long value.
                guard name != "a long value" else { continue }
                let said = result.output + result.error
                let isOfAnotherBuild = said.contains("not as this prefetch makes it")
                #expect(isOfAnotherBuild || said.contains(saysWhat ?? "database"), "\(text)")
            }
            let listed = try await workspace.run("list", "--cache-dir", "bad")
            #expect(listed.outputLines.count >= urls.count, "\(name): \(listed)")
        }
    }

    @Test func harmlessAdditionsAreAccepted() async throws {
        try await withBad(Self.harmless) { workspace, urls, environment in
            for (arguments, _) in Self.openers where !arguments.contains("s3://b/p") {
                let hasOwn = ["--cache-dir", "merge"].contains { arguments.contains($0) }
                let result = try await workspace.command(
                    arguments.map { $0 == "URL" ? urls[0] : $0 }
                        + (hasOwn ? [] : ["--cache-dir", "bad"])
                ).run()
                #expect(result.status == 0 && !result.error.contains("damage"), "\(result)")
            }
        }
    }
}
