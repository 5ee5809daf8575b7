package import PrefetchModel
internal import SQLite

// What `hosts` reads.

extension CacheCatalog {
    /// What is remembered of a host.
    package struct Host: Sendable {
        /// Scheme, host and port.
        package let name: String
        /// What runs go by; nil of one that they ask as any other.
        package fileprivate(set) var state: HostState?
        /// URLs of it that failed, and those of them that are blacklisted.
        package fileprivate(set) var failures = 0
        package fileprivate(set) var blacklisted = 0
    }

    /// Calls `body` for every host that the next run treats in a way of its own or of which a URL has
    /// failed, ordered by name.
    ///
    /// The rows are streamed: memory stays flat however many there are.
    ///
    /// - Parameters:
    ///   - now: by the wall clock.
    ///   - isBlacklisted: whether a failure that is blacklisted until the first time, and came at the second,
    ///     blocks now.
    ///   - body: ends the listing when it throws.
    /// - Throws: what `body` throws, and when the cache cannot be read.
    package func forEachHost(
        at now: Timestamp, isBlacklisted: @escaping (Timestamp?, Timestamp) -> Bool,
        _ body: (Host) throws -> Void
    ) throws {
        try stream("listing hosts", to: body) { database in
            try CacheCatalog.hosts(database, at: now, isBlacklisted: isBlacklisted)
        }
    }

    private static func hosts(
        _ database: Connection, at now: Timestamp,
        isBlacklisted: @escaping (Timestamp?, Timestamp) -> Bool
    ) throws -> () throws -> Host? {
        let rows = try Statement(
            database,
            sql: """
                SELECT \(HostState.columns), 0 AS is_failure, NULL, NULL FROM host
                UNION ALL
                SELECT host, NULL, NULL, NULL, NULL, 1, blacklisted_until, last_failed_at FROM failure
                ORDER BY host, is_failure
                """)
        var current: Host?
        var isAtEnd = false
        return {
            // SQLite would begin anew when it is asked for a row after the last one.
            while !isAtEnd {
                isAtEnd = try !rows.step()
                var finished: Host?
                let name = isAtEnd ? nil : try rows.text(0)
                if current?.name != name {
                    finished = current
                    current = name.map { Host(name: $0) }
                }
                if !isAtEnd {
                    if try rows.integer(5) == 0 {
                        let state = try HostState(rows)?.believed(at: now)
                        current?.state = state.flatMap { $0.isNormal(at: now) ? nil : $0 }
                    } else {
                        current?.failures += 1
                        if try isBlacklisted(rows.optionalTime(6), rows.time(7)) {
                            current?.blacklisted += 1
                        }
                    }
                }
                if let finished, finished.state != nil || finished.failures > 0 { return finished }
            }
            return nil
        }
    }
}
