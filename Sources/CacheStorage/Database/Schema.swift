import Hashing
import PrefetchModel
internal import SQLite

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
//   permanent_url  TEXT     where the permanent redirects (301, 308) led that came first, before any
//                           other one; NULL without such
//   host           TEXT     scheme, host and port of `url`
//   etag, last_modified, cache_control, expires   TEXT  the response's fields as they came, or NULL
//   vary           TEXT     the request fields that the response varies on, with the values that
//                           were sent: lines `name: value`, sorted; `*` for `Vary: *`; NULL
//                           without Vary
//   date           INTEGER  the response's `Date`, or NULL
//   fetched_at     INTEGER  when the body arrived
//   validated_at   INTEGER  when the origin last said that the copy is good
//   expires_at     INTEGER  fresh until then; 0 when it has to be validated at every use
//   source_bytes, source_format, source_sha256, source_width, source_height
//                           the image as fetched; width and height in pixels as it is stored, before
//                           any orientation; 0 like those of a variant
//   content_type   TEXT     the response's field as it came; NULL without it, and in rows of older
//                           versions
//   redirects      INTEGER  redirects that were followed to the response; NULL in rows of older
//                           versions
//   thumbhash      BLOB     the picture's ThumbHash, 5 to 25 bytes; NULL where none was made
//   color          INTEGER  its dominant colour, 0xRRGGBB; NULL where none was made, and of a picture
//                           that is transparent everywhere. Both are shown as attributes, see
//                           `Placeholder`
// variant   what is stored of a resource; primary key (resource_id, recipe)
//   resource_id    INTEGER  resource.id; removed with it
//   recipe         TEXT     canonical text of what was asked for, see `Recipe`
//   sha256         BLOB     names the content file content/ab/<sha256>.<extension of format>
//   format         TEXT     jpeg, png; of what is stored as it came, that of the source
//   width, height  INTEGER  in pixels; 0 where that is not known, which takes a format that is not decoded
//   bytes          INTEGER  size of the content file
//   created_at     INTEGER
//   last_access_at INTEGER  when it was made or superseded, or `get` noted that it was asked for
//   name           INTEGER  variant_name.id: the name that it is in use by, or was last; of several
//                           names with its recipe main, else the first
//   superseded     INTEGER  1 when a later run used another variant of the resource by that name; at
//                           most one of each name has 0 and is in use
//   decoded        INTEGER  0 for bytes that were stored as they came since their format is not decoded:
//                           whatever the recipe says, they are the source's
// variant_name  what runs call the variants that they keep
//   id             INTEGER  primary key; 0 is main, which is always there
//   name           TEXT     unique; see `VariantName`
//   recipe         TEXT     that of the last run that used the name, like `variant.recipe`; for main,
//                           single entries may have another one
//   used_at        INTEGER  when a run used the name last; NULL when none has since version 9
// freshness  one row per variant: all that a run asks for an entry that is warm
//   fingerprint      INTEGER  primary key; the first 64 bits of SHA-256(key) XOR SHA-256(recipe)
//   fingerprint_low  INTEGER  the 64 bits behind them
//   resource_id      INTEGER  resource.id
//   validated_at, expires_at  INTEGER  as in the resource
//   vary             INTEGER  the first 64 bits of SHA-256(resource.vary), or NULL
//   superseded       INTEGER  0 when the variant is in use as main, 2 when as another name, 1 when it
//                             is superseded
// attribute  extended attributes of a resource; primary key (resource_id, name)
//   resource_id    INTEGER  resource.id; removed with it
//   name           TEXT     1 to 255 bytes; names that begin with `prefetch.` are ours, and are not here
//   value          BLOB     at most 65536 bytes
// failure   what could not be fetched; one row per cache key, removed by the next success
//   key            TEXT     primary key, like `resource.key`; a resource need not exist
//   url, host      TEXT     like the resource's
//   reason         TEXT     of the last failure, see `FailureReason`
//   http_status    INTEGER  of the last response, or NULL
//   curl_code      INTEGER  libcurl's code, or NULL
//   message        TEXT     details for people
//   attempts       INTEGER  times that it was tried since the first failure, retries included; the
//                           redirects of a try are part of it
//   class          TEXT     permanent, transient: what `runs_in_a_row` counts
//   runs_in_a_row  INTEGER  runs in a row that ended and in which it failed in this class
//   first_failed_at, last_failed_at  INTEGER
//   blacklisted_until  INTEGER  not asked for before then; NULL when it is not blacklisted
//   run_id         INTEGER  the run of the last failure while that run's end has not been
//                           settled, else NULL
//   conditions     TEXT     what the last failure depends on, `name=value` separated by spaces: a
//                           run in which any of it differs asks again; NULL in rows of older
//                           versions, which hold for every run
//   former         TEXT     while `run_id` is set, what the row held before, as a JSON array: reason,
//                           http_status, curl_code, message, class, conditions, last_failed_at,
//                           attempts; else NULL
// host      what is known of hosts that failed or asked to be spared; none for the others
//   host               TEXT     primary key; scheme, host and port, like `resource.host`
//   concurrency        INTEGER  transfers that it bears at once, 1 or more; NULL when it bears as
//                               many as the user allows
//   failures_in_a_row  INTEGER  failures of connections since the last answer
//   cooling_until      INTEGER  not asked for anything before then, at most 7 days after
//                               `updated_at`; or NULL
//   updated_at         INTEGER
// partial   bodies of more than 1 MiB that broke off and can be continued; at most 256 MiB in all
//   key            TEXT     primary key, like `resource.key`; a resource need not exist; the bytes
//                           are the file tmp/<SHA-256 of the key in hexadecimal>.partial
//   url            TEXT     the URL that sent them, at the end of all redirects, without user
//                           information
//   etag, last_modified  TEXT  the response's field, as it came; one of them is NULL: the other is
//                           what has to be sent in `If-Range`
//   bytes          INTEGER  size of the file
//   sha256         BLOB     of the file
//   total          INTEGER  bytes of the whole body, or NULL when the response did not say
//   created_at     INTEGER  when the last of the bytes came
// folder    the folders content/00 to content/ff as they were when all their files were last seen; a
//           folder that has changed since is listed before its rows are believed
//   number         INTEGER  primary key; 0 to 255
//   modified_at, changed_at  INTEGER  the folder's times (st_mtim, st_ctim) in nanoseconds since 1970
// property  what is true of the whole cache
//   name           TEXT     primary key
//   value          INTEGER
//   Names: `orphans_kept_before`, a time: the database was begun anew in a cache that had content
//   files, since the one before was damaged or gone. Files from before then are kept though no row
//   names them; they are compared with their names before a row names them again.
//   `listings_begin`, a time: which runs listed what is known since then.
//   `last_pruned`, a time: when `run --prune` has pruned last. `prune_max_size` and other names that
//   begin with `prune_`: the rules that were given last, see `PruneRules`.
//   `removal_unfinished`, a time: since then images are being removed, whose files may be there though
//   no row names them any more. `file_mode`, permission bits: what files have; without it 0600, less the umask.
// listing   what the lists of runs have named; see `ListingLog`
//   id             INTEGER  primary key
//   first_at, last_at  INTEGER  when the earliest and the latest of these runs began
//   resources      BLOB     their identifiers, see `ResourceSet`
// total     variants by what `stats` shows them by; kept by triggers; primary key (host, format, name,
//           superseded)
//   host, format, name, superseded  like those of the resource and of the variant
//   variants       INTEGER  how many; a row may have 0
//   bytes          INTEGER  sum of their `variant.bytes`
// usage     the sums of the whole cache, in one row; kept by triggers
//   id             INTEGER  0
//   resources, source_bytes  INTEGER  rows of `resource`, and the sum of their `source_bytes`
//   files, file_bytes  INTEGER  different content files, and the sum of their sizes
//   blocks         INTEGER  what they take on the disk, in blocks of 4096 bytes
// run       one row per run
//   id             INTEGER  primary key
//   started_at     INTEGER
//   ended_at       INTEGER  NULL while it runs, and for ever when it was killed
//   manifest       TEXT     the manifests' names, separated by newlines
//   exit_status    INTEGER  NULL like ended_at
//   counters       TEXT     JSON object: entries, requests, bytes_received, bytes_stored, one member
//                           per outcome, and known_failures: those of `failed` that an earlier run had
//                           for the same reason; missing in rows of older versions
//   boot_id        TEXT     the machine's boot that it ran in (/proc/sys/kernel/random/boot_id);
//                           NULL where the system does not say, and in rows of older versions
//   files_synced   INTEGER  1 when its files are on the disk if their rows are: they were before
//                           the rows were committed, or a later run has compared them
//
// A row never names a missing file: files are on the disk before their rows are committed, and go
// after the last row that names them is gone for good. (A machine that goes down may leave a row of
// `partial` whose file is gone, which goes at the next run, and rows of runs with `--sync off`, which
// the next run compares with their files.) `freshness` says of every variant what its resource says;
// where two variants meet in `fingerprint`, one of them has no row. Rows of `variant`, `freshness`
// and `attribute` go with their resource, also when another program removes it.
enum Schema {
    /// `PRAGMA application_id`: "prfc", so that no other program's database is taken for ours.
    static let applicationID: Int32 = 0x7072_6663

    /// Shipped migrations are frozen: a change is a new one. The check of a suspected database compares its schema
    /// with what these make, comments included.
    ///
    /// The table of versions has the name that GRDB gave it, by which the first caches were made.
    static let migrator = Migrator(
        table: "grdb_migrations",
        [
            Migrator.Migration("1", makeVersion1), Migrator.Migration("2", makeVersion2),
            Migrator.Migration("3", makeVersion3), Migrator.Migration("4", makeVersion4),
            Migrator.Migration("5", makeVersion5), Migrator.Migration("6", makeVersion6),
            Migrator.Migration("7", makeVersion7), Migrator.Migration("8", makeVersion8),
            Migrator.Migration("9", makeVersion9),
        ])

    private static func makeVersion1(_ database: Connection) throws {
        try database.execute(
            """
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

    /// Adds freshness, failures and attributes.
    ///
    /// Version 1 kept in `vary` the names alone; such a text never matches a request, so what
    /// varies is validated once.
    private static func makeVersion2(_ database: Connection) throws {
        try database.execute(
            """
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
            """)
        let hasher = SHA256Hasher()
        let rows = try Statement(
            database,
            sql: """
                SELECT key, recipe, resource_id, validated_at, expires_at, vary
                FROM resource JOIN variant ON id = resource_id
                """)
        let insertion = try Statement(
            database,
            sql: """
                INSERT OR IGNORE INTO freshness (fingerprint, fingerprint_low, resource_id,
                    validated_at, expires_at, vary)
                VALUES (?, ?, ?, ?, ?, ?)
                """)
        while try rows.step() {
            let (keyHigh, keyLow) = hasher.digest(of: try rows.text(0)).leadingWords
            let (recipeHigh, recipeLow) = hasher.digest(of: try rows.text(1)).leadingWords
            let vary = try rows.optionalText(5).map { text in
                Int64(bitPattern: hasher.digest(of: text).leadingWords.0)
            }
            try insertion.execute(
                .integer(Int64(bitPattern: keyHigh ^ recipeHigh)),
                .integer(Int64(bitPattern: keyLow ^ recipeLow)), .integer(try rows.integer(2)),
                .integer(try rows.integer(3)), .integer(try rows.integer(4)), .init(vary))
        }
    }

    /// Adds permanent redirects, hosts and bodies that broke off.
    private static func makeVersion3(_ database: Connection) throws {
        try database.execute(
            """
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
            """)
    }
    /// Adds properties and what is known of the disk at a run's end. Identifiers of resources are given
    /// anew, so what names one must not outlive it: a trigger holds for programs, too, that leave
    /// SQLite's foreign keys off.
    private static func makeVersion4(_ database: Connection) throws {
        try database.execute(
            """
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
            """)
    }

    /// Adds what makes an answer believable: the folders' times, what a failure depends on, and which
    /// variant is in use.
    ///
    /// Of several variants the newest counts as the one in use. The indexes over URLs hold only what is not
    /// found by its key.
    private static func makeVersion5(_ database: Connection) throws {
        try database.execute(
            """
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
            """)
        let superseded = try Statement(
            database,
            sql: """
                SELECT key, recipe FROM variant JOIN resource ON id = resource_id WHERE superseded
                """)
        let update = try Statement(
            database,
            sql: """
                UPDATE freshness SET superseded = 1 WHERE fingerprint = ? AND fingerprint_low = ?
                """)
        let hasher = SHA256Hasher()
        while try superseded.step() {
            let fingerprint = VariantFingerprint(
                KeyFingerprint(try superseded.text(0), hasher: hasher),
                RecipeFingerprint(try superseded.text(1), hasher: hasher))
            try update.execute(.integer(fingerprint.upper), .integer(fingerprint.lower))
        }
    }

    /// Adds the names of variants: all that there were are called main.
    private static func makeVersion6(_ database: Connection) throws {
        try database.execute(
            """
            CREATE TABLE variant_name (
                id INTEGER PRIMARY KEY,
                name TEXT NOT NULL UNIQUE,
                recipe TEXT NOT NULL
            ) STRICT;
            INSERT INTO variant_name VALUES (0, 'main', 'same;q=85;strip=safe');

            ALTER TABLE variant ADD COLUMN name INTEGER NOT NULL DEFAULT 0;
            """)
    }

    /// Adds whether variants are of a format that is decoded: all that there were are.
    private static func makeVersion7(_ database: Connection) throws {
        try database.execute(
            "ALTER TABLE variant ADD COLUMN decoded INTEGER NOT NULL DEFAULT 1")
    }
}
