package import PrefetchModel
internal import SQLite

// Queries of `doctor`.

extension CacheCatalog {
    /// Opens the database for reading without creating any file, not even the log's index, and
    /// without marking it as damaged.
    ///
    /// - Throws: Also when only a writing command can read the database.
    package init(examining directory: CacheDirectory) throws(StorageError) {
        self.init(
            database: try CacheDatabase(directory: directory, access: .examination),
            directory: directory)
    }

    /// Runs the integrity check that a run makes at its start, which covers small databases only.
    /// Returns whether the database was small enough to be checked.
    package func findDamage() throws(StorageError) -> Bool {
        guard database.size <= CacheDatabase.sizeAlwaysChecked else { return false }
        try database.confirmDamage(.thorough)
        return true
    }

    package func fileMode() throws(StorageError) -> FileMode? { try database.fileMode() }

    /// Whether files without a row may exist: a removal was interrupted, or a database was lost.
    package func orphans() throws(StorageError) -> (removalIsUnfinished: Bool, areKept: Bool) {
        (
            try database.time(of: .removalUnfinished) != nil,
            try database.time(of: .orphansKeptBefore) != nil
        )
    }

    /// The number of content files that rows name, read from the totals.
    package func countFiles() throws(StorageError) -> Int {
        try database.usage().files
    }

    /// The files in `tmp` that belong to partial downloads.
    package func partialNames() throws(StorageError) -> Set<String> {
        try PartialStore.fileNames(in: database)
    }

    /// Hosts that are cooling down at `now`, each with the end of its pause.
    package func coolingHosts(
        at now: Timestamp
    ) throws(StorageError) -> [(host: String, until: Timestamp)] {
        try HostLog(database: database).all(at: now).compactMap { state in
            guard let until = state.coolingUntil, until > now else { return nil }
            return (state.host, until)
        }.sorted { $0.host < $1.host }
    }

    /// The hosts with a stored wait that no run stores, and that runs ignore.
    package func impossibleHosts(at now: Timestamp) throws(StorageError) -> [String] {
        try HostLog(database: database).longWaits(at: now)
            .filter { $0.cause == .impossible }.map(\.host)
    }

    package func failureCounts(
        isBlacklisted: (FailureRecord) -> Bool
    ) throws(StorageError) -> FailureCounts {
        try database.read("counting failures") {
            try CacheCatalog.countFailures(in: $0, isBlacklisted: isBlacklisted)
        }
    }

    /// The hosts with the most resources, as scheme, host and port.
    package func largestHosts(_ count: Int) throws(StorageError) -> [String] {
        try database.read("reading the hosts") { database in
            try database.all(
                "SELECT host FROM resource GROUP BY host ORDER BY count(*) DESC, host LIMIT ?",
                .init(count)
            ) { try $0.text(0) }
        }
    }
}
