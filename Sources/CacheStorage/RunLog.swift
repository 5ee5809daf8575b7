internal import GRDB
package import PrefetchModel

/// The table `run`, and what the end of the last run means for the next one.
package struct RunLog: Sendable {
    private let database: CacheDatabase
    private let content: ContentStore
    private let partials: PartialStore

    package init(database: CacheDatabase, content: ContentStore, partials: PartialStore) {
        self.database = database
        self.content = content
        self.partials = partials
    }

    /// Whether the last run may have left content files without a row: it has no end, since it was
    /// killed or the machine went down, it ended because the disk or the database failed, or another
    /// program that read the database kept it from removing what it replaced.
    package func lastRunMayHaveLeftStrays() throws(StorageError) -> Bool {
        try database.read("reading the run log") { database in
            try PreparedStatement(
                database,
                sql: """
                    SELECT ended_at IS NULL OR exit_status = 2
                        OR coalesce(json_extract(counters, '$.strays'), 0)
                    FROM run ORDER BY id DESC LIMIT 1
                    """
            ).first { try $0.integer(0) != 0 } ?? false
        }
    }

    /// Removes what an interrupted run left behind. Only for the holder of the lock, while
    /// nothing is being stored.
    ///
    /// With `scansContent` content files without a row are looked for, which reads every folder;
    /// that is needed only after an interrupted run. The result is the number of files removed.
    /// Bodies that broke off stay, unless their files or their rows are gone.
    @discardableResult
    package func collectStrays(scansContent: Bool) throws(StorageError) -> Int {
        try content.removeTemporaries(keeping: partials.reconcile())
        guard scansContent else { return 0 }
        let named = try database.read("reading content digests") { database in
            let rows = try PreparedStatement(database, sql: "SELECT sha256 FROM variant")
            defer { rows.reset() }
            var named: Set<ContentDigest> = []
            while try rows.step() { named.insert(try rows.digest(0)) }
            return named
        }
        return try content.removeStrays { named.contains($0) }
    }

    /// Notes that a run begins.
    ///
    /// - Returns: the run's identifier, for ``end(_:at:exitStatus:counters:)``.
    package func begin(manifests: [String], at time: Timestamp) throws(StorageError) -> Int64 {
        try database.write("noting the run's start") { database in
            try database.execute(
                sql: "INSERT INTO run (started_at, manifest) VALUES (?, ?)",
                arguments: [time.milliseconds, manifests.joined(separator: "\n")])
            return database.lastInsertedRowID
        }
    }

    /// Notes that a run has ended.
    package func end(
        _ run: Int64, at time: Timestamp, exitStatus: Int32, counters: RunCounters,
        leavesStrays: Bool = false
    ) throws(StorageError) {
        // Names of ours and whole numbers: nothing in this JSON needs escaping.
        let members =
            [
                ("entries", counters.entriesRead), ("requests", counters.requests),
                ("bytes_received", counters.bytesReceived), ("bytes_stored", counters.bytesStored),
            ] + Outcome.allCases.map { ($0.rawValue, counters[$0]) }
            + (leavesStrays ? [("strays", 1)] : [])
        let json = "{" + members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
        try database.write("noting the run's end") { database in
            try database.execute(
                sql: "UPDATE run SET ended_at = ?, exit_status = ?, counters = ? WHERE id = ?",
                arguments: [time.milliseconds, exitStatus, json, run])
        }
    }
}
