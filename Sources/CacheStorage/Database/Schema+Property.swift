import PrefetchModel
internal import SQLite

/// A name in the table `property`, which holds single facts about the cache.
protocol PropertyKey {
    var propertyName: String { get }
}

extension PropertyKey {
    func set(to time: Timestamp, in database: Connection) throws {
        try set(to: time.milliseconds, in: database)
    }

    func set(to value: Int64, in database: Connection) throws {
        try database.run(
            "INSERT OR REPLACE INTO property (name, value) VALUES (?, ?)", .text(propertyName),
            .integer(value))
    }

    func remove(in database: Connection) throws {
        try database.run("DELETE FROM property WHERE name = ?", .text(propertyName))
    }

    func time(in database: Connection) throws -> Timestamp? {
        try value(in: database).map(Timestamp.init(milliseconds:))
    }

    func value(in database: Connection) throws -> Int64? {
        try database.first("SELECT value FROM property WHERE name = ?", .text(propertyName)) {
            try $0.integer(0)
        }
    }
}

extension Schema {
    /// The properties other than the stored rules of pruning, which ``PruneRule`` names.
    enum Property: String, PropertyKey {
        case lastPruned = "last_pruned"
        case listingsBegin = "listings_begin"
        case orphansKeptBefore = "orphans_kept_before"
        case removalUnfinished = "removal_unfinished"
        case verifiedFolders = "verified_folders"
        case fileMode = "file_mode"
        case fullNeeds = "full_needs"
        case fullProbes = "full_probes"

        var propertyName: String { rawValue }

        static func isKnown(_ name: String) -> Bool {
            Property(rawValue: name) != nil
                || PruneRule.allCases.contains { $0.propertyName == name }
        }

        /// Notes that the cache may hold content files without a row. Returns whether the note is
        /// new. An older one belongs to a killed command: the next run collects the files and
        /// removes the note, and no other command may.
        static func noteUnfinishedRemoval(
            at now: Timestamp, in database: Connection
        ) throws -> Bool {
            guard try removalUnfinished.time(in: database) == nil else { return false }
            try removalUnfinished.set(to: now, in: database)
            return true
        }
    }
}

extension CacheCatalog {
    /// The content folders that an interrupted verification has finished; 0 after a complete one.
    package func verifiedFolders() throws(StorageError) -> Int {
        let count = try database.read("reading the place") { database in
            try Schema.Property.verifiedFolders.value(in: database)
        }
        return Int(min(max(0, count ?? 0), Int64(CacheInspection.folders.count)))
    }
}

extension CacheDatabase {
    /// The mode of the cache's files; nil if none was chosen, or the stored one is not allowed.
    func fileMode() throws(StorageError) -> FileMode? {
        try read("reading properties") { database in
            try Schema.Property.fileMode.value(in: database).flatMap(FileMode.init(bits:))
        }
    }

    func set(_ property: Schema.Property, to value: Int64) throws(StorageError) {
        try write("setting a property") { try property.set(to: value, in: $0) }
    }

    func remove(_ property: Schema.Property) throws(StorageError) {
        try write("removing a property") { try property.remove(in: $0) }
    }

    func time(of property: Schema.Property) throws(StorageError) -> Timestamp? {
        try read("reading properties") { try property.time(in: $0) }
    }

    /// Removes the note of an unfinished removal, after synchronising the removed files. The note
    /// stays if files could not be removed, so that the next run collects them.
    func endRemoval(in content: ContentStore) throws(StorageError) {
        guard content.untidy == nil else { return }
        try content.synchronizeRemovals()
        try remove(.removalUnfinished)
    }
}
