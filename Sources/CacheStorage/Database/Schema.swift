import PrefetchModel
internal import SQLite

// The metadata in `prefetch.sqlite`. Times are milliseconds since 1970-01-01 00:00 UTC. Digests are
// the 32 bytes of a SHA-256 as a BLOB; `lower(hex(sha256))` gives the file's name. Tables are
// STRICT. Other programs may read the database while a run writes (WAL). `PRAGMA user_version` is the
// version of the schema.
//
// resource  one cache key
//   id             INTEGER  primary key
//   key            TEXT     unique; the URL without fragment and user information, normalised, or
//                           the manifest's field `key`
//   url            TEXT     the requested URL, without user information
//   listed_url     TEXT     the URL of the line with `key` that named it last without a request;
//                           NULL if that is `url`
//   final_url      TEXT     the target of all redirects; NULL without any
//   permanent_url  TEXT     the target of the leading permanent redirects (301, 308), up to the
//                           first other redirect; NULL without any
//   host           TEXT     scheme, host and port of `url`
//   etag, last_modified, cache_control, expires   TEXT  response fields, unchanged; or NULL
//   vary           TEXT     the request fields that the response varies on, with the values that
//                           were sent: lines `name: value`, sorted; `*` for `Vary: *`; NULL
//                           without Vary
//   date           INTEGER  the response's `Date`, or NULL
//   fetched_at     INTEGER  when the body arrived
//   validated_at   INTEGER  when the origin last confirmed the copy
//   expires_at     INTEGER  fresh until then; 0 if it must be validated at each use
//   source_bytes, source_format, source_sha256, source_width, source_height
//                           the image as fetched; width and height in pixels as displayed, with
//                           EXIF orientation applied; 0 if unknown
//   content_type   TEXT     response field, unchanged; NULL without it
//   redirects      INTEGER  number of redirects followed
//   thumbhash      BLOB     the image's ThumbHash, 5 to 25 bytes; NULL if none was made
//   color          INTEGER  its dominant colour, 0xRRGGBB; NULL if none was made, and for a fully
//                           transparent image. Both are shown as attributes, see `Placeholder`
// variant   a stored image of a resource; primary key (resource_id, recipe)
//   resource_id    INTEGER  resource.id; removed with it
//   recipe         TEXT     canonical text of the requested encoding, see `Recipe`
//   sha256         BLOB     names the content file content/ab/<sha256>.<extension of format>
//   format         TEXT     jpeg, png, …; the source's format if the bytes are stored unchanged
//   width, height  INTEGER  in pixels as displayed; 0 if unknown, only in formats that are not
//                           decoded
//   bytes          INTEGER  size of the content file
//   created_at     INTEGER
//   last_access_at INTEGER  when it was made or superseded, or `get` last noted a request
//   name           INTEGER  variant_name.id: its current or last name; if several names have its
//                           recipe, main or else the first
//   superseded     INTEGER  1 after a later run used another variant of the resource by that name;
//                           at most one variant of each name has 0
//   decoded        INTEGER  0 for source bytes stored unchanged because their format is not
//                           decoded, despite the recipe
//   orientation    INTEGER  EXIF orientation, 1 to 8, that the file leaves to readers
// variant_name  names of variants
//   id             INTEGER  primary key; 0 is main, which always exists
//   name           TEXT     unique; see `VariantName`
//   recipe         TEXT     recipe of the last run that used the name, like `variant.recipe`; for
//                           main, and for names that only lines use, entries may have another one
//   used_at        INTEGER  when a run last used the name in its flags; NULL if none has
// freshness  one row for each variant: all that a run reads for a warm entry
//   fingerprint      INTEGER  primary key; the first 64 bits of SHA-256(key) XOR SHA-256(recipe)
//   fingerprint_low  INTEGER  the following 64 bits
//   resource_id      INTEGER  resource.id
//   validated_at, expires_at  INTEGER  as in the resource
//   vary             INTEGER  the first 64 bits of SHA-256(resource.vary), or NULL
//   superseded       INTEGER  0 for a current variant named main, 2 for one of another name, 1 for
//                             a superseded one
// attribute  extended attributes of a resource; primary key (resource_id, name)
//   resource_id    INTEGER  resource.id; removed with it
//   name           TEXT     1 to 255 bytes; names that begin with `prefetch.` are reserved and not
//                           stored here
//   value          BLOB     at most 65536 bytes
// failure   the last failure of a cache key; removed by the next success
//   key            TEXT     primary key, like `resource.key`; a resource need not exist
//   url, host      TEXT     like the resource's
//   reason         TEXT     see `FailureReason`
//   http_status    INTEGER  of the last response, or NULL
//   curl_code      INTEGER  libcurl's code, or NULL
//   message        TEXT     details for people
//   attempts       INTEGER  attempts since the first failure, including retries; redirects are
//                           part of their attempt
//   class          TEXT     permanent, transient: the kind that `runs_in_a_row` counts
//   runs_in_a_row  INTEGER  consecutive completed runs in which it failed in this class
//   first_failed_at, last_failed_at  INTEGER
//   blacklisted_until  INTEGER  not requested before then; NULL if it is not blacklisted
//   run_id         INTEGER  the run of the last failure until that run's end is settled, else NULL
//   conditions     TEXT     settings that the last failure depends on, `name=value` separated by
//                           spaces: a run with other values requests the URL again; `host=down`
//                           if no URL of the host succeeded in the run of the last failure; or NULL
//   former         TEXT     while `run_id` is set, the previous values as a JSON array: reason,
//                           http_status, curl_code, message, class, conditions, last_failed_at,
//                           attempts; else NULL
// host      hosts with a known pace, a failure or a pause
//   host               TEXT     primary key; scheme, host and port, like `resource.host`
//   concurrency        INTEGER  concurrent transfers that the host accepted, 1 or more; NULL if
//                               unknown
//   failures_in_a_row  INTEGER  connection failures since the last response
//   cooling_until      INTEGER  not requested before then, at most 7 days after `updated_at`; or
//                               NULL
//   updated_at         INTEGER
//   interval_us        INTEGER  microseconds between two requests, for a host that refused faster
//                               ones; else NULL
//   latency_us         INTEGER  mean time to first byte of the best round, in microseconds; or NULL
//   limited_by         TEXT     limit of the pace: `settings`, `latency`, `refusals`; or NULL
// partial   interrupted downloads of more than 1 MiB that can be resumed; at most 256 MiB in all
//   key            TEXT     primary key, like `resource.key`; a resource need not exist; the bytes
//                           are the file tmp/<SHA-256 of the key in hexadecimal>.partial
//   url            TEXT     the URL that sent them, after all redirects, without user information
//   etag, last_modified  TEXT  response field, unchanged; one of them is NULL, the other is sent
//                           in `If-Range`
//   bytes          INTEGER  size of the file
//   sha256         BLOB     of the file
//   total          INTEGER  size of the whole body, or NULL if the response did not say
//   created_at     INTEGER  when the last byte arrived
// folder    the folders content/00 to content/ff when all their files were last seen; a folder
//           that has changed since is listed before its rows are trusted
//   number         INTEGER  primary key; 0 to 255
//   modified_at, changed_at  INTEGER  the folder's times (st_mtim, st_ctim) in nanoseconds since
//                           1970
// property  facts about the whole cache, see `Schema.Property`
//   name           TEXT     primary key
//   value          INTEGER
//   `orphans_kept_before`, a time: this database replaced one that was damaged or missing. Content
//   files from before then are kept without a row, and are verified before a row names them again.
//   `listings_begin`, a time: runs have recorded their lists since then.
//   `last_pruned`, a time: the last pruning by `run --prune`. `prune_max_size` and other names
//   that begin with `prune_`: the rules of the last pruning, see `PruneRule`.
//   `removal_unfinished`, a time: a removal began then, so files without a row may exist.
//   `verified_folders`, a count: the folders that a stopped `verify` has finished.
//   `file_mode`, permission bits of files; without it 0600, less the umask.
// listing   resources that the lists of runs named; see `ListingLog`
//   id             INTEGER  primary key
//   first_at, last_at  INTEGER  when the first and the last of these runs began
//   resources      BLOB     their identifiers, see `ResourceSet`
// total     variants by the groups of `stats`; kept by triggers; primary key (host, format, name,
//           superseded)
//   host, format, name, superseded  as in the resource and the variant
//   variants       INTEGER  their number; may be 0
//   bytes          INTEGER  sum of their `variant.bytes`
// usage     sums over the whole cache, in one row; kept by triggers
//   id             INTEGER  0
//   resources, source_bytes  INTEGER  rows of `resource`, and the sum of their `source_bytes`
//   files, file_bytes  INTEGER  distinct content files, and the sum of their sizes
//   blocks         INTEGER  their disk usage in blocks of 4096 bytes
// run       one row for each run
//   id             INTEGER  primary key
//   started_at     INTEGER
//   ended_at       INTEGER  NULL while it runs, and permanently if it was killed
//   manifest       TEXT     the manifests' names, separated by newlines
//   exit_status    INTEGER  NULL like ended_at
//   counters       TEXT     JSON object: entries, requests, bytes_received, bytes_stored, one
//                           member for each outcome; known_failures, the `failed` entries that
//                           failed in an earlier run for the same reason; and outages, a text:
//                           ongoing outages, see `OngoingOutages`; absent without any
//   boot_id        TEXT     the machine's boot (/proc/sys/kernel/random/boot_id); NULL if unknown
//   files_synced   INTEGER  1 if its rows imply its files: they were synchronised before the rows
//                           were committed, or a later run has compared them
//
// A row never names a missing file: files are on the disk before their rows are committed, and are
// removed after the removal of the last row that names them is permanent. A crash of the machine
// can leave two exceptions, both repaired by the next run: a row of `partial` without its file, and
// rows of runs with `--sync off`. `freshness` repeats the resource for each variant; if two
// variants have the same `fingerprint`, one of them has no row. Rows of `variant`, `freshness` and
// `attribute` are removed with their resource, also when another program removes it.
enum Schema {
    /// The version of the tables, kept in `PRAGMA user_version`. A cache of another version is
    /// refused and stays unchanged.
    static let schemaVersion: Int64 = 1

    /// `PRAGMA application_id`: "prfc", which marks a database of this program.
    static let applicationID: Int32 = 0x7072_6663

    /// Makes all tables in an empty database.
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
}
