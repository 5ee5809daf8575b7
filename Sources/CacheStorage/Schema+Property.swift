import PrefetchModel
internal import SQLite

extension Schema {
    /// The names of the table `property`.
    enum Property: String {
        case orphansKeptBefore = "orphans_kept_before"
        case removalUnfinished = "removal_unfinished"

        func set(to time: Timestamp, in database: Connection) throws {
            try Statement(
                database, sql: "INSERT OR REPLACE INTO property (name, value) VALUES (?, ?)"
            ).execute(.text(rawValue), .init(time))
        }

        /// Notes that files may be there of which no row tells, until somebody drops it.
        ///
        /// - Returns: whether this is new: what an earlier, killed command has left is for the next run to look for,
        ///   and nobody else drops the note of it.
        static func noteUnfinishedRemoval(
            at now: Timestamp, in database: Connection
        ) throws -> Bool {
            guard try removalUnfinished.time(in: database) == nil else { return false }
            try removalUnfinished.set(to: now, in: database)
            return true
        }

        /// Nil when it is not set.
        func time(in database: Connection) throws -> Timestamp? {
            try Statement(database, sql: "SELECT value FROM property WHERE name = ?")
                .first(.text(rawValue)) { try $0.time(0) }
        }
    }
}

extension CacheDatabase {
    func remove(_ property: Schema.Property) throws(StorageError) {
        try write("removing a property") { database in
            try Statement(database, sql: "DELETE FROM property WHERE name = ?")
                .execute(.text(property.rawValue))
        }
    }
}
