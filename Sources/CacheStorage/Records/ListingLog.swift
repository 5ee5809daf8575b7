package import PrefetchModel
internal import SQLite

/// A row of the table `listing`, without its set.
struct StoredListing {
    let id: Int64
    let firstAt: Timestamp
    let lastAt: Timestamp
}

/// The table `listing`: the sets of resources that runs have listed, since a row for each entry and
/// run would cost more than a warm run. Sets of earlier runs are merged by hour, after a day by
/// day, after 30 days by week, and removed after a year: a little over a hundred sets.
package struct ListingLog: Sendable {
    private static let hour: Int64 = 3_600_000
    private static let day = 24 * hour
    package static let memory = Duration.seconds(365 * 86400)

    let database: CacheDatabase

    static func largestResource(in database: Connection) throws -> Int64 {
        try database.first("SELECT max(id) FROM resource") { try $0.optionalInteger(0) ?? 0 } ?? 0
    }

    /// Records the resources that a run has listed. Without `isWhole`, it has not read all its
    /// entries, which may name any resource: all count as listed just before the others.
    package func note(
        _ listed: ResourceSet, isWhole: Bool = true, startedAt start: Timestamp, at now: Timestamp
    ) throws(StorageError) {
        try database.write("recording the listing") { database in
            let largest = try ListingLog.largestResource(in: database)
            try ListingLog.correctFuture(in: database, at: start)
            if try Schema.Property.listingsBegin.time(in: database) == nil {
                try Schema.Property.listingsBegin.set(to: start, in: database)
            }
            if !isWhole, !listed.isEmpty {
                var all = ResourceSet()
                try database.forEach("SELECT id FROM resource") { row in
                    all.insert(try row.integer(0))
                }
                try ListingLog.add(
                    all, in: database, largest, at: start.advanced(by: .milliseconds(-1)))
            }
            if !listed.isEmpty { try ListingLog.add(listed, in: database, largest, at: start) }
            try ListingLog.mergeOldSets(in: database, largest, at: now)
        }
    }

    /// Counts the resources of a host, which is scheme, host and port, among `listed`; stops beyond
    /// `limit`. The indices on key and URL make that a search, without a column of hosts.
    package func countStored(
        of host: String, in listed: ResourceSet, upTo limit: Int
    ) throws(StorageError) -> Int {
        try database.read("counting a host's images") { database in
            var count = 0
            let isByKey = "key >= ?1 AND key < ?2"
            for condition in [
                isByKey, "url >= ?1 AND url < ?2 AND url <> key AND NOT (\(isByKey))",
            ] {
                let rows = try database.prepare("SELECT id FROM resource WHERE \(condition)")
                try rows.bind(.text("\(host)/"), at: 1)
                // The next character after the slash.
                try rows.bind(.text("\(host)0"), at: 2)
                while count <= limit, try rows.step() {
                    if listed.contains(try rows.integer(0)) { count += 1 }
                }
                rows.reset()
            }
            return count
        }
    }

    /// Runs of a fast clock count as of now: their resources would stay listed for too long.
    private static func correctFuture(in database: Connection, at now: Timestamp) throws {
        try database.run(
            "UPDATE listing SET last_at = ?1, first_at = min(first_at, ?1) WHERE last_at > ?1",
            .init(now))
        if let begin = try Schema.Property.listingsBegin.time(in: database), begin > now {
            try Schema.Property.listingsBegin.set(to: now, in: database)
        }
    }

    /// Adds the set of a run. If it equals the last run's set, only the time is updated.
    private static func add(
        _ listed: ResourceSet, in database: Connection, _ largest: Int64, at time: Timestamp
    ) throws {
        if let last = try rows(in: database).last,
            last.lastAt <= time, Period(of: last.lastAt, at: time) == Period(of: time, at: time),
            try set(of: last, in: database, largest) == listed
        {
            try database.run(
                "UPDATE listing SET last_at = ?2 WHERE id = ?1", .integer(last.id), .init(time))
        } else {
            try database.run(
                "INSERT INTO listing (first_at, last_at, resources) VALUES (?1, ?1, ?2)",
                .init(time), .blob(listed.compressed))
        }
    }

    /// Merges the sets of each period, and removes sets of more than a year ago.
    static func mergeOldSets(in database: Connection, _ largest: Int64, at now: Timestamp) throws {
        try database.run(
            "DELETE FROM listing WHERE last_at < ?", .init(now.advanced(by: .zero - memory)))
        // The last run's set is not merged with others of its hour.
        let earlier = try rows(in: database).dropLast()
        let groups = Dictionary(grouping: earlier) { Period(of: $0.lastAt, at: now) }
        for group in groups.values where group.count > 1 {
            guard let newest = group.last else { continue }
            let sets = try group.compactMap { try set(of: $0, in: database, largest) }
            // A damaged set is kept until it expires: its resources count as listed by it.
            guard sets.count == group.count else { continue }
            var union = ResourceSet()
            for set in sets { union.formUnion(set) }
            for row in group.dropLast() {
                try database.run("DELETE FROM listing WHERE id = ?", .integer(row.id))
            }
            try database.run(
                "UPDATE listing SET first_at = ?2, resources = ?3 WHERE id = ?1",
                .integer(newest.id), .init(group.map(\.firstAt).min() ?? newest.firstAt),
                .blob(union.compressed))
        }
    }

    static func rows(in database: Connection) throws -> [StoredListing] {
        try database.all("SELECT id, first_at, last_at FROM listing ORDER BY last_at, id") {
            StoredListing(id: try $0.integer(0), firstAt: try $0.time(1), lastAt: try $0.time(2))
        }
    }

    /// Reads a set; nil if its bytes are invalid, and its information is lost then.
    static func set(
        of row: StoredListing, in database: Connection, _ largest: Int64
    ) throws -> ResourceSet? {
        // Identifiers of removed resources may be larger than all present ones.
        let bound = max(largest, ResourceSet.largestKept)
        return try database.first("SELECT resources FROM listing WHERE id = ?", .integer(row.id)) {
            ResourceSet(compressed: try $0.blob(0), largestResource: bound)
        } ?? nil
    }

    /// The period by which sets are merged: the hour, day or week of their last run.
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

/// The last run that listed each resource, by the stored sets.
package struct LastListed: Sendable {
    /// Newest first.
    private let sets: [(time: Timestamp, resources: ResourceSet)]
    /// The first recorded listing, before which nothing is known; nil if there is none.
    package let begin: Timestamp?
    /// The last run of a damaged set, which may have listed any resource.
    private let unreadAt: Timestamp?

    static func read(in database: Connection) throws -> LastListed {
        let largest = try ListingLog.largestResource(in: database)
        let begin = try Schema.Property.listingsBegin.time(in: database)
        var unreadAt: Timestamp?
        var sets: [(time: Timestamp, resources: ResourceSet)] = []
        for row in try ListingLog.rows(in: database).reversed() {
            if let set = try ListingLog.set(of: row, in: database, largest) {
                sets.append((row.lastAt, set))
            } else {
                unreadAt = max(unreadAt ?? row.lastAt, row.lastAt)
            }
        }
        return LastListed(
            sets: sets, begin: [begin, unreadAt].compactMap(\.self).max(), unreadAt: unreadAt)
    }

    /// The last run that listed anything, from which ages are counted back; nil without one.
    var latest: Timestamp? { [sets.first?.time, unreadAt].compactMap(\.self).max() }

    /// The start of the time of an age, which ends with the last run that listed anything.
    func start(of age: Duration, at now: Timestamp) -> Timestamp {
        min(now, latest ?? now).advanced(by: .zero - age)
    }

    func isUnlisted(_ image: ScannedImage, since time: Timestamp, at now: Timestamp) -> Bool {
        // Runs validate images that they list. An image in no set has been unlisted at
        // most since the first set.
        let known = self.time(of: image.id) ?? begin ?? now
        return max(known, image.validatedAt) < time
    }

    func resources(since time: Timestamp) -> ResourceSet {
        var union = ResourceSet()
        for set in sets where set.time >= time { union.formUnion(set.resources) }
        return union
    }

    /// The last listing of a resource; nil if no set names it.
    package func time(of resource: Int64) -> Timestamp? {
        guard let time = sets.first(where: { $0.resources.contains(resource) })?.time else {
            return nil
        }
        return max(time, unreadAt ?? time)
    }
}
