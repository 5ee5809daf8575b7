package import PrefetchModel
internal import SQLite

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
