package import PrefetchModel
internal import SQLite

/// A row of the table `failure`.
package struct FailureRecord: Sendable {
    /// How the last failure is counted: whether it blocks at once or after several runs.
    package enum Kind: String, Sendable {
        case permanent, transient
    }

    package var key: String
    /// Without user information.
    package var url: String
    package var host: String
    package var reason: FailureReason
    package var httpStatus: Int?
    package var curlCode: Int?
    package var message: String
    /// Times that it was tried since the first failure, retries included; the redirects of a try are
    /// part of it.
    package var attempts: Int
    /// What ``runsInARow`` counts.
    package var kind: Kind
    /// Runs in a row that ended and in which it failed in this kind.
    package var runsInARow: Int
    package var firstFailedAt: Timestamp
    package var lastFailedAt: Timestamp
    /// Nil when it is not blacklisted.
    package var blacklistedUntil: Timestamp?
    /// What the last failure depends on; nil in rows of older versions.
    package var conditions: String?
    /// Of the failure before, while the run of the last one has not been settled; nil without one.
    package private(set) var former: Former?

    /// What is left of an earlier failure of the same URL.
    package struct Former: Sendable {
        package let reason: FailureReason?
        package let conditions: String?
    }

    package init(
        key: String, url: String, host: String, reason: FailureReason, httpStatus: Int?,
        curlCode: Int?, message: String, attempts: Int, kind: Kind, failedAt: Timestamp,
        conditions: String? = nil
    ) {
        self.key = key
        self.url = url
        self.host = host
        self.reason = reason
        self.httpStatus = httpStatus
        self.curlCode = curlCode
        self.message = message
        self.attempts = attempts
        self.kind = kind
        runsInARow = 0
        firstFailedAt = failedAt
        lastFailedAt = failedAt
        self.conditions = conditions
    }

    /// `HTTP 404`, or the reason.
    package var cause: String {
        reason == .httpStatus ? httpStatus.map { "HTTP \($0)" } ?? "HTTP" : reason.rawValue
    }

    static let columns = """
        key, url, host, reason, http_status, curl_code, message, attempts, class, runs_in_a_row,
        first_failed_at, last_failed_at, blacklisted_until, conditions,
        iif(json_valid(former), json_extract(former, '$[0]'), NULL),
        iif(json_valid(former), json_extract(former, '$[5]'), NULL)
        """

    /// Reads the columns of ``columns``; nil when a value is not one that we write.
    init?(_ row: borrowing Statement) throws {
        guard let reason = FailureReason(rawValue: try row.text(3)),
            let kind = Kind(rawValue: try row.text(8))
        else { return nil }
        self.init(
            key: try row.text(0), url: try row.text(1), host: try row.text(2), reason: reason,
            httpStatus: try row.optionalInteger(4).map(Int.init(truncatingIfNeeded:)),
            curlCode: try row.optionalInteger(5).map(Int.init(truncatingIfNeeded:)),
            message: try row.text(6), attempts: try row.count(7), kind: kind,
            failedAt: try row.time(11))
        runsInARow = try row.count(9)
        firstFailedAt = try row.time(10)
        blacklistedUntil = try row.optionalTime(12)
        conditions = try row.optionalText(13)
        if let reason = try row.optionalText(14) {
            former = Former(
                reason: FailureReason(rawValue: reason), conditions: try row.optionalText(15))
        }
    }

    /// Notes a failure of the run `run`: what blocks is decided when the run has ended, so a killed
    /// run blocks nothing. What was known of another URL under the same key is forgotten.
    func note(in database: Connection, run: Int64) throws {
        let statement = try Statement(
            database,
            sql: """
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
        try statement.execute(
            .text(key), .text(url), .text(host), .text(reason.rawValue),
            .init(httpStatus.map(Int64.init)), .init(curlCode.map(Int64.init)), .text(message),
            .init(attempts), .text(kind.rawValue), .init(lastFailedAt), .integer(run),
            .init(conditions))
    }

    /// Notes a failure that does not count: a refusal (401, 403, 407), or an image that a variant cannot be made of.
    ///
    /// A refusal leaves the row of what failed for good as it is, with its block, and is added to that of the refusal before; any
    /// other gives way. Of variants, a row that says the same stays as it is, with its block, and any other gives way.
    func noteHarmless(in database: Connection) throws {
        let statement = try Statement(
            database,
            sql: """
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
        try statement.execute(
            .text(key), .text(url), .text(host), .text(reason.rawValue),
            .init(httpStatus.map(Int64.init)), .init(curlCode.map(Int64.init)), .text(message),
            .init(attempts), .text(kind.rawValue), .init(lastFailedAt), .init(conditions))
    }
}

extension FailureLog {
    /// What a run's end makes of a failure.
    package struct Settlement: Sendable {
        let kind: FailureRecord.Kind
        let runsInARow: Int
        let blacklistedUntil: Timestamp?

        package init(kind: FailureRecord.Kind, runsInARow: Int, blacklistedUntil: Timestamp?) {
            self.kind = kind
            self.runsInARow = runsInARow
            self.blacklistedUntil = blacklistedUntil
        }
    }
}

/// The table `failure`, at the end of a run and for the commands.
package struct FailureLog: Sendable {
    private let database: CacheDatabase

    package init(database: CacheDatabase) {
        self.database = database
    }

    /// Settles the failures of a run that has ended.
    ///
    /// `decide` gets a failure as the run left it, with the kind and the runs in a row from before
    /// the run. It gives both anew, and until when the URL is blacklisted; nil leaves them as they were,
    /// which is for failures that say nothing about their URL: one that had failed before has failed as
    /// it did then.
    ///
    /// - Throws: when the database cannot be written; nothing is settled then.
    package func settle(
        run: Int64, _ decide: (FailureRecord) -> Settlement?
    ) throws(StorageError) {
        try database.write("settling failures") { database in
            let update = try Statement(
                database,
                sql: """
                    UPDATE failure SET class = ?2, runs_in_a_row = ?3, blacklisted_until = ?4
                    WHERE key = ?1
                    """)
            let restore = try Statement(
                database,
                sql: """
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
            try FailureLog.forEachPiece(in: database, run: run) { records in
                for record in records {
                    guard let decision = decide(record) else {
                        try restore.execute(.text(record.key))
                        continue
                    }
                    try update.execute(
                        .text(record.key), .text(decision.kind.rawValue),
                        .init(decision.runsInARow), .init(decision.blacklistedUntil?.milliseconds))
                }
            }
            try Statement(
                database, sql: "UPDATE failure SET run_id = NULL, former = NULL WHERE run_id = ?"
            ).execute(.integer(run))
        }
    }

    /// Removes the failure of a key.
    ///
    /// - Returns: whether there was one.
    package func remove(key: String) throws(StorageError) -> Bool {
        try database.write("removing a failure") { database in
            try Statement(database, sql: "DELETE FROM failure WHERE key = ?").execute(.text(key))
            return database.changes > 0
        }
    }

    /// Removes all failures, also rows that cannot be read.
    ///
    /// - Returns: how many there were.
    package func removeAll() throws(StorageError) -> Int {
        try database.write("removing failures") { database in
            try database.execute("DELETE FROM failure")
            return database.changes
        }
    }

    /// Removes the failures that `isWanted` picks.
    ///
    /// - Returns: how many there were.
    package func removeAll(
        where isWanted: (FailureRecord) -> Bool
    ) throws(StorageError) -> Int {
        try database.write("removing failures") { database in
            let removal = try Statement(database, sql: "DELETE FROM failure WHERE key = ?")
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

    /// Whether the table has any row: mostly it has none.
    static func isAny(in database: Connection) throws -> Bool {
        try Statement(database, sql: "SELECT 1 FROM failure LIMIT 1")
            .first { _ in true } ?? false
    }

    /// Reads the table, or the failures of one run, by pieces, so that memory stays flat and the
    /// piece's rows may be written.
    private static func forEachPiece(
        in database: Connection, run: Int64? = nil, _ body: ([FailureRecord]) throws -> Void
    ) throws {
        // Each piece begins with a search; conditions joined by OR would scan what is done already.
        // The index of runs ends in the primary key, so it has the same order.
        var start: String?
        while true {
            let statement = try Statement(
                database,
                sql: """
                    SELECT \(FailureRecord.columns) FROM failure
                    WHERE \(run == nil ? "" : "run_id = ?2 AND") key \(start == nil ? ">=" : ">") ?1
                    ORDER BY key LIMIT 10000
                    """)
            if let run { try statement.bind(.integer(run), at: 2) }
            var records: [FailureRecord] = []
            var last: String?
            try statement.bind(.text(start ?? ""), at: 1)
            while try statement.step() {
                last = try statement.text(0)
                if let record = try FailureRecord(statement) { records.append(record) }
            }
            statement.reset()
            guard let last else { return }
            start = last
            try body(records)
        }
    }
}
