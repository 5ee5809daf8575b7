package import PrefetchModel
internal import SQLite

/// The table `host`, at the start and at the end of a run.
package struct HostLog: Sendable {
    /// The longest pause of a host. One response must not block a host permanently.
    package static let longestCooling = Duration.seconds(7 * 86400)

    let database: CacheDatabase

    /// All hosts with a record, see ``forEach(at:_:)``.
    package func all(at now: Timestamp) throws(StorageError) -> [HostState] {
        var states: [HostState] = []
        try forEach(at: now) { states.append($0) }
        return states
    }

    /// Calls `body` for all hosts with a record, in no order; skips damaged rows.
    ///
    /// Skips rows later than `now`, the wall clock, by more than
    /// ``PrefetchModel/Timestamp/toleratedClockStep``.
    package func forEach(at now: Timestamp, _ body: (HostState) -> Void) throws(StorageError) {
        try database.read("reading the hosts") { database in
            try database.forEach("SELECT \(HostState.columns) FROM host") { row in
                if let state = try HostState(row)?.believed(at: now) { body(state) }
            }
        }
    }

    /// A host with a longer wait than ``HostState/longestWait``.
    package struct LongWait: Hashable, Sendable {
        package enum WaitCause: Hashable, Sendable {
            /// It is not requested before then.
            case pause(until: Timestamp)
            /// A value that no run stores, and that runs ignore.
            case impossible
        }

        package let host: String
        package let cause: WaitCause
    }

    /// The hosts with a long wait at `now`, by the wall clock, ordered by name.
    package func longWaits(at now: Timestamp) throws(StorageError) -> [LongWait] {
        let limit = HostLog.microseconds(HostState.longestWait)
        let earliest = now.advanced(by: HostState.longestWait)
        return try database.read("reading the hosts") { database in
            try database.all(
                """
                SELECT \(HostState.columns), max(interval_us, 0) > ?1 OR max(latency_us, 0) > ?1
                FROM host WHERE interval_us > ?1 OR latency_us > ?1 OR cooling_until > ?2
                ORDER BY host
                """, .integer(limit), .init(earliest)
            ) { row in
                let host = try row.text(0)
                guard try row.optionalInteger(8) != 1 else {
                    return LongWait(host: host, cause: .impossible)
                }
                let until = try HostState(row)?.believed(at: now)?.coolingUntil
                return LongWait(
                    host: host, cause: until.map { .pause(until: $0) } ?? .impossible)
            }
        }
    }

    /// Writes the state of some hosts in one transaction, and removes the rows of those back to
    /// normal. Other hosts are unchanged.
    ///
    /// Pauses are cut to ``longestCooling``.
    ///
    /// - Throws: when the database cannot be written; nothing is changed then.
    package func save(_ states: [HostState]) throws(StorageError) {
        guard !states.isEmpty else { return }
        try database.write("noting the hosts") { database in
            let removal = try database.prepare("DELETE FROM host WHERE host = ?")
            let insertion = try database.prepare(
                "INSERT OR REPLACE INTO host (\(HostState.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            )
            for state in states {
                if state.isNormal {
                    try removal.execute(.text(state.host))
                } else {
                    try insertion.execute(state.values)
                }
            }
        }
    }

    /// Removes hosts without contact for `age`, and rows from the future; `now` is the wall clock.
    package func forget(olderThan age: Duration, at now: Timestamp) throws(StorageError) {
        let earliest = now.advanced(by: .zero - age)
        let latest = now.advanced(by: Timestamp.toleratedClockStep)
        try database.write("forgetting hosts") { database in
            try database.run(
                "DELETE FROM host WHERE updated_at < ? OR updated_at > ?", .init(earliest),
                .init(latest))
        }
    }

    /// Rounded, and at least 1.
    static func microseconds(_ duration: Duration) -> Int64 {
        max(1, Int64((duration.secondsValue * 1_000_000).rounded()))
    }

    static func latestCooling(of state: HostState) -> Timestamp {
        state.updatedAt.advanced(by: longestCooling)
    }
}
