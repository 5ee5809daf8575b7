extension MigrationTests {
    /// As the versions before left it that stored nothing as it came but what was decoded.
    static let version6 =
        version2 + """

            INSERT INTO grdb_migrations VALUES ('3');
            ALTER TABLE resource ADD COLUMN permanent_url TEXT;

            CREATE TABLE host (
                host TEXT PRIMARY KEY,
                concurrency INTEGER,
                failures_in_a_row INTEGER NOT NULL,
                cooling_until INTEGER,
                updated_at INTEGER NOT NULL
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
            INSERT INTO grdb_migrations VALUES ('4');
            ALTER TABLE run ADD COLUMN boot_id TEXT;
            ALTER TABLE run ADD COLUMN files_synced INTEGER NOT NULL DEFAULT 0;
            UPDATE run SET files_synced = ended_at IS NOT NULL;

            CREATE TABLE property (
                name TEXT PRIMARY KEY,
                value INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;

            DELETE FROM freshness WHERE resource_id NOT IN (SELECT id FROM resource);
            DELETE FROM variant WHERE resource_id NOT IN (SELECT id FROM resource);
            DELETE FROM attribute WHERE resource_id NOT IN (SELECT id FROM resource);
            CREATE INDEX freshness_resource_id ON freshness (resource_id);
            CREATE TRIGGER resource_removed AFTER DELETE ON resource BEGIN
                DELETE FROM freshness WHERE resource_id = old.id;
                DELETE FROM attribute WHERE resource_id = old.id;
                DELETE FROM variant WHERE resource_id = old.id;
            END;
            INSERT INTO grdb_migrations VALUES ('5');
            ALTER TABLE resource ADD COLUMN content_type TEXT;
            ALTER TABLE resource ADD COLUMN redirects INTEGER;
            CREATE INDEX resource_url ON resource (url) WHERE url <> key;

            ALTER TABLE variant ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE freshness ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;
            UPDATE variant SET superseded = 1 WHERE EXISTS (
                SELECT 1 FROM variant AS other WHERE other.resource_id = variant.resource_id
                    AND (other.created_at, other.recipe) > (variant.created_at, variant.recipe));

            ALTER TABLE failure ADD COLUMN conditions TEXT;
            ALTER TABLE failure ADD COLUMN former TEXT;
            CREATE INDEX failure_url ON failure (url) WHERE url <> key;

            CREATE TABLE folder (
                number INTEGER PRIMARY KEY CHECK (number BETWEEN 0 AND 255),
                modified_at INTEGER NOT NULL,
                changed_at INTEGER NOT NULL
            ) STRICT;
            INSERT INTO grdb_migrations VALUES ('6');
            CREATE TABLE variant_name (
                id INTEGER PRIMARY KEY,
                name TEXT NOT NULL UNIQUE,
                recipe TEXT NOT NULL
            ) STRICT;
            INSERT INTO variant_name VALUES (0, 'main', 'same;q=85;strip=safe');

            ALTER TABLE variant ADD COLUMN name INTEGER NOT NULL DEFAULT 0;
            """
}
