package import PrefetchModel
internal import SQLite

/// A row of the table `host`: the state that one run leaves for the next.
package struct HostState: Hashable, Sendable {
    /// Scheme, host and port, like ``ResourceLocation/host``.
    package var host: String
    /// Concurrent transfers that the host accepted, 1 or more; nil for those of a new host.
    package var concurrency: Int?
    /// The shortest time between two requests that the host accepted, above zero; nil for none.
    package var interval: Duration?
    /// The mean time to first byte of the host's best round, above zero; nil if unknown.
    package var latency: Duration?
    /// The limit of the host's pace; nil for none.
    package var limitedBy: HostPace.Limit?
    /// Connection failures since the last answer.
    package var failuresInARow: Int
    /// Not requested before then; nil without a pause.
    package var coolingUntil: Timestamp?
    package var updatedAt: Timestamp

    package init(
        host: String, concurrency: Int? = nil, interval: Duration? = nil,
        latency: Duration? = nil, limitedBy: HostPace.Limit? = nil, failuresInARow: Int = 0,
        coolingUntil: Timestamp? = nil, updatedAt: Timestamp
    ) {
        self.host = host
        self.concurrency = concurrency
        self.interval = interval
        self.latency = latency
        self.limitedBy = limitedBy
        self.failuresInARow = failuresInARow
        self.coolingUntil = coolingUntil
        self.updatedAt = updatedAt
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

    /// Reads the columns of ``columns``; nil if a value is invalid.
    init?(_ row: borrowing Statement) throws {
        guard let concurrency = Int(exactly: try row.optionalInteger(1) ?? 1),
            let failures = Int(exactly: try row.integer(2))
        else { return nil }
        self.init(
            host: try row.text(0), concurrency: row.isNull(1) ? nil : concurrency,
            interval: row.isNull(5) ? nil : .microseconds(try row.integer(5)),
            latency: row.isNull(6) ? nil : .microseconds(try row.integer(6)),
            limitedBy: try row.optionalText(7).flatMap(HostPace.Limit.init),
            failuresInARow: failures,
            coolingUntil: try row.optionalTime(3), updatedAt: try row.time(4))
        // A damaged number must not stop or flood a host.
        guard !host.isEmpty, concurrency >= 1, failuresInARow >= 0,
            (interval ?? .seconds(1)) > .zero, (latency ?? .seconds(1)) > .zero
        else { return nil }
    }

    static let columns = """
        host, concurrency, failures_in_a_row, cooling_until, updated_at, interval_us, latency_us, \
        limited_by
        """
}

extension HostState {
    /// The state that a run at `now` uses, see ``HostLog/forEach(at:_:)``; nil if it uses none of
    /// it.
    func believed(at now: Timestamp) -> HostState? {
        guard updatedAt <= now.advanced(by: Timestamp.toleratedClockStep) else { return nil }
        var state = self
        if let until = coolingUntil, until > HostLog.latestCooling(of: self) {
            state.coolingUntil = nil
        }
        return state.isNormal ? nil : state
    }
}
