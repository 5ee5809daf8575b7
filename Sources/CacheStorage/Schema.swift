internal import GRDB

// The metadata in `prefetch.sqlite`. Times are milliseconds since 1970-01-01 00:00 UTC; digests
// are the 32 bytes of a SHA-256 as a BLOB (`lower(hex(sha256))` gives the file's name). Tables
// are STRICT. Other programs may read it while a run writes (WAL).
//
// resource  what is known of one cache key
//   id             INTEGER  primary key
//   key            TEXT     unique; the URL without fragment and user information, normalised, or
//                           what the manifest's field `key` says
//   url            TEXT     the URL that was asked for, without user information
//   final_url      TEXT     where redirects led; NULL without any
//   host           TEXT     scheme, host and port of `url`
//   etag, last_modified, cache_control, vary   TEXT  the response's fields as they came, or NULL
//   date           INTEGER  the response's `Date`, or NULL
//   fetched_at     INTEGER  when the body arrived
//   validated_at   INTEGER  when the origin last said that the copy is good
//   expires_at     INTEGER  fresh until then
//   source_bytes, source_format, source_sha256, source_width, source_height
//                           the image as fetched; width and height in pixels as it is stored, before
//                           any orientation
// variant   what is stored of a resource; primary key (resource_id, recipe)
//   resource_id    INTEGER  resource.id; removed with it
//   recipe         TEXT     canonical text of what was asked for, see `Recipe`
//   sha256         BLOB     names the content file content/ab/<sha256>.<extension of format>
//   format         TEXT     jpeg, png
//   width, height  INTEGER  in pixels
//   bytes          INTEGER  size of the content file
//   created_at, last_access_at  INTEGER
// run       one row per run
//   id             INTEGER  primary key
//   started_at     INTEGER
//   ended_at       INTEGER  NULL while it runs, and for ever when it was killed
//   manifest       TEXT     the manifests' names, separated by newlines
//   exit_status    INTEGER  NULL like ended_at
//   counters       TEXT     JSON object: entries, requests, bytes_received, bytes_stored, and one
//                           member per outcome
//
// A row never names a missing file: files are in place before their rows are committed, and go
// after the last row that names them is gone.
enum Schema {
    /// `PRAGMA application_id`: "prfc", so that no other program's database is taken for ours.
    static let applicationID: Int32 = 0x7072_6663

    /// Shipped migrations are frozen: a change is a new one.
    static let migrator: DatabaseMigrator = {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(
                sql: """
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
                    """)
        }
        return migrator
    }()
}
