package import PrefetchModel
internal import SQLite

extension CacheCatalog {
    package struct LoggedRun: Sendable {
        package enum End: Hashable, Sendable {
            /// `exitStatus` is 128 + the signal's number when a signal stopped it.
            case ended(at: Timestamp, exitStatus: Int)
            /// The run still holds the lock.
            case running
            /// It was killed, or the machine crashed.
            case killed
        }

        package let startedAt: Timestamp
        package let ending: End
        /// The manifests' names, separated by newlines.
        package let manifest: String
        /// Nil for a run without an end. Failure reasons are not stored.
        package let counters: RunCounters?
        /// Failures that no earlier run had for the same reason; nil for runs without an end.
        package let newFailures: Int?
    }

    package struct RunFilter: Sendable {
        /// The number of latest runs to return, 1 or more; nil for all.
        package var limit: Int?
        package var startedSince: Timestamp?
        /// Only runs that ended with a non-zero status or were killed.
        package var onlyFailed = false

        package init(limit: Int? = nil) {
            self.limit = limit
        }

        fileprivate func includes(startedAt: Timestamp, _ ending: LoggedRun.End) -> Bool {
            if let startedSince, startedAt < startedSince { return false }
            guard onlyFailed else { return true }
            return switch ending {
            case .ended(_, let exitStatus): exitStatus != 0
            case .running: false
            case .killed: true
            }
        }
    }

    package func runs(_ filter: RunFilter = RunFilter()) throws(StorageError) -> [LoggedRun] {
        // Read before the rows: a run that ends in between is seen as ended. Trying the lock
        // instead would hold it briefly and could turn away a run that is starting.
        let holder = CacheLock.holder(in: directory)
        let unlogged = UnloggedRuns(directory).all
        return try database.read("reading the run log") { database in
            try CacheCatalog.runs(filter, holder: holder, unlogged: unlogged, in: database)
        }
    }

    static func runs(
        _ filter: RunFilter, holder: LockHolder?, unlogged: [UnloggedRuns.UnloggedRun],
        in database: Connection
    ) throws -> [LoggedRun] {
        let ends = Dictionary(unlogged.map { ($0.startedAt, $0) }) { $1 }
        // The table would have those of earlier runs.
        var runs = try unlogged.reversed().filter { run in
            try database.first("SELECT 1 FROM run WHERE started_at = ?", .init(run.startedAt)) {
                try $0.integer(0)
            } == nil
        }.map(LoggedRun.init).filter { filter.includes(startedAt: $0.startedAt, $0.ending) }
        runs = Array(runs.prefix(filter.limit ?? .max))
        let rows = try database.prepare(
            "SELECT id, started_at, ended_at, exit_status, manifest FROM run ORDER BY id DESC")
        var isLast = runs.isEmpty
        while runs.count < filter.limit ?? .max, try rows.step() {
            let startedAt = try rows.time(1)
            // A run takes the lock before it is logged, and only the last run can still hold it.
            // After a killed run, the holder may be another command.
            let mayRun = isLast && holder.map { $0.since <= startedAt } ?? false
            isLast = false
            let end = try rows.optionalTime(2)
            let ending =
                try end.flatMap { end in
                    try rows.optionalInteger(3).map {
                        LoggedRun.End.ended(at: end, exitStatus: Int(truncatingIfNeeded: $0))
                    }
                } ?? ends[startedAt].map { LoggedRun($0).ending }
                ?? (mayRun && end == nil ? .running : .killed)
            guard filter.includes(startedAt: startedAt, ending) else { continue }
            let members = try end == nil ? [:] : counters(of: rows.integer(0), in: database)
            runs.append(
                LoggedRun(
                    startedAt: startedAt, ending: ending, manifest: try rows.text(4),
                    counters: members.isEmpty ? nil : RunCounters(members),
                    newFailures: members[RunLog.knownFailuresName].map {
                        max(0, members[Outcome.failed.rawValue, default: 0] - $0)
                    }))
        }
        return runs
    }

    /// The `outages` that the last run with an end stored.
    package func outages() throws(StorageError) -> String? {
        try database.read("reading the run log") { try RunLog.outages(in: $0) }
    }

    /// The resources with images of these formats that were stored undecoded before a time.
    ///
    /// Reads the rows of all images. Nil if a run has started since and ended: it could make them
    /// again.
    package func undecoded(
        _ formats: [ImageFormat], before time: Timestamp
    ) throws(StorageError) -> ResourceSet? {
        try database.read("reading undecoded images") { database in
            let last = try database.first(
                """
                SELECT started_at FROM run WHERE ended_at IS NOT NULL ORDER BY id DESC LIMIT 1
                """
            ) { try $0.time(0) }
            guard let last, last < time else { return nil }
            var resources = ResourceSet()
            for format in formats {
                try database.forEach(
                    """
                    SELECT resource_id FROM variant
                    WHERE decoded = 0 AND format = ? AND created_at < ?
                    """, .text(format.rawValue), .init(time)
                ) { resources.insert(try $0.integer(0)) }
            }
            return resources.isEmpty ? nil : resources
        }
    }

    /// The starts of the last runs over these manifests, latest first.
    package func starts(manifests: [String], limit: Int) throws(StorageError) -> [Timestamp] {
        // Older runs over the same manifests are not looked for.
        let searchedRuns: Int64 = 1_000
        return try database.read("reading the run log") { database in
            try database.all(
                """
                SELECT started_at FROM run
                WHERE manifest = ?1 AND id > (SELECT max(id) FROM run) - ?2
                ORDER BY id DESC LIMIT ?3
                """, .text(manifests.joined(separator: "\n")), .integer(searchedRuns), .init(limit)
            ) { try $0.time(0) }
        }
    }

    /// The counts in a row's JSON object, clamped to 0 or more; empty if the text is not an object.
    private static func counters(of run: Int64, in database: Connection) throws -> [String: Int] {
        let members = try database.all(
            """
            SELECT member.key, member.value FROM run,
                json_each(iif(json_valid(counters), counters, '{}')) AS member
            WHERE run.id = ? AND member.type = 'integer' AND member.value >= 0
            """, .integer(run)
        ) { (try $0.text(0), Int(truncatingIfNeeded: try $0.integer(1))) }
        return Dictionary(members) { $1 }
    }
}

extension RunCounters {
    /// Decodes the counters that ``RunLog/end(_:at:exitStatus:counters:)`` stored.
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

extension CacheCatalog.LoggedRun {
    /// A run that a full disk kept out of the table, without its counts.
    fileprivate init(_ run: UnloggedRuns.UnloggedRun) {
        self.init(
            startedAt: run.startedAt,
            ending: .ended(at: run.endedAt, exitStatus: Int(run.exitStatus)),
            manifest: run.manifest, counters: nil, newFailures: nil)
    }
}
