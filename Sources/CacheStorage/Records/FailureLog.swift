package import PrefetchModel
internal import SQLite

/// The table `failure`, at the end of a run and for the commands.
package struct FailureLog: Sendable {
    let database: CacheDatabase

    /// Settles the failures of a completed run. `decide` gets each failure as the run left it, with
    /// the kind and the runs in a row from before the run, and returns new values of both and the
    /// end of the blacklisting; nil gives the failure its previous values, since it says nothing
    /// about its URL. Blacklisted transient failures of earlier runs that `isOver` accepts are no
    /// longer blacklisted, and begin to count again.
    package func settle(
        run: Int64, isOver: ((FailureRecord) -> Bool)? = nil,
        _ decide: (FailureRecord) -> Settlement?
    ) throws(StorageError) {
        try database.write("settling failures") { database in
            if let isOver { try FailureLog.endBlacklisting(where: isOver, in: database) }
            let update = try database.prepare(
                """
                UPDATE failure SET class = ?2, runs_in_a_row = ?3, blacklisted_until = ?4,
                    conditions = iif(?5, ltrim(coalesce(conditions, '') || ' \(FailureRecord.hostDownMark)'),
                        conditions)
                WHERE key = ?1
                """)
            let restore = try database.prepare(
                """
                UPDATE OR IGNORE failure SET reason = json_extract(former, '$[0]'),
                    http_status = json_extract(former, '$[1]'),
                    curl_code = json_extract(former, '$[2]'),
                    message = json_extract(former, '$[3]'),
                    class = json_extract(former, '$[4]'),
                    conditions = json_extract(former, '$[5]'),
                    last_failed_at = json_extract(former, '$[6]'),
                    attempts = json_extract(former, '$[7]')
                WHERE key = ?1 AND json_valid(former)
                    AND json_type(former, '$[0]') = 'text'
                    AND json_type(former, '$[1]') IN ('integer', 'null')
                    AND json_type(former, '$[2]') IN ('integer', 'null')
                    AND json_type(former, '$[3]') = 'text'
                    AND json_type(former, '$[4]') = 'text'
                    AND json_type(former, '$[5]') IN ('text', 'null')
                    AND json_type(former, '$[6]') = 'integer'
                    AND json_type(former, '$[7]') = 'integer'
                """)
            try FailureLog.forEachPiece(in: database, where: "run_id = \(run)") { records in
                for record in records {
                    guard let decision = decide(record) else {
                        try restore.execute(.text(record.key))
                        continue
                    }
                    try update.execute(
                        .text(record.key), .text(decision.kind.rawValue),
                        .init(decision.runsInARow), .init(decision.blacklistedUntil?.milliseconds),
                        .integer(decision.isHostDown ? 1 : 0))
                }
            }
            try database.run(
                "UPDATE failure SET run_id = NULL, former = NULL WHERE run_id = ?", .integer(run))
        }
    }

    private static func endBlacklisting(
        where isOver: (FailureRecord) -> Bool, in database: Connection
    ) throws {
        let update = try database.prepare(
            "UPDATE failure SET runs_in_a_row = 0, blacklisted_until = NULL WHERE key = ?")
        let isBlacklisted =
            "class = 'transient' AND blacklisted_until IS NOT NULL AND run_id IS NULL"
        try forEachPiece(in: database, where: isBlacklisted) { records in
            for record in records where isOver(record) { try update.execute(.text(record.key)) }
        }
    }

    package func remove(key: String) throws(StorageError) -> Bool {
        try database.execute(
            "removing a failure", "DELETE FROM failure WHERE key = ?", .text(key)) > 0
    }

    /// Removes a URL's failures under other keys (no user information). Returns whether any.
    package func remove(url: String) throws(StorageError) -> Bool {
        try database.execute(
            "removing a failure", "DELETE FROM failure WHERE url = ? AND url <> key", .text(url))
            > 0
    }

    /// Removes all failures, including unreadable rows. Returns the number removed.
    package func removeAll() throws(StorageError) -> Int {
        try database.execute("removing failures", "DELETE FROM failure")
    }

    package func removeAll(where isWanted: (FailureRecord) -> Bool) throws(StorageError) -> Int {
        try database.write("removing failures") { database in
            let removal = try database.prepare("DELETE FROM failure WHERE key = ?")
            var count = 0
            try FailureLog.forEachPiece(in: database) { records in
                for record in records where isWanted(record) {
                    try removal.execute(.text(record.key))
                    count += 1
                }
            }
            return count
        }
    }

    /// Whether the table has any rows; usually it has none.
    static func isAny(in database: Connection) throws -> Bool {
        try database.hasRow("SELECT 1 FROM failure LIMIT 1")
    }

    /// Reads rows in pieces, which keeps memory flat and allows writing the piece's rows.
    private static func forEachPiece(
        in database: Connection, where condition: String = "TRUE",
        _ body: ([FailureRecord]) throws -> Void
    ) throws {
        // Each piece begins with a search; OR conditions would scan the pieces before it. The index
        // of runs ends with the primary key, so it has the same order.
        var start: String?
        while true {
            let rows = try database.all(
                """
                SELECT \(FailureRecord.columns) FROM failure
                WHERE \(condition) AND key \(start == nil ? ">=" : ">") ?1
                ORDER BY key LIMIT 10000
                """, .text(start ?? "")
            ) { (key: try $0.text(0), record: try FailureRecord($0)) }
            guard let last = rows.last else { return }
            start = last.key
            try body(rows.compactMap(\.record))
        }
    }

    /// The values that a run's end gives to a failure. `isHostDown`: whether no URL of the host
    /// succeeded in the run.
    package typealias Settlement = (
        kind: FailureRecord.FailureKind, runsInARow: Int, blacklistedUntil: Timestamp?,
        isHostDown: Bool
    )
}
