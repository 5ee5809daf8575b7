package import PrefetchModel
internal import SQLite

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
