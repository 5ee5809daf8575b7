package import PrefetchModel
internal import SQLite

extension CacheCatalog {
    package struct StoredHost: Sendable {
        /// Scheme, host and port.
        package let name: String
        /// The state that affects the next run; nil if the host is treated like any other.
        package fileprivate(set) var state: HostState?
        /// The number of its failed URLs, and of the blacklisted ones among them.
        package fileprivate(set) var failures = 0
        package fileprivate(set) var blacklisted = 0
    }

    /// Calls `body` for every host with a failure or with state that affects the next run, ordered
    /// by name. `isBlacklisted` takes the end of a blacklisting and the time of the failure. The
    /// rows are streamed, so memory use is constant. `body` ends the listing by throwing.
    package func forEachHost(
        at now: Timestamp, isBlacklisted: (Timestamp?, Timestamp) -> Bool,
        _ body: (StoredHost) throws -> Void
    ) throws {
        let exclusions = FailureReason.allCases.filter(\.isExclusion).map { "'\($0.rawValue)'" }
            .joined(separator: ", ")
        try database.stream("listing hosts") { database in
            var current: StoredHost?
            func finish() throws {
                guard let current, current.state != nil || current.failures > 0 else { return }
                try body(current)
            }
            try database.forEach(
                """
                SELECT \(HostState.columns), 0 AS is_failure, NULL, NULL FROM host
                UNION ALL
                SELECT host, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, blacklisted_until,
                    last_failed_at FROM failure
                    WHERE reason NOT IN (\(exclusions))
                ORDER BY host, is_failure
                """
            ) { row in
                let name = try row.text(0)
                if current?.name != name {
                    try finish()
                    current = StoredHost(name: name)
                }
                if try row.integer(8) == 0 {
                    let state = try HostState(row)?.believed(at: now)
                    current?.state = state.flatMap { $0.isNormal(at: now) ? nil : $0 }
                } else {
                    current?.failures += 1
                    if try isBlacklisted(row.optionalTime(9), row.time(10)) {
                        current?.blacklisted += 1
                    }
                }
            }
            try finish()
        }
    }

    package var hosts: HostLog { HostLog(database: database) }

    /// The origins of images, failures and hosts, in time linear in origins and failures.
    package func origins() throws(StorageError) -> [String] {
        try database.read("listing origins") { database in
            try database.all(
                "SELECT host FROM total UNION SELECT host FROM host UNION SELECT host FROM failure"
            ) { try $0.text(0) }
        }
    }

    /// The knowledge about hosts (scheme, host and port) at `now`, in their order: the state, nil
    /// for a host like any other, and the mean size of its stored images of the variant `main`, nil
    /// without any.
    package func knowledge(
        ofHosts hosts: [String], at now: Timestamp
    ) throws(StorageError) -> [(state: HostState?, meanBytes: Double?)] {
        try database.read("reading hosts") { database in
            let states = try database.prepare(
                "SELECT \(HostState.columns) FROM host WHERE host = ?")
            let sizes = try database.prepare(
                """
                SELECT sum(variants), sum(bytes) FROM total
                WHERE host = ? AND name = 0 AND superseded = 0
                """)
            return try hosts.map { host in
                let state = try states.first([.text(host)]) { try HostState($0) } ?? nil
                let mean =
                    try sizes.first([.text(host)]) { row -> Double? in
                        let count = try row.optionalInteger(0) ?? 0
                        return count > 0
                            ? Double(try row.optionalInteger(1) ?? 0) / Double(count) : nil
                    } ?? nil
                return (state?.believed(at: now), mean)
            }
        }
    }
}
