import PrefetchModel
internal import SQLite

extension Schema {
    /// The names of the table `property`.
    enum Property: String {
        case orphansKeptBefore = "orphans_kept_before"
        case removalUnfinished = "removal_unfinished"
        case fileMode = "file_mode"

        func set(to time: Timestamp, in database: Connection) throws {
            try set(to: .init(time), in: database)
        }

        func set(to value: Statement.Value, in database: Connection) throws {
            try Statement(
                database, sql: "INSERT OR REPLACE INTO property (name, value) VALUES (?, ?)"
            ).execute(.text(rawValue), value)
        }

        /// Nil when it is not set.
        func integer(in database: Connection) throws -> Int64? {
            try Statement(database, sql: "SELECT value FROM property WHERE name = ?")
                .first(.text(rawValue)) { try $0.integer(0) }
        }

        /// Nil when it is not set.
        func time(in database: Connection) throws -> Timestamp? {
            try Statement(database, sql: "SELECT value FROM property WHERE name = ?")
                .first(.text(rawValue)) { try $0.time(0) }
        }
    }
}

extension CacheDatabase {
    /// The mode that the cache's files are to have; nil where nobody has said, or it is none that they may have.
    func fileMode() throws(StorageError) -> FileMode? {
        try read("reading properties") { database in
            try Schema.Property.fileMode.integer(in: database).flatMap(FileMode.init(bits:))
        }
    }

    func remember(_ mode: FileMode) throws(StorageError) {
        try write("setting a property") { database in
            try Schema.Property.fileMode.set(to: .integer(Int64(mode.ofFiles)), in: database)
        }
    }

    func remove(_ property: Schema.Property) throws(StorageError) {
        try write("removing a property") { database in
            try Statement(database, sql: "DELETE FROM property WHERE name = ?")
                .execute(.text(property.rawValue))
        }
    }
}
