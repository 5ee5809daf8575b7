import PrefetchModel
internal import SQLite

extension Schema {
    /// The names of the table `property`.
    enum Property: String {
        case lastPruned = "last_pruned"
        case listingsBegin = "listings_begin"
        case orphansKeptBefore = "orphans_kept_before"
        case removalUnfinished = "removal_unfinished"
        case verifiedFolders = "verified_folders"
        case fileMode = "file_mode"
        case pruneMaximumSize = "prune_max_size"
        case pruneMaximumFiles = "prune_max_files"
        case pruneLowWater = "prune_low_water"
        case pruneUnlistedFor = "prune_unlisted_for"
        case pruneExpiredFor = "prune_expired_for"
        case pruneGone = "prune_gone"
        case pruneVariantsUnusedFor = "prune_variants_unused_for"
        case pruneHistory = "prune_history"

        func set(to time: Timestamp, in database: Connection) throws {
            try set(to: time.milliseconds, in: database)
        }

        func set(to value: Int64, in database: Connection) throws {
            try Statement(
                database, sql: "INSERT OR REPLACE INTO property (name, value) VALUES (?, ?)"
            ).execute(.text(rawValue), .integer(value))
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

        func remove(in database: Connection) throws {
            try Statement(database, sql: "DELETE FROM property WHERE name = ?")
                .execute(.text(rawValue))
        }

        /// Nil when it is not set.
        func time(in database: Connection) throws -> Timestamp? {
            try value(in: database).map(Timestamp.init(milliseconds:))
        }

        /// Nil when it is not set.
        func value(in database: Connection) throws -> Int64? {
            try Statement(database, sql: "SELECT value FROM property WHERE name = ?")
                .first(.text(rawValue)) { try $0.integer(0) }
        }
    }
}

extension CacheCatalog {
    /// Folders of content files that the last verification has looked at before it was stopped; 0 after one that came
    /// to its end.
    package func verifiedFolders() throws(StorageError) -> Int {
        let count = try database.read("reading the place") { database in
            try Schema.Property.verifiedFolders.value(in: database)
        }
        return Int(min(max(0, count ?? 0), Int64(CacheInspection.folders.count)))
    }
}

extension CacheDatabase {
    /// The mode that the cache's files are to have; nil where nobody has said, or it is none that they may have.
    func fileMode() throws(StorageError) -> FileMode? {
        try read("reading properties") { database in
            try Schema.Property.fileMode.value(in: database).flatMap(FileMode.init(bits:))
        }
    }

    func remember(_ mode: FileMode) throws(StorageError) {
        try write("setting a property") { database in
            try Schema.Property.fileMode.set(to: Int64(mode.ofFiles), in: database)
        }
    }

    func remove(_ property: Schema.Property) throws(StorageError) {
        try write("removing a property") { database in
            try property.remove(in: database)
        }
    }

    /// Drops the note of an unfinished removal, once no power cut can bring back what was removed. It stays while
    /// files could not be removed, which the next run looks for.
    func endRemoval(in content: ContentStore) throws(StorageError) {
        guard content.untidy == nil else { return }
        try content.synchronizeRemovals()
        try remove(.removalUnfinished)
    }
}
