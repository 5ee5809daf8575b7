package import PrefetchModel
internal import SQLite

/// The table `host`, at the start and at the end of a run.
package struct HostLog: Sendable {
    /// A host that is to cool down for longer is asked again, at the latest, after this time: what
    /// one answer says must not keep a host away for ever.
    package static let longestCooling = Duration.seconds(7 * 86400)

    let database: CacheDatabase

    package init(database: CacheDatabase) {
        self.database = database
    }

    /// All hosts that something is known of, see ``forEach(at:_:)``.
    package func all(at now: Timestamp) throws(StorageError) -> [HostState] {
        var states: [HostState] = []
        try forEach(at: now) { states.append($0) }
        return states
    }

    /// Gives all hosts that something is known of, in no order; damaged rows are left out.
    ///
    /// Times that a wrong clock or damage has left are not believed: a row from the future, by more
    /// than ``PrefetchModel/Timestamp/toleratedClockStep``, is left out, and a host that is to cool
    /// for longer than ``longestCooling`` may be asked. `now` is by the wall clock.
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

    /// Writes what is known of some hosts in one transaction, and forgets those of them that are
    /// back to normal. The others stay as they are.
    ///
    /// Cool-downs are cut to ``longestCooling``.
    ///
    /// - Throws: when the database cannot be written; nothing is changed then.
    package func save(_ states: [HostState]) throws(StorageError) {
        guard !states.isEmpty else { return }
        try database.write("noting the hosts") { database in
            let removal = try Statement(database, sql: "DELETE FROM host WHERE host = ?")
            let insertion = try Statement(
                database,
                sql: "INSERT OR REPLACE INTO host (\(HostState.columns)) VALUES (?, ?, ?, ?, ?)")
            for state in states {
                if state.isNormal {
                    try removal.execute(.text(state.host))
                } else {
                    let until = state.coolingUntil.map { min($0, HostLog.latestCooling(of: state)) }
                    try insertion.execute(
                        .text(state.host), .init(state.concurrency.map(Int64.init)),
                        .init(max(0, state.failuresInARow)), .init(until?.milliseconds),
                        .init(state.updatedAt))
                }
            }
        }
    }

    /// Removes hosts that nothing has been heard of for `age`, and those that ``all(at:)`` does not
    /// believe to be from the past; `now` is by the wall clock.
    package func forget(olderThan age: Duration, at now: Timestamp) throws(StorageError) {
        let earliest = now.advanced(by: .zero - age)
        let latest = now.advanced(by: Timestamp.toleratedClockStep)
        try database.write("forgetting hosts") { database in
            try Statement(database, sql: "DELETE FROM host WHERE updated_at < ? OR updated_at > ?")
                .execute(.init(earliest), .init(latest))
        }
    }

    static func latestCooling(of state: HostState) -> Timestamp {
        state.updatedAt.advanced(by: longestCooling)
    }
}
