extension Schema {
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
    static let resourceTriggers = """
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

    static let variantTriggers = """
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
