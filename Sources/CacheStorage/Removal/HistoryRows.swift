import PrefetchModel
internal import SQLite

/// Old rows that nothing depends on: failures, hosts, runs and partial downloads.
enum HistoryRows {
    /// Conditions with two parameters: rows from before `?1` are old; `?2` is the current time.
    /// A blacklisted URL is not requested, nor one of a host that is given up, so such failures do
    /// not age.
    private static let failures = """
        max(last_failed_at, coalesce(blacklisted_until, 0)) < min(?1, ?2)
            AND failure.host NOT IN (SELECT host FROM host
                WHERE updated_at >= ?1 AND failures_in_a_row > 0 OR cooling_until > ?2)
        """
    private static let hosts = "updated_at < ?1 AND coalesce(cooling_until, 0) <= ?2"
    /// The next run needs the last run's end, the last run's outages, and runs with files that may
    /// not be on the disk.
    private static let runs = """
        started_at < min(?1, ?2) AND files_synced AND id < (SELECT max(id) FROM run)
            AND id < ifnull((SELECT max(id) FROM run WHERE counters IS NOT NULL), id + 1)
        """
    private static let parts = "created_at < min(?1, ?2)"

    /// Counts the rows that ``remove(before:at:in:)`` would remove, except failures and partial
    /// downloads of the images `gone`, which are counted with them.
    static func count(
        before time: Timestamp, at now: Timestamp, in database: CacheDatabase,
        without gone: ResourceSet = ResourceSet()
    ) throws(StorageError) -> RemovalTotals {
        try database.read("counting old rows") { database in
            func count(_ table: String, _ condition: String) throws -> Int {
                try database.first(
                    "SELECT count(*) FROM \(table) WHERE \(condition)", .init(time), .init(now)
                ) { try $0.count(0) } ?? 0
            }
            func countOfKeys(_ table: String, _ condition: String) throws -> Int {
                let all = try count(table, condition)
                guard all > 0, !gone.isEmpty else { return all }
                var countedWithImages = 0
                try database.forEach(
                    """
                    SELECT id FROM \(table) JOIN resource ON resource.key = \(table).key
                    WHERE \(condition)
                    """, .init(time), .init(now)
                ) { row in
                    if gone.contains(try row.integer(0)) { countedWithImages += 1 }
                }
                return all - countedWithImages
            }
            var totals = RemovalTotals()
            totals.failures = try countOfKeys("failure", failures)
            totals.hosts = try count("host", hosts)
            totals.runs = try count("run", runs)
            totals.parts = try countOfKeys("partial", parts)
            return totals
        }
    }

    /// Removes old rows, except partial downloads, which have files.
    static func remove(
        before time: Timestamp, at now: Timestamp, in database: CacheDatabase
    ) throws(StorageError) {
        try database.write("removing old rows") { database in
            for (table, condition) in [("failure", failures), ("host", hosts), ("run", runs)] {
                try database.run("DELETE FROM \(table) WHERE \(condition)", .init(time), .init(now))
            }
        }
    }
}
