package import PrefetchModel
internal import SQLite

/// When resources were listed last, as far as sets of runs say.
package struct LastListed: Sendable {
    /// The newest first.
    private let sets: [(time: Timestamp, resources: ResourceSet)]
    /// From when on runs have noted what they list: of what no set names, nothing is known before it. Nil
    /// when no run has.
    package let begin: Timestamp?
    /// The last run of a set that is damaged, which may have listed whatever there is.
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

    /// When a run has listed anything last; nil when none has. Ages are counted back from then: while no run lists
    /// anything, nothing becomes unlisted.
    var latest: Timestamp? { [sets.first?.time, unreadAt].compactMap(\.self).max() }

    /// All that have been listed since a time.
    func resources(since time: Timestamp) -> ResourceSet {
        var union = ResourceSet()
        for set in sets where set.time >= time { union.formUnion(set.resources) }
        return union
    }

    /// Nil when no set names it.
    package func time(of resource: Int64) -> Timestamp? {
        guard let time = sets.first(where: { $0.resources.contains(resource) })?.time else {
            return nil
        }
        return max(time, unreadAt ?? time)
    }
}
