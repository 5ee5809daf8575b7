package import PrefetchModel
internal import SQLite

/// The table `host`, at the start and at the end of a run.
package struct HostLog: Sendable {
    /// The longest pause of a host. One response must not block a host permanently.
    package static let longestCooling = Duration.seconds(7 * 86400)

    let database: CacheDatabase

    package init(database: CacheDatabase) {
        self.database = database
    }

    /// All hosts with a record, see ``forEach(at:_:)``.
    package func all(at now: Timestamp) throws(StorageError) -> [HostState] {
        var states: [HostState] = []
        try forEach(at: now) { states.append($0) }
        return states
    }

    /// Calls `body` for all hosts with a record, in no order; skips damaged rows.
    ///
    /// Ignores times from a wrong clock or damage: rows later than `now` by more than
    /// ``PrefetchModel/Timestamp/toleratedClockStep`` are skipped, and pauses longer than
    /// ``longestCooling`` are ignored. `now` is the wall clock.
    package func forEach(
        at now: Timestamp, _ body: (HostState) -> Void
    ) throws(StorageError) {
        try database.read("reading the hosts") { database in
            let rows = try Statement(
                database, sql: "SELECT \(HostState.columns) FROM host")
            while try rows.step() {
                if let state = try HostState(rows)?.believed(at: now) { body(state) }
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
            let removal = try Statement(database, sql: "DELETE FROM host WHERE host = ?")
            let insertion = try Statement(
                database,
                sql:
                    "INSERT OR REPLACE INTO host (\(HostState.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            )
            for state in states {
                if state.isNormal {
                    try removal.execute(.text(state.host))
                } else {
                    let until = state.coolingUntil.map { min($0, HostLog.latestCooling(of: state)) }
                    try insertion.execute(
                        .text(state.host), .init(state.concurrency.map(Int64.init)),
                        .init(max(0, state.failuresInARow)), .init(until?.milliseconds),
                        .init(state.updatedAt), .init(state.interval.map(HostLog.microseconds)),
                        .init(state.latency.map(HostLog.microseconds)),
                        .init(state.limitedBy?.rawValue))
                }
            }
        }
    }

    /// Removes hosts without contact for `age`, and rows from the future; `now` is the wall clock.
    package func forget(olderThan age: Duration, at now: Timestamp) throws(StorageError) {
        let earliest = now.advanced(by: .zero - age)
        let latest = now.advanced(by: Timestamp.toleratedClockStep)
        try database.write("forgetting hosts") { database in
            try Statement(database, sql: "DELETE FROM host WHERE updated_at < ? OR updated_at > ?")
                .execute(.init(earliest), .init(latest))
        }
    }

    /// Rounded, and at least 1.
    private static func microseconds(_ duration: Duration) -> Int64 {
        max(1, Int64((duration.secondsValue * 1_000_000).rounded()))
    }

    static func latestCooling(of state: HostState) -> Timestamp {
        state.updatedAt.advanced(by: longestCooling)
    }
}
