package import PrefetchModel
internal import SQLite

package struct FailureRecord: Sendable {
    /// A permanent failure blacklists at once, a transient one after several runs.
    package enum FailureKind: String, Sendable {
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
        /// The kind that ``runsInARow`` counts.
        package var kind: FailureKind
        /// Consecutive completed runs in which it failed in this kind.
        package var runsInARow = 0
        package var firstFailedAt: Timestamp
        package var lastFailedAt: Timestamp
    }

    package struct Former: Sendable {
        package let reason: FailureReason?
        package let conditions: String?
        package let httpStatus: Int?
    }

    /// Whether the run of the failure has ended and reported it. A killed one has not.
    package private(set) var isSettled = true

    /// The last failure that a run has reported; nil without one.
    package var reported: FormerFailure? {
        (isSettled ? reason : former?.reason).map {
            (url, $0, isSettled ? httpStatus : former?.httpStatus, hostWasDown)
        }
    }

    package init(
        key: String, url: String, host: String, reason: FailureReason, httpStatus: Int?,
        curlCode: Int?, message: String, attempts: Int, kind: FailureKind, failedAt: Timestamp,
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

    /// The word in ``conditions`` of a failure in a run without any success at its host.
    static let hostDownMark = "host=down"

    /// Whether no URL of its host succeeded in the run that settled it.
    package var hostWasDown: Bool {
        conditions?.split(separator: " ").contains { $0 == FailureRecord.hostDownMark } ?? false
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
        run_id IS NULL
        """

    init?(_ row: borrowing Statement) throws {
        guard let reason = FailureReason(rawValue: try row.text(3)),
            let kind = FailureKind(rawValue: try row.text(8))
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
        isSettled = try row.integer(17) != 0
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

    /// Records a failure that does not count. A refusal (401, 403, 407) leaves the row of a
    /// permanent failure unchanged, adds to that of an earlier refusal, and replaces any other. The
    /// failure of a variant leaves an equal row unchanged and replaces any other.
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
    }
}
