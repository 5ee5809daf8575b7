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
