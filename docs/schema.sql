-- The tables of the cache that only prefetch uses, and the triggers; cache.md has the others.

CREATE TRIGGER resource_removed BEFORE DELETE ON resource BEGIN
    DELETE FROM freshness WHERE resource_id = old.id;
    DELETE FROM attribute WHERE resource_id = old.id;
    DELETE FROM variant WHERE resource_id = old.id;
    UPDATE usage SET resources = resources - 1,
        source_bytes = source_bytes - old.source_bytes;
END;

CREATE TABLE freshness (
    fingerprint INTEGER PRIMARY KEY,  -- the first 64 bits of SHA-256(key) XOR SHA-256(recipe), signed, big-endian
    fingerprint_low INTEGER NOT NULL, -- the 64 bits behind them
    resource_id INTEGER NOT NULL,
    validated_at INTEGER NOT NULL,    -- this and the next as in `resource`
    expires_at INTEGER NOT NULL,
    vary INTEGER,                     -- the first 64 bits of SHA-256(resource.vary), or NULL
    superseded INTEGER NOT NULL DEFAULT 0  -- 0 when it is in use as `main`, 2 as another name, 1 when superseded
) STRICT;
CREATE INDEX freshness_resource_id ON freshness (resource_id);

CREATE TABLE partial (
    key TEXT PRIMARY KEY,             -- the bytes lie in tmp/<SHA-256 of the key>.partial
    url TEXT NOT NULL,                -- that answered, without user information
    etag TEXT,                        -- this or the next is what the rest is requested with
    last_modified TEXT,
    bytes INTEGER NOT NULL,           -- of the file
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    total INTEGER,                    -- of the whole body, or NULL
    created_at INTEGER NOT NULL,
    CHECK ((etag IS NULL) <> (last_modified IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE folder (
    number INTEGER PRIMARY KEY CHECK (number BETWEEN 0 AND 255),
    modified_at INTEGER NOT NULL,     -- the folder's times, in nanoseconds
    changed_at INTEGER NOT NULL
) STRICT;
CREATE TABLE property (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE listing (
    id INTEGER PRIMARY KEY,
    first_at INTEGER NOT NULL,        -- when the earliest and the latest of these runs began
    last_at INTEGER NOT NULL,
    resources BLOB NOT NULL           -- their identifiers
) STRICT;

CREATE TABLE total (
    host TEXT NOT NULL,               -- as in `resource`; the next three as in `variant`
    format TEXT NOT NULL,
    name INTEGER NOT NULL,
    superseded INTEGER NOT NULL,
    variants INTEGER NOT NULL,        -- how many there are, possibly 0
    bytes INTEGER NOT NULL,           -- of them
    PRIMARY KEY (host, format, name, superseded)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    resources INTEGER NOT NULL,
    source_bytes INTEGER NOT NULL,
    files INTEGER NOT NULL,           -- content files; equal images are one
    file_bytes INTEGER NOT NULL,
    blocks INTEGER NOT NULL           -- what they take on the disk, in blocks of 4096 bytes
) STRICT;
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
