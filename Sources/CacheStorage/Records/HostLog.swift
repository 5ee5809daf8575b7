package import PrefetchModel
internal import SQLite

/// A row of the table `host`: what one run leaves the next to know of a host.
package struct HostState: Hashable, Sendable {
    /// Scheme, host and port, like ``ResourceLocation/host``.
    package var host: String
    /// Transfers that it bears at once, 1 or more; nil when it bears as many as the user allows.
    package var concurrency: Int?
    /// Failures of connections since the last answer.
    package var failuresInARow: Int
    /// Not asked for anything before then; nil when it may be asked.
    package var coolingUntil: Timestamp?
    package var updatedAt: Timestamp

    package init(
        host: String, concurrency: Int? = nil, failuresInARow: Int = 0,
        coolingUntil: Timestamp? = nil, updatedAt: Timestamp
    ) {
        self.host = host
        self.concurrency = concurrency
        self.failuresInARow = failuresInARow
        self.coolingUntil = coolingUntil
        self.updatedAt = updatedAt
    }

    /// Whether nothing sets the host apart from one that nobody has met.
    var isNormal: Bool { isNormal(at: updatedAt) }

    /// The same at another time: pauses come to an end.
    func isNormal(at time: Timestamp) -> Bool {
        concurrency == nil && failuresInARow <= 0 && (coolingUntil ?? time) <= time
    }

    /// Reads the columns of ``columns``; nil when a value is not one that we write.
    init?(_ row: borrowing Statement) throws {
        guard let concurrency = Int(exactly: try row.optionalInteger(1) ?? 1),
            let failures = Int(exactly: try row.integer(2))
        else { return nil }
        self.init(
            host: try row.text(0), concurrency: row.isNull(1) ? nil : concurrency,
            failuresInARow: failures, coolingUntil: try row.optionalTime(3),
            updatedAt: try row.time(4))
        guard !host.isEmpty, concurrency >= 1, failuresInARow >= 0 else { return nil }
    }

    static let columns = """
        host, concurrency, failures_in_a_row, cooling_until, updated_at
        """
}

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

    fileprivate static func latestCooling(of state: HostState) -> Timestamp {
        state.updatedAt.advanced(by: longestCooling)
    }
}

extension HostState {
    /// What a run at `now` takes it for, see ``HostLog/forEach(at:_:)``; nil when it goes by nothing of it.
    func believed(at now: Timestamp) -> HostState? {
        guard updatedAt <= now.advanced(by: Timestamp.toleratedClockStep) else { return nil }
        var state = self
        if let until = coolingUntil, until > HostLog.latestCooling(of: self) {
            state.coolingUntil = nil
        }
        return state.isNormal ? nil : state
    }
}
