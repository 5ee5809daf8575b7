package import PrefetchModel
internal import SQLite

// What `history` and `stats` read.

extension CacheCatalog {
    /// A row of the run log.
    package struct Run: Sendable {
        /// What has become of a run.
        package enum Ending: Hashable, Sendable {
            /// `exitStatus` is 128 + the signal's number when a signal stopped it.
            case ended(at: Timestamp, exitStatus: Int)
            /// It still holds the cache.
            case running
            /// It was killed, or the machine went down.
            case killed
        }

        package let startedAt: Timestamp
        package let ending: Ending
        /// The manifests' names, separated by newlines.
        package let manifest: String
        /// Nil for a run without an end. Reasons are not kept.
        package let counters: RunCounters?
        /// Failures that no earlier run had for the same reason; nil for runs without an end, and of
        /// older versions.
        package let newFailures: Int?
    }

    /// Which runs are wanted; by itself all that are kept.
    package struct RunFilter: Sendable {
        /// The latest of those that are wanted, 1 or more; nil for all.
        package var limit: Int?
        /// Only runs that started then or later.
        package var startedSince: Timestamp?
        /// Only runs that ended with another status than 0, or came to no end.
        package var onlyFailed = false

        package init() {}

        fileprivate func includes(startedAt: Timestamp, _ ending: Run.Ending) -> Bool {
            if let startedSince, startedAt < startedSince { return false }
            guard onlyFailed else { return true }
            return switch ending {
            case .ended(_, let exitStatus): exitStatus != 0
            case .running: false
            case .killed: true
            }
        }
    }

    /// Runs that are kept, the latest first.
    package func runs(_ filter: RunFilter = RunFilter()) throws(StorageError) -> [Run] {
        // Before the rows: a run that ends meanwhile has its end in them. The lock itself is not tried,
        // since whoever tries holds it for a moment, and a run that starts then would be turned away.
        let holder = CacheLock.holder(in: directory)
        return try database.read("reading the run log") { database in
            try CacheCatalog.runs(filter, holder: holder, in: database)
        }
    }

    /// The last runs, the latest first.
    static func runs(limit: Int, holder: LockHolder?, in database: Connection) throws -> [Run] {
        var filter = RunFilter()
        filter.limit = limit
        return try runs(filter, holder: holder, in: database)
    }

    private static func runs(
        _ filter: RunFilter, holder: LockHolder?, in database: Connection
    ) throws -> [Run] {
        let rows = try Statement(
            database,
            sql: """
                SELECT id, started_at, ended_at, exit_status, manifest FROM run ORDER BY id DESC
                """)
        var runs: [Run] = []
        var isLast = true
        while runs.count < filter.limit ?? .max, try rows.step() {
            let startedAt = try rows.time(1)
            // The lock is taken before a run is noted, and only the last one can hold it. Another
            // command may, after a run that was killed.
            let mayRun = isLast && holder.map { $0.since <= startedAt } ?? false
            isLast = false
            let end = try rows.optionalTime(2)
            let ending =
                try end.flatMap { end in
                    try rows.optionalInteger(3).map {
                        Run.Ending.ended(at: end, exitStatus: Int(truncatingIfNeeded: $0))
                    }
                } ?? (mayRun && end == nil ? .running : .killed)
            guard filter.includes(startedAt: startedAt, ending) else { continue }
            let members = try end == nil ? [:] : counters(of: rows.integer(0), in: database)
            runs.append(
                Run(
                    startedAt: startedAt, ending: ending, manifest: try rows.text(4),
                    counters: members.isEmpty ? nil : RunCounters(members),
                    newFailures: members[RunLog.knownFailuresName].map {
                        max(0, members[Outcome.failed.rawValue, default: 0] - $0)
                    }))
        }
        return runs
    }

    /// The counts in a row's JSON object, none of them negative; empty for a text that is none.
    private static func counters(of run: Int64, in database: Connection) throws -> [String: Int] {
        let members = try Statement(
            database,
            sql: """
                SELECT member.key, member.value FROM run,
                    json_each(iif(json_valid(counters), counters, '{}')) AS member
                WHERE run.id = ? AND member.type = 'integer' AND member.value >= 0
                """
        ).all(.integer(run)) { (try $0.text(0), Int(truncatingIfNeeded: try $0.integer(1))) }
        return Dictionary(members) { $1 }
    }
}

extension RunCounters {
    /// Takes what ``RunLog/end(_:at:exitStatus:counters:)`` has written.
    fileprivate init(_ members: [String: Int]) {
        self.init()
        entriesRead = members["entries", default: 0]
        requests = members["requests", default: 0]
        bytesReceived = members["bytes_received", default: 0]
        bytesStored = members["bytes_stored", default: 0]
        for outcome in Outcome.allCases {
            count(outcome, times: members[outcome.rawValue, default: 0])
        }
    }
}
