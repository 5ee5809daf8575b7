package import PrefetchModel
internal import SQLite

/// The table `listing`: which resources the lists of runs have named, and when.
///
/// A row for each entry and run would cost more than a warm run. So each run writes the set of its
/// resources. Sets of earlier runs are merged by hour, those older than a day by day, those older than 30
/// days by week, and after a year they go. That is a hundred sets or a few more.
package struct ListingLog: Sendable {
    private static let hour: Int64 = 3_600_000
    private static let day = 24 * hour
    /// How long a set is kept.
    package static let memory = Duration.seconds(365 * 86400)

    private let database: CacheDatabase

    init(database: CacheDatabase) {
        self.database = database
    }

    static func largestResource(in database: Connection) throws -> Int64 {
        try Statement(database, sql: "SELECT max(id) FROM resource")
            .first { try $0.optionalInteger(0) ?? 0 } ?? 0
    }

    // MARK: Writing

    /// Notes what the lists of a run have named.
    ///
    /// - Parameters:
    ///   - listed: resources.
    ///   - start: of the run.
    ///   - now: the wall clock.
    /// - Throws: when the database cannot be written; nothing is noted then.
    package func note(
        _ listed: ResourceSet, startedAt start: Timestamp, at now: Timestamp
    ) throws(StorageError) {
        try database.write("noting what was listed") { database in
            let largest = try ListingLog.largestResource(in: database)
            try ListingLog.correctFuture(in: database, at: start)
            if try Schema.Property.listingsBegin.time(in: database) == nil {
                try Schema.Property.listingsBegin.set(to: start, in: database)
            }
            if !listed.isEmpty { try ListingLog.add(listed, in: database, largest, at: start) }
            try ListingLog.mergeOldSets(in: database, largest, at: now)
        }
    }

    /// Runs by a clock that was ahead count as of now: else what they listed stayed for as long as that.
    private static func correctFuture(in database: Connection, at now: Timestamp) throws {
        try Statement(
            database,
            sql: """
                UPDATE listing SET last_at = ?1, first_at = min(first_at, ?1) WHERE last_at > ?1
                """
        ).execute(.init(now))
        if let begin = try Schema.Property.listingsBegin.time(in: database), begin > now {
            try Schema.Property.listingsBegin.set(to: now, in: database)
        }
    }

    /// Adds the set of a run. One that is like the last run's is not written again, but its time is.
    private static func add(
        _ listed: ResourceSet, in database: Connection, _ largest: Int64, at time: Timestamp
    ) throws {
        if let last = try rows(in: database).last,
            last.lastAt <= time, Period(of: last.lastAt, at: time) == Period(of: time, at: time),
            try set(of: last, in: database, largest) == listed
        {
            try Statement(database, sql: "UPDATE listing SET last_at = ?2 WHERE id = ?1")
                .execute(.integer(last.id), .init(time))
        } else {
            try Statement(
                database,
                sql: "INSERT INTO listing (first_at, last_at, resources) VALUES (?1, ?1, ?2)"
            ).execute(.init(time), .blob(listed.compressed))
        }
    }

    private static func mergeOldSets(
        in database: Connection, _ largest: Int64, at now: Timestamp
    ) throws {
        try Statement(database, sql: "DELETE FROM listing WHERE last_at < ?")
            .execute(.init(now.advanced(by: .zero - memory)))
        // What the last run listed is told from what others of its hour did.
        let earlier = try rows(in: database).dropLast()
        let groups = Dictionary(grouping: earlier) { Period(of: $0.lastAt, at: now) }
        for group in groups.values where group.count > 1 {
            guard let newest = group.last else { continue }
            let sets = try group.compactMap { try set(of: $0, in: database, largest) }
            // What is damaged stays until it is too old: what it named counts as listed by it.
            guard sets.count == group.count else { continue }
            var union = ResourceSet()
            for set in sets { union.formUnion(set) }
            for row in group.dropLast() {
                try Statement(database, sql: "DELETE FROM listing WHERE id = ?")
                    .execute(.integer(row.id))
            }
            try Statement(
                database, sql: "UPDATE listing SET first_at = ?2, resources = ?3 WHERE id = ?1"
            ).execute(
                .integer(newest.id), .init(group.map(\.firstAt).min() ?? newest.firstAt),
                .blob(union.compressed))
        }
    }

    // MARK: Reading

    struct Row {
        let id: Int64
        let firstAt: Timestamp
        let lastAt: Timestamp
    }

    /// The oldest first.
    static func rows(in database: Connection) throws -> [Row] {
        try Statement(
            database, sql: "SELECT id, first_at, last_at FROM listing ORDER BY last_at, id"
        ).all { Row(id: try $0.integer(0), firstAt: try $0.time(1), lastAt: try $0.time(2)) }
    }

    /// Nil of bytes that are no set: what it said is forgotten then.
    static func set(
        of row: Row, in database: Connection, _ largest: Int64
    ) throws -> ResourceSet? {
        // Identifiers of resources that have gone may be larger than any that is left.
        let bound = max(largest, ResourceSet.largestKept)
        return try Statement(database, sql: "SELECT resources FROM listing WHERE id = ?")
            .first(.integer(row.id)) {
                ResourceSet(compressed: try $0.blob(0), largestResource: bound)
            } ?? nil
    }

    /// What sets are merged by: the hour, the day or the week of their last run.
    private enum Period: Hashable {
        case hour(Int64), day(Int64), week(Int64)

        init(of time: Timestamp, at now: Timestamp) {
            let age = now.timeSince(time)
            let day = time.milliseconds / ListingLog.day
            if age < .seconds(86_400) {
                self = .hour(time.milliseconds / ListingLog.hour)
            } else if age < .seconds(30 * 86_400) {
                self = .day(day)
            } else {
                self = .week(day / 7)
            }
        }
    }
}
