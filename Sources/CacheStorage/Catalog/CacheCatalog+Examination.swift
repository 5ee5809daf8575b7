package import PrefetchModel
internal import SQLite

// What `doctor` reads of the database.

extension CacheCatalog {
    /// Opens the database for reading without making anything beside it, not even an index of the log, and without leaving word
    /// of damage.
    ///
    /// - Throws: also when only a command that writes can read it.
    package init(examining directory: CacheDirectory) throws(StorageError) {
        self.init(
            database: try CacheDatabase(directory: directory, access: .examination),
            directory: directory)
    }

    /// Looks for damage as far as a run does before it starts: through a small database, and into no other.
    ///
    /// - Returns: whether it was looked through.
    package func findDamage() throws(StorageError) -> Bool {
        guard database.size <= CacheDatabase.sizeAlwaysChecked else { return false }
        try database.findDamage(.thorough)
        return true
    }

    /// What the cache remembers of its files; nil where nobody has said.
    package func fileMode() throws(StorageError) -> FileMode? { try database.fileMode() }

    /// Whether files without a row may be there: a removal has not come to its end, or a database was lost.
    package func strays() throws(StorageError) -> (removalIsUnfinished: Bool, areKept: Bool) {
        try database.read("reading properties") { database in
            (
                try Schema.Property.removalUnfinished.time(in: database) != nil,
                try Schema.Property.orphansKeptBefore.time(in: database) != nil
            )
        }
    }

    /// How many content files rows name, by the totals.
    package func countFiles() throws(StorageError) -> Int {
        try database.usage().files
    }

    /// The names in `tmp` that rows know.
    package func partialNames() throws(StorageError) -> Set<String> {
        try PartialStore.fileNames(in: database)
    }

    /// Hosts that runs do not ask for anything at `now`, and until when.
    package func coolingHosts(
        at now: Timestamp
    ) throws(StorageError) -> [(host: String, until: Timestamp)] {
        try HostLog(database: database).all(at: now).compactMap { state in
            guard let until = state.coolingUntil, until > now else { return nil }
            return (state.host, until)
        }.sorted { $0.host < $1.host }
    }

    /// Rows of the table `failure`, and those of them that block.
    package func failureCounts(
        isBlacklisted: (FailureRecord) -> Bool
    ) throws(StorageError) -> (all: Int, blacklisted: Int) {
        try database.read("counting failures") {
            try CacheCatalog.countFailures(in: $0, isBlacklisted: isBlacklisted)
        }
    }

    /// The hosts of most resources, at most so many: scheme, host and port.
    package func largestHosts(_ count: Int) throws(StorageError) -> [String] {
        try database.read("reading the hosts") { database in
            try Statement(
                database,
                sql: """
                    SELECT host FROM resource GROUP BY host ORDER BY count(*) DESC, host LIMIT ?
                    """
            ).all(.init(count)) { try $0.text(0) }
        }
    }
}
