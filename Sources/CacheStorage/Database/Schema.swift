import PrefetchModel
internal import SQLite

// The metadata in `prefetch.sqlite`. docs/cache.md explains tables, columns and properties,
// docs/schema.sql has the other tables; a test compares the statements of both with a new database.
// Times are milliseconds since 1970-01-01 00:00 UTC.
// Digests are the 32 bytes of a SHA-256 as a BLOB; `lower(hex(sha256))` gives the file's name.
// Other programs may read the database while a run writes (WAL).
//
// A row never names a missing file: files are on the disk before their rows are committed, and are
// removed after the removal of the last row that names them is permanent. A crash of the machine
// can leave two exceptions, both repaired by the next run: a row of `partial` without its file, and
// rows of runs with `--sync off`. `freshness` repeats the resource for each variant; if two
// variants have the same `fingerprint`, one of them has no row. Rows of `variant`, `freshness` and
// `attribute` are removed with their resource, also when another program removes it.
enum Schema {
    /// `PRAGMA user_version`. A cache of another version is refused and stays unchanged.
    static let schemaVersion: Int64 = 1

    /// `PRAGMA application_id`: "prfc", which marks a database of this program.
    static let applicationID: Int32 = 0x7072_6663

    static func makeTables(_ database: Connection) throws {
        try database.transaction(.immediate) {
            for statements in [images, failures, runs, totals, resourceTriggers, variantTriggers] {
                try database.execute(statements)
            }
            try database.execute(
                "INSERT INTO \(mainVariantName); PRAGMA user_version = \(schemaVersion)")
        }
    }

    /// The row of `main`, as the target and values of an INSERT.
    static let mainVariantName = """
        variant_name (id, name, recipe) VALUES (0, 'main', 'same;q=85;strip=safe')
        """

    /// Images. The indexes on URLs hold only URLs that a look-up by key does not find.
    static let images = """
        CREATE TABLE resource (
            id INTEGER PRIMARY KEY,
            key TEXT NOT NULL UNIQUE,
            url TEXT NOT NULL,
            listed_url TEXT,
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
            source_height INTEGER NOT NULL,
            expires TEXT,
            permanent_url TEXT,
            content_type TEXT,
            redirects INTEGER NOT NULL DEFAULT 0,
            thumbhash BLOB
                CHECK (length(thumbhash) BETWEEN 5 AND 25),
            color INTEGER,
            permanent_until INTEGER
        ) STRICT;
        CREATE INDEX resource_url ON resource (url) WHERE url <> key;
        CREATE INDEX resource_listed_url ON resource (listed_url)
            WHERE listed_url IS NOT NULL;
        CREATE INDEX resource_final_url ON resource (id)
            WHERE final_url IS NOT NULL;

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
            superseded INTEGER NOT NULL DEFAULT 0,
            name INTEGER NOT NULL DEFAULT 0,
            decoded INTEGER NOT NULL DEFAULT 1,
            orientation INTEGER NOT NULL DEFAULT 1,
            PRIMARY KEY (resource_id, recipe)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX variant_sha256 ON variant (sha256);

        CREATE TABLE variant_name (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            recipe TEXT NOT NULL,
            used_at INTEGER
        ) STRICT;

        CREATE TABLE freshness (
            fingerprint INTEGER PRIMARY KEY,
            fingerprint_low INTEGER NOT NULL,
            resource_id INTEGER NOT NULL,
            validated_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            vary INTEGER,
            superseded INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX freshness_resource_id ON freshness (resource_id);

        CREATE TABLE attribute (
            resource_id INTEGER NOT NULL
                REFERENCES resource (id) ON DELETE CASCADE,
            name TEXT NOT NULL
                CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 255),
            value BLOB NOT NULL CHECK (length(value) <= 65536),
            PRIMARY KEY (resource_id, name)
        ) STRICT, WITHOUT ROWID;
        """

    static let failures = """
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
            run_id INTEGER,
            conditions TEXT,
            former TEXT
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX failure_run_id ON failure (run_id) WHERE run_id IS NOT NULL;
        CREATE INDEX failure_url ON failure (url) WHERE url <> key;

        CREATE TABLE host (
            host TEXT PRIMARY KEY,
            concurrency INTEGER,
            failures_in_a_row INTEGER NOT NULL,
            cooling_until INTEGER,
            updated_at INTEGER NOT NULL,
            interval_us INTEGER,
            latency_us INTEGER,
            limited_by TEXT
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE partial (
            key TEXT PRIMARY KEY,
            url TEXT NOT NULL,
            etag TEXT,
            last_modified TEXT,
            bytes INTEGER NOT NULL,
            sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
            total INTEGER,
            created_at INTEGER NOT NULL,
            CHECK ((etag IS NULL) <> (last_modified IS NULL))
        ) STRICT, WITHOUT ROWID;
        """

    /// Runs and facts. `run_unsynced` has the runs with possibly missing files, usually none.
    static let runs = """
        CREATE TABLE run (
            id INTEGER PRIMARY KEY,
            started_at INTEGER NOT NULL,
            ended_at INTEGER,
            manifest TEXT NOT NULL,
            exit_status INTEGER,
            counters TEXT,
            boot_id TEXT,
            files_synced INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX run_unsynced ON run (id) WHERE NOT files_synced;

        CREATE TABLE folder (
            number INTEGER PRIMARY KEY CHECK (number BETWEEN 0 AND 255),
            modified_at INTEGER NOT NULL,
            changed_at INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE property (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

        CREATE TABLE listing (
            id INTEGER PRIMARY KEY,
            first_at INTEGER NOT NULL,
            last_at INTEGER NOT NULL,
            resources BLOB NOT NULL
        ) STRICT;
        """

    /// The totals, which triggers keep, also when other programs change rows.
    static let totals = """
        CREATE TABLE total (
            host TEXT NOT NULL,
            format TEXT NOT NULL,
            name INTEGER NOT NULL,
            superseded INTEGER NOT NULL,
            variants INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            PRIMARY KEY (host, format, name, superseded)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE usage (
            id INTEGER PRIMARY KEY CHECK (id = 0),
            resources INTEGER NOT NULL,
            source_bytes INTEGER NOT NULL,
            files INTEGER NOT NULL,
            file_bytes INTEGER NOT NULL,
            blocks INTEGER NOT NULL
        ) STRICT;

        INSERT INTO usage VALUES (0, 0, 0, 0, 0, 0);
        """

    /// The triggers on `resource` run before the row is removed, since its variants count towards
    /// its host. `resource_removed` also removes the rows that name the resource, in place of
    /// foreign keys, which other programs may leave off: identifiers are reused.
    private static let resourceTriggers = """
        CREATE TRIGGER resource_removed BEFORE DELETE ON resource BEGIN
            DELETE FROM freshness WHERE resource_id = old.id;
            DELETE FROM attribute WHERE resource_id = old.id;
            DELETE FROM variant WHERE resource_id = old.id;
            UPDATE usage SET resources = resources - 1,
                source_bytes = source_bytes - old.source_bytes;
        END;

        CREATE TRIGGER resource_added AFTER INSERT ON resource BEGIN
            UPDATE usage SET resources = resources + 1,
                source_bytes = source_bytes + new.source_bytes;
        END;

        CREATE TRIGGER resource_resized AFTER UPDATE OF source_bytes ON resource
        WHEN old.source_bytes <> new.source_bytes BEGIN
            UPDATE usage SET source_bytes = source_bytes - old.source_bytes + new.source_bytes;
        END;

        CREATE TRIGGER resource_moved AFTER UPDATE OF host ON resource
        WHEN old.host <> new.host BEGIN
            INSERT INTO total
            SELECT new.host, format, name, superseded, 1, bytes FROM variant
            WHERE resource_id = new.id
            ON CONFLICT DO UPDATE SET variants = variants + 1, bytes = bytes + excluded.bytes;
            INSERT INTO total
            SELECT old.host, format, name, superseded, -1, -bytes FROM variant
            WHERE resource_id = new.id
            ON CONFLICT DO UPDATE SET variants = variants - 1, bytes = bytes + excluded.bytes;
            DELETE FROM total WHERE host = old.host AND variants <= 0;
        END;
        """

    private static let variantTriggers = """
        CREATE TRIGGER variant_added AFTER INSERT ON variant BEGIN
            INSERT INTO total VALUES (
                coalesce((SELECT host FROM resource WHERE id = new.resource_id), ''),
                new.format, new.name, new.superseded, 1, new.bytes)
            ON CONFLICT DO UPDATE SET variants = variants + 1, bytes = bytes + new.bytes;
            UPDATE usage SET files = files + 1, file_bytes = file_bytes + new.bytes,
                blocks = blocks + (new.bytes + 4095) / 4096
            WHERE NOT EXISTS (SELECT 1 FROM variant WHERE sha256 = new.sha256
                AND (resource_id <> new.resource_id OR recipe <> new.recipe));
        END;

        CREATE TRIGGER variant_removed AFTER DELETE ON variant BEGIN
            UPDATE total SET variants = variants - 1, bytes = bytes - old.bytes
            WHERE host = coalesce((SELECT host FROM resource WHERE id = old.resource_id), '')
                AND format = old.format AND name = old.name AND superseded = old.superseded;
            UPDATE usage SET files = files - 1, file_bytes = file_bytes - old.bytes,
                blocks = blocks - (old.bytes + 4095) / 4096
            WHERE NOT EXISTS (SELECT 1 FROM variant WHERE sha256 = old.sha256);
        END;

        CREATE TRIGGER variant_used AFTER UPDATE OF name, superseded ON variant
        WHEN old.name <> new.name OR old.superseded <> new.superseded BEGIN
            UPDATE total SET variants = variants - 1, bytes = bytes - old.bytes
            WHERE host = coalesce((SELECT host FROM resource WHERE id = old.resource_id), '')
                AND format = old.format AND name = old.name AND superseded = old.superseded;
            INSERT INTO total VALUES (
                coalesce((SELECT host FROM resource WHERE id = new.resource_id), ''),
                new.format, new.name, new.superseded, 1, new.bytes)
            ON CONFLICT DO UPDATE SET variants = variants + 1, bytes = bytes + new.bytes;
        END;
        """

    static let totalSums = """
        SELECT host, format, name, superseded, count(*), sum(bytes)
        FROM variant JOIN resource ON id = resource_id GROUP BY 1, 2, 3, 4
        """

    /// The columns of `usage` except `id`, summed up by a scan.
    static let usageSums = """
        SELECT (SELECT count(*) FROM resource),
            (SELECT coalesce(sum(source_bytes), 0) FROM resource), count(*),
            coalesce(sum(bytes), 0), coalesce(sum((bytes + 4095) / 4096), 0)
        FROM (SELECT max(bytes) AS bytes FROM variant GROUP BY sha256)
        """
}

package enum StorageVersions {
    package static var schema: String { "\(Schema.schemaVersion)" }
    package static var sqlite: String { Connection.libraryVersion }
}
