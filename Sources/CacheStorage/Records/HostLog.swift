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

    /// Calls `body` for all hosts with a record, in no order; skips damaged rows. Skips rows later
    /// than `now`, the wall clock, by more than ``PrefetchModel/Timestamp/toleratedClockStep``.
    package func forEach(at now: Timestamp, _ body: (HostState) -> Void) throws(StorageError) {
        try database.read("reading the hosts") { database in
            try database.forEach("SELECT \(HostState.columns) FROM host") { row in
                if let state = try HostState(row)?.believed(at: now) { body(state) }
            }
        }
    }

    /// A host with a longer wait than ``HostState/longestWait``, and the end of its pause; nil for
    /// a value that no run stores, and that runs ignore.
    package typealias LongWait = (host: String, pausedUntil: Timestamp?)

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
                guard try row.optionalInteger(8) != 1 else { return (host, nil) }
                return (host, try HostState(row)?.believed(at: now)?.coolingUntil)
            }
        }
    }

    /// Writes the state of some hosts in one transaction, and removes the rows of those back to
    /// normal. Other hosts are unchanged. Pauses are cut to ``longestCooling``.
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
        try database.execute(
            "forgetting hosts", "DELETE FROM host WHERE updated_at < ? OR updated_at > ?",
            .init(earliest), .init(latest))
    }

    /// Rounded, and at least 1.
    static func microseconds(_ duration: Duration) -> Int64 {
        max(1, Int64((duration.secondsValue * 1_000_000).rounded()))
    }

    fileprivate static func latestCooling(of state: HostState) -> Timestamp {
        state.updatedAt.advanced(by: longestCooling)
    }

    /// Removes all hosts, including unreadable rows. Returns the number removed.
    package func removeAll() throws(StorageError) -> Int {
        try database.execute("forgetting hosts", "DELETE FROM host")
    }

    /// Removes hosts. Returns the number removed, and the names without a host.
    package func removeAll(
        named names: [HostName]
    ) throws(StorageError) -> (count: Int, unknown: [HostName]) {
        try database.write("forgetting hosts") { database in
            let hosts = try database.all("SELECT host FROM host") {
                try $0.text(0)
            }
            let removal = try database.prepare("DELETE FROM host WHERE host = ?")
            var (count, known): (Int, Set<HostName>) = (0, [])
            for host in hosts {
                let matching = names.filter { $0.matches(origin: host) }
                guard !matching.isEmpty else { continue }
                known.formUnion(matching)
                try removal.execute(.text(host))
                count += 1
            }
            return (count, names.filter { !known.contains($0) })
        }
    }
}

/// A host as a user names it: `example.com` for any scheme and port, `example.com:8080` for any
/// scheme, or an origin, `https://example.com`. Compared without regard to case.
package struct HostName: Hashable, Sendable {
    /// In lower case.
    package let text: String

    package init(_ text: String) {
        self.text = text.lowercased()
    }

    /// Whether it names an origin: scheme, host and port, as the cache stores them.
    package func matches(origin: String) -> Bool {
        let origin = origin.lowercased()
        guard let separator = origin.firstRange(of: "://") else { return origin == text }
        let authority = origin[separator.upperBound...]
        if origin == text || authority == text { return true }
        guard let colon = authority.lastIndex(of: ":"),
            authority[colon...].dropFirst().allSatisfy(\.isNumber)
        else { return false }
        return authority[..<colon] == text
    }
}

/// A row of the table `host`: the state that one run leaves for the next.
package struct HostState: Hashable, Sendable {
    /// Scheme, host and port, like ``ResourceLocation/host``.
    package var host: String
    /// Concurrent transfers that the host accepted, 1 or more; nil for a new host.
    package var concurrency: Int?
    /// The shortest time between two requests that the host accepted, above zero; nil for none.
    package var interval: Duration?
    /// The mean time to first byte of the host's best round, above zero; nil if unknown.
    package var latency: Duration?
    /// The limit of the host's pace; nil for none.
    package var limitedBy: HostPace.Limit?
    /// Connection failures since the last response.
    package var failuresInARow = 0
    /// Not requested before then; nil without a pause.
    package var coolingUntil: Timestamp?
    package var updatedAt: Timestamp
}

extension HostState {
    package init(host: String, updatedAt: Timestamp) {
        self.init(host: host, failuresInARow: 0, updatedAt: updatedAt)
    }

    /// Whether the host refused requests for their pace when it was requested last.
    package var isRefusing: Bool {
        interval != nil || limitedBy == .refusals
    }

    /// Whether the state equals that of an unknown host.
    var isNormal: Bool { isNormal(at: updatedAt) }

    /// Whether the state equals that of an unknown host at a given time: pauses end.
    func isNormal(at time: Timestamp) -> Bool {
        concurrency == nil && interval == nil && failuresInARow <= 0
            && (coolingUntil ?? time) <= time
    }

    /// Reads the columns of ``columns``; nil if a value is invalid. The one reader of the table.
    /// The row may be damaged or from another cache, and must neither stop nor flood a host. So a
    /// longer interval, latency or pause than a run stores is dropped, and larger counts are cut.
    init?(_ row: borrowing Statement) throws {
        let (concurrency, failures) = (try row.optionalInteger(1), try row.integer(2))
        let waits = try [5, 6].map { try row.optionalInteger($0) }
        guard try !row.text(0).isEmpty, failures >= 0,
            ([concurrency] + waits).allSatisfy({ $0 ?? 1 >= 1 })
        else { return nil }
        func bounded(_ microseconds: Int64?, _ longest: Duration) -> Duration? {
            microseconds.map { Duration.microseconds($0) }.flatMap { $0 <= longest ? $0 : nil }
        }
        self.init(
            host: try row.text(0),
            concurrency: concurrency.map { Int(min($0, HostState.largestCount)) },
            interval: bounded(waits[0], HostPace.longestInterval),
            latency: bounded(waits[1], HostState.longestWait),
            limitedBy: try row.optionalText(7).flatMap(HostPace.Limit.init),
            failuresInARow: Int(min(failures, HostState.largestCount)),
            coolingUntil: try row.optionalTime(3), updatedAt: try row.time(4))
        if let until = coolingUntil, until > HostLog.latestCooling(of: self) { coolingUntil = nil }
    }

    /// Far above the numbers of any run.
    private static let largestCount = Int64(UInt16.max)

    /// No row has a longer interval or latency, and a host with a longer pause is named.
    package static let longestWait = Duration.seconds(86_400)

    /// The values of ``columns``, with the pause cut to ``HostLog/longestCooling``.
    var values: [Statement.Value] {
        let until = coolingUntil.map { min($0, HostLog.latestCooling(of: self)) }
        return [
            .text(host), .init(concurrency.map(Int64.init)), .init(max(0, failuresInARow)),
            .init(until?.milliseconds), .init(updatedAt),
            .init(interval.map(HostLog.microseconds)), .init(latency.map(HostLog.microseconds)),
            .init(limitedBy?.rawValue),
        ]
    }

    static let columns = """
        host, concurrency, failures_in_a_row, cooling_until, updated_at, interval_us, latency_us, \
        limited_by
        """

    /// The state that a run at `now` uses, see ``HostLog/forEach(at:_:)``; nil for none.
    func believed(at now: Timestamp) -> HostState? {
        guard updatedAt <= now.advanced(by: Timestamp.toleratedClockStep) else { return nil }
        return isNormal ? nil : self
    }
}
