package import PrefetchModel
internal import SQLite

/// An open database for look-ups, which needs no lock.
package struct LookupSource: Sendable {
    package let directory: CacheDirectory
    let database: CacheDatabase

    /// The latest runs among which those over the same manifests are looked for.
    private static let searchedRuns: Int64 = 1_000

    /// Opens a cache for reading.
    ///
    /// - Throws: when there is no cache, or it cannot be read.
    package init(directory: CacheDirectory) throws(StorageError) {
        self.directory = directory
        database = try CacheDatabase(directory: directory, access: .readOnly)
    }

    package init(_ cache: OpenCache) {
        directory = cache.directory
        database = cache.database
    }

    /// The knowledge of earlier runs about a host.
    package struct HostKnowledge: Sendable {
        /// Nil for a host like any other.
        package let state: HostState?
        /// The mean size of its stored images of the variant `main`; nil without any.
        package let meanBytes: Double?
    }

    /// The knowledge about hosts (scheme, host and port), in their order; the wall clock is at
    /// `now`.
    package func knowledge(
        ofHosts hosts: [String], at now: Timestamp
    ) throws(StorageError) -> [HostKnowledge] {
        try database.read("reading hosts") { database in
            let states = try database.prepare(
                "SELECT \(HostState.columns) FROM host WHERE host = ?")
            let sizes = try database.prepare(
                """
                SELECT sum(variants), sum(bytes) FROM total
                WHERE host = ? AND name = 0 AND superseded = 0
                """)
            return try hosts.map { host in
                let state = try states.first(.text(host)) { try HostState($0) } ?? nil
                let mean =
                    try sizes.first(.text(host)) { row -> Double? in
                        let count = try row.optionalInteger(0) ?? 0
                        return count > 0
                            ? Double(try row.optionalInteger(1) ?? 0) / Double(count) : nil
                    } ?? nil
                return HostKnowledge(state: state?.believed(at: now), meanBytes: mean)
            }
        }
    }

    /// The starts of the last runs over these manifests, latest first.
    package func starts(
        manifests: [String], limit: Int
    ) throws(StorageError) -> [Timestamp] {
        try database.read("reading the run log") { database in
            try database.all(
                """
                SELECT started_at FROM run
                WHERE manifest = ?1 AND id > (SELECT max(id) FROM run) - ?2
                ORDER BY id DESC LIMIT ?3
                """, .text(manifests.joined(separator: "\n")), .integer(LookupSource.searchedRuns),
                .integer(Int64(limit))
            ) { try $0.time(0) }
        }
    }
}
