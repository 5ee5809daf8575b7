import Glibc
package import PrefetchModel
internal import SQLite

extension CacheCatalog {
    package struct Statistics: Sendable {
        package let resources: Int
        package let sourceBytes: Int
        package let expired: Int
        /// Resources unlisted for ``unlistedTime``; nil if listings were recorded for less.
        package let unlisted: Int?
        package let space: CacheSpace
        package let variants: VariantTotals
        package let hosts: HostTotals
        package let failures: FailureCounts
        package let runs: RunTotals

        package static let shownHosts = 20
        package static let unlistedTime = Duration.seconds(30 * 86400)
    }

    package struct CacheSpace: Sendable {
        /// Content files; equal images share one.
        package let contentFiles: Int
        package let contentBytes: Int
        package let diskSize: ByteCount
        /// Free space on the file system for this user; nil if unknown.
        package let freeSize: ByteCount?
        package let databaseBytes: Int
    }

    package struct VariantTotals: Sendable {
        package fileprivate(set) var count = 0
        package fileprivate(set) var superseded = 0
        package fileprivate(set) var formats: [(format: String, variants: Int, bytes: Int)] = []
        /// `main` first.
        package fileprivate(set) var names: [(name: String, variants: Int, bytes: Int)] = []
    }

    /// `largest` has the hosts with the most bytes, largest first; at most
    /// ``Statistics/shownHosts``.
    package typealias HostTotals = (
        largest: [(host: String, variants: Int, bytes: Int)], count: Int
    )

    package struct RunTotals: Sendable {
        package let last: LoggedRun?
        /// The fresh share of the entries of the last ten finished runs, 0…1; nil without runs.
        package let freshShare: Double?
        /// Bytes stored by runs in each of the last four weeks, the current one first.
        package let storedByWeek: [Int]
    }

    /// Returns the totals of one moment. Only values that depend on the time are computed row by
    /// row. A resource validated before `now` that expires after it is fresh; `isFresh` decides for
    /// every other one, given its validation and expiry times.
    package func statistics(
        at now: Timestamp = .distantFuture, isFresh: (Timestamp, Timestamp) -> Bool,
        isBlacklisted: (FailureRecord) -> Bool
    ) throws(StorageError) -> Statistics {
        let path = database.path
        let holder = CacheLock.holder(in: directory)
        let unlogged = UnloggedRuns(directory).all
        let freeSize = directory.freeSize
        return try database.read("counting") { database in
            let usage = try DiskUsage.read(in: database)
            let sums = try database.first("SELECT resources, source_bytes, file_bytes FROM usage") {
                (try $0.count(0), try $0.count(1), try $0.count(2))
            }
            let (resources, sourceBytes, fileBytes) = sums ?? (0, 0, 0)
            let runs = try CacheCatalog.runs(
                RunFilter(limit: 20), holder: holder, unlogged: unlogged, in: database)
            var status = stat()
            return Statistics(
                resources: resources, sourceBytes: sourceBytes,
                expired: try CacheCatalog.countExpired(in: database, at: now, isFresh: isFresh),
                unlisted: try CacheCatalog.countUnlisted(in: database, at: now),
                space: CacheSpace(
                    contentFiles: usage.files, contentBytes: fileBytes, diskSize: usage.size,
                    freeSize: freeSize,
                    databaseBytes: stat(path, &status) == 0 ? Int(status.st_size) : 0),
                variants: try CacheCatalog.countVariants(in: database),
                hosts: try CacheCatalog.largestHosts(in: database),
                failures: try CacheCatalog.countFailures(
                    in: database, isBlacklisted: isBlacklisted),
                runs: RunTotals(
                    last: runs.first, freshShare: CacheCatalog.freshShare(of: runs),
                    storedByWeek: try CacheCatalog.storedByWeek(in: database, at: now)))
        }
    }

    /// Adds two counts; saturates, since counts in a damaged database may be huge.
    private static func sum(_ first: Int, _ second: Int) -> Int {
        let (sum, isTooLarge) = first.addingReportingOverflow(second)
        return isTooLarge ? .max : sum
    }

    private static func countVariants(in database: Connection) throws -> VariantTotals {
        let rows = try database.all(
            """
            SELECT format, named.name, superseded <> 0, sum(variants), sum(bytes)
            FROM total LEFT JOIN variant_name AS named ON named.id = total.name
            GROUP BY 1, total.name, 3 HAVING sum(variants) > 0
            ORDER BY named.id <> 0, named.name, format
            """
        ) {
            (
                format: try $0.text(0), name: try $0.optionalText(1),
                isSuperseded: try $0.integer(2) != 0, variants: try $0.count(3),
                bytes: try $0.count(4)
            )
        }
        var totals = VariantTotals()
        var formats: [String: (variants: Int, bytes: Int)] = [:]
        for row in rows {
            totals.count = sum(totals.count, row.variants)
            if row.isSuperseded { totals.superseded = sum(totals.superseded, row.variants) }
            let format = formats[row.format] ?? (0, 0)
            formats[row.format] = (sum(format.variants, row.variants), sum(format.bytes, row.bytes))
            guard let name = row.name else { continue }
            if totals.names.last?.name != name { totals.names.append((name, 0, 0)) }
            let last = totals.names.removeLast()
            totals.names.append(
                (name, sum(last.variants, row.variants), sum(last.bytes, row.bytes)))
        }
        totals.formats = formats.sorted { $0.key < $1.key }
            .map { ($0.key, $0.value.variants, $0.value.bytes) }
        return totals
    }

    private static func largestHosts(in database: Connection) throws -> HostTotals {
        let largest = try database.all(
            """
            SELECT host, sum(variants) AS variants, sum(bytes) AS bytes FROM total
            GROUP BY host HAVING sum(total.variants) > 0
            ORDER BY sum(total.bytes) DESC, host LIMIT ?
            """, .init(Statistics.shownHosts)
        ) {
            (host: try $0.text(0), variants: try $0.count(1), bytes: try $0.count(2))
        }
        let all =
            try database.first("SELECT count(DISTINCT host) FROM total WHERE variants > 0") {
                try $0.count(0)
            } ?? 0
        return (largest, all)
    }

    private static func countExpired(
        in database: Connection, at now: Timestamp, isFresh: (Timestamp, Timestamp) -> Bool
    ) throws -> Int {
        // Each variant of a resource has a row.
        var expired = ResourceSet()
        try database.forEach(
            """
            SELECT resource_id, validated_at, expires_at FROM freshness
            WHERE expires_at <= ?1 OR validated_at > ?1
            """, .init(now)
        ) { row in
            if try !isFresh(row.time(1), row.time(2)) { expired.insert(try row.integer(0)) }
        }
        return expired.count
    }

    private static func countUnlisted(in database: Connection, at now: Timestamp) throws -> Int? {
        let listed = try LastListed.read(in: database)
        // The same rule as `prune`.
        let earliest = min(now, listed.latest ?? now).advanced(by: .zero - Statistics.unlistedTime)
        guard let begin = listed.begin, begin <= earliest else { return nil }
        let recent = listed.resources(since: earliest)
        // The smallest index that has every resource.
        var unlisted = ResourceSet()
        try database.forEach("SELECT resource_id FROM freshness ORDER BY resource_id") { row in
            let id = try row.integer(0)
            if !recent.contains(id) { unlisted.insert(id) }
        }
        return unlisted.count
    }

    private static func freshShare(of runs: [LoggedRun]) -> Double? {
        let ended = runs.lazy.compactMap(\.counters).filter { $0.entriesRead > 0 }.prefix(10)
        let entries = ended.reduce(0) { sum($0, $1.entriesRead) }
        guard entries > 0 else { return nil }
        let fresh = ended.reduce(0) { sum($0, sum($1[.fresh], $1[.duplicate])) }
        return min(1, Double(fresh) / Double(entries))
    }

    private static func storedByWeek(in database: Connection, at now: Timestamp) throws -> [Int] {
        var weeks = [Int](repeating: 0, count: 4)
        let week = Duration.seconds(7 * 86400)
        try database.forEach(
            """
            SELECT started_at, json_extract(counters, '$.bytes_stored') FROM run
            WHERE id > (SELECT max(id) FROM run) - 10000 AND started_at > ?
                AND json_valid(counters)
                AND json_type(counters, '$.bytes_stored') = 'integer'
            """, .init(now.advanced(by: .zero - week * weeks.count))
        ) { row in
            let age = now.timeSince(try row.time(0)) / week
            guard (0..<Double(weeks.count)).contains(age) else { return }
            let index = Int(age)
            weeks[index] = sum(weeks[index], max(0, Int(truncatingIfNeeded: try row.integer(1))))
        }
        return weeks
    }

    /// The size of the cache, expiries by day, and bytes stored by day.
    package struct Outlook: Sendable {
        package let images: Int
        package let contentBytes: Int
        /// Images by the UTC ``Timestamp/day`` of their expiry; 1970 for always stale ones.
        package let expiries: [(day: Int64, images: Int)]
        /// Bytes stored by runs, by the UTC day of their start.
        package let storedByDay: [Int64: Int]
    }

    /// Returns the totals of one moment, with the runs since `start`.
    package func outlook(ofRunsSince start: Timestamp) throws(StorageError) -> Outlook {
        try database.read("counting") { database in
            let usage = try database.first("SELECT resources, file_bytes FROM usage") {
                (try $0.count(0), try $0.count(1))
            }
            let expiries = try database.all(
                "SELECT expires_at / 86400000, count(*) FROM resource GROUP BY 1"
            ) { (day: try $0.integer(0), images: try $0.count(1)) }
            var storedByDay: [Int64: Int] = [:]
            try database.forEach(
                """
                SELECT started_at / 86400000, json_extract(counters, '$.bytes_stored') FROM run
                WHERE started_at >= ? AND json_valid(counters)
                    AND json_type(counters, '$.bytes_stored') = 'integer'
                """, .init(start)
            ) { row in
                let (sum, isTooLarge) = storedByDay[try row.integer(0), default: 0]
                    .addingReportingOverflow(max(0, Int(try row.integer(1))))
                storedByDay[try row.integer(0)] = isTooLarge ? .max : sum
            }
            return Outlook(
                images: usage?.0 ?? 0, contentBytes: usage?.1 ?? 0, expiries: expiries,
                storedByDay: storedByDay)
        }
    }

    /// The hosts with images, in the order of ``ListSelection/Order/host``.
    package func imagesByHost() throws(StorageError) -> [(host: String, images: Int)] {
        try database.read("counting") { database in
            try database.all(
                """
                SELECT host, count(*) FROM resource
                WHERE EXISTS (SELECT 1 FROM variant WHERE resource_id = resource.id)
                GROUP BY host ORDER BY host
                """
            ) { (host: try $0.text(0), images: try $0.count(1)) }
        }
    }

    static func countFailures(
        in database: Connection, isBlacklisted: (FailureRecord) -> Bool
    ) throws -> FailureCounts {
        var counts = FailureCounts()
        try database.forEach("SELECT \(FailureRecord.columns) FROM failure") { row in
            let record = try FailureRecord(row)
            if record?.reason.isExclusion == true {
                counts.exclusions += 1
            } else {
                counts.failures += 1
                if let record, isBlacklisted(record) { counts.blacklisted += 1 }
            }
        }
        return counts
    }

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

package struct FailureCounts: Hashable, Sendable {
    /// URLs with a failed last attempt.
    package internal(set) var failures = 0
    /// The part of ``failures`` that is blacklisted now.
    package internal(set) var blacklisted = 0
    /// Images that a rule of the user excludes, which do not count as failures.
    package internal(set) var exclusions = 0
}
