package import PrefetchModel
internal import SQLite

/// The table `failure`, at the end of a run and for the commands.
package struct FailureLog: Sendable {
    let database: CacheDatabase

    /// Settles the failures of a completed run. `decide` gets each failure as the run left it, with
    /// the kind and the runs in a row from before the run, and returns new values of both and the
    /// end of the blacklisting; nil gives the failure its previous values, except for the time,
    /// since it says nothing about its URL. Blacklisted transient failures of earlier runs, and
    /// ones of their host, that `isOver` accepts are no longer blacklisted, and begin to count
    /// again. Other blacklisted failures of stored images that `isOfFault` accepts become ones of
    /// their host.
    package func settle(
        run: Int64, isOver: ((FailureRecord) -> Bool)? = nil,
        isOfFault: ((FailureRecord) -> Timestamp?)? = nil,
        _ decide: (FailureRecord) -> Settlement?
    ) throws(StorageError) {
        try database.write("settling failures") { database in
            if let isOver { try FailureLog.endBlacklisting(where: isOver, in: database) }
            if let isOfFault { try FailureLog.blame(hostsOf: isOfFault, in: database) }
            let update = try database.prepare(
                """
                UPDATE failure SET class = ?2, runs_in_a_row = ?3, blacklisted_until = ?4,
                    conditions = iif(?5 IS NULL, conditions,
                        ltrim(coalesce(conditions, '') || ' host=' || ?5))
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
                        .init(decision.host?.rawValue))
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
            """
            UPDATE failure SET runs_in_a_row = 0, blacklisted_until = NULL,
                conditions = nullif(rtrim(replace(conditions, '\(hostFault)', '')), '')
            WHERE key = ?
            """)
        let isBlacklisted = """
            (class = 'transient' OR instr(conditions, '\(hostFault)'))
                AND blacklisted_until IS NOT NULL AND run_id IS NULL
            """
        try forEachPiece(in: database, where: isBlacklisted) { records in
            for record in records where isOver(record) { try update.execute(.text(record.key)) }
        }
    }

    /// `endOfFault` returns the end of the time for which a failure may be its host's; nil for a
    /// failure that stays its URL's.
    private static func blame(
        hostsOf endOfFault: (FailureRecord) -> Timestamp?, in database: Connection
    ) throws {
        let update = try database.prepare(
            """
            UPDATE failure SET blacklisted_until = ?2, conditions = ltrim(
                replace(coalesce(conditions, ''), '\(hostDown)', '') || ' \(hostFault)')
            WHERE key = ?1
            """)
        let isBlacklisted = """
            blacklisted_until IS NOT NULL AND run_id IS NULL
                AND NOT instr(coalesce(conditions, ''), '\(hostFault)')
            """
        try forEachPiece(in: database, where: isBlacklisted) { records in
            for record in records where record.isStored {
                guard let end = endOfFault(record) else { continue }
                try update.execute(.text(record.key), .init(end))
            }
        }
    }

    private static let hostDown = "host=\(HostMark.down.rawValue)"
    private static let hostFault = "host=\(HostMark.fault.rawValue)"

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

    /// The values that a run's end gives to a failure.
    package typealias Settlement = (
        kind: FailureClass, runsInARow: Int, blacklistedUntil: Timestamp?, host: HostMark?
    )
}

package struct FailureRecord: Sendable {
    package var key: String
    /// Without user information.
    package var url: String
    package var host: String
    package var reason: FailureReason
    package var httpStatus: Int?
    package var curlCode: Int?
    package var message: String
    package var streak: Streak
    package var blacklistedUntil: Timestamp?
    /// The settings that the last failure depends on; nil if it depends on none.
    package var conditions: String?
    /// The previous failure, until the run of the last one is settled; nil without one.
    package private(set) var former: Former?

    /// The failures of a URL since its last success.
    package struct Streak: Sendable {
        /// Including retries; redirects are part of their attempt.
        package var attempts: Int
        /// The kind that ``runsInARow`` counts; never ``FailureClass/ours``.
        package var kind: FailureClass
        /// Consecutive completed runs in which it failed in this kind.
        package var runsInARow = 0
        package var firstFailedAt: Timestamp
        package var lastFailedAt: Timestamp
    }

    package struct Former: Sendable {
        package let reason: FailureReason?
        package let conditions: String?
        package let httpStatus: Int?

        /// As ``FailureRecord/hostMark``, of the former failure.
        package var hostMark: HostMark? { FailureRecord.hostMark(in: conditions) }
    }

    private struct RowState {
        var isStored = false
        var isSettled = true
    }

    private var row = RowState()

    /// Whether the cache has an image of its key.
    package var isStored: Bool { row.isStored }

    /// Whether the run of the failure has ended and reported it. A killed one has not.
    package var isSettled: Bool { row.isSettled }

    /// The last failure that a run has reported; nil without one.
    package var reported: FormerFailure? {
        (isSettled ? reason : former?.reason).map {
            (
                url, $0, isSettled ? httpStatus : former?.httpStatus,
                isSettled ? hostMark : former?.hostMark
            )
        }
    }

    package init(
        key: String, url: String, host: String, reason: FailureReason, httpStatus: Int?,
        curlCode: Int?, message: String, attempts: Int, kind: FailureClass, failedAt: Timestamp,
        conditions: String? = nil
    ) {
        self.key = key
        self.url = url
        self.host = host
        self.reason = reason
        self.httpStatus = httpStatus
        self.curlCode = curlCode
        self.message = message
        streak = Streak(
            attempts: attempts, kind: kind, firstFailedAt: failedAt, lastFailedAt: failedAt)
        self.conditions = conditions
    }

    /// The part of its host in the failure, a word of ``conditions``: `host=down`.
    package var hostMark: HostMark? { FailureRecord.hostMark(in: conditions) }

    fileprivate static func hostMark(in conditions: String?) -> HostMark? {
        conditions?.split(separator: " ").lazy.filter { $0.hasPrefix("host=") }
            .compactMap { HostMark(rawValue: String($0.dropFirst(5))) }.last
    }

    /// `HTTP 404`, or the reason.
    package var cause: String {
        reason == .httpStatus ? httpStatus.map { "HTTP \($0)" } ?? "HTTP" : reason.rawValue
    }

    static let columns = """
        key, url, host, reason, http_status, curl_code, message, attempts, class, runs_in_a_row,
        first_failed_at, last_failed_at, blacklisted_until, conditions,
        iif(json_valid(former), json_extract(former, '$[0]'), NULL),
        iif(json_valid(former), json_extract(former, '$[5]'), NULL),
        iif(json_valid(former), CAST(json_extract(former, '$[1]') AS INTEGER), NULL),
        run_id IS NULL,
        EXISTS (SELECT 1 FROM resource JOIN variant ON id = resource_id
            WHERE resource.key = failure.key)
        """

    init?(_ row: borrowing Statement) throws {
        guard let reason = FailureReason(rawValue: try row.text(3)),
            let kind = FailureClass(rawValue: try row.text(8)), kind != .ours
        else { return nil }
        self.init(
            key: try row.text(0), url: try row.text(1), host: try row.text(2), reason: reason,
            httpStatus: try row.optionalInteger(4).map(Int.init(truncatingIfNeeded:)),
            curlCode: try row.optionalInteger(5).map(Int.init(truncatingIfNeeded:)),
            message: try row.text(6), attempts: try row.count(7), kind: kind,
            failedAt: try row.time(11))
        streak.runsInARow = try row.count(9)
        streak.firstFailedAt = try row.time(10)
        blacklistedUntil = try row.optionalTime(12)
        conditions = try row.optionalText(13)
        if let reason = try row.optionalText(14) {
            former = Former(
                reason: FailureReason(rawValue: reason), conditions: try row.optionalText(15),
                httpStatus: try row.optionalInteger(16).map(Int.init(truncatingIfNeeded:)))
        }
        self.row = RowState(
            isStored: try row.integer(18) != 0, isSettled: try row.integer(17) != 0)
    }

    /// The first ten values of both statements.
    private var values: [Statement.Value] {
        [
            .text(key), .text(url), .text(host), .text(reason.rawValue),
            .init(httpStatus.map(Int64.init)), .init(curlCode.map(Int64.init)), .text(message),
            .init(streak.attempts), .text(streak.kind.rawValue), .init(streak.lastFailedAt),
        ]
    }

    /// Records a failure in the run `run`. Its blacklisting is decided after the run, so a killed
    /// run blacklists nothing. Replaces the record of another URL with the same key.
    func note(in database: Connection, run: Int64) throws {
        let statement = try database.prepare(
            """
            INSERT INTO failure (key, url, host, reason, http_status, curl_code, message,
                attempts, class, runs_in_a_row, first_failed_at, last_failed_at, run_id,
                conditions)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, ?10, ?11, ?12)
            ON CONFLICT (key) DO UPDATE SET host = ?3, reason = ?4, http_status = ?5,
                curl_code = ?6, message = ?7, last_failed_at = ?10, run_id = ?11, conditions = ?12,
                attempts = iif(url = ?2, min(attempts, 1000000000000), 0) + ?8,
                runs_in_a_row = iif(url = ?2, runs_in_a_row, 0),
                first_failed_at = iif(url = ?2, first_failed_at, ?10),
                former = iif(url = ?2, coalesce(former, json_array(reason, http_status,
                    curl_code, message, class, conditions, last_failed_at, attempts)), NULL),
                blacklisted_until = iif(url = ?2, blacklisted_until, NULL), url = ?2
            """)
        try statement.execute(values + [.integer(run), .init(conditions)])
    }

    /// Records a failure that does not count. A refusal (401, 403, 407) changes only the time of a
    /// permanent failure, adds to an earlier refusal, and replaces any other. The failure of a
    /// variant changes only the time of an equal one and replaces any other.
    func noteHarmless(in database: Connection) throws {
        let statement = try database.prepare(
            """
            INSERT INTO failure (key, url, host, reason, http_status, curl_code, message,
                attempts, class, runs_in_a_row, first_failed_at, last_failed_at, conditions)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, ?10, ?11)
            ON CONFLICT (key) DO UPDATE SET
                attempts = ?8 + iif(url = ?2 AND reason = ?4 AND http_status IS ?5,
                    min(attempts, 1000000000000), 0),
                first_failed_at = iif(url = ?2 AND reason = ?4 AND http_status IS ?5,
                    first_failed_at, ?10),
                url = ?2, host = ?3, reason = ?4, http_status = ?5, curl_code = ?6,
                message = ?7, class = ?9, runs_in_a_row = 0, last_failed_at = ?10,
                blacklisted_until = NULL, run_id = NULL, conditions = ?11, former = NULL
            WHERE url <> ?2 OR iif(?4 = 'http-status', class = 'transient', reason <> ?4)
            """)
        try statement.execute(values + [.init(conditions)])
        // It still fails, so its row is not old.
        try database.run(
            "UPDATE failure SET last_failed_at = ?2 WHERE key = ?1", .text(key),
            .init(streak.lastFailedAt))
    }
}
